package source_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// newPolled returns a testInformer on a type that can't be watched, with a period of a minute. Unwatchable says that
// discovery says so.
func newPolled(t *testing.T, unwatchable bool, names ...string) *testInformer {
	t.Helper()
	return newPolledEvery(t, time.Minute, unwatchable, names...)
}

func newPolledEvery(t *testing.T, period time.Duration, unwatchable bool, names ...string) *testInformer {
	t.Helper()
	listed := widgetType
	listed.Verbs = []string{"create", "delete", "get", "list", "update"}
	available := source.NewAvailability(source.Type{Serving: source.Served, GVR: widgets, Namespaced: true, Unwatchable: unwatchable})
	w := &testInformer{t: t, cluster: fakecluster.New(listed), available: available, observer: &observer{}, handler: &handler{}}
	w.create(names...)
	w.run = runInformer(t, source.Config{
		Client: source.Unstructured(w.cluster), GVR: widgets, Availability: available, Observer: w.observer, Polling: period,
	})
	if _, err := w.AddEventHandler(w.handler); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	w.handler.take()
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *testInformer) requests() (lists, watches int) {
	return len(w.cluster.Requests("list", widgets)), len(w.cluster.Requests("watch", widgets))
}

func TestPoll_SendsTheDifferencesOfLists(t *testing.T) {
	for name, unwatchable := range map[string]bool{"discovery knows it": true, "the server refuses watches": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newPolled(t, unwatchable, "same", "changed", "deleted", "replaced")
				w.remove("deleted", "replaced")
				w.create("replaced", "new")
				w.setColor("changed", "blue")
				w.expect("at once")
				time.Sleep(67 * time.Second)
				w.expect("after a period", "delete deleted red", "delete replaced red", "add replaced red", "add new red", "update changed red to changed blue")
				time.Sleep(30 * time.Minute)
				w.expect("without changes")
				lists, watches := w.requests()
				if want := 2; unwatchable && watches != 0 || watches > want || lists < 28 || lists > 36 {
					t.Errorf("%d lists and %d watches in 31 minutes", lists, watches)
				}
				if failed := w.observer.errors(); len(failed) != 0 {
					t.Errorf("failures: %v", failed)
				}
			})
		})
	}
}

// The refusal of the watches of a set is no outage, after which objects with equal versions may differ.
func TestPoll_RefusalInASetIsNoOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listed := widgetType
		listed.Verbs = []string{"create", "list"}
		w := &testInformer{t: t, cluster: fakecluster.New(listed), handler: &handler{}}
		w.create("a")
		src := source.New(source.Config{
			Client: source.Unstructured(w.cluster), GVR: widgets, Polling: time.Minute, Namespaces: source.NewNamespaces("ns"),
		})
		calls := 0
		if err := src.SetTransform(func(obj any) (any, error) {
			calls++
			obj.(*unstructured.Unstructured).SetAnnotations(map[string]string{"call": fmt.Sprint(calls)})
			return obj, nil
		}); err != nil {
			t.Fatal(err)
		}
		w.run = runSource(t, src)
		defer w.stop()
		if _, err := w.AddEventHandler(w.handler); err != nil {
			t.Fatal(err)
		}
		w.expect("at first", "add a red")
		time.Sleep(5 * time.Minute)
		w.expect("without changes")
	})
}

func TestPoll_TriesAWatchAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolled(t, false, "a")
		w.cluster.Intercept(func(context.Context, fakecluster.Request) error { return nil })
		_, before := w.requests()
		time.Sleep(59 * time.Minute)
		if _, watches := w.requests(); watches != before {
			t.Errorf("%d watches in an hour", watches-before)
		}
		time.Sleep(3 * time.Minute)
		if _, watches := w.requests(); watches != before+1 {
			t.Errorf("%d watches after an hour", watches-before)
		}
	})
}

// Discovery finds that the type can't be watched any more, and then that it can be. A namespace has no failure of a watch that lists have replaced.
func TestPoll_ATypeMayBecomeUnwatchable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, func(cfg *source.Config) { cfg.Polling, cfg.Namespaces = time.Minute, source.NewNamespaces("ns") }, "a")
		w.cluster.Intercept(func(context.Context, fakecluster.Request) error { return errors.New("broken") })
		w.cluster.CloseWatches(widgets)
		time.Sleep(time.Second)
		if failure := w.source.Namespaces()[0].Failure; failure.Verb != "watch" {
			t.Errorf("the failure is %+v", failure)
		}
		set(w.available, source.Missing)
		synctest.Wait()
		w.cluster.Intercept(nil)
		for _, unwatchable := range []bool{true, false} {
			now, _ := w.available.Current()
			now.Serving, now.Unwatchable = source.Served, unwatchable
			w.available.Set(now)
			time.Sleep(2 * time.Minute)
			failure, polling, watched := w.source.Namespaces()[0].Failure.Err, w.source.State().Polling > 0, w.cluster.OpenWatches(widgets) > 0
			if failure != nil || polling != unwatchable || watched == unwatchable {
				t.Errorf("unwatchable %t: polling %t, watched %t, failure %v", unwatchable, polling, watched, failure)
			}
		}
	})
}

// A failed list is repeated sooner than after a period, but not sooner than the server wants.
func TestPoll_RetriesFailedLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolled(t, true, "a")
		w.cluster.Intercept(failing("list", errors.New("broken"), 0))
		before, _ := w.requests()
		time.Sleep(70 * time.Second)
		if lists, _ := w.requests(); lists-before < 4 {
			t.Errorf("%d lists after a failure", lists-before)
		}
		w.cluster.Intercept(failing("list", apierrors.NewTooManyRequests("busy", 300), 0))
		time.Sleep(time.Minute)
		before, _ = w.requests()
		w.cluster.Intercept(nil)
		w.create("b")
		time.Sleep(3 * time.Minute)
		if lists, _ := w.requests(); lists != before {
			t.Errorf("%d lists before the end of Retry-After", lists-before)
		}
		time.Sleep(3 * time.Minute)
		w.expect("after Retry-After", "add b red")
	})
}

// Objects without a version are compared by their content.
func TestPoll_ObjectsWithoutAVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var color atomic.Value
		color.Store("red")
		client := &script{list: func(context.Context) (*unstructured.UnstructuredList, error) {
			list := &unstructured.UnstructuredList{Object: map[string]any{}}
			for i, c := range []string{"red", color.Load().(string)} {
				obj := newObject(fmt.Sprint("n", i))
				obj.SetResourceVersion("")
				obj.SetLabels(map[string]string{"color": c})
				list.Items = append(list.Items, *obj)
			}
			return list, nil
		}}
		available := source.NewAvailability(source.Type{Serving: source.Served, GVR: widgets, Namespaced: true, Unwatchable: true})
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Availability: available, Polling: time.Minute})
		<-startList(t.Context(), s)
		w := openWatch(t, gateOf(s), metav1.ListOptions{})
		time.Sleep(5 * time.Minute)
		if diff := cmp.Diff([]string{"BOOKMARK "}, seen(w)[:1]); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		color.Store("blue")
		time.Sleep(2 * time.Minute)
		var changes []string
		for _, event := range seen(w) {
			if event != "BOOKMARK " {
				changes = append(changes, event)
			}
		}
		if diff := cmp.Diff([]string{"MODIFIED n1"}, changes); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// Another type of that name may support watches.
func TestPoll_ARefusalIsOfOneGeneration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolled(t, false, "a")
		_, before := w.requests()
		w.replaceType()
		time.Sleep(time.Minute)
		if _, watches := w.requests(); watches != before+1 {
			t.Errorf("%d watches of the next type", watches-before)
		}
	})
}

func TestPoll_RetryListsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolled(t, true, "a")
		w.create("b")
		w.source.Retry()
		w.expect("after Retry", "add b red")
	})
}

func TestPoll_ATypeThatIsGoneIsEmptiedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolled(t, true, "a")
		w.deleteType()
		w.expect("gone", "delete a red")
		lists, _ := w.requests()
		time.Sleep(time.Hour)
		if again, _ := w.requests(); again != lists {
			t.Errorf("%d lists of a type that is gone", again-lists)
		}
		w.createType()
		w.create("b")
		time.Sleep(2 * time.Minute)
		w.expect("back", "add b red")
	})
}

// Without a period, a type that discovery does not list as watchable is watched, and a refusal is a failure.
func TestPoll_WithoutAPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolledEvery(t, 0, true, "a")
		time.Sleep(time.Minute)
		if _, watches := w.requests(); watches < 3 {
			t.Errorf("%d watches", watches)
		}
		if len(w.observer.errors()) == 0 {
			t.Error("no failure")
		}
	})
}

// Informers that began at the same time don't list at the same time.
func TestPoll_ThePeriodVaries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolled(t, true, "a")
		var mu sync.Mutex
		var at []time.Time
		w.cluster.Intercept(func(context.Context, fakecluster.Request) error {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Now())
			return nil
		})
		time.Sleep(20 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		pauses := map[time.Duration]bool{}
		for i := range len(at) - 1 {
			pause := at[i+1].Sub(at[i])
			if pauses[pause] = true; pause < 54*time.Second || pause > 66*time.Second {
				t.Errorf("a pause of %v", pause)
			}
		}
		if len(pauses) < 10 {
			t.Errorf("%d different pauses", len(pauses))
		}
	})
}

// A list that succeeds ends the growth of pauses, as a watch that lasts does.
func TestPoll_PausesAreShortAfterASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPolledEvery(t, 10*time.Second, true, "a")
		begun := time.Now()
		var good, late atomic.Int32 // the lists that succeed after ten minutes, and those that fail after them
		w.cluster.Intercept(func(context.Context, fakecluster.Request) error {
			if time.Since(begun) > 10*time.Minute && good.Load() < 2 {
				good.Add(1)
				return nil
			}
			if good.Load() == 2 {
				late.Add(1)
			}
			return errors.New("broken")
		})
		time.Sleep(11*time.Minute + 20*time.Second)
		if got := late.Load(); got < 5 {
			t.Errorf("%d failed lists", got)
		}
	})
}

// unversioned is a server without resourceVersions, which refuses watches.
type unversioned struct{ source.Client }

func (c unversioned) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	list, err := c.Client.List(ctx, gvr, namespace, opts)
	if err != nil {
		return nil, err
	}
	content := list.(*unstructured.UnstructuredList)
	content.SetResourceVersion("")
	for i := range content.Items {
		content.Items[i].SetResourceVersion("")
	}
	return content, nil
}

func (c unversioned) Watch(context.Context, schema.GroupVersionResource, string, metav1.ListOptions) (watch.Interface, error) {
	return nil, apierrors.NewMethodNotSupported(widgets.GroupResource(), "watch")
}

func TestPoll_AShardWithoutVersionsIsLoaded(t *testing.T) {
	for name, unwatchable := range map[string]bool{"watches are refused": false, "unwatchable": true} {
		for scope, modify := range scopes {
			t.Run(name+"/"+scope, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var called atomic.Uint64
					w, shard := sharded(t, part(0, 2), 20, func(cfg *source.Config) {
						modify(cfg)
						cfg.Polling, cfg.Client, cfg.Loaded = time.Minute, unversioned{cfg.Client}, called.Store
						now, _ := cfg.Availability.Current()
						now.Unwatchable = unwatchable
						cfg.Availability.Set(now)
					})
					check := func(generation uint64) {
						t.Helper()
						time.Sleep(10 * time.Minute)
						slots := shard.View().Slots
						_, loaded := w.source.IsLoaded("")
						if state := w.source.State().Shard; !loaded || state.Slots != slots || state.Generation != generation || called.Load() != generation {
							t.Errorf("view %d: loaded %t, state %+v, Loaded was called with %d", generation, loaded, state, called.Load())
						}
						w.checkStore(slots)
					}
					check(1)
					shard.set(part(0, 1))
					check(2)
				})
			})
		}
	}
}
