package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// loads counts the first lists of a cluster that are in progress. Each takes a second.
type loads struct {
	mu        sync.Mutex
	now, most int
	order     []string
}

func (l *loads) take(ctx context.Context, req fakecluster.Request) error {
	initial := req.Options.SendInitialEvents
	if req.Verb != "list" && (initial == nil || !*initial) {
		return nil
	}
	l.mu.Lock()
	l.now++
	l.most = max(l.most, l.now)
	l.order = append(l.order, req.GVR.Resource)
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.now--
	}()
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// manyTypes returns types with the resources w0, w1 and so on.
func manyTypes(types int) []fakecluster.Type {
	var all []fakecluster.Type
	for i := range types {
		one := widgetType
		one.GVR.Resource = fmt.Sprintf("w%d", i)
		all = append(all, one)
	}
	return all
}

func TestListConcurrency_LimitsTheListsOfAFactory(t *testing.T) {
	for _, policy := range []dynamicinformer.WatchListPolicy{dynamicinformer.WatchListAuto, dynamicinformer.WatchListNever} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				types, l := manyTypes(10), &loads{}
				cluster := fakecluster.New(types...)
				cluster.Intercept(l.take)
				f := newFactory(t, cluster, dynamicinformer.WithListConcurrency(3), dynamicinformer.WithWatchListPolicy(policy))
				f.Start(t.Context())
				for _, one := range types {
					acquire(t, f, one.GVR)
					synctest.Wait()
				}
				begun := time.Now()
				time.Sleep(100 * time.Millisecond)
				last := f.Status()[9]
				if last.State != status.StateStarting || last.Reason != status.ReasonQueued || !last.Since.Equal(begun) {
					t.Errorf("the last one is %s since %v", last.Summary(time.Now()), last.Since)
				}
				if text := f.Explain(types[9].GVR).String(); !strings.Contains(text, "The first list waits for the lists of other resources") {
					t.Errorf("explanation: %s", text)
				}
				short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
				err := f.WaitForSync(short, dynamicinformer.WithFailFast(), dynamicinformer.WithResources(types[9].GVR))
				cancel()
				var notSynced *status.NotSyncedError
				if !errors.As(err, &notSynced) || notSynced.Reason != status.ReasonQueued || !notSynced.Since.Equal(begun) {
					t.Errorf("WaitForSync: %v", err)
				}
				want := "w9.v1.example.com: not synced: the list waits for the lists of other resources (Queued for 100ms)"
				if err == nil || err.Error() != want {
					t.Errorf("error %q, want %q", err, want)
				}
				if err := f.WaitForSync(t.Context()); err != nil {
					t.Error(err)
				}
				if took := time.Since(begun).Round(time.Second); took != 4*time.Second || l.most != 3 {
					t.Errorf("ten lists took %v, at most %d at a time", took, l.most)
				}
				for second := range slices.Chunk(l.order, 3) {
					slices.Sort(second) // they begin at the same time
				}
				if !slices.IsSorted(l.order) {
					t.Errorf("order of lists: %v", l.order)
				}
				for _, i := range f.Status() {
					if i.State != status.StateSynced {
						t.Errorf("%s is %s", i.Name(), i.Summary(time.Now()))
					}
				}
				shutdown(t, f)
			})
		})
	}
}

// A lease that waits leaves the queue at once, and a type that hangs delays the others for a minute.
func TestListConcurrency_ReleasedAndHangingTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		types := manyTypes(3)
		cluster := fakecluster.New(types...)
		cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
			if req.GVR != types[0].GVR {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		f := newFactory(t, cluster, dynamicinformer.WithListConcurrency(1))
		f.Start(t.Context())
		var leases []*dynamicinformer.Lease
		for _, one := range types {
			leases = append(leases, acquire(t, f, one.GVR))
			synctest.Wait()
		}
		begun := time.Now()
		leases[1].Release()
		if !isDone(leases[1]) || time.Since(begun) != 0 {
			t.Errorf("a lease that waits is done after %v: %v", time.Since(begun), isDone(leases[1]))
		}
		if err := leases[2].WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun).Round(time.Second); took != time.Minute {
			t.Errorf("a list behind one that hangs took %v", took)
		}
		if got := len(cluster.Requests("list", types[1].GVR)) + len(cluster.Requests("watch", types[1].GVR)); got != 0 {
			t.Errorf("%d requests of a lease that was released", got)
		}
		begun = time.Now()
		shutdown(t, f)
		if took := time.Since(begun); took != 0 {
			t.Errorf("Shutdown took %v", took)
		}
	})
}

// Shutdown ends informers whose lists wait.
func TestListConcurrency_ShutdownDoesNotWaitForTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		types, l := manyTypes(5), &loads{}
		cluster := fakecluster.New(types...)
		cluster.Intercept(l.take)
		f := newFactory(t, cluster, dynamicinformer.WithListConcurrency(1))
		f.Start(t.Context())
		for _, one := range types {
			acquire(t, f, one.GVR)
		}
		time.Sleep(1500 * time.Millisecond)
		begun := time.Now()
		shutdown(t, f)
		if took := time.Since(begun); took != 0 || len(l.order) != 2 {
			t.Errorf("Shutdown took %v, after %d lists", took, len(l.order))
		}
	})
}

// Types that hang, fail, are forbidden or absent, and leases that are released at any time, do not stop the
// other types, and the limit holds.
func TestListConcurrency_RandomTypes(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) { randomTypes(t, rand.New(rand.NewPCG(seed, 9))) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func randomTypes(t *testing.T, r *rand.Rand) {
	t.Helper()
	types, limit := manyTypes(12), 1+r.IntN(3)
	cluster := fakecluster.New(types[:11]...) // the last one is absent
	c := &faultyLists{seed: r.Uint64(), tries: map[string]int{}, begun: map[int]begunList{}}
	cluster.Intercept(c.take)
	f := newFactory(t, cluster, withDiscovery(t, cluster), dynamicinformer.WithListConcurrency(limit),
		dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListPolicy(r.IntN(2))))
	f.Start(t.Context())
	leases := map[int]*dynamicinformer.Lease{}
	for range 60 {
		i := r.IntN(len(types))
		if l := leases[i]; l != nil {
			l.Release()
			delete(leases, i)
		} else {
			leases[i] = acquire(t, f, types[i].GVR, dynamicinformer.WithAllowAbsent())
		}
		time.Sleep(time.Duration(r.IntN(2000)) * time.Millisecond)
	}
	for i := range types {
		if leases[i] == nil {
			leases[i] = acquire(t, f, types[i].GVR, dynamicinformer.WithAllowAbsent())
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	for i := range 9 {
		if err := leases[i].WaitForSync(ctx); err != nil {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	time.Sleep(2 * time.Minute) // the list of w9 has its turn for a minute, and w10 may wait for that turn
	for _, i := range f.Status() {
		if i.Reason == status.ReasonQueued {
			t.Errorf("limit %d: %s", limit, i)
		}
	}
	shutdown(t, f)
	if len(c.most) > limit {
		t.Errorf("limit %d, and at a time: %q", limit, c.most)
	}
}

// faultyLists makes lists of w0 to w5 take up to two seconds, those of w6 to w8 also fail some times, those
// of w9 hang, and those of w10 be forbidden. It counts lists that have been in progress for less than a minute.
type faultyLists struct {
	seed uint64

	mu    sync.Mutex
	tries map[string]int
	begun map[int]begunList
	lists int
	most  []string // the lists that were in progress when they were most
}

type begunList struct {
	what string
	at   time.Time
	ctx  context.Context //nolint:containedctx // of the request
}

func (c *faultyLists) take(ctx context.Context, req fakecluster.Request) error {
	initial := req.Options.SendInitialEvents
	if req.Verb != "list" && (req.Verb != "watch" || initial == nil || !*initial) {
		return nil
	}
	if req.Options.Limit == 1 { // after a failed watch, it compares versions with those of the server, and is not limited
		return nil
	}
	c.mu.Lock()
	c.lists++
	c.tries[req.GVR.Resource]++
	number, try := c.lists, c.tries[req.GVR.Resource]
	var counting []string
	c.begun[number] = begunList{req.Verb + " " + req.GVR.Resource, time.Now(), ctx}
	for _, l := range c.begun {
		if age := time.Since(l.at); age < time.Minute {
			counting = append(counting, fmt.Sprintf("%s for %v (context: %v)", l.what, age, l.ctx.Err()))
		}
	}
	if len(counting) > len(c.most) {
		c.most = counting
	}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.begun, number)
	}()
	var pause <-chan time.Time
	kind := 0
	_, _ = fmt.Sscanf(req.GVR.Resource, "w%d", &kind)
	if kind != 9 {
		pause = time.After(time.Duration(c.seed>>(number%50)%2000) * time.Millisecond)
	}
	select {
	case <-pause:
	case <-ctx.Done():
		return ctx.Err()
	}
	switch {
	case kind == 10:
		return apierrors.NewForbidden(req.GVR.GroupResource(), "", errors.New("no"))
	case kind >= 6 && try%7 < 4:
		return apierrors.NewServiceUnavailable("down")
	}
	return nil
}

// The cache of a synced informer does not wait for the first lists of others.
func TestListConcurrency_SyncedInformersDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		types := manyTypes(2)
		cluster := fakecluster.New(types...)
		f := newFactory(t, cluster, dynamicinformer.WithListConcurrency(1))
		f.Start(t.Context())
		synced := acquire(t, f, types[0].GVR)
		if err := synced.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
			if req.GVR == types[1].GVR {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		acquire(t, f, types[1].GVR)
		synctest.Wait()
		create(t, cluster, types[0].GVR, "ns", "a")
		cluster.Expire(types[0].GVR)
		create(t, cluster, types[0].GVR, "ns", "b")
		time.Sleep(10 * time.Second)
		if got := synced.Status(); got.Objects != 2 || got.State != status.StateSynced {
			t.Errorf("%d objects, %s", got.Objects, got.Summary(time.Now()))
		}
		shutdown(t, f)
	})
}

func TestListBudget_ListsInsteadOfWatchLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		types := manyTypes(3)
		cluster := fakecluster.New(types...)
		l := &loads{}
		cluster.Intercept(l.take)
		f := newFactory(t, cluster, dynamicinformer.WithListBudget(1))
		f.Start(t.Context())
		for _, one := range types {
			acquire(t, f, one.GVR)
		}
		if err := f.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		if l.most != 1 || len(cluster.Requests("list", types[0].GVR)) != 1 {
			t.Errorf("at most %d lists at a time, %v", l.most, cluster.Requests("list", types[0].GVR))
		}
		shutdown(t, f)
	})
}

// client-go's Shutdown ends no informer: the program may close the stop channels later.
func TestListConcurrency_GoesOnDuringTheShutdownOfADropIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		types, l := manyTypes(2), &loads{}
		cluster := fakecluster.New(types...)
		cluster.Intercept(l.take)
		f := newFactory(t, cluster, dynamicinformer.WithListConcurrency(1))
		dropIn, stop, ended := f.DropIn(), make(chan struct{}), make(chan struct{})
		first, second := dropIn.ForResource(types[0].GVR).Informer(), dropIn.ForResource(types[1].GVR).Informer()
		dropIn.Start(stop)
		synctest.Wait() // one list is in progress, and one waits
		go func() { defer close(ended); dropIn.Shutdown() }()
		time.Sleep(time.Minute)
		if !first.HasSynced() || !second.HasSynced() {
			t.Errorf("synced: %t, %t", first.HasSynced(), second.HasSynced())
		}
		close(stop)
		<-ended
	})
}

// The type is served after the end of Start's context, which does not end informers that DropIn has started.
func TestListConcurrency_GoesOnAfterTheEndOfStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster, withDiscovery(t, cluster), dynamicinformer.WithListConcurrency(1))
		informer := f.DropIn().ForResource(gadgets).Informer()
		f.DropIn().Start(make(chan struct{}))
		ctx, cancel := context.WithCancel(t.Context())
		f.Start(ctx)
		acquire(t, f, widgets)
		time.Sleep(time.Minute)
		cancel()
		cluster.Serve(fakecluster.Type{GVR: gadgets, Kind: "Gadget", Namespaced: true})
		time.Sleep(time.Hour)
		if !informer.HasSynced() {
			t.Errorf("not synced: %v", f.Status())
		}
		shutdown(t, f)
	})
}
