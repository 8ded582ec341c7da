package source_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

var (
	widgetType = fakecluster.Type{GVR: widgets, Kind: "Widget", Namespaced: true}
	blockType  = fakecluster.Type{GVR: blocks, Kind: "IPAMBlock"}
)

// run is client-go's informer, running on a source.
type run struct {
	cache.SharedIndexInformer
	source *source.Source
	cancel context.CancelFunc
	ended  chan struct{}
}

func runInformer(t *testing.T, cfg source.Config) *run {
	t.Helper()
	return runSource(t, source.New(cfg))
}

func runSource(t *testing.T, s *source.Source) *run {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &run{
		SharedIndexInformer: cache.NewSharedIndexInformer(s.ListerWatcher(), nil, 0, cache.Indexers{}), // with a type, the reflector would drop moved objects
		source:              s, cancel: cancel, ended: make(chan struct{}),
	}
	store := r.GetStore()
	s.LookUp(func(key string) (any, bool) {
		item, there, err := store.GetByKey(key)
		return item, there && err == nil
	})
	// The default handler uses the time of its last call, which may be that of another bubble.
	if err := r.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(r.ended); r.RunWithContext(ctx) }()
	synctest.Wait()
	return r
}

// stop ends the informer and returns the time that it took.
func (r *run) stop() time.Duration {
	begun := time.Now()
	r.cancel()
	<-r.ended
	r.source.Wait()
	return time.Since(begun)
}

// keys returns the keys in the informer's store.
func (r *run) keys() []string {
	synctest.Wait()
	return slices.Sorted(slices.Values(r.GetStore().ListKeys()))
}

func create(t *testing.T, cluster *fakecluster.Cluster, namespace, name, color string) {
	t.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetName(name)
	obj.SetLabels(map[string]string{"color": color})
	gvr := widgets
	if namespace == "" {
		gvr = blocks
	}
	if _, err := cluster.Resource(gvr).Namespace(namespace).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create %s/%s: %v", namespace, name, err)
	}
}

// asked returns the numbers of requests for lists, watch-lists and ordinary watches of widgets.
func asked(cluster *fakecluster.Cluster) []int {
	watchLists := 0
	watches := cluster.Requests("watch", widgets)
	for _, req := range watches {
		if req.Options.SendInitialEvents != nil {
			watchLists++
		}
	}
	return []int{len(cluster.Requests("list", widgets)), watchLists, len(watches) - watchLists}
}

func TestInformer_SyncsByWatchList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, observer := fakecluster.New(widgetType), &observer{}
		create(t, cluster, "ns", "a", "red")
		r := runInformer(t, source.Config{Client: source.Unstructured(cluster), GVR: widgets, Observer: observer})
		if !r.HasSynced() {
			t.Error("not synced")
		}
		create(t, cluster, "ns", "b", "red")
		if diff := cmp.Diff([]string{"ns/a", "ns/b"}, r.keys()); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int{0, 1, 0}, asked(cluster)); diff != "" {
			t.Errorf("lists, watch-lists, watches (-want +got):\n%s", diff)
		}
		if took := r.stop(); took != 0 {
			t.Errorf("stopping took %v", took)
		}
		if got := cluster.OpenWatches(widgets); got != 0 {
			t.Errorf("open watches = %d, want 0", got)
		}
		if diff := cmp.Diff([]string{"list succeeded", "watch succeeded"}, observer.reports()); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
	})
}

func TestInformer_SelectorAndNamespaceApplyToListAndWatch(t *testing.T) {
	for name, mute := range map[string]bool{"by watch-list": false, "by list": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				if mute {
					cluster.MuteInitialEventsEnd()
				}
				add := func(suffix string) {
					create(t, cluster, "ns", "red-"+suffix, "red")
					create(t, cluster, "ns", "blue-"+suffix, "blue")
					create(t, cluster, "other", "red-"+suffix, "red")
				}
				add("listed")
				r := runInformer(t, source.Config{
					Client: source.Unstructured(cluster), GVR: widgets, Namespace: "ns",
					Tweak: func(o *metav1.ListOptions) { o.LabelSelector = "color=red" },
				})
				time.Sleep(10 * time.Second)
				if diff := cmp.Diff([]string{"ns/red-listed"}, r.keys()); diff != "" {
					t.Errorf("keys (-want +got):\n%s", diff)
				}
				add("watched")
				if diff := cmp.Diff([]string{"ns/red-listed", "ns/red-watched"}, r.keys()); diff != "" {
					t.Errorf("keys (-want +got):\n%s", diff)
				}
				r.stop()
			})
		})
	}
}

func TestInformer_StalledWatchListFallsBackToList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, observer := fakecluster.New(widgetType), &observer{}
		cluster.MuteInitialEventsEnd()
		create(t, cluster, "ns", "a", "red")
		r := runInformer(t, source.Config{Client: source.Unstructured(cluster), GVR: widgets, Observer: observer})
		time.Sleep(10*time.Second - time.Nanosecond)
		if r.HasSynced() {
			t.Error("synced without the bookmark")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if !r.HasSynced() {
			t.Error("not synced 10 s after the last initial event")
		}
		create(t, cluster, "ns", "b", "red")
		if diff := cmp.Diff([]string{"ns/a", "ns/b"}, r.keys()); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int{1, 1, 1}, asked(cluster)); diff != "" {
			t.Errorf("lists, watch-lists, watches (-want +got):\n%s", diff)
		}
		if got := cluster.OpenWatches(widgets); got != 1 {
			t.Errorf("open watches = %d, want 1: the stalled one is closed", got)
		}
		if diff := cmp.Diff([]string{"watch failed", "list succeeded", "watch succeeded"}, observer.reports()); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
		r.stop()
	})
}

// The reflector lists as soon as it has the error of a watch-list. The source must have discarded
// the objects of the watch-list before: otherwise it would discard the list, list again, and miss
// deletions in the meantime.
func TestInformer_KeepsTheListAfterAFailedWatchList(t *testing.T) {
	for range 100 { // the test failed once in ten rounds
		synctest.Test(t, func(t *testing.T) {
			cluster := fakecluster.New(widgetType)
			cluster.MuteInitialEventsEnd()
			create(t, cluster, "ns", "a", "red")
			r := runInformer(t, source.Config{Client: source.Unstructured(cluster), GVR: widgets})
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if lists := len(cluster.Requests("list", widgets)); lists != 1 {
				t.Errorf("lists = %d, want 1", lists)
			}
			r.stop()
		})
	}
}

// client-go's fake client does not support watch-list: it accepts the request and never sends the
// bookmark. It has a marker for this.
func TestInformer_ListsAtOnceOnAFakeClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		obj := newObject("a")
		obj.SetGroupVersionKind(widgets.GroupVersion().WithKind("Widget"))
		kinds := map[schema.GroupVersionResource]string{widgets: "WidgetList"}
		client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, obj)
		r := runInformer(t, source.Config{Client: source.Unstructured(client), GVR: widgets})
		if diff := cmp.Diff([]string{"ns/a"}, r.keys()); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		r.stop()
	})
}

func TestInformer_WaitsForItsTypeAndIgnoresTheNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(blockType)
		create(t, cluster, "", "b", "red")
		available := newAvailability(source.Held)
		r := runInformer(t, source.Config{Client: source.Unstructured(cluster), GVR: blocks, Namespace: "ns", Availability: available})
		time.Sleep(time.Hour)
		if r.HasSynced() || len(cluster.Requests("watch", blocks)) > 0 || len(cluster.Requests("list", blocks)) > 0 {
			t.Error("requests were sent before the type was served")
		}
		available.Set(source.Type{Serving: source.Served, GVR: blocks})
		if diff := cmp.Diff([]string{"b"}, r.keys()); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		r.stop()
	})
}
