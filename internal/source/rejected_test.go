package source_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/undecodable"
	"github.com/gvrkit/gvrkit/packed"
)

// failBad is a transform that fails for objects whose names begin with b, and for blue ones.
func failBad(obj any) (any, error) {
	object := obj.(*unstructured.Unstructured)
	if object.GetName()[0] == 'b' || object.GetLabels()["color"] == "blue" {
		return nil, errors.New("bad")
	}
	return obj, nil
}

// runTransformed runs an informer with a transform on a cluster with widgets of these names.
func runTransformed(t *testing.T, transform func(any) (any, error), names ...string) *testInformer {
	t.Helper()
	w := &testInformer{t: t, cluster: fakecluster.New(widgetType), available: newAvailability(source.Served), observer: &observer{}, handler: &handler{}}
	w.create(names...)
	src := source.New(source.Config{Client: source.Unstructured(w.cluster), GVR: widgets, Availability: w.available, Observer: w.observer})
	if err := src.SetTransform(transform); err != nil {
		t.Fatal(err)
	}
	w.run = runSource(t, src)
	if _, err := w.AddEventHandler(w.handler); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	t.Cleanup(func() { w.stop() })
	return w
}

// An event without a name may concern any object: a list follows its watch, and no other one. The object is left out until then.
func TestRejected_AListFollowsAnEventWithoutAName(t *testing.T) {
	for scope, modify := range scopes {
		for name, nameless := range map[string]bool{"": false, "nameless": true, "nameless, packed": true} {
			t.Run(scope+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var server *watch.FakeWatcher // of the last watch
					client := &script{watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
						server = newServerWatch()
						return server, nil
					}, list: func(context.Context) (*unstructured.UnstructuredList, error) {
						list := &unstructured.UnstructuredList{}
						list.SetResourceVersion("1")
						return list, nil
					}}
					cfg := source.Config{Client: source.Unstructured(client), GVR: widgets}
					modify(&cfg)
					s := source.New(cfg)
					if a := <-startList(t.Context(), s); a.err != nil {
						t.Fatal(a.err)
					}
					w := openWatch(t, gateOf(s), metav1.ListOptions{ResourceVersion: "1"})
					object := newObject("a")
					if nameless {
						object.SetName("")
						object.SetNamespace("")
					}
					var sent runtime.Object = object
					if name == "nameless, packed" { // it can't be written to
						var err error
						if sent, err = packed.NewPacker().Pack(object); err != nil {
							t.Fatal(err)
						}
					}
					server.Modify(sent)
					for range 2 {
						time.Sleep(time.Minute)
						take(w)
						server.Stop()
					}
					time.Sleep(time.Minute)
					take(w)
					var verbs []string
					for _, request := range client.requests() {
						verbs = append(verbs, request.Verb)
					}
					want := []string{"list", "watch", "watch", "watch"}
					if nameless {
						want = []string{"list", "watch", "list", "watch", "watch"}
					}
					if diff := cmp.Diff(want, verbs); diff != "" {
						t.Errorf("requests (-want +got):\n%s", diff)
					}
					if rejected := s.State().Rejected; rejected.Count != 0 {
						t.Errorf("after the list, %+v", rejected)
					}
				})
			})
		}
	}
}

// Handlers do not get initial objects that are left out.
func TestRejected_InitialObjectsAreNoEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := runTransformed(t, failBad, "a", "b", "bad", "c")
		if got := len(w.handler.take()); got != 2 {
			t.Errorf("the handler got %d objects, want 2", got)
		}
		if got := asked(w.cluster); got[1] != 1 || got[0] != 0 {
			t.Errorf("lists, watch-lists, watches = %v, want one watch-list", got)
		}
		if got := w.source.Events(); got != 2 {
			t.Errorf("events = %d, want 2", got)
		}
		w.create("d")
		w.expect("later", "add d red")
		if got := w.source.Events(); got != 3 {
			t.Errorf("events = %d, want 3", got)
		}
	})
}

// The version of the store goes on when an object is deleted that is left out.
func TestRejected_DeletionAdvancesTheVersion(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(w *testInformer, recovers func())
		want   []string
	}{
		"never cached": {func(w *testInformer, _ func()) { w.remove("b") }, nil},
		"cached before": {func(w *testInformer, _ func()) {
			w.setColor("a", "blue")
			w.expect("changed:")
			w.remove("a")
		}, []string{"delete a red"}},
		"the transform does not fail for the deletion": {func(w *testInformer, recovers func()) {
			recovers()
			w.remove("b")
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var recovered atomic.Bool
				w := runTransformed(t, func(obj any) (any, error) {
					if recovered.Load() {
						return obj, nil
					}
					return failBad(obj)
				}, "a", "b")
				w.handler.take()
				tc.change(w, func() { recovered.Store(true) })
				w.expect("deleted:", tc.want...)
				if got, want := w.LastSyncResourceVersion(), w.source.State().Version; got != want {
					t.Errorf("the reflector has version %s, want %s", got, want)
				}
				if got, want := w.GetStore().LastStoreSyncResourceVersion(), w.source.State().Version; got != want {
					t.Errorf("the store has version %s, want %s", got, want)
				}
			})
		})
	}
}

// The last report that an object is left out, or no longer, comes when the state has the version of the event.
func TestRejected_IsReportedWithTheVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := runTransformed(t, failBad, "a")
		var reported source.State
		w.observer.mu.Lock()
		w.observer.whenCompleted = func() { reported = w.source.State() }
		w.observer.mu.Unlock()
		for _, step := range []struct {
			what    string
			change  func()
			leftOut int
		}{
			{"changed", func() { w.setColor("a", "blue") }, 1},
			{"changed back", func() { w.setColor("a", "green") }, 0},
			{"created", func() { w.create("bad") }, 1},
			{"deleted", func() { w.remove("bad") }, 0},
		} {
			step.change()
			synctest.Wait()
			if got, want := reported.Version, w.source.State().Version; got != want || reported.Rejected.Count != step.leftOut {
				t.Errorf("%s: the last report is at version %s with %d left out, want %s and %d", step.what, got, reported.Rejected.Count, want, step.leftOut)
			}
		}
	})
}

// Objects without a name and a UID are different objects, also if some of them can't be decoded.
func TestRejected_InitialObjectsWithoutANameAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServerWatch()
		s := source.New(source.Config{Client: source.Unstructured(&script{watch: always(server, nil)}), GVR: widgets})
		listed := startWatchList(t.Context(), s)
		server.Add(undecodable.New([]byte(`{"metadata":{"namespace":"ns"}}`), errors.New("bad")))
		server.Add(newObject(""))
		server.Add(newObject("a"))
		server.Action(watch.Bookmark, newBookmark("true"))
		if a := <-listed; a.err != nil {
			t.Fatal(a.err)
		}
		if got := s.State(); got.Objects != 1 || got.Rejected.Count != 2 {
			t.Errorf("%d objects, %d left out", got.Objects, got.Rejected.Count)
		}
	})
}
