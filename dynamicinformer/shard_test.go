package dynamicinformer_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/lister"
	"github.com/gvrkit/gvrkit/sharding"
	"github.com/gvrkit/gvrkit/status"
)

var shardSeed = flag.Uint64("shard.seed", 0, "run TestWithShard_NoTwoMembersActOnAnObject with this seed alone")

func static(t *testing.T, index, count int) sharding.Shard {
	t.Helper()
	shard, err := sharding.Static(index, count)
	if err != nil {
		t.Fatal(err)
	}
	return shard
}

func TestWithShard_PartsHaveAllObjectsOnce(t *testing.T) {
	for _, sharded := range []bool{false, true} {
		t.Run(fmt.Sprintf("feature=%v", sharded), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				cluster.Shard(sharded)
				var all []string
				for i := range 50 {
					create(t, cluster, widgets, "ns", fmt.Sprintf("o%02d", i))
					all = append(all, fmt.Sprintf("o%02d", i))
				}
				var got []string
				for i := range 3 {
					f := newFactory(t, cluster, dynamicinformer.WithShard(static(t, i, 3)))
					start(t.Context(), f)
					defer shutdown(t, f)
					l, err := f.Acquire(t.Context(), widgets)
					if err != nil {
						t.Fatal(err)
					}
					events := listen(t, l.Informer())
					synctest.Wait()
					objects, err := l.Unstructured().Query(lister.Query{})
					if err != nil {
						t.Fatal(err)
					}
					for _, obj := range objects.Items {
						got = append(got, obj.GetName())
					}
					if added := events.take(); len(added) != len(objects.Items) {
						t.Errorf("part %d: %d events for %d objects", i, len(added), len(objects.Items))
					}
					informers := f.Status()
					if shard := informers[0].Shard; shard == nil || shard.ByClient == sharded || shard.Slots < 85 || shard.Waiting > 0 {
						t.Errorf("part %d: %+v", i, shard)
					}
				}
				slices.Sort(got)
				if diff := cmp.Diff(all, got); diff != "" {
					t.Errorf("objects of all parts (-want +got):\n%s", diff)
				}
			})
		})
	}
}

func TestWithShard_LeasesCompareShards(t *testing.T) {
	f := newFactory(t, fakecluster.New(widgetType))
	defer shutdown(t, f)
	half := static(t, 0, 2)
	first, err := f.Acquire(t.Context(), widgets, dynamicinformer.WithShard(half))
	if err != nil {
		t.Fatal(err)
	}
	defer first.Release()
	same, err := f.Acquire(t.Context(), widgets, dynamicinformer.WithShard(static(t, 0, 2)))
	if err != nil {
		t.Fatalf("an equal shard: %v", err)
	}
	defer same.Release()
	for name, shard := range map[string]sharding.Shard{"another shard": static(t, 1, 2), "no shard": nil, "not comparable": incomparable{half, nil}} {
		_, err := f.Acquire(t.Context(), widgets, dynamicinformer.WithShard(shard))
		if !errors.Is(err, dynamicinformer.ErrConflict) || !strings.Contains(err.Error(), "WithShard is shard 0 of 2 in") {
			t.Errorf("%s: %v", name, err)
		}
	}
	g := newFactory(t, fakecluster.New(widgetType), dynamicinformer.WithShard(incomparable{half, nil}))
	defer shutdown(t, g)
	for range 2 {
		l, err := g.Acquire(t.Context(), widgets)
		if err != nil {
			t.Fatalf("the shard of the factory, which is not comparable: %v", err)
		}
		defer l.Release()
	}
	if _, err := g.Acquire(t.Context(), widgets, dynamicinformer.WithShard(incomparable{half, nil})); !errors.Is(err, dynamicinformer.ErrConflict) {
		t.Errorf("two shards that are not comparable: %v", err)
	}
	var none *sharding.Member
	if _, err := f.Acquire(t.Context(), widgets, dynamicinformer.WithShard(none), dynamicinformer.WithSeparateInformer()); !errors.Is(err, dynamicinformer.ErrInvalidOption) {
		t.Errorf("a nil member: %v", err)
	}
}

// asking is a shard whose String calls the factory.
type asking struct {
	*settable
	asked atomic.Int32
	ask   func()
}

func (a *asking) String() string {
	a.asked.Add(1)
	a.ask()
	return "asking"
}

// The text of a shard is the user's: it is only needed for an error, and then without a lock.
func TestWithShard_StringMayCallTheFactory(t *testing.T) {
	f := newFactory(t, fakecluster.New(widgetType))
	shard := &asking{settable: newSettable(sharding.Slots{}), ask: func() { f.Status() }}
	acquired := make(chan error, 1)
	go func() {
		var err error
		for range 2 {
			_, err = f.Acquire(t.Context(), widgets, dynamicinformer.WithShard(shard))
		}
		f.ForResource(widgets)
		if asked := shard.asked.Load(); err == nil && asked != 0 {
			err = fmt.Errorf("without an error, String was called %d times", asked)
		}
		if err == nil {
			_, err = f.Acquire(t.Context(), widgets, dynamicinformer.WithShard(static(t, 0, 2)))
		}
		acquired <- err
	}()
	select {
	case err := <-acquired:
		if !errors.Is(err, dynamicinformer.ErrConflict) || !strings.Contains(err.Error(), "WithShard is asking in the shared informer, not shard 0 of 2") {
			t.Errorf("error: %v", err)
		}
		shutdown(t, f)
	case <-time.After(10 * time.Second):
		t.Error("Acquire does not return: String is called with the factory's lock")
	}
}

// settable is a shard whose slots a test sets.
type settable struct {
	sharding.Shard // nil
	mu             sync.Mutex
	view           sharding.View
	changed        chan struct{}
	viewed         func() // is called by View; it may be nil
}

func newSettable(slots sharding.Slots) *settable {
	return &settable{view: sharding.View{Generation: 1, Slots: slots}, changed: make(chan struct{})}
}

func (s *settable) View() sharding.View {
	if s.viewed != nil {
		s.viewed()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view
}

func (s *settable) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *settable) Owns(uid types.UID) bool          { return s.View().Slots.Has(sharding.SlotOf(uid)) }
func (s *settable) String() string                   { return "settable" }
func (s *settable) LostSince(uint64) sharding.Slots  { return sharding.Slots{} }
func (s *settable) Follow(string) *sharding.Follower { return nil }

func (s *settable) set(slots sharding.Slots) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.view = sharding.View{Generation: s.view.Generation + 1, Slots: slots}
	close(s.changed)
	s.changed = make(chan struct{})
}

// createIn creates an object whose UID is in slots.
func createIn(t *testing.T, cluster *fakecluster.Cluster, name string, slots sharding.Slots) metav1.Object {
	t.Helper()
	for i := 0; ; i++ {
		if obj := create(t, cluster, widgets, "ns", fmt.Sprint(name, i)); slots.Has(sharding.SlotOf(obj.GetUID())) {
			return obj
		}
	}
}

// Each form of objects follows its shard.
func TestWithShard_AllFormsFollowTheShard(t *testing.T) {
	identity := dynamicinformer.WithTransform(func(obj any) (any, error) { return obj, nil })
	for name, opts := range map[string][]dynamicinformer.LeaseOption{
		"unstructured":        nil,
		"transform":           {identity},
		"packed":              {dynamicinformer.WithPackedCache()},
		"packed, transform":   {dynamicinformer.WithPackedCache(), identity},
		"packed, coalescing":  {dynamicinformer.WithPackedCache(), dynamicinformer.WithCoalescing(5), dynamicinformer.WithHandlerRecovery()},
		"a Go type":           {dynamicinformer.WithGoType(&typedWidget{})},
		"a set of namespaces": {dynamicinformer.WithNamespaces("ns", "other")},
	} {
		for _, feature := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, feature=%v", name, feature), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cluster := fakecluster.New(widgetType)
					cluster.Shard(feature)
					for i := range 30 {
						create(t, cluster, widgets, "ns", fmt.Sprintf("o%02d", i))
					}
					first, second := static(t, 0, 2).View().Slots, static(t, 1, 2).View().Slots
					shard := newSettable(first)
					f := newFactory(t, cluster, dynamicinformer.WithShard(shard))
					start(t.Context(), f)
					defer shutdown(t, f)
					l, err := f.Acquire(t.Context(), widgets, opts...)
					if err != nil {
						t.Fatal(err)
					}
					r := &recorder{}
					if _, err := l.AddEventHandler(r); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					r.take()
					shard.set(second)
					time.Sleep(time.Second)
					var want, cached []string
					list, err := cluster.Resource(widgets).List(t.Context(), metav1.ListOptions{})
					if err != nil {
						t.Fatal(err)
					}
					for _, obj := range list.Items {
						key := "ns/" + obj.GetName()
						if first.Has(sharding.SlotOf(obj.GetUID())) {
							want = append(want, "move "+key)
							continue
						}
						want, cached = append(want, "add "+key), append(cached, key)
					}
					got, keys := r.take(), l.Informer().GetStore().ListKeys()
					for _, texts := range [][]string{want, cached, got, keys} {
						slices.Sort(texts)
					}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("events (-want +got):\n%s", diff)
					}
					if diff := cmp.Diff(cached, keys); diff != "" {
						t.Errorf("cache (-want +got):\n%s", diff)
					}
				})
			})
		}
	}
}

func TestWithShard_AtLeastWaitsForGainedSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		cluster.Shard(true)
		first, second, all := static(t, 0, 2).View().Slots, static(t, 1, 2).View().Slots, static(t, 0, 1).View().Slots
		shard := newSettable(first)
		f := newFactory(t, cluster, dynamicinformer.WithShard(shard))
		start(t.Context(), f)
		defer shutdown(t, f)
		l, err := f.Acquire(t.Context(), widgets)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == "list" && req.Options.ShardSelector != "" {
				time.Sleep(time.Minute)
			}
			return nil
		})
		shard.set(all)
		synctest.Wait()
		mine := createIn(t, cluster, "mine", second)
		createIn(t, cluster, "other", first) // an event that has a later version
		begun := time.Now()
		if err := l.AtLeast(t.Context(), mine.GetResourceVersion()); err != nil {
			t.Error(err)
		}
		if _, there, _ := l.Informer().GetStore().GetByKey("ns/" + mine.GetName()); !there || time.Since(begun) < time.Minute {
			t.Errorf("after %v, the cache has the object: %v", time.Since(begun), there)
		}
	})
}

// A shard is the user's code: no lock is held while its methods run.
func TestWithShard_ViewMayReadTheStatus(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	shard := newSettable(static(t, 0, 2).View().Slots)
	f := newFactory(t, cluster, dynamicinformer.WithShard(shard))
	var reads sync.WaitGroup
	shard.viewed = func() {
		if len(f.Status()) > 0 { // while another goroutine waits, too
			reads.Go(func() { f.Explain(widgets) })
		}
	}
	f.Start(t.Context())
	defer reads.Wait()
	defer shutdown(t, f)
	l, err := f.Acquire(t.Context(), widgets)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := l.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		shard.set(sharding.Slots{})
		l.Status()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		t.Fatal("the status waits for the shard, which waits for the status")
	}
}

// The status of an informer says what its member waits for, and of whom.
func TestWithShard_StatusHasTheGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, leases := fakecluster.New(widgetType), fakecluster.NewLeaseServer()
		cluster.Shard(true)
		for i := range 40 {
			create(t, cluster, widgets, "ns", fmt.Sprintf("o%02d", i))
		}
		ofThird := leases.Client()
		join := func(identity string) *sharding.Member {
			client := leases.Client()
			if identity == "third" {
				client = ofThird
			}
			member, err := sharding.Join(t.Context(), client, sharding.Config{Namespace: "ns", Name: "widgets", Identity: identity})
			if err != nil {
				t.Fatal(err)
			}
			return member
		}
		var ends []func()
		defer func() {
			for _, end := range ends {
				end()
			}
		}()
		state := func(member *sharding.Member) func() *status.Shard {
			f := newFactory(t, cluster, dynamicinformer.WithShard(member))
			start(t.Context(), f)
			l, err := f.Acquire(t.Context(), widgets)
			if err != nil {
				t.Fatal(err)
			}
			ends = append(ends, func() {
				shutdown(t, f)
				if err := member.Leave(t.Context()); err != nil {
					t.Error(err)
				}
			})
			return func() *status.Shard { return l.Status().Shard }
		}
		first := state(join("first"))
		time.Sleep(30 * time.Second)
		if got := first(); got.Member != "first" || got.Slots != sharding.SlotCount || got.Awaited+got.Waiting+int(got.Moved) > 0 || got.Reason != "" { //nolint:gosec // few
			t.Errorf("alone: %+v", got)
		}
		second := join("second")
		defer func() {
			if err := second.Leave(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		stuck := second.Follow("stuck")
		time.Sleep(30 * time.Second)
		if got := first(); got.Slots+second.View().Slots.Len() != sharding.SlotCount || got.Moved == 0 {
			t.Errorf("after another one has joined: %+v", got)
		}
		third := state(join("third"))
		time.Sleep(15 * time.Second)
		if got := third(); got.Awaited == 0 || got.Pending == "" || !slices.Equal(got.Owners, []string{"second"}) {
			t.Errorf("while one does not let go: %+v", got)
		}
		stuck.Stop()
		time.Sleep(15 * time.Second)
		if got := third(); got.Awaited != 0 || got.Owners != nil || got.Slots < sharding.SlotCount/5 || got.Err != "" {
			t.Errorf("after it has let go: %+v", got)
		}
		ofThird.SetFault(func(verb string) (before, after error) {
			return errors.New(verb + " does not work"), nil
		})
		time.Sleep(15 * time.Second)
		if got := third(); got.Reason != string(sharding.ReasonNotRenewed) || got.Err != "list leases in namespace ns: list does not work" {
			t.Errorf("without its Lease: %+v", got)
		}
		ofThird.SetFault(nil)
	})
}

type incomparable struct {
	sharding.Shard
	_ []int
}

// ledger is what the handlers of all members are doing. It is outside of the members.
type ledger struct {
	t     *testing.T
	mu    sync.Mutex
	acts  map[types.UID]string            // the member that acts on an object
	last  map[types.UID]string            // the last version that was handled
	known map[string]map[types.UID]string // the names of the objects that the handler of a member has, by its identity
}

// begin is called at the begin of a call for obj, which acts for some time.
func (l *ledger) begin(member string, obj metav1.Object, gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if other := l.acts[obj.GetUID()]; other != "" {
		l.t.Errorf("%s acts on %s while %s does", member, obj.GetName(), other)
	}
	l.acts[obj.GetUID()], l.last[obj.GetUID()] = member, obj.GetResourceVersion()
	if gone {
		delete(l.known[member], obj.GetUID())
	} else {
		l.known[member][obj.GetUID()] = obj.GetName()
	}
}

func (l *ledger) end(obj metav1.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.acts, obj.GetUID())
}

func (l *ledger) leave(member string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, member)
}

// actor is the handler of a member. Each call takes some time.
type actor struct {
	*ledger
	member string
	shard  sharding.Shard
	random *rand.Rand
}

func (a *actor) act(obj any, gone bool) {
	object := whole(obj)
	a.begin(a.member, object, gone)
	defer a.end(object)
	long := 50
	if a.random.IntN(20) == 0 {
		long = 4000 // below LeaseDuration - RenewDeadline
	}
	time.Sleep(time.Duration(a.random.IntN(long)) * time.Millisecond)
}

func (a *actor) OnAdd(obj any, _ bool) { a.act(obj, false) }
func (a *actor) OnUpdate(_, obj any)   { a.act(obj, false) }
func (a *actor) OnDelete(obj any)      { a.act(obj, true) }

func (a *actor) OnMoved(obj any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known[a.member], whole(obj).GetUID())
}

// whole returns the object of a call. With coalescing, deleted and moved objects may have only metadata.
func whole(obj any) metav1.Object {
	if unknown, is := obj.(cache.DeletedFinalStateUnknown); is {
		obj = unknown.Obj
	}
	return obj.(metav1.Object)
}

// process is one member with its informer.
type process struct {
	member  *sharding.Member
	client  *fakecluster.LeaseClient
	factory *dynamicinformer.Factory
	lease   *dynamicinformer.Lease
}

// group is processes that share the objects of a cluster. Its steps are random.
type group struct {
	*testing.T
	random    *rand.Rand
	cluster   *fakecluster.Cluster
	leases    *fakecluster.LeaseServer
	ledger    *ledger
	processes map[string]*process
	joined    int
}

func (g *group) join() {
	if len(g.processes) == 4 {
		return
	}
	g.joined++
	identity := fmt.Sprintf("m%d", g.joined)
	client := g.leases.Client()
	member, err := sharding.Join(g.Context(), client, sharding.Config{Namespace: "ns", Name: "widgets", Identity: identity})
	if err != nil {
		g.Fatal(err)
	}
	f := newFactory(g.T, g.cluster, dynamicinformer.WithShard(member))
	start(g.Context(), f)
	opts := []dynamicinformer.LeaseOption{}
	if g.random.IntN(3) == 0 {
		opts = append(opts, dynamicinformer.WithCoalescing(10))
	}
	l, err := f.Acquire(g.Context(), widgets, opts...)
	if err != nil {
		g.Fatal(err)
	}
	g.ledger.mu.Lock()
	g.ledger.known[identity] = map[types.UID]string{}
	g.ledger.mu.Unlock()
	handler := &actor{ledger: g.ledger, member: identity, shard: member, random: rand.New(rand.NewPCG(g.random.Uint64(), 0))} //nolint:gosec // reproducible
	if _, err := l.Informer().AddEventHandler(handler); err != nil {
		g.Fatal(err)
	}
	g.processes[identity] = &process{member, client, f, l}
}

// any returns the identity of a process at random, or "".
func (g *group) any() string {
	var all []string
	for identity := range g.processes {
		all = append(all, identity)
	}
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return all[g.random.IntN(len(all))]
}

func (g *group) leave(identity string) {
	p := g.processes[identity]
	if p == nil {
		return
	}
	delete(g.processes, identity)
	if g.random.IntN(2) == 0 { // the order does not matter
		shutdown(g.T, p.factory)
	}
	p.client.SetHang(false)
	p.client.SetFault(nil)
	if err := p.member.Leave(g.Context()); err != nil {
		g.Errorf("Leave: %v", err)
	}
	shutdown(g.T, p.factory)
	g.ledger.leave(identity)
}

func (g *group) step() {
	client := g.cluster.Resource(widgets).Namespace("ns")
	name := fmt.Sprintf("o%d", g.random.IntN(40))
	switch g.random.IntN(16) {
	case 0:
		g.join()
	case 1:
		if len(g.processes) > 1 {
			g.leave(g.any())
		}
	case 2:
		if p := g.processes[g.any()]; p != nil { // the member can't renew its Lease for some time
			p.client.SetHang(g.random.IntN(2) == 0)
		}
	case 3:
		g.cluster.CloseWatches(widgets)
	case 4:
		g.cluster.Shard(g.random.IntN(2) == 0)
	case 5:
		g.cluster.Intercept(nil)
		if verb := []string{"list", "watch", "none"}[g.random.IntN(3)]; verb != "none" {
			g.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
				if req.Verb == verb {
					return apierrors.NewServiceUnavailable("down")
				}
				return nil
			})
		}
	case 6, 7, 8:
		_ = client.Delete(g.Context(), name, metav1.DeleteOptions{})
	case 9, 10, 11:
		_, _ = client.Create(g.Context(), newObject(name, nil), metav1.CreateOptions{})
	default:
		if obj, err := client.Get(g.Context(), name, metav1.GetOptions{}); err == nil {
			obj.SetLabels(map[string]string{"color": fmt.Sprint(g.random.IntN(100))})
			_, _ = client.Update(g.Context(), obj, metav1.UpdateOptions{})
		}
	}
}

// settle ends all faults, and waits.
func (g *group) settle() {
	g.cluster.Intercept(nil)
	for _, p := range g.processes {
		p.client.SetHang(false)
	}
	time.Sleep(3 * time.Minute)
	synctest.Wait()
}

// check compares what the handlers have, and have handled last, with the cluster.
func (g *group) check() {
	list, err := g.cluster.Resource(widgets).List(g.Context(), metav1.ListOptions{})
	if err != nil {
		g.Fatal(err)
	}
	g.ledger.mu.Lock()
	defer g.ledger.mu.Unlock()
	want, got := map[types.UID]string{}, map[types.UID]string{}
	for _, item := range list.Items {
		want[item.GetUID()] = item.GetName()
		if last := g.ledger.last[item.GetUID()]; last != item.GetResourceVersion() {
			g.Errorf("the last version of %s is %s, and %q was handled last", item.GetName(), item.GetResourceVersion(), last)
		}
	}
	cached := 0
	for identity, p := range g.processes {
		for uid, name := range g.ledger.known[identity] {
			if got[uid] != "" || !p.member.Owns(uid) {
				g.Errorf("%s has %s, owned: %v, had by another: %v", identity, name, p.member.Owns(uid), got[uid] != "")
			}
			got[uid] = name
		}
		cached += len(p.lease.Informer().GetStore().List())
		if s := p.member.Status(); !s.Pending.Empty() || !s.LettingGo.Empty() || len(s.Loading) > 0 {
			g.Errorf("%s: %+v", identity, s)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		g.Errorf("objects (-cluster +handlers):\n%s", diff)
	}
	if cached != len(want) {
		g.Errorf("the caches have %d objects, want %d", cached, len(want))
	}
}

// Members join, leave and lose their Leases at random, while objects change and requests fail. At no time do two members act on an
// object, and at the end each object's last state was handled by its member.
func TestWithShard_NoTwoMembersActOnAnObject(t *testing.T) {
	groups := 60
	if testing.Short() {
		groups = 12
	}
	seeds := make([]uint64, groups)
	for i := range seeds {
		seeds[i] = rand.Uint64()
	}
	if *shardSeed != 0 {
		seeds = []uint64{*shardSeed}
	}
	for _, seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // reproducible
			g := &group{T: t, random: random, cluster: fakecluster.New(widgetType), leases: fakecluster.NewLeaseServer(), processes: map[string]*process{}}
			g.ledger = &ledger{t: t, acts: map[types.UID]string{}, last: map[types.UID]string{}, known: map[string]map[types.UID]string{}}
			g.cluster.Shard(true)
			g.join()
			g.join()
			for range 100 {
				g.step()
				time.Sleep(time.Duration(random.IntN(2000)) * time.Millisecond)
			}
			if len(g.processes) == 0 {
				g.join()
			}
			g.settle()
			g.check()
			for identity := range g.processes {
				g.leave(identity)
			}
		})
		if t.Failed() {
			t.Fatalf("go test -run NoTwoMembers -shard.seed %d", seed)
		}
	}
}
