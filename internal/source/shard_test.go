package source_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/sharding"
)

// testShard is a shard whose view a test sets.
type testShard struct {
	mu      sync.Mutex
	view    sharding.View
	lost    [sharding.SlotCount]uint64 // the generation in which each slot was lost last
	changed chan struct{}
}

func newTestShard(slots sharding.Slots) *testShard {
	return &testShard{view: sharding.View{Generation: 1, Slots: slots}, changed: make(chan struct{})}
}

func (s *testShard) View() sharding.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view
}

func (s *testShard) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *testShard) LostSince(generation uint64) (slots sharding.Slots) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range sharding.SlotCount {
		if one := part(i, sharding.SlotCount); s.lost[i] > generation {
			slots = slots.Union(one)
		}
	}
	return slots
}

func (s *testShard) set(slots sharding.Slots) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.view.Slots.Minus(slots)
	s.view = sharding.View{Generation: s.view.Generation + 1, Slots: slots}
	for slot := range lost.All() {
		s.lost[slot] = s.view.Generation
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// part returns part i of n of all slots.
func part(i, n int) sharding.Slots {
	shard, err := sharding.Static(i, n)
	if err != nil {
		panic(err)
	}
	return shard.View().Slots
}

func randomSlots(random *rand.Rand) (slots sharding.Slots) {
	for i := range 8 {
		if random.IntN(2) == 0 {
			slots = slots.Union(part(i, 8))
		}
	}
	return slots
}

func slotOf(obj metav1.Object) int { return sharding.SlotOf(obj.GetUID()) }

// fill creates n objects.
func (w *testInformer) fill(n int) {
	for i := range n {
		w.create(fmt.Sprintf("o%d", i))
	}
}

// in returns the names of the cluster's objects in slots.
func (w *testInformer) in(slots sharding.Slots) []string {
	w.t.Helper()
	list, err := w.cluster.Resource(widgets).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var keys []string
	for _, item := range list.Items {
		if slots.Has(slotOf(&item)) {
			keys = append(keys, item.GetNamespace()+"/"+item.GetName())
		}
	}
	slices.Sort(keys)
	return keys
}

// selectors returns the selectors of the lists or watches of widgets so far.
func (w *testInformer) selectors(verb string) (selectors []string) {
	for _, req := range w.cluster.Requests(verb, widgets) {
		selectors = append(selectors, req.Options.ShardSelector)
	}
	return selectors
}

// sharded runs an informer with a shard of slots on a cluster with n objects, whose server has the feature.
func sharded(t *testing.T, slots sharding.Slots, n int, modify func(*source.Config)) (*testInformer, *testShard) {
	t.Helper()
	shard := newTestShard(slots)
	cluster := fakecluster.New(widgetType)
	cluster.Shard(true)
	w := &testInformer{t: t, cluster: cluster, available: newAvailability(source.Served), observer: &observer{}, handler: &handler{}}
	w.fill(n)
	cfg := source.Config{Client: source.Unstructured(cluster), GVR: widgets, Availability: w.available, Observer: w.observer, Shard: shard, NoWatchList: true}
	if modify != nil {
		modify(&cfg)
	}
	w.run = runInformer(t, cfg)
	t.Cleanup(func() { w.stop() })
	return w, shard
}

// scopes makes a configuration for all namespaces, and for a set of namespaces.
var scopes = map[string]func(*source.Config){
	"all namespaces": func(*source.Config) {},
	"a set":          func(cfg *source.Config) { cfg.Namespaces = source.NewNamespaces("ns") },
}

func (w *testInformer) checkStore(slots sharding.Slots) {
	w.t.Helper()
	if diff := cmp.Diff(w.in(slots), w.keys()); diff != "" {
		w.t.Errorf("store (-cluster +informer):\n%s", diff)
	}
}

func TestShard_RequestsAndCachesItsPart(t *testing.T) {
	for name, modify := range map[string]func(*source.Config){
		"list":       nil,
		"watch-list": func(cfg *source.Config) { cfg.NoWatchList = false },
		"tweak":      func(cfg *source.Config) { cfg.Tweak = func(opts *metav1.ListOptions) { *opts = metav1.ListOptions{} } },
		"namespaces": func(cfg *source.Config) { cfg.Namespaces = source.NewNamespaces("ns", "other") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, _ := sharded(t, part(1, 4), 40, modify)
				w.checkStore(part(1, 4))
				requests := slices.Concat(w.selectors("list"), w.selectors("watch"))
				for _, selector := range requests[:len(requests)-1] { // the last one is of the test
					if selector != "" && selector != part(1, 4).Selector() {
						t.Errorf("a request has the selector %q", selector)
					}
				}
				if !slices.Contains(w.selectors("watch"), part(1, 4).Selector()) {
					t.Errorf("watches = %q", w.selectors("watch"))
				}
				w.create("later0", "later1", "later2", "later3", "later4", "later5", "later6", "later7")
				w.checkStore(part(1, 4))
				if state := w.source.State().Shard; state.ByClient || state.Slots != part(1, 4) || state.Generation != 1 {
					t.Errorf("state = %+v", state)
				}
			})
		})
	}
}

// A server without the feature sends all objects.
func TestShard_LeavesOutWhatItDidNotRequest(t *testing.T) {
	for name, modify := range map[string]func(*source.Config){
		"list":       nil,
		"watch-list": func(cfg *source.Config) { cfg.NoWatchList = false },
		"transform":  func(cfg *source.Config) { cfg.Strict = false },
		"namespaces": func(cfg *source.Config) { cfg.Namespaces = source.NewNamespaces("ns") },
		"polling":    func(cfg *source.Config) { cfg.Polling = time.Second },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, shard := sharded(t, part(0, 4), 0, modify)
				w.cluster.Shard(false)
				w.cluster.CloseWatches(widgets)
				w.fill(40)
				time.Sleep(time.Minute)
				w.checkStore(part(0, 4))
				if !w.source.State().Shard.ByClient {
					t.Error("the state does not say that the client selects")
				}
				shard.set(part(1, 4))
				time.Sleep(time.Minute)
				w.checkStore(part(1, 4))
				version := w.source.State().Version
				w.create("later0", "later1", "later2", "later3", "later4", "later5", "later6", "later7")
				time.Sleep(time.Second)
				w.checkStore(part(1, 4))
				if w.source.State().Version == version {
					t.Error("the version does not go on with objects that are left out")
				}
			})
		})
	}
}

func TestShard_ViewChanges(t *testing.T) {
	for name, modify := range map[string]func(*source.Config){
		"all namespaces": nil,
		"a set":          func(cfg *source.Config) { cfg.Namespaces = source.NewNamespaces("ns") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, shard := sharded(t, part(0, 2), 40, modify)
				if _, err := w.AddEventHandler(w.handler); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				w.handler.take()
				lists := len(w.selectors("list"))

				shard.set(part(1, 4).Union(part(2, 4))) // one quarter is lost, one is gained
				synctest.Wait()
				if got, want := w.selectors("list")[lists:], []string{part(2, 4).Selector()}; !slices.Equal(got, want) {
					t.Errorf("lists = %q, want %q", got, want)
				}
				w.checkStore(shard.View().Slots)
				watches := w.selectors("watch")
				if last := watches[len(watches)-1]; last != part(1, 4).Union(part(2, 4)).Selector() {
					t.Errorf("the last watch has the selector %q", last)
				}
				if w.cluster.OpenWatches(widgets) != 1 {
					t.Errorf("%d watches are open", w.cluster.OpenWatches(widgets))
				}
				events := w.handler.take()
				if want := len(w.in(part(0, 4))) + len(w.in(part(2, 4))); len(events) != want {
					t.Errorf("%d events, want %d: %v", len(events), want, events)
				}
				if state := w.source.State().Shard; state.Generation != 2 || state.Slots != shard.View().Slots {
					t.Errorf("state = %+v", state)
				}
			})
		})
	}
}

// The watch goes on while gained slots are listed, and a list of slots that are lost again is given up.
func TestShard_WatchGoesOnDuringTheListOfGainedSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, shard := sharded(t, part(0, 2), 40, nil)
		hang := make(chan struct{})
		w.cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
			if req.Verb == "list" && req.Options.ShardSelector == part(1, 2).Selector() {
				select {
				case <-hang:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
		shard.set(part(0, 1))
		w.fillMore(40)
		w.checkStore(part(0, 2))
		shard.set(part(0, 2))
		w.checkStore(part(0, 2))
		shard.set(part(0, 1))
		w.removeIn(part(1, 2), 5)
		close(hang)
		w.checkStore(part(0, 1))
	})
}

// fillMore creates n more objects.
func (w *testInformer) fillMore(n int) {
	for i := range n {
		w.create(fmt.Sprintf("more%d", i))
	}
}

// removeIn deletes n objects in slots.
func (w *testInformer) removeIn(slots sharding.Slots, n int) {
	w.t.Helper()
	list, err := w.cluster.Resource(widgets).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, item := range list.Items {
		if n > 0 && slots.Has(slotOf(&item)) {
			n--
			w.remove(item.GetName())
		}
	}
}

// The next watch begins before the list of gained slots. What it repeats is left out.
func TestShard_ObjectsThatWereDeletedBeforeTheListAreNoEvents(t *testing.T) {
	for name, modify := range map[string]func(*source.Config){
		"all namespaces": nil,
		"a set":          func(cfg *source.Config) { cfg.Namespaces = source.NewNamespaces("ns") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, shard := sharded(t, part(0, 2), 8, modify)
				w.fillMore(20)
				w.removeIn(part(1, 2), 100)
				w.create("stays0", "stays1", "stays2", "stays3", "stays4", "stays5")
				if _, err := w.AddEventHandler(w.handler); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				w.handler.take()
				shard.set(part(0, 1))
				w.checkStore(part(0, 1))
				events := w.handler.take()
				if want := len(w.in(part(1, 2))); len(events) != want || want == 0 {
					t.Errorf("%d events, want an addition for each of %d objects: %v", len(events), want, events)
				}
			})
		})
	}
}

func TestShard_ObjectsOfLostSlotsLeaveWithoutAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, shard := sharded(t, part(0, 1), 20, nil)
		w.cluster.Intercept(failing("watch", errors.New("down"), 0))
		w.cluster.CloseWatches(widgets)
		set(w.available, source.Held)
		synctest.Wait()
		shard.set(sharding.Slots{})
		if keys := w.keys(); len(keys) > 0 {
			t.Errorf("store = %v", keys)
		}
	})
}

func TestShard_DeletionsOfLostSlotsAreMarked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, shard := fakecluster.New(widgetType), newTestShard(part(0, 1))
		w := &testInformer{t: t, cluster: cluster}
		w.fill(20)
		s := source.New(source.Config{Client: source.Unstructured(cluster), GVR: widgets, Shard: shard, MarkMoved: true})
		w.run = runSource(t, s)
		defer w.stop()
		moved, deleted := 0, 0
		_, err := w.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
			switch object, is := source.Moved(obj); {
			case !is:
				deleted++
			case object.(*unstructured.Unstructured).GetName() != "":
				moved++
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		shard.set(part(0, 2))
		w.checkStore(part(0, 2))
		left := len(w.in(part(1, 2)))
		w.removeIn(part(0, 2), 1)
		synctest.Wait()
		if moved != left || deleted != 1 {
			t.Errorf("%d objects have moved and %d are deleted, want %d and 1", moved, deleted, left)
		}
	})
}

// A member that joins has no slots yet.
func TestShard_FirstListWaitsForSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, shard := sharded(t, sharding.Slots{}, 20, nil)
		time.Sleep(5 * time.Second)
		if w.HasSynced() || len(w.selectors("list")) > 0 {
			t.Errorf("synced: %v, lists %q", w.HasSynced(), w.selectors("list"))
		}
		shard.set(part(0, 2))
		synctest.Wait()
		if !w.HasSynced() || !slices.Equal(w.selectors("list"), []string{part(0, 2).Selector()}) {
			t.Errorf("synced: %v, lists %q", w.HasSynced(), w.selectors("list"))
		}
		w.checkStore(part(0, 2))
	})
	synctest.Test(t, func(t *testing.T) {
		w, shard := sharded(t, sharding.Slots{}, 20, nil)
		time.Sleep(time.Minute)
		if !w.HasSynced() {
			t.Error("an informer whose shard stays empty is not synced")
		}
		shard.set(part(0, 2))
		w.checkStore(part(0, 2))
	})
}

// A list that says that it has another shard is a failure: the source would miss objects.
func TestShard_ListOfAnotherShardFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var info atomic.Value // a string
		info.Store(part(3, 4).Selector())
		client := &script{list: func(context.Context) (*unstructured.UnstructuredList, error) {
			list := &unstructured.UnstructuredList{Object: map[string]any{"metadata": map[string]any{
				"resourceVersion": "7", "shardInfo": map[string]any{"selector": info.Load().(string)},
			}}}
			return list, nil
		}}
		observer := &observer{}
		r := runInformer(t, source.Config{Client: source.Unstructured(client), GVR: widgets, Shard: newTestShard(part(2, 4)), Observer: observer, NoWatchList: true})
		defer r.stop()
		if len(observer.errors()) == 0 || r.HasSynced() {
			t.Errorf("errors = %v, synced = %v", observer.errors(), r.HasSynced())
		}
		info.Store(part(2, 4).Selector())
		time.Sleep(time.Minute)
		synctest.Wait()
		if !r.HasSynced() {
			t.Error("not synced with a list of the right shard")
		}
	})
}

// The view, the type, the objects and the feature of the server change at random, also while requests fail. At the end, the
// informer has the objects of its slots, and the handler got consistent events.
func TestShardModel_InformerHasTheObjectsOfItsSlots(t *testing.T) {
	seeds := make([]uint64, fewer(300))
	for i := range seeds {
		seeds[i] = rand.Uint64()
	}
	if *seed != 0 {
		seeds = []uint64{*seed}
	}
	for _, seed := range seeds {
		synctest.Test(t, func(t *testing.T) { runShardModel(t, seed) })
		if t.Failed() {
			t.Fatalf("go test -run ShardModel -seed %d", seed)
		}
	}
}

func runShardModel(t *testing.T, seed uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // reproducible
	shard := newTestShard(randomSlots(random))
	var set *source.Namespaces
	w := newTestInformer(t, func(cfg *source.Config) {
		cfg.Shard, cfg.KeepCache, cfg.NoWatchList = shard, seed%2 == 0, seed%4 > 1
		switch seed % 5 {
		case 0:
			set = source.NewNamespaces("ns", "none")
			cfg.Namespaces = set
		case 1:
			cfg.Polling = 5 * time.Second
		}
		if seed%3 > 0 {
			cfg.Client = delayed{cfg.Client, sleeps(seed, 3000), sleeps(seed+1, 300)}
		}
	}, "a", "b", "c")
	checker := &eventChecker{t: t, there: map[string]types.UID{}}
	if _, err := w.AddEventHandler(checker); err != nil {
		t.Fatal(err)
	}
	m := &model{testInformer: w, random: random}
	for range 80 {
		switch random.IntN(4) {
		case 0:
			shard.set(randomSlots(random))
		case 1:
			m.cluster.Shard(random.IntN(2) == 0)
		case 2:
			m.stepObject()
		default:
			if set != nil && random.IntN(6) == 0 {
				set.Set([]string{"none", "ns"}[random.IntN(2):]...)
			}
			m.step()
		}
		if random.IntN(3) > 0 {
			time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
		}
	}
	if set != nil {
		set.Set("ns", "none")
	}
	m.settle()
	time.Sleep(2 * time.Minute) // what is delayed
	synctest.Wait()
	slots := shard.View().Slots
	w.checkStore(slots)
	if diff := cmp.Diff(w.in(slots), checker.keys()); diff != "" {
		t.Errorf("handler (-cluster +handler):\n%s", diff)
	}
	state := w.source.State().Shard
	if state.Slots != slots || state.Generation != shard.View().Generation {
		t.Errorf("state = %+v, view = %+v", state, shard.View())
	}
}

// sleeps returns a function that sleeps for up to this number of milliseconds, or not at all.
func sleeps(seed uint64, most int) func() {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // reproducible
	return func() {
		mu.Lock()
		d := time.Duration(max(0, random.IntN(2*most)-most)) * time.Millisecond
		mu.Unlock()
		time.Sleep(d)
	}
}

// The open watch goes on while the list of gained slots arrives, so the list is of an earlier version than the watch. Each change is
// one event.
func TestShard_ListOfGainedSlotsIsBehindTheWatch(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				arrive, arriving := make(chan struct{}), false
				w, shard := sharded(t, part(0, 2), 40, func(cfg *source.Config) {
					scope(cfg)
					cfg.Confirm = func(context.Context, source.Type) bool { // after the list
						arriving = true
						<-arrive
						return true
					}
				})
				events := &handler{}
				if _, err := w.AddEventHandler(events); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				events.take()
				gained := len(w.in(part(1, 2)))
				before := w.source.State().Rewinds
				shard.set(part(0, 1))
				synctest.Wait()
				if !arriving {
					t.Fatal("gained slots are not listed")
				}
				w.fillMore(40)
				w.removeIn(part(0, 2), 3)
				w.removeIn(part(1, 2), 3)
				w.checkStore(part(0, 2))
				close(arrive)
				w.checkStore(part(0, 1))
				w.create("late0", "late1", "late2", "late3")
				w.checkStore(part(0, 1))
				// Three objects in gained slots were in the list, and have been removed since.
				if got, want := len(events.take()), gained+40+3+3+4; got != want {
					t.Errorf("%d events, want %d", got, want)
				}
				if errs := w.observer.errors(); len(errs) > 0 || w.source.State().Rewinds != before {
					t.Errorf("errors = %v", errs)
				}
				if watches := w.cluster.OpenWatches(widgets); watches != 1 {
					t.Errorf("%d watches are open", watches)
				}
			})
		})
	}
}

func TestShard_NamespaceThatIsAddedCostsOneList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := source.NewNamespaces("ns")
		w, _ := sharded(t, part(0, 2), 20, func(cfg *source.Config) { cfg.Namespaces = set })
		synctest.Wait()
		before := len(w.selectors("list"))
		set.Set("ns", "other")
		time.Sleep(time.Minute)
		if got := w.selectors("list")[before:]; !slices.Equal(got, []string{part(0, 2).Selector()}) {
			t.Errorf("lists %q", got)
		}
	})
}

func TestShard_ServerThatSelectsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := sharded(t, part(0, 2), 20, nil)
		w.cluster.Shard(false)
		w.cluster.CloseWatches(widgets)
		time.Sleep(time.Second)
		w.fillMore(20)
		synctest.Wait()
		if !w.source.State().Shard.ByClient {
			t.Error("a server that does not select is not noticed")
		}
		w.cluster.Shard(true)
		w.available.Set(source.Type{Serving: source.Gone, GVR: widgets, Namespaced: true})
		synctest.Wait()
		w.available.Set(source.Type{Serving: source.Served, GVR: widgets, Namespaced: true, Generation: 1})
		time.Sleep(time.Minute)
		if w.source.State().Shard.ByClient {
			t.Error("a server that selects again is not noticed")
		}
		w.checkStore(part(0, 2))
	})
}

// A watch-list of a server that does not select has objects of other slots. The reflector does not get anything for them.
func TestShard_InitialEventsOfOthersAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		w := &testInformer{t: t, cluster: cluster, available: newAvailability(source.Served), observer: &observer{}, handler: &handler{}}
		w.fill(40)
		s := source.New(source.Config{Client: source.Unstructured(cluster), GVR: widgets, Availability: w.available, Shard: newTestShard(part(0, 2))})
		ctx, cancel := context.WithCancel(t.Context())
		defer s.Wait()
		defer cancel()
		a := <-startWatchList(ctx, s)
		if a.err != nil {
			t.Fatal(a.err)
		}
		if got := cluster.Requests("list", widgets); len(got) > 0 {
			t.Errorf("requests for lists: %v", got)
		}
		if got, want := meta.LenList(a.list), len(w.in(part(0, 2))); got != want {
			t.Errorf("%d objects, want %d", got, want)
		}
	})
}

// A list of all slots replaces that of gained slots, which is older: objects that it does not have exist.
func TestShard_ListOfAllReplacesThatOfGainedSlots(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				held, lists := &atomic.Bool{}, &atomic.Int64{}
				wait := holding(held)
				w, shard := sharded(t, part(0, 2), 20, func(cfg *source.Config) {
					scope(cfg)
					cfg.Client = delayed{cfg.Client, func() {
						if lists.Add(1) == 1 {
							wait()
						}
					}, nil}
				})
				if _, err := w.AddEventHandler(w.handler); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				lists.Store(0)
				held.Store(true)
				shard.set(part(0, 1))
				synctest.Wait()
				w.recreateIn("late", part(1, 2))
				w.cluster.Expire(widgets)
				w.cluster.CloseWatches(widgets)
				time.Sleep(5 * time.Second)
				w.checkStore(part(0, 1))
				w.handler.take()
				held.Store(false)
				time.Sleep(time.Minute)
				if events := w.handler.take(); len(events) > 0 {
					t.Errorf("events = %v", events)
				}
				w.checkStore(part(0, 1))
			})
		})
	}
}
