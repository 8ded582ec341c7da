package shapes_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// childEnv has the name of the test's child process. client-go reads the variables of its detectors at the start of a
// process, and some shapes never end.
const childEnv = "GVRKIT_TEST_SHAPE"

func isChild() bool { return os.Getenv(childEnv) != "" }

// child runs test again in another process, with env, and returns its output.
func child(t *testing.T, test, name string, env ...string) (string, error) {
	t.Helper()
	program := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$", "-test.v")
	program.Env = append(append(os.Environ(), childEnv+"="+name), env...)
	out, err := program.CombinedOutput()
	return string(out), err
}

const (
	inconsistencies = "KUBE_WATCHLIST_INCONSISTENCY_DETECTOR=true"
	mutations       = "KUBE_CACHE_MUTATION_DETECTOR=true"
)

// All shapes are the same with both detectors. Each ends the process if it finds a change of a cached object, or that a watch-list and a list
// differ.
func TestShapes_WithDetectors(t *testing.T) {
	out, err := child(t, "TestShapes", "all", mutations, inconsistencies)
	if err != nil || !strings.Contains(out, "--- PASS: TestShapes ") {
		t.Errorf("%v\n%s", err, out[max(0, len(out)-5000):])
	}
}

// A handler that writes to its object is found, as with client-go.
func TestShapes_MutationIsDetected(t *testing.T) {
	writes := shape{name: "a handler that writes to its object", use: func(p *program) {
		p.create("ns", "a")
		f := p.newFactory(p.cluster, 0)
		_, err := f.ForResource(widgets).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
			obj.(*unstructured.Unstructured).Object["spec"].(map[string]any)["size"] = int64(2)
		}})
		p.must(err)
		f.Start(p.stop)
		time.Sleep(10 * time.Second)
	}}
	for _, l := range libraries {
		if isChild() {
			if l.name == os.Getenv(childEnv) {
				run(t, l, writes)
			}
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			if out, err := child(t, "TestShapes_MutationIsDetected", l.name, mutations); err == nil || !strings.Contains(out, "ALTERED!") {
				t.Errorf("%v\n%.3000s", err, out)
			}
		})
	}
}

// The inconsistency detector lists again at the version of a watch-list, so that later changes are no inconsistency. The
// list does not affect the watch.
func TestShapes_WithInconsistencyDetector(t *testing.T) {
	use := shape{name: "a transform, and changes", use: func(p *program) {
		p.create("ns", "a")
		p.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == "list" {
				p.note("a list at %q, %s", req.Options.ResourceVersion, req.Options.ResourceVersionMatch)
			}
			return nil
		})
		f := p.newFiltered(p.cluster, 0, "ns", func(o *metav1.ListOptions) { o.LabelSelector = "app" })
		informer := f.ForResource(widgets).Informer()
		p.must(informer.SetTransform(func(obj any) (any, error) {
			obj.(*unstructured.Unstructured).SetManagedFields(nil)
			return obj, nil
		}))
		seen := p.listen(informer)
		f.Start(p.stop)
		p.note("synced: %v", f.WaitForCacheSync(after(time.Minute))[widgets])
		p.noteEvents("events", seen)
		p.resize("a", 2)
		p.create("ns", "b")
		p.removeA()
		p.noteEvents("later", seen)
	}}
	for _, l := range libraries {
		if isChild() {
			if l.name == os.Getenv(childEnv) {
				t.Logf("notes: %s", strings.Join(run(t, l, use), "; "))
			}
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			check := `a list at "2", Exact; `
			if l.packed { // with equal content, packed objects may have different bytes
				check = ""
			}
			want := "notes: " + check + "synced: true; events: add ns/a; later: add ns/b, delete ns/a, update ns/a\n"
			out, err := child(t, "TestShapes_WithInconsistencyDetector", l.name, inconsistencies)
			if err != nil || !strings.Contains(out, want) {
				t.Errorf("%v, want %s\n%.6000s", err, want, out)
			}
		})
	}
}

// A nil stop channel never closes: the informer runs until the process ends.
func TestShapes_NilStopChannel(t *testing.T) {
	for _, l := range libraries {
		if isChild() {
			if l.name == os.Getenv(childEnv) {
				useNilStopChannel(t, l)
			}
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			if out, err := child(t, "TestShapes_NilStopChannel", l.name); err != nil || !strings.Contains(out, "--- PASS") {
				t.Errorf("%v\n%.3000s", err, out)
			}
		})
	}
}

func useNilStopChannel(t *testing.T, l library) {
	t.Helper()
	l.setenv(t)
	cluster := fakecluster.New(widgetType, nodeType)
	p := &program{library: l, t: t, cluster: cluster}
	p.create("ns", "a")
	f := l.newFactory(cluster, 0)
	byFactory, byHand := f.ForResource(widgets).Informer(), l.newFilteredInformer(cluster, widgets, "", 0, cache.Indexers{}, nil).Informer()
	f.Start(nil)
	go byHand.Run(nil)
	if got := f.WaitForCacheSync(nil); !got[widgets] {
		t.Errorf("WaitForCacheSync: %v", got)
	}
	if !cache.WaitForCacheSync(nil, byFactory.HasSynced, byHand.HasSynced) {
		t.Error("not synced")
	}
	for name, informer := range map[string]cache.SharedIndexInformer{"by factory": byFactory, "by hand": byHand} {
		if n := len(informer.GetStore().ListKeys()); n != 1 {
			t.Errorf("%s: %d objects", name, n)
		}
		if ours, is := informer.(interface{ IsPacked() bool }); is == (l.name == clientGo) || is && ours.IsPacked() != l.packed {
			t.Errorf("%s: %T is not an informer of %s", name, informer, l.name)
		}
	}
}
