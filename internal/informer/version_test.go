package informer

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/sharding"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// stored is an informer whose store a test fills.
type stored struct {
	cache.SharedIndexInformer
	store cache.Store
}

func (s stored) GetStore() cache.Store { return s.store }
func (s stored) IsStopped() bool       { return false }

// growing is a shard that has one half of the slots, and then all.
type growing struct {
	mu      sync.Mutex
	view    sharding.View
	changed chan struct{}
}

func (g *growing) View() sharding.View {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.view
}

func (g *growing) Changed() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.changed
}

func (g *growing) LostSince(uint64) sharding.Slots { return sharding.Slots{} }

func (g *growing) grow() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.view = sharding.View{Generation: 2, Slots: sharding.Slots{}.Complement()}
	close(g.changed)
	g.changed = make(chan struct{})
}

// late is a client whose lists of gained slots arrive later.
type late struct {
	source.Client
	shard  *growing
	arrive chan struct{}
}

func (l late) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	list, err := l.Client.List(ctx, gvr, namespace, opts)
	if l.shard.View().Generation > 1 {
		<-l.arrive
	}
	return list, err
}

// createIn creates a widget whose UID is in slots.
func createIn(t *testing.T, cluster *fakecluster.Cluster, name string, slots sharding.Slots) metav1.Object {
	t.Helper()
	for i := 0; ; i++ {
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		obj.SetName(fmt.Sprint(name, i))
		made, err := cluster.Resource(widgets).Namespace("ns").Create(t.Context(), obj, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if slots.Has(sharding.SlotOf(made.GetUID())) {
			return made
		}
	}
}

// received returns the events that w has now.
func received(w watch.Interface) (events []watch.Event) {
	for {
		synctest.Wait()
		select {
		case event := <-w.ResultChan():
			events = append(events, event)
		default:
			return events
		}
	}
}

// apply changes the store as a reflector does.
func (s stored) apply(t *testing.T, event watch.Event) {
	t.Helper()
	var err error
	switch event.Type {
	case watch.Added:
		err = s.store.Add(event.Object)
	case watch.Modified:
		err = s.store.Update(event.Object)
	case watch.Deleted:
		err = s.store.Delete(event.Object)
	}
	obj, is := event.Object.(metav1.Object)
	if err != nil || !is {
		t.Fatalf("%v: %v", event, err)
	}
	s.store.Bookmark(obj.GetResourceVersion())
}

// The list of gained slots is of an earlier version than the store, which is behind the reflector. The watch after it repeats what has happened
// since then in these slots.
func TestAwaitVersion_TheStoreHasWhatTheWatchRepeatsOfGainedSlots(t *testing.T) {
	for name, tc := range map[string]repeating{
		"events in a queue": {queued: true}, "events one by one": {}, "after an empty list": {empty: true}, "by another list": {expired: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testGained(t, tc) })
		})
	}
}

// repeating is how a watch repeats events. Queued says that the reflector has all events before the store gets the first one, and empty that the
// list of gained slots has no objects. Expired says that no watch can begin at its version: a list has the differences.
type repeating struct{ queued, empty, expired bool }

// testGained gives the store the events one by one.
func testGained(t *testing.T, how repeating) {
	t.Helper()
	cluster := fakecluster.New(fakecluster.Type{GVR: widgets, Kind: "Widget", Namespaced: true})
	cluster.Shard(true)
	half, err := sharding.Static(0, 2)
	if err != nil {
		t.Fatal(err)
	}
	first, second := half.View().Slots, half.View().Slots.Complement()
	var gone []metav1.Object
	if !how.empty {
		gone = append(gone, createIn(t, cluster, "gone", second))
	}
	shard := &growing{view: sharding.View{Generation: 1, Slots: first}, changed: make(chan struct{})}
	client := late{source.Unstructured(cluster), shard, make(chan struct{})}
	src := source.New(source.Config{Client: client, GVR: widgets, Shard: shard, NoWatchList: true})
	s := stored{store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
	src.LookUp(func(key string) (any, bool) {
		obj, there, err := s.store.GetByKey(key)
		return obj, there && err == nil
	})
	lw := cache.ToListerWatcherWithContext(src.ListerWatcher())
	list, err := lw.ListWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	content, err := meta.ListAccessor(list)
	if err != nil {
		t.Fatal(err)
	}
	s.store.Bookmark(content.GetResourceVersion()) // it has no objects in the first slots
	w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{ResourceVersion: content.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	shard.grow()
	events := received(w)
	mine := createIn(t, cluster, "mine", second)
	gone = append(gone, createIn(t, cluster, "temporary", second))
	for _, obj := range gone {
		if err := cluster.Resource(widgets).Namespace("ns").Delete(t.Context(), obj.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	version := createIn(t, cluster, "other", first).GetResourceVersion()
	for _, event := range append(events, received(w)...) {
		s.apply(t, event)
	}
	createIn(t, cluster, "later", first)
	events = received(w)
	if how.expired {
		cluster.Expire(widgets)
	}
	close(client.arrive)
	if how.queued || how.expired {
		events = append(events, received(w)...)
	}
	for range 10 { // pauses before lists
		if how.expired {
			time.Sleep(time.Second)
			events = append(events, received(w)...)
		}
	}

	wait := versionWait{Informer: &Informer{SharedIndexInformer: s, source: src}, version: version, synced: func() bool { return true }}
	check := func(when string) bool {
		_, done, err := wait.look(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, has, _ := s.store.GetByKey("ns/" + mine.GetName())
		if _, still, _ := s.store.GetByKey("ns/" + gone[0].GetName()); done && (!has || still) {
			t.Errorf("%s the store has the object that was created: %v, and the one that was deleted: %v", when, has, still)
		}
		return done
	}
	for n := 0; ; n++ {
		synctest.Wait()
		check(fmt.Sprintf("after %d events", n))
		if len(events) == 0 {
			select {
			case event := <-w.ResultChan():
				events = append(events, event)
			default:
			}
		}
		if len(events) == 0 {
			break
		}
		s.apply(t, events[0])
		events = events[1:]
	}
	if !check("at the end") {
		t.Error("the wait is not over")
	}
	w.Stop()
	src.Wait()
}
