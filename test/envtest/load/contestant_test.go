package load_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// contestant is an informer of client-go or of gvrkit. One with a transform follows the same one without it.
type contestant struct {
	name      string
	start     func(l *load, handler cache.ResourceEventHandler, transform cache.TransformFunc) (cache.Store, func())
	transform cache.TransformFunc
	brief     bool // it is measured for a third of the time
}

var contestants = []contestant{
	{"client-go", startClientGo, nil, false},
	{"client-go, projection", startClientGo, project, true},
	{"gvrkit", startGvrkit(), nil, false},
	{"gvrkit, projection", startGvrkit(), project, true},
	{"gvrkit, packed", startGvrkit(dynamicinformer.WithPackedCache()), nil, true},
}

func startClientGo(l *load, handler cache.ResourceEventHandler, transform cache.TransformFunc) (cache.Store, func()) {
	client, err := dynamic.NewForConfig(l.config)
	l.must(err)
	factory := upstream.NewDynamicSharedInformerFactory(client, 0)
	informer := factory.ForResource(gvr).Informer()
	if transform != nil {
		l.must(informer.SetTransform(transform))
	}
	_, err = informer.AddEventHandler(handler)
	l.must(err)
	ctx, cancel := context.WithCancel(l.Context())
	factory.Start(ctx.Done())
	if !factory.WaitForCacheSync(ctx.Done())[gvr] {
		l.Error("client-go has not synced")
	}
	return informer.GetStore(), func() { cancel(); factory.Shutdown() }
}

func startGvrkit(opts ...dynamicinformer.LeaseOption) func(*load, cache.ResourceEventHandler, cache.TransformFunc) (cache.Store, func()) {
	return func(l *load, handler cache.ResourceEventHandler, transform cache.TransformFunc) (cache.Store, func()) {
		factory, err := dynamicinformer.NewForConfig(l.config, dynamicinformer.WithDiscovery(nil)) // the server has none
		l.must(err)
		factory.Start(l.Context())
		lease, err := factory.Acquire(l.Context(), gvr, append(slices.Clone(opts), dynamicinformer.WithTransform(transform))...)
		l.must(err)
		_, err = lease.AddEventHandler(handler)
		l.must(err)
		l.must(lease.WaitForSync(l.Context()))
		return lease.Informer().GetStore(), func() { l.must(factory.Shutdown(l.Context())) }
	}
}

// project returns obj with its metadata, and with only the cidr and the affinity of its spec.
func project(obj any) (any, error) {
	block, is := obj.(*unstructured.Unstructured)
	if !is {
		return obj, nil
	}
	spec := map[string]any{}
	for _, field := range []string{"cidr", "affinity"} {
		if value, found, err := unstructured.NestedString(block.Object, "spec", field); err == nil && found {
			spec[field] = value
		}
	}
	block.Object["spec"] = spec
	block.SetManagedFields(nil)
	return block, nil
}

// latency measures the time from the end of the server's write of each event to its arrival at a handler.
type latency struct {
	mu      sync.Mutex
	written map[string]time.Time // by resourceVersion; of events that have not arrived
	arrived map[string]time.Time // of events whose write has not returned
	unknown int                  // objects that no handler has been called for
	begun   int                  // changes
	times   []time.Duration
	last    map[string]string // the last version that was written, by name
}

// newLatency returns one for objects that are in a list, and have not changed. It has all memory that depends on their number: that is not the
// informer's.
func newLatency(objects int) latency {
	last := make(map[string]string, objects)
	for i := range objects {
		last[blockName(i)] = strconv.Itoa(firstVersion)
	}
	return latency{
		written: map[string]time.Time{}, arrived: map[string]time.Time{}, unknown: objects, times: make([]time.Duration, 0, objects), last: last,
	}
}

// note records that the write of an event has returned, or that the event has arrived.
func (c *latency) note(version string, mine, other map[string]time.Time, sign time.Duration) {
	now := time.Now()
	if at, done := other[version]; done {
		delete(other, version)
		c.times = append(c.times, max(0, sign*now.Sub(at)))
	} else {
		mine[version] = now
	}
}

func (c *latency) wrote(name, version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note(version, c.written, c.arrived, -1)
	c.last[name] = version
}

func (c *latency) OnAdd(any, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unknown--
}

func (c *latency) OnUpdate(_, obj any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note(obj.(metav1.Object).GetResourceVersion(), c.arrived, c.written, 1)
}

func (*latency) OnDelete(any) {}

// arrive waits until all objects and changes have arrived, and reports whether they have.
func (c *latency) arrive() bool {
	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	for c.missing() > 0 {
		select {
		case <-time.After(time.Millisecond):
		case <-deadline.C:
			return false
		}
	}
	return true
}

// sent records that n changes have begun.
func (c *latency) sent(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun = n
}

// forget makes the next change the first one. All changes have arrived.
func (c *latency) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun, c.times = 0, c.times[:0]
}

// missing returns the number of objects and changes that have not arrived.
func (c *latency) missing() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unknown + c.begun - len(c.times)
}

// result has the figures of a contestant: the heap in MB without that before its start, the rate of writes, and latencies.
type result struct {
	cold              float64 // before the first change
	heap, first, last float64 // the median, and the ends of the line of least squares
	samples           int
	writes            int
	seconds           float64
	p50, p99          time.Duration
	missing           int
	stale             int // objects whose last state is not in the cache
}

func (r result) String() string {
	return fmt.Sprintf("%d changes in %.0f s (%.1f/s); latency p50 %v, p99 %v; heap after GC %.2f MB before the first change, then %.2f MB, by its trend from %.2f to %.2f MB (%d samples)",
		r.writes, r.seconds, float64(r.writes)/r.seconds, r.p50.Round(100*time.Microsecond), r.p99.Round(100*time.Microsecond), r.cold, r.heap, r.first, r.last, r.samples)
}

// check reports events that have not arrived, and a heap that grows after the warm-up: then the decoder's tables have what they can have of the
// objects.
func (r result) check(t *testing.T, c loadCase) {
	t.Helper()
	if r.missing != 0 || r.stale > 0 {
		t.Errorf("%d changes have not arrived, and %d objects are old", r.missing, r.stale)
	}
	if limit := r.first + r.heap*c.part + c.noise; r.last > limit {
		t.Errorf("the heap has grown from %.2f to %.2f MB, and may have %.2f MB", r.first, r.last, limit)
	}
	if r.writes == 0 {
		t.Error("no change")
	}
}

// run runs a contestant while the objects change, after a warm-up. The heap is measured sixteen times, when all changes have arrived.
func (l *load) run(with contestant) result {
	l.Helper()
	c := &l.latency
	length := *duration
	if with.brief {
		length = max(length/3, min(length, time.Second))
	}
	base := heap()
	store, stop := with.start(l, c, with.transform)
	defer stop()
	if !l.arrive() {
		l.Fatalf("%d objects have not arrived", c.missing())
	}
	r := result{cold: heap() - base}
	l.warmUp()
	begun := time.Now()
	var at, heaps []float64
	every := max(1, int(length.Seconds()*float64(l.rate))/16)
	l.change(length, func(n int) {
		if n%every == 0 && l.arrive() {
			at, heaps = append(at, time.Since(begun).Seconds()), append(heaps, heap()-base)
		}
	})
	r.seconds, r.samples = time.Since(begun).Seconds(), len(heaps)
	if l.arrive(); len(heaps) == 0 {
		l.Fatal("no sample of the heap")
	}
	r.first, r.last = trend(at, heaps)
	slices.Sort(heaps)
	r.heap = heaps[len(heaps)/2]
	r.missing, r.stale = c.missing(), stale(store, c.last)
	slices.Sort(c.times)
	if r.writes = len(c.times); r.writes > 0 {
		r.p50, r.p99 = c.times[r.writes/2], c.times[r.writes*99/100]
	}
	return r
}

// stale returns the number of objects in store that do not have the last version.
func stale(store cache.Store, last map[string]string) (n int) {
	for name, version := range last {
		obj, found, err := store.GetByKey(name)
		if err != nil || !found || obj.(metav1.Object).GetResourceVersion() != version {
			n++
		}
	}
	return n
}

// heap collects garbage, and returns the heap in MB.
func heap() float64 {
	for range 2 { // what pools keep
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc) / 1e6
}

// trend returns the ends of the line of least squares through the points.
func trend(x, y []float64) (first, last float64) {
	var meanX, meanY, xy, xx float64
	for i := range x {
		meanX += x[i] / float64(len(x))
		meanY += y[i] / float64(len(x))
	}
	for i := range x {
		xy += (x[i] - meanX) * (y[i] - meanY)
		xx += (x[i] - meanX) * (x[i] - meanX)
	}
	slope := xy / math.Max(xx, math.SmallestNonzeroFloat64)
	return meanY + slope*(x[0]-meanX), meanY + slope*(x[len(x)-1]-meanX)
}
