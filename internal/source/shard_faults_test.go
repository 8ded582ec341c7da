package source_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/budget"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/sharding"
)

// delayed is a client that calls a function before it passes on a list or an event. They may be nil.
type delayed struct {
	source.Client
	beforeList, beforeEvent func()
}

func (c delayed) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	list, err := c.Client.List(ctx, gvr, namespace, opts)
	if c.beforeList != nil {
		c.beforeList()
	}
	return list, err
}

// holding returns a function that waits while held is true.
func holding(held *atomic.Bool) func() {
	return func() {
		for held.Load() {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

func (c delayed) Watch(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	in, err := c.Client.Watch(ctx, gvr, namespace, opts)
	if err != nil {
		return nil, err
	}
	out := watch.NewProxyWatcher(make(chan watch.Event))
	events := make(chan watch.Event)
	go func() {
		defer close(events)
		defer in.Stop()
		for event := range in.ResultChan() {
			if c.beforeEvent != nil {
				c.beforeEvent()
			}
			select {
			case events <- event:
			case <-out.StopChan():
				return
			}
		}
	}()
	return lagged{out, in, events}, nil
}

type lagged struct {
	*watch.ProxyWatcher
	in     watch.Interface
	events chan watch.Event
}

func (l lagged) ResultChan() <-chan watch.Event { return l.events }

func (l lagged) Stop() {
	l.ProxyWatcher.Stop()
	l.in.Stop()
}

// recreateIn creates an object until its UID is in slots.
func (w *testInformer) recreateIn(name string, slots sharding.Slots) {
	for {
		w.create(name)
		if slices.Contains(w.in(slots), "ns/"+name) {
			return
		}
		w.remove(name)
	}
}

// The open watch has earlier events of a name than the list of gained slots. These must not delete the new object.
func TestShard_ObjectThatWasCreatedAgainInGainedSlots(t *testing.T) {
	for name, there := range map[string]bool{"known": true, "not known": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				held := &atomic.Bool{}
				w, shard := sharded(t, part(0, 2), 4, func(cfg *source.Config) { cfg.Client = delayed{cfg.Client, nil, holding(held)} })
				if there {
					w.recreateIn("x", part(0, 2))
				}
				if _, err := w.AddEventHandler(w.handler); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				w.handler.take()
				held.Store(true)
				if !there {
					w.recreateIn("x", part(0, 2))
				}
				w.remove("x")
				w.recreateIn("x", part(1, 2))
				shard.set(part(0, 1))
				time.Sleep(time.Second)
				held.Store(false)
				time.Sleep(5 * time.Minute)
				w.checkStore(part(0, 1))
				events := w.handler.take()
				if there && (len(events) < 2 || events[0][:6] != "delete") || !there && len(events) == 0 {
					t.Errorf("events = %v", events)
				}
			})
		})
	}
}

// The open watch has later events of a name than the list of gained slots: the list has an object that is gone.
func TestShard_ObjectThatWasCreatedAgainInHeldSlots(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				held := &atomic.Bool{}
				w, shard := sharded(t, part(0, 2), 4, func(cfg *source.Config) {
					cfg.Client = delayed{cfg.Client, holding(held), nil}
					scope(cfg)
				})
				w.recreateIn("x", part(1, 2))
				if _, err := w.AddEventHandler(w.handler); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				w.handler.take()
				held.Store(true)
				shard.set(part(0, 1))
				synctest.Wait()
				w.remove("x")
				w.recreateIn("x", part(0, 2))
				w.checkStore(part(0, 2))
				held.Store(false)
				time.Sleep(time.Minute)
				w.checkStore(part(0, 1))
				if events := w.handler.take(); slices.Contains(events, "delete ns/x") {
					t.Errorf("events = %v", events)
				}
			})
		})
	}
}

// failsIn is a client whose objects in slots can't be converted.
type failsIn struct {
	source.Client
	slots sharding.Slots
}

func (c failsIn) Convert() func(runtime.Object) (runtime.Object, error) {
	return func(obj runtime.Object) (runtime.Object, error) {
		if content, err := meta.Accessor(obj); err == nil && c.slots.Has(slotOf(content)) {
			return nil, errors.New("bad")
		}
		return obj, nil
	}
}

// The deletion of an object that was left out arrives after the list that has another object of that name.
func TestShard_LateDeletionOfAnObjectThatWasLeftOut(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				held := &atomic.Bool{}
				w, shard := sharded(t, part(0, 2), 4, func(cfg *source.Config) {
					cfg.Client = failsIn{delayed{cfg.Client, nil, holding(held)}, part(0, 8)}
					scope(cfg)
				})
				w.recreateIn("x", part(0, 8))
				synctest.Wait()
				held.Store(true)
				w.remove("x")
				w.recreateIn("x", part(1, 2))
				shard.set(part(0, 1))
				time.Sleep(time.Second)
				w.checkStore(part(0, 1).Minus(part(0, 8)))
				held.Store(false)
				time.Sleep(time.Minute)
				w.checkStore(part(0, 1).Minus(part(0, 8)))
			})
		})
	}
}

// A proxy may delay the header of a watch until the first event.
func TestShard_FollowsTheViewWhileAWatchHasNoResponse(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, shard := sharded(t, part(0, 2), 40, func(cfg *source.Config) {
					scope(cfg)
				})
				w.cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
					if req.Verb == "watch" {
						<-ctx.Done()
					}
					return nil
				})
				w.cluster.CloseWatches(widgets)
				time.Sleep(2 * time.Second)
				lists, watches := len(w.selectors("list")), len(w.selectors("watch"))
				shard.set(part(1, 2))
				time.Sleep(time.Second)
				w.checkStore(part(1, 2))
				shard.set(part(0, 1))
				time.Sleep(time.Second)
				w.checkStore(part(0, 1))
				if lists, watches := len(w.selectors("list"))-lists, len(w.selectors("watch"))-watches; lists != 2+2 || watches > 4 { // checkStore lists, too
					t.Errorf("%d lists, %d watches", lists, watches)
				}
				if errs := w.observer.errors(); len(errs) > 0 {
					t.Errorf("errors = %v", errs)
				}
			})
		})
	}
}

func TestShard_LosesSlotsDuringAPause(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, shard := sharded(t, part(0, 1), 40, func(cfg *source.Config) {
					scope(cfg)
				})
				w.cluster.Intercept(failing("watch", errors.New("down"), 0))
				w.cluster.CloseWatches(widgets)
				time.Sleep(10 * time.Second) // the pause is 4 s or more
				watches := len(w.selectors("watch"))
				shard.set(part(0, 2))
				synctest.Wait()
				w.checkStore(part(0, 2))
				shard.set(part(0, 4))
				synctest.Wait()
				w.checkStore(part(0, 4))
				if n := len(w.selectors("watch")) - watches; n > 1 {
					t.Errorf("%d watches: the pause has ended early", n)
				}
			})
		})
	}
}

// Another process may have acted on the objects of slots that were lost and came back, so their objects leave and are listed again.
func TestShard_SlotsThatCameBackAreListedAgain(t *testing.T) {
	forms := maps.Clone(scopes)
	forms["polling"] = func(cfg *source.Config) {
		cfg.Availability = source.NewAvailability(source.Type{Serving: source.Served, GVR: widgets, Namespaced: true, Unwatchable: true})
		cfg.Polling = time.Second
	}
	for name, form := range forms {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, shard := sharded(t, part(0, 1), 40, form)
				if _, err := w.AddEventHandler(w.handler); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				w.handler.take()
				came := len(w.in(part(0, 4)))
				shard.set(part(0, 1).Minus(part(0, 4)))
				shard.set(part(0, 1))
				time.Sleep(2 * time.Second)
				if n := len(w.handler.take()); n != 2*came {
					t.Errorf("%d events, want a deletion and an addition of %d objects", n, came)
				}
				w.checkStore(part(0, 1))
				time.Sleep(time.Hour)
				if events := w.handler.take(); len(events) > 0 {
					t.Errorf("more events: %v", events)
				}
			})
		})
	}
}

// blocking is a client that can't convert an object while held is true.
type blocking struct {
	source.Client
	held *atomic.Bool
}

func (c blocking) Convert() func(runtime.Object) (runtime.Object, error) {
	wait := holding(c.held)
	return func(obj runtime.Object) (runtime.Object, error) {
		wait()
		return obj, nil
	}
}

// The list has succeeded after a failure, and its slots are lost before the reflector gets it.
func TestShard_FailureOfAListThatIsNotPassedOnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := &atomic.Bool{}
		w, shard := sharded(t, part(0, 2), 20, func(cfg *source.Config) { cfg.Client = blocking{cfg.Client, held} })
		var fails atomic.Bool
		fails.Store(true)
		w.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Options.ShardSelector != "" && req.Verb == "list" && fails.Load() {
				return errors.New("down")
			}
			return nil
		})
		shard.set(part(0, 1))
		synctest.Wait()
		held.Store(true)
		w.recreateIn("x", part(0, 2)) // the watch does not go on
		fails.Store(false)
		time.Sleep(5 * time.Second)
		shard.set(part(0, 2))
		held.Store(false)
		time.Sleep(time.Second)
		if reports := w.observer.reports(); !slices.Contains(reports, "list failed") || reports[len(reports)-1] != "list succeeded" {
			t.Errorf("reports = %v", reports)
		}
	})
}

func TestShard_HiddenNamespaceHasNoSlotsToLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lists atomic.Int64
		set := source.NewNamespaces("ns", "secret").Allowed(false)
		w, shard := sharded(t, part(0, 2), 20, func(cfg *source.Config) {
			cfg.Namespaces, cfg.Client = set, counted{cfg.Client, &lists}
		})
		check := func(text string) {
			t.Helper()
			time.Sleep(time.Minute)
			if got, want := w.source.State().Shard, shard.View(); got.Slots != want.Slots || got.Generation != want.Generation {
				t.Errorf("%s: %v of generation %d, want %v of %d", text, got.Slots, got.Generation, want.Slots, want.Generation)
			}
		}
		check("first")
		shard.set(part(0, 1))
		check("gained")
		set.Set("ns")
		check("without it")
		set.Set("ns", "secret")
		check("with it again")
	})
}

func TestShard_EmptySetHasAllSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var loaded atomic.Uint64
		_, shard := sharded(t, part(0, 2), 4, func(cfg *source.Config) {
			cfg.Namespaces, cfg.Loaded = source.NewNamespaces(), loaded.Store
		})
		shard.set(part(0, 1))
		synctest.Wait()
		if loaded.Load() != shard.View().Generation {
			t.Errorf("loaded %d of %d", loaded.Load(), shard.View().Generation)
		}
	})
}

func TestShard_GainsSlotsUnderWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, shard := sharded(t, part(0, 2), 40, func(cfg *source.Config) { cfg.PageSize = 5 })
		w.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Options.Continue != "" {
				time.Sleep(50 * time.Millisecond)
			}
			return nil
		})
		shard.set(part(0, 1))
		before := len(w.selectors("list"))
		for i := range 100 {
			w.create(fmt.Sprintf("busy%d", i))
			time.Sleep(20 * time.Millisecond)
		}
		if lists, errs := len(w.selectors("list"))-before, w.observer.errors(); lists > 12 || len(errs) > 0 {
			t.Errorf("%d pages of lists, want one list; errors %v", lists, errs)
		}
		w.checkStore(part(0, 1))
	})
}

// Objects that are left out are no sign that the server sends bookmarks, so its silence says nothing.
func TestShard_ObjectsOfOthersAreNoBookmarksOfTheServer(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := sharded(t, part(0, 2), 4, func(cfg *source.Config) {
					endless(cfg)
					scope(cfg)
				})
				w.cluster.Shard(false)
				w.cluster.CloseWatches(widgets)
				time.Sleep(5 * time.Second)
				w.fillMore(20)
				w.cluster.CloseWatches(widgets)
				lists := len(w.selectors("list"))
				time.Sleep(4 * time.Minute)
				if n := len(w.selectors("list")) - lists; n > 0 {
					t.Errorf("%d lists while the server is silent", n)
				}
				w.checkStore(part(0, 2))
			})
		})
	}
}

// Lists replace watches. A namespace that can't be listed does not make the view look new.
func TestShard_PollsASetAtItsPace(t *testing.T) {
	for name, namespaces := range map[string][]string{"forbidden": {"ns", "secret"}, "empty": {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lists atomic.Int64
				w, _ := sharded(t, part(0, 2), 4, func(cfg *source.Config) {
					cfg.Availability = source.NewAvailability(source.Type{Serving: source.Served, GVR: widgets, Namespaced: true, Unwatchable: true})
					cfg.Polling, cfg.Namespaces = time.Minute, source.NewNamespaces(namespaces...)
					cfg.Client = counted{cfg.Client, &lists}
				})
				time.Sleep(10 * time.Minute)
				if n := lists.Load(); n > 40 {
					t.Errorf("%d lists in 10 minutes", n)
				}
				if held := w.source.State().Shard.Slots; name == "empty" && held.Len() != sharding.SlotCount {
					t.Errorf("an empty set waits for slots: it has %v", held)
				}
			})
		})
	}
}

// counted counts lists. Those of the namespace secret are forbidden.
type counted struct {
	source.Client
	lists *atomic.Int64
}

func (c counted) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	if c.lists.Add(1) > 5000 {
		<-ctx.Done() // otherwise the test would not end
	}
	if namespace == "secret" {
		return nil, apierrors.NewForbidden(widgets.GroupResource(), "", nil)
	}
	return c.Client.List(ctx, gvr, namespace, opts)
}

// Without versions, no event is known to be repeated.
func TestShard_GainedSlotsWithoutVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		object := func(i int) *unstructured.Unstructured {
			obj := newObject(fmt.Sprint("n", i))
			obj.SetResourceVersion("")
			obj.SetUID(types.UID(fmt.Sprint(i*7, "-uid-", i)))
			return obj
		}
		var last *watch.FakeWatcher
		client := &script{
			list: func(context.Context) (*unstructured.UnstructuredList, error) {
				list := &unstructured.UnstructuredList{Object: map[string]any{}}
				for i := range 20 {
					list.Items = append(list.Items, *object(i))
				}
				return list, nil
			},
			watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				last = newServerWatch()
				return last, nil
			},
		}
		shard := newTestShard(part(0, 2))
		r := runInformer(t, source.Config{Client: source.Unstructured(client), GVR: widgets, Shard: shard, NoWatchList: true})
		defer r.stop()
		shard.set(part(0, 1))
		time.Sleep(10 * time.Second)
		synctest.Wait()
		for i := 20; i < 40; i++ {
			last.Add(object(i))
		}
		if n := len(r.keys()); n != 40 {
			t.Errorf("%d objects, want 40", n)
		}
	})
}

func TestShard_ForbiddenNamespaceLetsLostObjectsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, shard := sharded(t, part(0, 1), 20, func(cfg *source.Config) { cfg.Namespaces = source.NewNamespaces("ns", "other") })
		w.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Namespace == "ns" && (req.Verb == "watch" || req.Verb == "list") {
				return apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("no"))
			}
			return nil
		})
		w.cluster.CloseWatches(widgets)
		time.Sleep(10 * time.Second)
		shard.set(sharding.Slots{})
		time.Sleep(time.Minute)
		if keys := w.keys(); len(keys) > 0 {
			t.Errorf("%v stay", keys)
		}
	})
}

// A list of gained slots that are lost again is not needed any more, so its failure ends.
func TestShard_FailureOfAListEndsWithItsSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, shard := sharded(t, part(0, 2), 20, nil)
		w.cluster.Intercept(failing("list", errors.New("down"), 0))
		shard.set(part(0, 1))
		time.Sleep(10 * time.Second)
		reports := w.observer.reports()
		if reports[len(reports)-1] != "list failed" {
			t.Fatalf("reports = %v", reports)
		}
		shard.set(part(0, 2))
		time.Sleep(time.Minute)
		reports = w.observer.reports()
		if i := slices.Index(reports, "list failed"); !slices.Contains(reports[i:], "list succeeded") {
			t.Errorf("reports = %v", reports[i:])
		}
	})
}

// selective can't convert the objects of the upper half of the slots.
type selective struct{ source.Client }

func (c selective) Convert() func(runtime.Object) (runtime.Object, error) {
	return func(obj runtime.Object) (runtime.Object, error) {
		if content, err := meta.Accessor(obj); err == nil && part(1, 2).Has(slotOf(content)) {
			return nil, errors.New("bad")
		}
		return obj, nil
	}
}

func TestShard_GainedListThatCanNotBeDecodedIsRepeatedWithPauses(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var lists atomic.Int64
				w, shard := sharded(t, part(0, 2), 20, func(cfg *source.Config) {
					cfg.Strict, cfg.Client = true, selective{counted{cfg.Client, &lists}}
					scope(cfg)
				})
				before := lists.Load()
				shard.set(part(0, 1))
				time.Sleep(10 * time.Second)
				if n, errs := lists.Load()-before, w.observer.errors(); n < 2 || n > 10 || len(errs) == 0 {
					t.Errorf("%d lists in 10 s; errors %v", n, errs)
				}
				for _, err := range w.observer.errors() {
					if strings.Contains(err.Error(), "namespace :") {
						t.Errorf("an error names no namespace: %v", err)
					}
				}
				if open := w.cluster.OpenWatches(widgets); open != 1 {
					t.Errorf("%d watches are open", open)
				}
				w.checkStore(part(0, 2))
				shard.set(part(0, 2)) // during a pause
				time.Sleep(30 * time.Second)
				if reports := w.observer.reports(); reports[len(reports)-1] == "list failed" {
					t.Errorf("the failure outlasts the slots; reports = %v", reports)
				}
			})
		})
	}
}

// The deletion of an object arrives after the list that has another object of that name, which is left out.
func TestShard_LateDeletionDoesNotEndARejection(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				held := &atomic.Bool{}
				w, shard := sharded(t, part(0, 2), 4, func(cfg *source.Config) {
					cfg.Client = failsIn{delayed{cfg.Client, nil, holding(held)}, part(1, 2)}
					scope(cfg)
				})
				w.recreateIn("x", part(0, 2))
				synctest.Wait()
				held.Store(true)
				w.remove("x")
				w.recreateIn("x", part(1, 2))
				shard.set(part(0, 1))
				time.Sleep(time.Second)
				held.Store(false)
				time.Sleep(time.Minute)
				w.checkStore(part(0, 2))
				if got, want := w.source.State().Rejected.Count, len(w.in(part(1, 2))); got != want {
					t.Errorf("%d objects are left out, want %d", got, want)
				}
			})
		})
	}
}

func TestShard_LeftOutObjectsOfLostSlotsDoNotCount(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, shard := sharded(t, part(0, 1), 40, func(cfg *source.Config) {
					cfg.Client = failsIn{cfg.Client, part(0, 4)}
					scope(cfg)
				})
				for _, slots := range []sharding.Slots{part(0, 1), part(0, 8), part(0, 2)} {
					shard.set(slots)
					time.Sleep(time.Second)
					if got, want := w.source.State().Rejected.Count, len(w.in(slots.Intersect(part(0, 4)))); got != want {
						t.Errorf("with the slots %v, %d objects are left out, want %d", slots, got, want)
					}
				}
			})
		})
	}
}

// noSecret is a client whose lists of the namespace secret have the error.
type noSecret struct {
	source.Client
	err *atomic.Pointer[error]
}

func (c noSecret) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	if namespace == "secret" {
		return nil, *c.err.Load()
	}
	return c.Client.List(ctx, gvr, namespace, opts)
}

// Nothing waits for the objects of a namespace that turns out to be forbidden before its first list.
func TestShard_NamespaceThatBecomesHiddenIsLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fault atomic.Pointer[error]
		var loaded atomic.Uint64
		down, forbidden := errors.New("down"), error(apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("no")))
		fault.Store(&down)
		_, shard := sharded(t, part(0, 2), 20, func(cfg *source.Config) {
			cfg.Namespaces, cfg.Loaded = source.NewNamespaces("ns", "secret").Allowed(false), loaded.Store
			cfg.Client = noSecret{cfg.Client, &fault}
		})
		time.Sleep(time.Minute)
		if loaded.Load() == shard.View().Generation {
			t.Error("loaded without the objects of a namespace")
		}
		fault.Store(&forbidden)
		time.Sleep(time.Minute)
		if loaded.Load() != shard.View().Generation {
			t.Errorf("loaded %d of %d", loaded.Load(), shard.View().Generation)
		}
	})
}

// No list of gained slots is sent while the type is not served. That of a type that is gone is given up.
func TestShard_GainedSlotsAreListedWhileTheTypeIsServed(t *testing.T) {
	for _, serving := range []source.Serving{source.Held, source.Gone} {
		for name, scope := range scopes {
			t.Run(string(serving)+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w, shard := sharded(t, part(0, 2), 20, func(cfg *source.Config) { scope(cfg); cfg.KeepCache = true })
					w.cluster.Intercept(failing("list", errors.New("down"), 0))
					if serving == source.Gone { // otherwise the slots are gained later
						shard.set(part(0, 1))
						synctest.Wait()
					}
					set(w.available, serving)
					synctest.Wait()
					if reports := w.observer.reports(); reports[len(reports)-1] == "list failed" {
						t.Error("the failure of a list that was given up has not ended")
					}
					lists, reports := len(w.cluster.Requests("list", widgets)), len(w.observer.errors())
					shard.set(part(0, 1))
					time.Sleep(time.Hour)
					if got := len(w.cluster.Requests("list", widgets)); got != lists || len(w.observer.errors()) != reports {
						t.Errorf("%d lists in an hour, and %d failures", got-lists, len(w.observer.errors())-reports)
					}
					w.cluster.Intercept(nil)
					set(w.available, source.Served)
					time.Sleep(time.Minute)
					w.checkStore(part(0, 1))
				})
			})
		}
	}
}

// The objects of lost slots also leave while a list waits for its turn, or for room.
func TestShard_LosesSlotsWhileAListWaits(t *testing.T) {
	memory, queue := budget.New(60_000), source.NewListQueue(1, 0)
	for name, modify := range map[string]func(*source.Config){
		"for its turn": func(cfg *source.Config) { cfg.Queue = queue },
		"for room":     func(cfg *source.Config) { cfg.Budget = memory },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, shard := sharded(t, part(0, 1), 10, func(cfg *source.Config) { modify(cfg); cfg.KeepCache = true })
				set(w.available, source.Gone)
				synctest.Wait()
				has := len(w.in(part(0, 2)))
				w.fillMore(200)
				l := newLists(t, queue)
				defer l.finish()
				l.add("a")
				w.replaceType()
				set(w.available, source.Served)
				time.Sleep(10 * time.Second)
				if len(w.keys()) != 10 {
					t.Fatalf("%d objects before, want 10", len(w.keys()))
				}
				shard.set(part(0, 2))
				if got := len(w.keys()); got != has || has == 10 {
					t.Errorf("%d objects, want the %d of the slots that are left", got, has)
				}
			})
		})
	}
}
