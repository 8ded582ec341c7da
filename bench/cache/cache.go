// Package cache compares caches of one resource: the CPU time and memory for the first list, for
// the cached objects and for changes. After the first list and after the changes, a run compares
// each cached object with the result of client-go's decoder, and fails if they differ.
package cache

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/informers"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/stub"
	"github.com/gvrkit/gvrkit/bench/usage"
	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// Scenario returns the scenario.
func Scenario() harness.Scenario {
	return harness.Scenario{Name: "cache", About: "caches of one resource: the first list, memory, and changes", Cases: cases}
}

// The names of metrics.
const (
	syncCPU      = "sync CPU"
	eventCPU     = "event CPU"
	eventRate    = "events/s"
	allocations  = "allocations"
	retainedHeap = "retained heap"
	peakRSS      = "peak RSS"
	fullGC       = "one full GC"
)

func cases(quick bool) []harness.Case {
	var all []harness.Case
	for _, kind := range objects.All() {
		loads, rounds := []load{{kind, 1000, 5000}, {kind, 10_000, 5000}}, 5
		if quick {
			loads, rounds = []load{{kind, 1000, 1000}}, 3
		}
		for _, l := range loads {
			all = append(all, l.newCase("", rounds, l.contestants()), l.newCase("-forms", rounds, l.forms()), l.newCase("-packed", rounds, l.packed()))
		}
	}
	if !quick {
		kind := objects.All()[0]
		many, most := load{kind, 50_000, 5000}, load{kind, 200_000, 5000}
		all = append(all, many.newCase("-packed", 1, many.packed()), most.newCase("-packed", 1, most.large()))
	}
	return all
}

// newCase returns a case with the load. The server sends changes as fast as a contestant reads
// them.
func (l load) newCase(suffix string, rounds int, contestants []harness.Contestant) harness.Case {
	return harness.Case{
		Name:        fmt.Sprintf("%s-%d%s", l.kind.Name, l.objects, suffix),
		Title:       fmt.Sprintf("%d objects of kind %s, %d events", l.objects, l.kind.Name, l.events),
		Contestants: contestants, Plot: true, Rounds: rounds,
		Metrics: []harness.Metric{
			{Name: syncCPU, Format: "%.0f µs/object"},
			{Name: eventCPU, Format: "%.0f µs/event"},
			{Name: eventRate, Format: "%.0f", More: true},
			{Name: allocations, Format: "%.0f /object"},
			{Name: retainedHeap, Format: "%.0f B/object"},
			{Name: peakRSS, Format: "%.0f MiB"},
			{Name: fullGC, Format: "%.1f ms"},
		},
		Start: func(ctx context.Context, _ io.Writer) (any, func() error, error) {
			return stub.Start(ctx, stub.Config{Kind: l.kind.Name, Objects: l.objects})
		},
	}
}

var withoutDiscovery = dynamicinformer.WithDiscovery(nil) // the server has none

func (l load) contestant(name, about string, s system, env ...string) harness.Contestant {
	s.load = l
	return harness.Contestant{Name: name, About: about, Env: env, Measure: harness.On(s.measure)}
}

func (l load) contestants() []harness.Contestant {
	const listOnly = "KUBE_FEATURE_WatchListClient=false"
	withoutManagedFields := dynamicinformer.WithClientOptions(dynamicclient.WithoutManagedFields())
	return []harness.Contestant{
		l.contestant("client-go", "client-go's dynamicinformer with defaults", system{open: informers.ClientGo}),
		l.contestant("client-go-list", "the same without watch-list", system{open: informers.ClientGo}, listOnly),
		l.contestant("client-go-stripped", "the same with a transform that deletes managedFields", system{open: informers.ClientGo, transform: strip, want: strip}),
		l.contestant("gvrkit", "gvrkit's dynamicinformer with defaults", system{open: informers.GVRKit(withoutDiscovery)}),
		l.contestant("gvrkit-list", "the same without watch-list", system{open: informers.GVRKit(withoutDiscovery)}, listOnly),
		l.contestant("gvrkit-stripped", "the same with WithoutManagedFields", system{open: informers.GVRKit(withoutDiscovery, withoutManagedFields), want: strip}),
	}
}

// forms returns the contestants whose objects have another form than the first one's.
func (l load) forms() []harness.Contestant {
	const first, theirs = "client-go", "client-go-metadata"
	limits := map[string][4]float64{"ipamblock": {.15, .45, .1, .1}, "mix": {.2, .3, .1, .15}}[l.kind.Name]
	typed := system{open: informers.Typed[*objects.IPAMBlock](withoutDiscovery), want: decoded[objects.IPAMBlock]}
	if l.kind.Name == "mix" {
		typed = system{open: informers.Typed[*objects.Widget](withoutDiscovery), want: decoded[objects.Widget]}
	}
	all := []harness.Contestant{
		l.contestant(first, "client-go's dynamicinformer with defaults", system{open: informers.ClientGo}),
		l.contestant("gvrkit-typed", "gvrkit's AcquireTyped", typed),
		l.contestant(theirs, "client-go's metadatainformer", system{open: informers.ClientGoMetadata, want: metadataOf}),
		l.contestant("gvrkit-metadata", "gvrkit's Acquire with WithMetadataOnly", system{
			open: informers.Leases(dynamicinformer.WithMetadataOnly(), withoutDiscovery), want: metadataOf,
		}),
	}
	all[1].Targets = []harness.Target{{Metric: syncCPU, AtMost: limits[0], To: first}, {Metric: retainedHeap, AtMost: limits[1], To: first}}
	all[3].Beside, all[3].Targets = theirs, []harness.Target{
		{Metric: syncCPU, AtMost: limits[2], To: first},
		{Metric: retainedHeap, AtMost: limits[3], To: first},
		{Metric: syncCPU, AtMost: .5, To: theirs},
		{Metric: retainedHeap, AtMost: .5, To: theirs},
	}
	return all
}

// packed returns the contestants with packed caches, after the first one.
func (l load) packed() []harness.Contestant {
	const first = "client-go"
	metrics := [...]string{syncCPU, eventCPU, peakRSS, retainedHeap, fullGC, eventRate}
	limits := map[string][2][len(metrics)]float64{ // of unstructured and of packed objects in handlers
		"ipamblock": {{.2, .22, .18, .08, .015, 5}, {.1, .1, .15, .08, .015, 10}},
		"mix":       {{.2, .22, .25, .08, .02, 5}, {.12, .12, .22, .08, .02, 8}},
	}[l.kind.Name]
	all := []harness.Contestant{
		l.contestant(first, "client-go's dynamicinformer with defaults", system{open: informers.ClientGo}),
		l.contestant("gvrkit-packed", "gvrkit's WithPackedCache, with a handler of unstructured objects", system{
			open: informers.GVRKit(withoutDiscovery, dynamicinformer.WithPackedCache()),
		}),
		l.contestant("gvrkit-packed-handler", "the same with AddPackedHandler", system{open: informers.Packed(withoutDiscovery)}),
	}
	for n, metric := range metrics {
		for i := range limits {
			target := harness.Target{Metric: metric, AtMost: limits[i][n], To: first}
			if metric == eventRate {
				target = harness.Target{Metric: metric, AtLeast: limits[i][n], To: first}
			}
			all[i+1].Targets = append(all[i+1].Targets, target)
		}
	}
	return all
}

// large returns the contestants with packed caches, for more objects than client-go's informer is measured with. The limits are
// those of one process.
func (l load) large() []harness.Contestant {
	all := l.packed()[1:]
	for i := range all {
		all[i].Targets = []harness.Target{{Metric: peakRSS, AtMost: 1024}, {Metric: fullGC, AtMost: 100}}
	}
	return all
}

// decoded returns obj, which is unstructured, as client-go's decoder returns it for Go types.
func decoded[T any](obj any) (any, error) {
	text, err := json.Marshal(obj)
	to := new(T)
	return to, errors.Join(err, utiljson.Unmarshal(text, to))
}

// metadataOf returns the metadata of obj, which is unstructured, without apiVersion and kind, as client-go does.
func metadataOf(obj any) (any, error) {
	partial, err := decoded[metav1.PartialObjectMetadata](obj)
	partial.(*metav1.PartialObjectMetadata).SetGroupVersionKind(schema.GroupVersionKind{})
	return partial, err
}

// strip deletes managedFields without decoding them.
func strip(obj any) (any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	}
	return obj, nil
}

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
	want      cache.TransformFunc // returns the cached object for one of client-go's dynamic client, which it may change; nil: the same
}

// run is one job.
type run struct {
	system

	server  stub.Client
	events  *informers.Counter
	set     *informers.Set
	store   cache.Store
	figures harness.Figures
}

func (s system) measure(ctx context.Context, _ harness.Job, server stub.Client) (harness.Figures, error) {
	r := &run{system: s, server: server, events: informers.NewCounter(), figures: harness.Figures{}}
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
	r.events.Expect(r.objects)
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
	if _, failed := informer.AddEventHandler(r.events); err != nil || failed != nil {
		return errors.Join(err, failed)
	}
	r.store = informer.GetStore()
	r.set.Start()
	if err := r.set.Wait(ctx); err != nil {
		return err
	}
	if _, err := r.events.Wait(ctx); err != nil {
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
	r.events.Expect(r.load.events)
	changed := make(chan error, 1)
	go func() { changed <- r.server.Change(ctx, r.load.events) }()
	end, err := r.events.Wait(ctx)
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
		return compare(r.store, r.want, obj.(*unstructured.Unstructured))
	}); err != nil {
		return err
	}
	if cached := len(r.store.ListKeys()); cached != seen || seen != r.objects {
		return fmt.Errorf("%d objects are cached and the server has %d, want %d", cached, seen, r.objects)
	}
	return nil
}

// compare compares the cached object with that which want returns for one of the server.
func compare(store cache.Store, want cache.TransformFunc, of *unstructured.Unstructured) error {
	key := cache.MetaObjectToName(of).String()
	got, _, err := store.GetByKey(key)
	wanted := any(of)
	if want != nil && err == nil {
		wanted, err = want(of)
	}
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(wanted, got) {
		return fmt.Errorf("the cached object %s differs (-want +got):\n%s", key, cmp.Diff(wanted, got))
	}
	return nil
}
