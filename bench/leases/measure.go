package leases

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/stub"
	"github.com/gvrkit/gvrkit/bench/usage"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// calm is how long goroutines beside informers get until they rest.
const calm = 3 * time.Second

// run is one job.
type run struct {
	Params

	cfg     *rest.Config
	traffic *usage.Traffic
	set     *set
	figures harness.Figures
}

func measure(ctx context.Context, job harness.Job) (figures harness.Figures, err error) {
	r := &run{figures: harness.Figures{}}
	if err := job.Decode(&r.Params); err != nil {
		return nil, err
	}
	if job.Round == 0 {
		r.Size = r.short()
	}
	r.cfg = r.Server.Config()
	r.traffic = usage.Count(r.cfg)
	s, err := harness.Find(systems(), job.Contestant, func(s system) string { return s.Name })
	if err != nil {
		return nil, err
	}
	if r.Case == costCase {
		return r.figures, r.cost(ctx)
	}
	life, end := context.WithCancel(ctx)
	defer end()
	if r.set, err = s.open(life, r.cfg); err != nil {
		return nil, err
	}
	defer func() {
		end()
		err = errors.Join(err, r.set.stop(ctx))
	}()
	switch r.Case {
	case absentCase:
		return r.figures, r.absent(life)
	case backCase:
		return r.figures, r.back(life)
	}
	return nil, fmt.Errorf("unknown case %q", r.Case)
}

// cost measures a lease on a type that has synced and that another lease holds.
func (r *run) cost(ctx context.Context) (err error) {
	factory, err := dynamicinformer.NewForConfig(r.cfg)
	if err != nil {
		return err
	}
	life, end := context.WithCancel(ctx)
	defer func() {
		end()
		err = errors.Join(err, factory.Shutdown(ctx))
	}()
	factory.Start(life)
	held, err := factory.Acquire(ctx, stub.APIServices)
	if err != nil {
		return err
	}
	defer held.Release()
	if err := errors.Join(held.WaitForSync(ctx), usage.Sleep(ctx, min(calm, r.Settle))); err != nil {
		return err
	}
	for _, goroutines := range concurrency {
		if err := r.pairs(ctx, factory, goroutines); err != nil {
			return err
		}
	}
	return nil
}

// pairs measures the time and the allocations of one pair of Acquire and Release: the median
// batch, after one that does not count.
func (r *run) pairs(ctx context.Context, factory *dynamicinformer.Factory, goroutines int) error {
	const batches = 5
	earlier := r.traffic.Counts().Requests()
	each := max(1, r.Pairs/goroutines)
	n := float64(each * goroutines)
	var times, counts []float64
	for i := range batches + 1 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		begin := time.Now()
		err := cluster.InParallel(ctx, goroutines, goroutines, func(ctx context.Context, _ int) error {
			for range each {
				lease, err := factory.Acquire(ctx, stub.APIServices)
				if err != nil {
					return err
				}
				lease.Release()
			}
			return nil
		})
		took := time.Since(begin)
		if err != nil {
			return err
		}
		runtime.ReadMemStats(&after)
		if i > 0 {
			times = append(times, float64(took)/float64(time.Microsecond)/n)
			counts = append(counts, float64(after.Mallocs-before.Mallocs)/n)
		}
	}
	name := costName(goroutines)
	r.figures[name], r.figures[name+allocs] = harness.Median(times), harness.Median(counts)
	r.figures[name+requests] = r.traffic.Counts().Requests() - earlier
	return nil
}

// memory is what a process has, or has more than before.
type memory struct{ bytes, goroutines float64 }

func memoryNow() memory {
	heap, stacks := usage.LiveMemory()
	return memory{float64(heap + stacks), float64(runtime.NumGoroutine())}
}

// since returns the difference to earlier for each of n, in KB and goroutines.
func (m memory) since(earlier memory, n int) (kilobytes, goroutines float64) {
	return (m.bytes - earlier.bytes) / 1e3 / float64(n), (m.goroutines - earlier.goroutines) / float64(n)
}

// absent measures informers on types that are not served. The memory that they share is made by
// one informer before.
func (r *run) absent(ctx context.Context) error {
	first, err := r.addAbsent(ctx, 0, 1)
	if err != nil {
		return err
	}
	if err := errors.Join(first[0].handle(cache.ResourceEventHandlerFuncs{}), usage.Sleep(ctx, min(calm, r.Settle))); err != nil {
		return err
	}
	before, empty := r.traffic.Counts().Requests(), memoryNow()
	all, err := r.addAbsent(ctx, 1, r.Absent)
	if err != nil {
		return err
	}
	if err := usage.Sleep(ctx, r.Settle); err != nil {
		return err
	}
	settled, begin := r.traffic.Counts().Requests(), time.Now()
	if err := usage.Sleep(ctx, r.Count); err != nil {
		return err
	}
	r.figures[startRequests] = settled - before
	r.figures[requestRate] = (r.traffic.Counts().Requests() - settled) / time.Since(begin).Seconds()
	bare := memoryNow()
	for _, informer := range all {
		if err := informer.handle(cache.ResourceEventHandlerFuncs{}); err != nil {
			return err
		}
	}
	if err := usage.Sleep(ctx, min(calm, r.Settle)); err != nil {
		return err
	}
	handled := memoryNow()
	r.figures[absentMemory], _ = bare.since(empty, r.Absent)
	r.figures[handlerMemory], _ = handled.since(bare, r.Absent)
	_, r.figures[absentGoroutines] = handled.since(empty, r.Absent)
	return neverSynced(ctx, all)
}

// addAbsent makes n informers on types that the server does not serve, from the i-th on.
func (r *run) addAbsent(ctx context.Context, i, n int) ([]*informer, error) {
	all := make([]*informer, n)
	for k := range all {
		var err error
		if all[k], err = r.set.add(ctx, stub.Newcomer(i + k).Types[0].GVR); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// neverSynced returns an error if an informer has synced. It keeps all of them until then.
func neverSynced(ctx context.Context, all []*informer) error {
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	for i, informer := range all {
		if err := informer.synced(ctx); err == nil {
			return fmt.Errorf("informer %d has synced on a type that is not served", i)
		}
	}
	return nil
}

// ledger is a handler that knows the names of the objects, and since when there are as many.
type ledger struct {
	mu      sync.Mutex
	names   map[cache.ObjectName]struct{}
	at      time.Time
	changed chan struct{} // closed and replaced when the number of names changes
}

// newLedger returns a ledger with memory for n objects.
func newLedger(n int) *ledger {
	return &ledger{names: make(map[cache.ObjectName]struct{}, n), changed: make(chan struct{})}
}

// OnAdd implements cache.ResourceEventHandler.
func (l *ledger) OnAdd(obj any, _ bool) {
	l.change(obj, func(name cache.ObjectName) { l.names[name] = struct{}{} })
}

// OnUpdate implements cache.ResourceEventHandler.
func (l *ledger) OnUpdate(any, any) {}

// OnDelete implements cache.ResourceEventHandler.
func (l *ledger) OnDelete(obj any) {
	l.change(obj, func(name cache.ObjectName) { delete(l.names, name) })
}

// Reset forgets all objects.
func (l *ledger) Reset() { l.do(time.Now(), func() { clear(l.names) }) }

func (l *ledger) change(obj any, change func(cache.ObjectName)) {
	now := time.Now()
	if name, err := cache.DeletionHandlingObjectToName(obj); err == nil { // else await reports a wrong number
		l.do(now, func() { change(name) })
	}
}

func (l *ledger) do(now time.Time, change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before := len(l.names)
	if change(); len(l.names) == before {
		return
	}
	l.at = now
	close(l.changed)
	l.changed = make(chan struct{})
}

// await waits until there are n objects, and returns since when.
func (l *ledger) await(ctx context.Context, n int) (time.Time, error) {
	for {
		l.mu.Lock()
		have, at, changed := len(l.names), l.at, l.changed
		l.mu.Unlock()
		if have == n {
			return at, nil
		}
		if err := await(ctx, changed); err != nil {
			return at, fmt.Errorf("the handler has %d objects, want %d: %w", have, n, err)
		}
	}
}
