package leases

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/stub"
	"github.com/gvrkit/gvrkit/bench/usage"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

func TestMain(m *testing.M) {
	// One of them sleeps until a millisecond after the last error, which is decades if that
	// was outside the bubble; the other logs the errors that these tests cause.
	utilruntime.ErrorHandlers = nil
	goleak.VerifyTestMain(m)
}

// serve serves a server without CRDs until the test ends.
func serve(t *testing.T) cluster.Connection {
	t.Helper()
	s, err := stub.New(t.Context(), stub.Config{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return cluster.Connection{Host: server.URL}
}

func do(t *testing.T, contestant string, params Params) (harness.Figures, error) {
	t.Helper()
	text, err := json.Marshal(params)
	if err != nil {
		t.Fatal(err)
	}
	return measure(t.Context(), harness.Job{Contestant: contestant, Params: text, Round: 1})
}

func TestCost_ALeaseThatOthersHoldCostsNoRequest(t *testing.T) {
	f, err := do(t, "gvrkit", Params{Case: costCase, Server: serve(t), Size: Size{Pairs: 300, Settle: calm}})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range concurrency {
		if name := costName(n); f[name] <= 0 || f[name+allocs] < 1 || f[name+requests] != 0 {
			t.Errorf("%s: %v", name, f)
		}
	}
}

func TestAbsent_RequestsAndMemoryAreMeasured(t *testing.T) {
	rates := map[string]float64{}
	for _, contestant := range []string{"client-go", "gvrkit"} {
		f, err := do(t, contestant, Params{Case: absentCase, Server: serve(t), Size: Size{Absent: 50, Settle: 100 * time.Millisecond, Count: 2 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		if f[absentMemory] <= 0 || f[handlerMemory] <= 0 || f[absentGoroutines] <= 0 || f[startRequests] <= 0 {
			t.Errorf("%s: %v", contestant, f)
		}
		rates[contestant] = f[requestRate]
	}
	if rates["client-go"] < 10 || rates["gvrkit"] > 2.5 {
		t.Errorf("requests per second: %v", rates)
	}
}

func TestAbsent_FailsIfAnInformerSyncs(t *testing.T) {
	r := &run{Params: Params{Server: serve(t), Size: Size{Absent: 2, Count: time.Millisecond}}, figures: harness.Figures{}, traffic: usage.Count(&rest.Config{})}
	r.set = &set{add: func(context.Context, schema.GroupVersionResource) (*informer, error) {
		return &informer{
			handle: func(cache.ResourceEventHandler) error { return nil },
			synced: func(context.Context) error { return nil },
		}, nil
	}}
	if err := r.absent(t.Context()); err == nil || !strings.Contains(err.Error(), "not served") {
		t.Errorf("error: %v", err)
	}
}

func TestMeasure_FailsIfTheCaseOrTheContestantIsUnknown(t *testing.T) {
	if _, err := do(t, "gvrkit", Params{Case: "everything", Server: serve(t)}); err == nil {
		t.Error("a case: no error")
	}
	if _, err := do(t, "kubectl", Params{Case: absentCase}); err == nil {
		t.Error("a contestant: no error")
	}
}

func TestSize_TheRoundThatDoesNotCountIsNoLonger(t *testing.T) {
	for _, size := range []Size{{Settle: time.Minute, Count: time.Minute, Cycles: 7, Absent: 3}, {Settle: time.Second, Count: time.Millisecond, Cycles: 1, Absent: 3}} {
		if s := size.short(); s.Settle > size.Settle || s.Count > size.Count || s.Cycles > size.Cycles || s.Absent != size.Absent {
			t.Errorf("%+v of %+v", s, size)
		}
	}
}

func object(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name}}}
}

func TestLedger_TellsSinceWhenThereAreAsMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, l := time.Now(), newLedger(2)
		steps := []func(){
			func() { l.OnAdd(object("a"), true) },
			func() { l.OnAdd(object("b"), false) },
			func() { l.OnAdd(object("b"), false) }, // exists already
			func() { l.OnUpdate(object("a"), object("a")) },
			func() { l.OnDelete(cache.DeletedFinalStateUnknown{Key: "a", Obj: object("a")}) },
			func() { l.OnDelete(object("c")) }, // never existed
			l.Reset,
		}
		go func() {
			for _, step := range steps {
				<-time.After(time.Second)
				step()
			}
		}()
		for _, want := range []struct {
			objects int
			after   time.Duration
		}{{1, time.Second}, {2, 2 * time.Second}, {1, 5 * time.Second}, {0, 7 * time.Second}} {
			at, err := l.await(t.Context(), want.objects)
			if err != nil || at.Sub(begin) != want.after {
				t.Errorf("%d objects since %v, want %v: %v", want.objects, at.Sub(begin), want.after, err)
			}
		}
	})
}

func TestLedger_GivesUpWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newLedger(0).await(ctx, 1); err == nil {
		t.Error("there is an object")
	}
}

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// world is a cluster, and a restarted informer on its widgets.
type world struct {
	*fakecluster.Cluster

	informer *informer
	*recorder
}

// recorder records the calls of a handler.
type recorder struct {
	cache.ResourceEventHandlerFuncs

	calls []string
}

// Reset implements resetter.
func (r *recorder) Reset() { r.calls = append(r.calls, "reset") }

// newWorld returns a cluster that serves CRDs. It ends with the bubble of the test.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{Cluster: fakecluster.New(fakecluster.Type{GVR: stub.CRDs, Kind: "CustomResourceDefinition"}), recorder: &recorder{}}
	ctx, cancel := context.WithCancel(t.Context())
	set := newRestarted(ctx, w)
	t.Cleanup(func() {
		cancel()
		if err := set.stop(ctx); err != nil {
			t.Error(err)
		}
	})
	record := func(what string) func(any) {
		return func(obj any) {
			name, err := cache.DeletionHandlingObjectToName(obj)
			if err != nil {
				t.Error(err)
			}
			w.calls = append(w.calls, what+" "+name.Name)
		}
	}
	w.AddFunc, w.DeleteFunc = record("add"), record("delete")
	var err error
	if w.informer, err = set.add(ctx, widgets); err != nil {
		t.Fatal(err)
	}
	if err := w.informer.handle(w.recorder); err != nil {
		t.Fatal(err)
	}
	return w
}

// define creates a CRD and serves widgets.
func (w *world) define(t *testing.T, name, established string) {
	t.Helper()
	w.Serve(fakecluster.Type{GVR: widgets, Kind: "Widget"})
	w.create(t, stub.CRDs, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": name},
		"status": map[string]any{"conditions": []any{map[string]any{"type": "Established", "status": established}}},
	}})
}

func (w *world) create(t *testing.T, gvr schema.GroupVersionResource, obj *unstructured.Unstructured) {
	t.Helper()
	if _, err := w.Resource(gvr).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// undefine deletes the CRD. Its objects go without an event.
func (w *world) undefine(t *testing.T) {
	t.Helper()
	if err := w.Resource(stub.CRDs).Delete(t.Context(), "widgets.example.com", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Withdraw(widgets)
	synctest.Wait()
}

// returns reports whether f returns nil now.
func returns(t *testing.T, f func(context.Context) error) bool {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- f(ctx) }()
	synctest.Wait()
	cancel()
	return <-done == nil
}

func TestRestarted_FollowsATypeThatGoesAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.define(t, "widgets.example.com", "True")
		w.create(t, widgets, object("a"))
		if !returns(t, w.informer.synced) || returns(t, w.informer.gone) {
			t.Error("the type is served, and the informer does not know")
		}
		w.undefine(t)
		if returns(t, w.informer.synced) || !returns(t, w.informer.gone) {
			t.Error("the type has gone, and the informer does not know")
		}
		w.define(t, "widgets.example.com", "True")
		w.create(t, widgets, object("b"))
		if !returns(t, w.informer.synced) {
			t.Error("the type is back, and the informer does not know")
		}
		if diff := cmp.Diff([]string{"add a", "reset", "add b"}, w.calls); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
	})
}

func TestRestarted_AsksForNothingBeforeItsOwnCRDIsEstablished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.define(t, "gadgets.example.com", "True")
		w.define(t, "widgets.example.com", "False")
		if lists, watches := w.Requests("list", widgets), w.Requests("watch", widgets); len(lists)+len(watches) > 0 {
			t.Errorf("it asks: %v, %v", lists, watches)
		}
	})
}

func TestRestarted_OneHandlerBeforeItStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		if err := w.informer.handle(&recorder{}); err == nil {
			t.Error("it takes another handler, which it would not call")
		}
	})
}
