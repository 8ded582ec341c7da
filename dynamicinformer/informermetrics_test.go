package dynamicinformer_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// metricsRecorder is a provider of metrics that records its calls, as "ask queued widgets".
type metricsRecorder struct {
	mu    sync.Mutex
	past  []string
	shown map[string]float64 // gauges, and numbers of observations
	takes time.Duration      // of a call, in a bubble
	busy  atomic.Int32
	met   atomic.Bool // two calls were in progress at the same time
}

func (p *metricsRecorder) note(what string, id cache.InformerNameAndResource) {
	if p.busy.Add(1) > 1 {
		p.met.Store(true)
	}
	defer p.busy.Add(-1)
	if p.takes > 0 {
		<-time.After(p.takes)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past = append(p.past, what+" "+id.GroupVersionResource().Resource)
}

func (p *metricsRecorder) metric(what string, id cache.InformerNameAndResource) *published {
	p.note("ask "+what, id)
	return &published{in: p, name: what + " " + id.GroupVersionResource().Resource, id: id}
}

func (p *metricsRecorder) NewQueuedItemMetric(id cache.InformerNameAndResource) cache.GaugeMetric {
	return p.metric("queued", id)
}

func (p *metricsRecorder) NewStoreResourceVersionMetric(id cache.InformerNameAndResource) cache.GaugeMetric {
	return p.metric("version", id)
}

func (p *metricsRecorder) NewProcessingLatencyMetric(id cache.InformerNameAndResource) cache.HistogramMetric {
	return p.metric("latency", id)
}

// take returns the calls since the last take.
func (p *metricsRecorder) take() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	past := p.past
	p.past = nil
	return past
}

// value returns the value of a metric, and whether it has one.
func (p *metricsRecorder) value(name string) (float64, bool) {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	value, there := p.shown[name]
	return value, there
}

// forgetter is a metricsRecorder that records the end of informers.
type forgetter struct{ metricsRecorder }

func (f *forgetter) ForgetInformer(id cache.InformerNameAndResource) {
	f.note("forget", id)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, what := range []string{"queued ", "version ", "latency "} {
		delete(f.shown, what+id.GroupVersionResource().Resource)
	}
}

type published struct {
	in   *metricsRecorder
	name string
	id   cache.InformerNameAndResource
}

func (m *published) change(change func(float64) float64) {
	if !m.id.Reserved() {
		return
	}
	m.in.mu.Lock()
	defer m.in.mu.Unlock()
	if m.in.shown == nil {
		m.in.shown = map[string]float64{}
	}
	m.in.shown[m.name] = change(m.in.shown[m.name])
}

func (m *published) Set(value float64) { m.change(func(float64) float64 { return value }) }
func (m *published) Observe(float64)   { m.change(func(n float64) float64 { return n + 1 }) }

func checkShown(t *testing.T, p *metricsRecorder, name string, want float64) {
	t.Helper()
	if got, there := p.value(name); !there || got != want {
		t.Errorf("%s = %v (there: %v), want %v", name, got, there, want)
	}
}

// informerName returns a name for the test.
func informerName(t *testing.T) *cache.InformerName {
	t.Helper()
	name, err := cache.NewInformerName(t.Name())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(name.Release)
	return name
}

// inMetrics runs a test in a bubble, with a started factory that has p as its provider of metrics.
func inMetrics(t *testing.T, p cache.InformerMetricsProvider, test func(in bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		f := newFactory(t, cluster, withDiscovery(t, cluster), dynamicinformer.WithInformerMetrics(informerName(t), p))
		f.Start(t.Context())
		test(bubble{t, cluster, f})
		shutdown(t, f)
	})
}

var (
	asked      = []string{"ask queued widgets", "ask version widgets", "ask latency widgets"}
	forgotten  = []string{"forget widgets"}
	versionOf  = "version widgets"
	observedOf = "latency widgets"
)

// client-go allows a name and a GVR for one informer only.
func TestWithInformerMetrics_EachInformerOfAGVRHasThem(t *testing.T) {
	p := &forgetter{}
	inMetrics(t, p, func(in bubble) {
		for round := range 3 {
			create(in.T, in.cluster, widgets, "ns", fmt.Sprintf("w%d", round))
			l := acquire(in.T, in.factory, widgets)
			if err := l.WaitForSync(in.Context()); err != nil {
				in.Fatal(err)
			}
			if diff := cmp.Diff(asked, p.take()); diff != "" {
				in.Errorf("round %d, when it runs (-want +got):\n%s", round, diff)
			}
			checkShown(in.T, &p.metricsRecorder, versionOf, float64(resourceVersionOf(in.T, l)))
			checkShown(in.T, &p.metricsRecorder, "queued widgets", 0)
			if n, _ := p.value(observedOf); n == 0 {
				in.Errorf("round %d: no latency was observed", round)
			}
			l.Release()
			if diff := cmp.Diff(forgotten, p.take()); diff != "" {
				in.Errorf("round %d, when it has gone (-want +got):\n%s", round, diff)
			}
			if value, there := p.value(versionOf); there {
				in.Errorf("round %d: %s = %v after it has gone", round, versionOf, value)
			}
		}
	})
}

func resourceVersionOf(t *testing.T, l *dynamicinformer.Lease) int {
	t.Helper()
	var version int
	if _, err := fmt.Sscan(l.Status().ResourceVersion, &version); err != nil {
		t.Fatal(err)
	}
	return version
}

// An informer whose handler has not returned keeps its metrics. When it has ended, the metrics have the
// values of the next informer.
func TestWithInformerMetrics_PassWhenTheOldInformerHasEnded(t *testing.T) {
	p := &forgetter{}
	inMetrics(t, p, func(in bubble) {
		create(in.T, in.cluster, widgets, "ns", "w0")
		old := acquire(in.T, in.factory, widgets)
		stuck := newSlow()
		if _, err := old.AddEventHandler(stuck); err != nil {
			in.Fatal(err)
		}
		synctest.Wait()
		before := float64(resourceVersionOf(in.T, old))
		old.Release()
		synctest.Wait() // its watch has ended
		create(in.T, in.cluster, widgets, "ns", "w1")
		l := acquire(in.T, in.factory, widgets)
		if err := l.WaitForSync(in.Context()); err != nil {
			in.Fatal(err)
		}
		checkShown(in.T, &p.metricsRecorder, versionOf, before)
		stuck.doneWith(1)
		checkShown(in.T, &p.metricsRecorder, versionOf, float64(resourceVersionOf(in.T, l)))
		observed, _ := p.value(observedOf)
		create(in.T, in.cluster, widgets, "ns", "w2")
		synctest.Wait()
		checkShown(in.T, &p.metricsRecorder, versionOf, float64(resourceVersionOf(in.T, l)))
		if now, _ := p.value(observedOf); now <= observed {
			in.Errorf("observed %v, and %v before the new one's event", now, observed)
		}
		if diff := cmp.Diff(asked, p.take()); diff != "" {
			in.Errorf("the provider (-want +got):\n%s", diff)
		}
		l.Release()
		if diff := cmp.Diff(forgotten, p.take()); diff != "" {
			in.Errorf("at the end (-want +got):\n%s", diff)
		}
	})
}

func TestWithInformerMetrics_OneOfTwoInformersPublishes(t *testing.T) {
	p := &forgetter{}
	inMetrics(t, p, func(in bubble) {
		create(in.T, in.cluster, widgets, "ns", "w0")
		create(in.T, in.cluster, widgets, "other", "w1")
		first := acquire(in.T, in.factory, widgets)
		synctest.Wait()
		second := acquire(in.T, in.factory, widgets, dynamicinformer.WithSeparateInformer(), dynamicinformer.WithNamespace("ns"))
		synctest.Wait()
		third := acquire(in.T, in.factory, widgets, dynamicinformer.WithVersionPolicy(discovery.FollowPreferred()))
		synctest.Wait()
		observed, _ := p.value(observedOf)
		create(in.T, in.cluster, widgets, "other", "w2") // not selected by the second
		synctest.Wait()
		if now, _ := p.value(observedOf); now != observed+1 {
			in.Errorf("observed %v of one event", now-observed)
		}
		third.Release() // it has published no values
		first.Release()
		checkShown(in.T, &p.metricsRecorder, versionOf, float64(resourceVersionOf(in.T, second)))
		if diff := cmp.Diff(asked, p.take()); diff != "" {
			in.Errorf("the provider (-want +got):\n%s", diff)
		}
		second.Release()
		if diff := cmp.Diff(forgotten, p.take()); diff != "" {
			in.Errorf("at the end (-want +got):\n%s", diff)
		}
	})
}

func TestWithInformerMetrics_NoMetricsBeforeTheInformerRuns(t *testing.T) {
	p := &forgetter{}
	inMetrics(t, p, func(in bubble) {
		absent := widgets.GroupVersion().WithResource("absent")
		acquire(in.T, in.factory, absent, dynamicinformer.WithAllowAbsent()).Release()
		acquire(in.T, in.factory, absent, dynamicinformer.WithAllowAbsent())
		synctest.Wait()
	})
	if got := p.past; got != nil {
		t.Errorf("calls for a type that is not served: %v", got)
	}
	synctest.Test(t, func(t *testing.T) {
		f := newFactory(t, fakecluster.New(widgetType), dynamicinformer.WithInformerMetrics(informerName(t), p))
		f.ForResource(widgets)
		shutdown(t, f)
	})
	if got := p.past; got != nil {
		t.Errorf("calls before the start of the factory: %v", got)
	}
}

func TestWithInformerMetrics_ZeroForAProviderThatCannotForget(t *testing.T) {
	p := &metricsRecorder{}
	inMetrics(t, p, func(in bubble) {
		create(in.T, in.cluster, widgets, "ns", "w0")
		l := acquire(in.T, in.factory, widgets)
		synctest.Wait()
		checkShown(in.T, p, versionOf, float64(resourceVersionOf(in.T, l)))
		l.Release()
		checkShown(in.T, p, versionOf, 0)
		checkShown(in.T, p, "queued widgets", 0)
	})
}

func TestWithInformerMetrics_WithoutANameThereAreNone(t *testing.T) {
	p := &forgetter{}
	synctest.Test(t, func(t *testing.T) {
		f := newFactory(t, fakecluster.New(widgetType), dynamicinformer.WithInformerMetrics(nil, p))
		f.ForResource(widgets)
		start(t.Context(), f)
		shutdown(t, f)
	})
	if got := p.past; got != nil {
		t.Errorf("calls: %v", got)
	}
}

func TestWithInformerMetrics_ReleasedNamesPublishNothing(t *testing.T) {
	p := &forgetter{}
	synctest.Test(t, func(t *testing.T) {
		cluster, name := fakecluster.New(widgetType), informerName(t)
		f := newFactory(t, cluster, dynamicinformer.WithInformerMetrics(name, p))
		f.ForResource(widgets)
		start(t.Context(), f)
		before, _ := p.value(versionOf)
		name.Release()
		create(t, cluster, widgets, "ns", "w0")
		checkShown(t, &p.metricsRecorder, versionOf, before)
		shutdown(t, f)
	})
}

// Two factories with the same option have one identity per GVR.
func TestWithInformerMetrics_FactoriesWithOneOptionHaveOneName(t *testing.T) {
	p := &forgetter{}
	synctest.Test(t, func(t *testing.T) {
		cluster, option := fakecluster.New(widgetType), dynamicinformer.WithInformerMetrics(informerName(t), p)
		first, second := newFactory(t, cluster, option), newFactory(t, cluster, option)
		for _, f := range []*dynamicinformer.Factory{first, second} {
			f.ForResource(widgets)
			start(t.Context(), f)
		}
		shutdown(t, first)
		create(t, cluster, widgets, "ns", "w0")
		synctest.Wait()
		checkShown(t, &p.metricsRecorder, versionOf, float64(resourceVersionOf(t, acquire(t, second, widgets))))
		shutdown(t, second)
		if diff := cmp.Diff(slices.Concat(asked, forgotten), p.take()); diff != "" {
			t.Errorf("the provider (-want +got):\n%s", diff)
		}
	})
}

// Many informers start and end concurrently. The provider is called by one goroutine at a time, and at
// the end all metrics are forgotten.
func TestWithInformerMetrics_ConcurrentInformersLeaveNoMetrics(t *testing.T) {
	p := &forgetter{metricsRecorder{takes: time.Millisecond}}
	inMetrics(t, p, func(in bubble) {
		create(in.T, in.cluster, widgets, "ns", "w0")
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for range 20 {
					var opts []dynamicinformer.LeaseOption
					if i%2 == 0 {
						opts = append(opts, dynamicinformer.WithSeparateInformer())
					}
					l, err := in.factory.Acquire(in.Context(), widgets, opts...)
					if err != nil {
						in.Error(err)
						return
					}
					if err := l.WaitForSync(in.Context()); err != nil {
						in.Error(err)
					}
					l.Release()
				}
			})
		}
		all.Wait()
	})
	if p.met.Load() {
		t.Error("two goroutines called the provider at the same time")
	}
	past := p.past
	asks := slices.Index(past, forgotten[0])
	for len(past) > 0 {
		if asks != len(asked) {
			t.Fatalf("%d metrics before a call of ForgetInformer, want %d: %v", asks, len(asked), past)
		}
		past = past[asks+1:]
		asks = slices.Index(past, forgotten[0])
	}
	if len(p.shown) > 0 {
		t.Errorf("left: %v", p.shown)
	}
}

// processWide is the provider that the first of these tests passes to client-go: a process has one.
var processWide = &metricsRecorder{}

func TestWithInformerMetrics_NilIsTheProcessWideProvider(t *testing.T) {
	cache.SetInformerMetricsProvider(processWide)
	own := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gears"}
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(fakecluster.Type{GVR: own, Kind: "Gear"})
		f := newFactory(t, cluster, dynamicinformer.WithInformerMetrics(informerName(t), nil))
		f.Start(t.Context())
		for i := range 2 { // the second informer gets the identity too
			create(t, cluster, own, "", fmt.Sprintf("g%d", i))
			l := acquire(t, f, own)
			synctest.Wait()
			checkShown(t, processWide, "version gears", float64(resourceVersionOf(t, l)))
			l.Release()
		}
		shutdown(t, f)
	})
}
