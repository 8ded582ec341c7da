package metrics_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/metrics"
)

var (
	widgets    = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	widgetType = fakecluster.Type{GVR: widgets, Kind: "Widget", Namespaced: true}
)

// bubble is a test in a synctest bubble, with a cluster with widgets, a started factory and its
// collector.
type bubble struct {
	*testing.T
	cluster   *fakecluster.Cluster
	factory   *dynamicinformer.Factory
	collector prometheus.Collector
}

func inBubble(t *testing.T, test func(in bubble), opts ...dynamicinformer.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		resolver, err := discovery.NewFromDiscovery(cluster.Discovery())
		if err != nil {
			t.Fatal(err)
		}
		f := newFactory(t, cluster, append([]dynamicinformer.Option{dynamicinformer.WithDiscovery(resolver)}, opts...)...)
		f.Start(t.Context())
		test(bubble{t, cluster, f, metrics.NewCollector(f)})
		shutdown(t, f)
	})
}

func newFactory(t *testing.T, cluster *fakecluster.Cluster, opts ...dynamicinformer.Option) *dynamicinformer.Factory {
	t.Helper()
	f, err := dynamicinformer.New(cluster, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func shutdown(t *testing.T, f *dynamicinformer.Factory) {
	t.Helper()
	if err := f.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
}

func (in bubble) create(name string) {
	in.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetName(name)
	if _, err := in.cluster.Resource(widgets).Namespace("ns").Create(in.Context(), obj, metav1.CreateOptions{}); err != nil {
		in.Fatal(err)
	}
}

// acquire returns a lease, after all goroutines have become idle.
func (in bubble) acquire(gvr schema.GroupVersionResource, opts ...dynamicinformer.LeaseOption) *dynamicinformer.Lease {
	in.Helper()
	l, err := in.factory.Acquire(in.Context(), gvr, opts...)
	if err != nil {
		in.Fatal(err)
	}
	synctest.Wait()
	return l
}

// gather registers collectors and scrapes once.
func gather(t *testing.T, collectors ...prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collectors...)
	return scrape(t, registry)
}

// scrape returns the values of all series, as "name{label=value …}". For a histogram, this is the
// number of its values.
func scrape(t *testing.T, registry prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Errorf("gather: %v", err)
	}
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := make([]string, len(m.GetLabel()))
			for i, label := range m.GetLabel() {
				labels[i] = fmt.Sprintf("%s=%q", label.GetName(), label.GetValue())
			}
			name := strings.TrimPrefix(family.GetName(), "gvrkit_") + "{" + strings.Join(labels, ",") + "}"
			values[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return values
}

// ofWidgets returns the name of a series of widgets, as in the result of gather.
func ofWidgets(name string) string {
	return name + `{group="example.com",resource="widgets",version="v1"}`
}

// checkSeries expects these values.
func checkSeries(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		if there, is := got[name]; !is || there != value {
			t.Errorf("%s = %v (exists: %v), want %v", name, there, is, value)
		}
	}
}

// ofResources returns the names of the series of resources.
func ofResources(all map[string]float64) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for name := range all {
			if strings.Contains(name, "group=") && !yield(name) {
				return
			}
		}
	})
}

// slow is a handler whose calls wait for the channel.
type slow chan struct{}

func (s slow) OnAdd(any, bool)   { <-s }
func (s slow) OnUpdate(any, any) { <-s }
func (s slow) OnDelete(any)      { <-s }
