package dynamicinformer_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/packed"
)

// movedPacked is a handler of packed objects that gets those which have moved.
type movedPacked struct{ packedRecorder }

func (r *movedPacked) OnMoved(obj any) {
	r.record("move", obj.(cache.DeletedObject[*packed.Object]).OptionalObj)
}

var _ dynamicinformer.MovedHandler = (*recorder)(nil)

// A namespace that leaves the set by configuration deletes no object. Each kind of handler gets OnMoved if it has the
// method, and nothing otherwise; the cache does not have the objects any more.
func TestMoved_NoHandlerGetsADeletion(t *testing.T) {
	inSet(t, func(in bubble) {
		for _, transformed := range []bool{false, true} {
			opts := []dynamicinformer.LeaseOption{dynamicinformer.WithNamespaces("a", "b"), dynamicinformer.WithPackedCache(), dynamicinformer.WithSeparateInformer()}
			if transformed {
				opts = append(opts, dynamicinformer.WithTransform(func(obj any) (any, error) { return obj, nil }))
			}
			l := acquire(in.T, in.factory, widgets, opts...)
			plain, direct := listen(in.T, l.Informer()), &movedPacked{}
			deleted := 0
			_, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { deleted++ }})
			if err != nil {
				in.Fatal(err)
			}
			if _, err := l.AddPackedHandler(direct, cache.HandlerOptions{}); err != nil {
				in.Fatal(err)
			}
			synctest.Wait()
			plain.take()
			direct.take()
			if err := l.SetNamespaces("b"); err != nil {
				in.Fatal(err)
			}
			synctest.Wait()
			if diff := cmp.Diff([]string{"move a/x"}, plain.take()); diff != "" {
				in.Errorf("events (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"move a/x <nil>"}, direct.take()); diff != "" {
				in.Errorf("packed events (-want +got):\n%s", diff)
			}
			if deleted != 0 {
				in.Errorf("%d calls of OnDelete", deleted)
			}
			if diff := cmp.Diff([]string{"b/x"}, keysOf(l)); diff != "" {
				in.Errorf("keys (-want +got):\n%s", diff)
			}
			time.Sleep(5 * time.Second)
			for _, h := range l.Status().Handlers {
				if h.Backlog != 0 {
					in.Errorf("backlog: %+v", h)
				}
			}
			if err := l.SetNamespaces("a", "b"); err != nil {
				in.Fatal(err)
			}
			synctest.Wait()
			if diff := cmp.Diff([]string{"add a/x"}, plain.take()); diff != "" {
				in.Errorf("events of a namespace that is back (-want +got):\n%s", diff)
			}
			l.Release()
		}
	})
}

// An object that moves while its addition waits is no event, as one that is deleted; one that the handler knows has
// moved, and comes back as an addition.
func TestMoved_CoalescingMergesItAsADeletion(t *testing.T) {
	inSet(t, func(in bubble) {
		l := acquire(in.T, in.factory, widgets, dynamicinformer.WithNamespaces("a"), dynamicinformer.WithCoalescing(0))
		handler := &colors{let: make(chan struct{})}
		if _, err := l.AddEventHandler(handler); err != nil {
			in.Fatal(err)
		}
		synctest.Wait() // it is in the call for a/x
		for _, names := range [][]string{{"a", "b"}, {"a"}, {}, {"a"}} {
			if err := l.SetNamespaces(names...); err != nil {
				in.Fatal(err)
			}
			synctest.Wait()
		}
		for range 3 {
			handler.let <- struct{}{}
			synctest.Wait()
		}
		want := []string{`add Widget x ""`, `move Widget x ""`, `add Widget x ""`}
		if diff := cmp.Diff(want, handler.events); diff != "" {
			in.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// In poll mode, a list shows which objects have left the set.
func TestMoved_Polling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(listable())
		for _, namespace := range []string{"a", "b"} {
			create(t, cluster, widgets, namespace, "x")
			create(t, cluster, widgets, namespace, "y")
		}
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		defer shutdown(t, f)
		l := acquire(t, f, widgets, dynamicinformer.WithNamespaces("a", "b"), dynamicinformer.WithPolling(time.Minute))
		events := listen(t, l.Informer())
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		events.take()
		if err := cluster.Resource(widgets).Namespace("b").Delete(t.Context(), "y", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := l.SetNamespaces("b"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"move a/x", "move a/y", "delete b/y"}, events.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// unwatched is the response to a request while widgets can't be watched: an informer does not see that they are deleted.
func unwatched(req fakecluster.Request) error {
	if req.GVR == widgets && req.Verb == "watch" {
		return apierrors.NewServiceUnavailable("cut")
	}
	return nil
}

// Objects are reported as deleted only if the server says that the namespace is gone: a failed request is no evidence.
func TestMoved_RequestsForTheNamespaceFail(t *testing.T) {
	for name, tc := range map[string]struct {
		err     error
		lasts   time.Duration
		deleted bool // the namespace; otherwise it loses its label
		want    string
	}{
		"a label is lost, and a request fails":     {apierrors.NewServiceUnavailable("down"), 3 * time.Second, false, "move a/x"},
		"a label is lost, and all requests fail":   {apierrors.NewServiceUnavailable("down"), time.Hour, false, "move a/x"},
		"a label is lost, and lists are forbidden": {apierrors.NewForbidden(namespaceType.GVR.GroupResource(), "", nil), time.Hour, false, "move a/x"},
		"it is deleted, and a request fails":       {apierrors.NewServiceUnavailable("down"), 3 * time.Second, true, "delete a/x"},
	} {
		t.Run(name, func(t *testing.T) {
			inSet(t, func(in bubble) {
				in.cluster.Serve(namespaceType)
				labelNamespace(in.T, in.cluster, "a", "red")
				l := acquire(in.T, in.factory, widgets, dynamicinformer.WithNamespaceSelector("team=red"))
				events := listen(in.T, l.Informer())
				if err := l.WaitForSync(in.Context()); err != nil {
					in.Fatal(err)
				}
				synctest.Wait()
				events.take()
				until := time.Now().Add(tc.lasts)
				in.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
					if req.Verb == "list" && time.Now().Before(until) { // also a list of widgets would show nothing
						return tc.err
					}
					return unwatched(req)
				})
				in.cluster.CloseWatches(widgets)
				synctest.Wait()
				if tc.deleted {
					removeNamespace(in.T, in.cluster, "a")
				} else {
					labelNamespace(in.T, in.cluster, "a", "blue")
				}
				time.Sleep(time.Minute)
				if diff := cmp.Diff([]string{tc.want}, events.take()); diff != "" {
					in.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A finalizer of one of its objects may keep a namespace that is being deleted.
func TestMoved_ATerminatingNamespaceThatLosesItsLabel(t *testing.T) {
	for change, want := range map[string]string{"label": "move a/x", "deletion": "delete a/x"} {
		t.Run(change, func(t *testing.T) {
			inSet(t, func(in bubble) {
				in.cluster.Serve(namespaceType)
				namespaces := in.cluster.Resource(namespaceType.GVR)
				ending := newObject("a", map[string]string{"team": "red"})
				now := metav1.Now()
				ending.SetDeletionTimestamp(&now)
				if _, err := namespaces.Create(in.Context(), ending, metav1.CreateOptions{}); err != nil {
					in.Fatal(err)
				}
				l := acquire(in.T, in.factory, widgets, dynamicinformer.WithNamespaceSelector("team=red"))
				events := listen(in.T, l.Informer())
				if err := l.WaitForSync(in.Context()); err != nil {
					in.Fatal(err)
				}
				synctest.Wait()
				events.take()
				in.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error { return unwatched(req) })
				in.cluster.CloseWatches(widgets)
				synctest.Wait()
				if change == "label" {
					labelNamespace(in.T, in.cluster, "a", "blue")
				} else {
					removeNamespace(in.T, in.cluster, "a")
				}
				synctest.Wait()
				if diff := cmp.Diff([]string{want}, events.take()); diff != "" {
					in.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A namespace that was deleted and created again while its watch was cut has another UID: its objects were deleted.
func TestMoved_ANamespaceThatWasCreatedAgainIsAnother(t *testing.T) {
	inSet(t, func(in bubble) {
		in.cluster.Serve(namespaceType)
		labelNamespace(in.T, in.cluster, "a", "red")
		var cut atomic.Bool
		in.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.GVR == namespaceType.GVR && cut.Load() && (req.Verb == "list" || req.Verb == "watch") {
				return apierrors.NewServiceUnavailable("cut")
			}
			if cut.Load() {
				return unwatched(req)
			}
			return nil
		})
		l := acquire(in.T, in.factory, widgets, dynamicinformer.WithNamespaceSelector("team=red"))
		events := listen(in.T, l.Informer())
		if err := l.WaitForSync(in.Context()); err != nil {
			in.Fatal(err)
		}
		synctest.Wait()
		events.take()
		cut.Store(true)
		in.cluster.CloseWatches(namespaceType.GVR)
		in.cluster.CloseWatches(widgets)
		synctest.Wait()
		removeNamespace(in.T, in.cluster, "a")
		labelNamespace(in.T, in.cluster, "a", "blue")
		in.cluster.Expire(namespaceType.GVR)
		time.Sleep(10 * time.Second)
		cut.Store(false)
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"delete a/x"}, events.take()); diff != "" {
			in.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// A namespace is deleted, and created again with the object y before the informer asks whether it is gone. Its watch shows what happens to its
// objects: if the new one is selected, no object is deleted that exists.
func TestMoved_ANamespaceIsCreatedAgainAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		team  string // of the new one
		ended bool   // the new one is deleted, and the informer does not see it
		want  []string
		names []string // of the set
		asks  int      // whether it is gone
	}{
		"it is selected":              {team: "red", want: []string{"delete a/x", "add a/y"}, names: []string{"a"}, asks: 1},
		"it is not selected":          {team: "blue", want: []string{"delete a/x", "add a/y", "move a/y"}, asks: 1},
		"it is deleted before a list": {team: "red", ended: true, want: []string{"delete a/x", "add a/y", "delete a/y"}, asks: 2},
	} {
		t.Run(name, func(t *testing.T) {
			inSet(t, func(in bubble) {
				in.cluster.Serve(namespaceType)
				labelNamespace(in.T, in.cluster, "a", "red")
				l := acquire(in.T, in.factory, widgets, dynamicinformer.WithNamespaceSelector("team=red"))
				events := listen(in.T, l.Informer())
				if err := l.WaitForSync(in.Context()); err != nil {
					in.Fatal(err)
				}
				synctest.Wait()
				events.take()
				var asked, cut atomic.Bool
				in.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
					switch {
					case req.GVR != namespaceType.GVR:
					case req.Verb == "list" && req.Options.FieldSelector != "" && !asked.Swap(true):
						cut.Store(tc.ended)
						if tc.ended {
							in.cluster.CloseWatches(namespaceType.GVR)
						}
						time.Sleep(time.Millisecond)                   // the watch ends
						labelNamespace(in.T, in.cluster, "a", tc.team) //nolint:contextcheck // the context of the test
						create(in.T, in.cluster, widgets, "a", "y")    //nolint:contextcheck // the context of the test
						time.Sleep(time.Millisecond)                   // the informer gets y
					case cut.Load() && (req.Verb == "watch" || req.Verb == "list" && req.Options.FieldSelector == ""):
						return apierrors.NewServiceUnavailable("cut")
					}
					return nil
				})
				removeNamespace(in.T, in.cluster, "a")
				time.Sleep(10 * time.Second)
				if tc.ended {
					if err := in.cluster.Resource(widgets).Namespace("a").Delete(in.Context(), "y", metav1.DeleteOptions{}); err != nil {
						in.Fatal(err)
					}
					if err := in.cluster.Resource(namespaceType.GVR).Delete(in.Context(), "a", metav1.DeleteOptions{}); err != nil {
						in.Fatal(err)
					}
					in.cluster.Expire(namespaceType.GVR)
					cut.Store(false)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if diff := cmp.Diff(tc.want, events.take()); diff != "" {
					in.Errorf("events (-want +got):\n%s", diff)
				}
				var names []string
				for _, n := range l.Status().Namespaces {
					names = append(names, n.Name)
				}
				if diff := cmp.Diff(tc.names, names); diff != "" {
					in.Errorf("the set has (-want +got):\n%s", diff)
				}
				in.cluster.SendBookmarks(namespaceType.GVR)
				synctest.Wait()
				asks := 0
				for _, req := range in.cluster.Requests("list", namespaceType.GVR) {
					if req.Options.FieldSelector != "" {
						asks++
					}
				}
				if asks != tc.asks {
					in.Errorf("the informer has asked %d times, want %d", asks, tc.asks)
				}
			})
		})
	}
}
