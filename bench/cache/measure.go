package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/usage"
)

// stopTimeout is how long a system may take to stop.
const stopTimeout = 15 * time.Second

// run is one job.
type run struct {
	job     harness.Job
	params  Params
	kind    objects.Kind
	system  system
	events  counter
	cache   *opened
	figures harness.Figures
}

func measure(ctx context.Context, job harness.Job) (harness.Figures, error) {
	r := &run{job: job, figures: harness.Figures{}}
	if err := job.Decode(&r.params); err != nil {
		return nil, err
	}
	var err error
	if r.kind, err = objects.Named(r.params.Kind); err != nil {
		return nil, err
	}
	if r.system, err = harness.Find(systems(), job.Contestant, func(s system) string { return s.Name }); err != nil {
		return nil, err
	}
	life, end := context.WithCancel(ctx)
	defer end()
	if err := r.sync(life); err != nil {
		return nil, fmt.Errorf("sync: %w", err)
	}
	if err := r.check(ctx); err != nil {
		return nil, fmt.Errorf("after the sync: %w", err)
	}
	runtime.GC()
	if err := r.follow(ctx); err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	if err := r.check(ctx); err != nil {
		return nil, fmt.Errorf("after the events: %w", err)
	}
	end()
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	return r.figures, r.cache.stop(ctx)
}

// sync measures how the cache is filled, and the memory that it has then.
func (r *run) sync(ctx context.Context) error {
	empty := usage.LiveHeap()
	stopProfile, err := r.profile("sync")
	if err != nil {
		return err
	}
	if err := r.fill(ctx); err != nil {
		return err
	}
	_, peak, err := usage.RSS()
	if err := errors.Join(err, stopProfile()); err != nil {
		return err
	}
	r.figures[peakRSS] = float64(peak) / (1 << 20)
	r.figures[retainedHeap] = float64(usage.LiveHeap()-empty) / float64(r.params.Objects)
	r.figures[fullGC] = harness.Millis(usage.Collection())
	return nil
}

// fill opens the cache and waits until it and its handler have all objects.
func (r *run) fill(ctx context.Context) (err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := usage.CPU()
	all := r.events.expect(r.params.Objects)
	r.cache, err = r.system.open(ctx, target{cfg: r.config(), kind: r.kind, handler: &r.events})
	if err != nil {
		return err
	}
	if err := r.cache.wait(ctx); err != nil {
		return err
	}
	if _, err := r.events.wait(ctx, all); err != nil {
		return err
	}
	n := float64(r.params.Objects)
	r.figures[syncCPU] = micros(usage.CPU()-cpu) / n
	runtime.ReadMemStats(&after)
	r.figures[allocations] = float64(after.Mallocs-before.Mallocs) / n
	return nil
}

// follow measures how changes are followed.
func (r *run) follow(ctx context.Context) error {
	stopProfile, err := r.profile("events")
	if err != nil {
		return err
	}
	begin, cpu := time.Now(), usage.CPU()
	all := r.events.expect(r.params.Events)
	if err := r.job.Ready(); err != nil {
		return err
	}
	end, err := r.events.wait(ctx, all)
	if err != nil {
		return err
	}
	r.figures[eventCPU] = micros(usage.CPU()-cpu) / float64(r.params.Events)
	r.figures[eventRate] = float64(r.params.Events) / end.Sub(begin).Seconds()
	return stopProfile()
}

// config has no limit on the rate of requests.
func (r *run) config() *rest.Config { return &rest.Config{Host: r.params.Host, QPS: -1} }

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// profile writes a CPU profile of what happens until stop is called, and then a memory
// profile. It does nothing if the job does not ask for profiles.
func (r *run) profile(phase string) (stop func() error, err error) {
	if r.job.Profile == "" {
		return func() error { return nil }, nil
	}
	name := r.job.Profile + "-" + phase
	cpu, err := os.Create(name + ".cpu.pprof")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, errors.Join(err, cpu.Close())
	}
	return func() error {
		pprof.StopCPUProfile()
		memory, err := os.Create(name + ".mem.pprof")
		if err != nil {
			return errors.Join(err, cpu.Close())
		}
		return errors.Join(cpu.Close(), pprof.Lookup("allocs").WriteTo(memory, 0), memory.Close())
	}, nil
}

// check compares all cached objects with what client-go's dynamic client returns.
func (r *run) check(ctx context.Context) error {
	client, err := dynamic.NewForConfig(r.config())
	if err != nil {
		return err
	}
	opts, seen := metav1.ListOptions{Limit: 500}, 0
	for {
		page, err := client.Resource(r.kind.GVR).List(ctx, opts)
		if err != nil {
			return fmt.Errorf("list to compare with: %w", err)
		}
		for i := range page.Items {
			if err := compare(r.cache.store, r.system.stripped, &page.Items[i]); err != nil {
				return err
			}
		}
		seen += len(page.Items)
		if opts.Continue = page.GetContinue(); opts.Continue == "" {
			break
		}
	}
	if cached := len(r.cache.store.ListKeys()); cached != seen || seen != r.params.Objects {
		return fmt.Errorf("%d objects are cached and the server has %d, want %d", cached, seen, r.params.Objects)
	}
	return nil
}

// compare compares one object with the cached one. It changes want.
func compare(store cache.Store, stripped bool, want *unstructured.Unstructured) error {
	key := cache.NewObjectName(want.GetNamespace(), want.GetName()).String()
	obj, _, err := store.GetByKey(key)
	if err != nil {
		return err
	}
	got, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return fmt.Errorf("%s is cached as %T", key, obj)
	}
	if stripped {
		unstructured.RemoveNestedField(want.Object, "metadata", "managedFields")
	}
	if !reflect.DeepEqual(want.Object, got.Object) {
		return fmt.Errorf("%s is cached wrongly (-want +got):\n%s", key, cmp.Diff(want.Object, got.Object))
	}
	return nil
}

// counter is the event handler of all systems. It counts events, and nothing else.
type counter struct {
	count atomic.Int64
	goal  atomic.Pointer[goal]
}

// goal is a number of events to wait for.
type goal struct {
	count   int64
	reached chan struct{}
	at      time.Time // when it was reached; read after reached is closed
}

// expect returns a goal of n more events. It is called before the first of them.
func (c *counter) expect(n int) *goal {
	g := &goal{count: c.count.Load() + int64(n), reached: make(chan struct{})}
	c.goal.Store(g)
	return g
}

// wait waits until the goal is reached, and returns when it was.
func (c *counter) wait(ctx context.Context, g *goal) (time.Time, error) {
	select {
	case <-g.reached:
		return g.at, nil
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("%d events are missing: %w", g.count-c.count.Load(), context.Cause(ctx))
	}
}

func (c *counter) saw() {
	n := c.count.Add(1)
	if g := c.goal.Load(); n == g.count {
		g.at = time.Now()
		close(g.reached)
	}
}

// OnAdd implements cache.ResourceEventHandler.
func (c *counter) OnAdd(any, bool) { c.saw() }

// OnUpdate implements cache.ResourceEventHandler.
func (c *counter) OnUpdate(any, any) { c.saw() }

// OnDelete implements cache.ResourceEventHandler.
func (c *counter) OnDelete(any) { c.saw() }
