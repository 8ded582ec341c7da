package cache

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/informers"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/stub"
	"github.com/gvrkit/gvrkit/bench/usage"
)

// load is the number of objects on the server, and the number of changes to them.
type load struct {
	kind            objects.Kind
	objects, events int
}

// system is an implementation of a cache of one resource.
type system struct {
	load

	open      informers.Open
	transform cache.TransformFunc // may be nil
	stripped  bool                // cached objects have no managedFields
}

// run is one job.
type run struct {
	system

	server  stub.Client
	events  counter
	set     *informers.Set
	store   cache.Store
	figures harness.Figures
}

func (s system) measure(ctx context.Context, _ harness.Job, server stub.Client) (harness.Figures, error) {
	r := &run{system: s, server: server, events: newCounter(), figures: harness.Figures{}}
	running, stop := context.WithCancel(ctx)
	defer stop()
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{{"sync", r.sync}, {"after the sync", r.check}, {"events", r.change}, {"after the events", r.check}} {
		if err := step.do(running); err != nil {
			return nil, fmt.Errorf("%s: %w", step.name, err)
		}
	}
	stop()
	return r.figures, r.set.Stop(ctx)
}

// sync measures the start of the cache until it is filled, and its memory then.
func (r *run) sync(ctx context.Context) error {
	empty, _ := usage.LiveMemory()
	if err := r.fill(ctx); err != nil {
		return err
	}
	peak, err := usage.PeakRSS()
	if err != nil {
		return err
	}
	r.figures[peakRSS] = float64(peak) / (1 << 20)
	full, _ := usage.LiveMemory()
	r.figures[retainedHeap] = float64(full-empty) / float64(r.objects)
	r.figures[fullGC] = harness.Millis(usage.Collection())
	return nil
}

// fill opens the cache and waits until it and its handler have all objects.
func (r *run) fill(ctx context.Context) (err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := usage.CPU()
	r.events.expect(r.objects)
	if r.set, err = r.open(ctx, r.server.Config()); err != nil {
		return err
	}
	informer, err := r.set.Add(ctx, r.kind.GVR)
	if err != nil {
		return err
	}
	if r.transform != nil {
		err = informer.SetTransform(r.transform)
	}
	if _, failed := informer.AddEventHandler(r.events.handler()); err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	r.store = informer.GetStore()
	r.set.Start()
	if err := r.set.Wait(ctx); err != nil {
		return err
	}
	if _, err := r.events.wait(ctx); err != nil {
		return err
	}
	r.figures[syncCPU] = harness.Micros(usage.CPU()-cpu, r.objects)
	runtime.ReadMemStats(&after)
	r.figures[allocations] = float64(after.Mallocs-before.Mallocs) / float64(r.objects)
	return nil
}

// change measures the events of changes.
func (r *run) change(ctx context.Context) error {
	runtime.GC()
	begin, cpu := time.Now(), usage.CPU()
	r.events.expect(r.load.events)
	changed := make(chan error, 1)
	go func() { changed <- r.server.Change(ctx, r.load.events) }()
	end, err := r.events.wait(ctx)
	r.figures[eventCPU] = harness.Micros(usage.CPU()-cpu, r.load.events)
	r.figures[eventRate] = float64(r.load.events) / end.Sub(begin).Seconds()
	return errors.Join(err, <-changed)
}

// check compares all cached objects with those that client-go's dynamic client returns.
func (r *run) check(ctx context.Context) error {
	client, err := dynamic.NewForConfig(r.server.Config())
	if err != nil {
		return err
	}
	seen := 0
	pages := pager.New(func(ctx context.Context, opts metav1.ListOptions) (k8sruntime.Object, error) {
		return client.Resource(r.kind.GVR).List(ctx, opts)
	})
	if err := pages.EachListItem(ctx, metav1.ListOptions{}, func(obj k8sruntime.Object) error {
		seen++
		return compare(r.store, r.stripped, obj.(*unstructured.Unstructured))
	}); err != nil {
		return err
	}
	if cached := len(r.store.ListKeys()); cached != seen || seen != r.objects {
		return fmt.Errorf("%d objects are cached and the server has %d, want %d", cached, seen, r.objects)
	}
	return nil
}

// compare compares one object with the cached one. It changes want.
func compare(store cache.Store, stripped bool, want *unstructured.Unstructured) error {
	key := cache.MetaObjectToName(want).String()
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
		return fmt.Errorf("the cached object %s differs (-want +got):\n%s", key, cmp.Diff(want.Object, got.Object))
	}
	return nil
}

// counter counts the events of a handler.
type counter struct {
	count, goal *atomic.Int64
	reached     chan time.Time // gets the time when count is goal
}

func newCounter() counter {
	return counter{count: new(atomic.Int64), goal: new(atomic.Int64), reached: make(chan time.Time, 1)}
}

// expect sets the goal to n more events. It is called before the first of them.
func (c counter) expect(n int) { c.goal.Store(c.count.Load() + int64(n)) }

// wait waits until the goal is reached, and returns the time of that.
func (c counter) wait(ctx context.Context) (time.Time, error) {
	select {
	case at := <-c.reached:
		return at, nil
	case <-ctx.Done():
		return time.Time{}, fmt.Errorf("%d events are missing: %w", c.goal.Load()-c.count.Load(), context.Cause(ctx))
	}
}

// handler returns a handler that counts its events.
func (c counter) handler() cache.ResourceEventHandler {
	count := func(any) {
		if c.count.Add(1) == c.goal.Load() {
			c.reached <- time.Now()
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: count, UpdateFunc: func(_, obj any) { count(obj) }, DeleteFunc: count}
}
