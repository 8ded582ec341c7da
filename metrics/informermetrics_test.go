package metrics_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/metrics"
)

func newName(t *testing.T, text string) *cache.InformerName {
	t.Helper()
	name, err := cache.NewInformerName(text)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(name.Release)
	return name
}

// client-go's metrics exist while the informer runs, in each generation.
func TestInformerMetrics_ExistWhileTheInformerRuns(t *testing.T) {
	m := metrics.NewInformerMetrics()
	named := func(metric string) string {
		return metric + `{group="example.com",name="controller",resource="widgets",version="v1"}`
	}
	inBubble(t, func(in bubble) {
		for round := range 2 {
			in.create(fmt.Sprintf("w%d", round))
			l := in.acquire(widgets)
			got := gather(in.T, m, in.collector)
			var version float64
			if _, err := fmt.Sscan(l.Status().ResourceVersion, &version); err != nil {
				in.Fatal(err)
			}
			checkSeries(in.T, got, map[string]float64{
				named("informer_queued_items"):           0,
				named("informer_store_resource_version"): version,
			})
			if got[named("informer_processing_seconds")] == 0 {
				in.Error("no processing was observed")
			}
			if problems, err := testutil.CollectAndLint(m); err != nil || len(problems) > 0 {
				in.Errorf("lint: %v, %v", problems, err)
			}
			l.Release()
			synctest.Wait()
			if left := gather(in.T, m); len(left) > 0 {
				in.Errorf("left in round %d: %v", round, left)
			}
		}
	}, dynamicinformer.WithInformerMetrics(newName(t, "controller"), m))
}

func TestInformerMetrics_AHistogramOfSeconds(t *testing.T) {
	m := metrics.NewInformerMetrics()
	latency := m.NewProcessingLatencyMetric(newName(t, "controller").WithResource(widgets))
	for _, seconds := range []float64{0, 1e-5, 2e-5, 0.5, 1, 100} {
		latency.Observe(seconds)
	}
	const want = `
# HELP gvrkit_informer_processing_seconds Time to move the events of client-go's queue to the store, and to pass them to handlers.
# TYPE gvrkit_informer_processing_seconds histogram
gvrkit_informer_processing_seconds_bucket{group="example.com",name="controller",resource="widgets",version="v1",le="1e-05"} 2
gvrkit_informer_processing_seconds_bucket{group="example.com",name="controller",resource="widgets",version="v1",le="0.0001"} 3
gvrkit_informer_processing_seconds_bucket{group="example.com",name="controller",resource="widgets",version="v1",le="0.001"} 3
gvrkit_informer_processing_seconds_bucket{group="example.com",name="controller",resource="widgets",version="v1",le="0.01"} 3
gvrkit_informer_processing_seconds_bucket{group="example.com",name="controller",resource="widgets",version="v1",le="0.1"} 3
gvrkit_informer_processing_seconds_bucket{group="example.com",name="controller",resource="widgets",version="v1",le="1"} 5
gvrkit_informer_processing_seconds_bucket{group="example.com",name="controller",resource="widgets",version="v1",le="10"} 5
gvrkit_informer_processing_seconds_bucket{group="example.com",name="controller",resource="widgets",version="v1",le="+Inf"} 6
gvrkit_informer_processing_seconds_sum{group="example.com",name="controller",resource="widgets",version="v1"} 101.50003
gvrkit_informer_processing_seconds_count{group="example.com",name="controller",resource="widgets",version="v1"} 6
`
	if err := testutil.CollectAndCompare(m, strings.NewReader(want), "gvrkit_informer_processing_seconds"); err != nil {
		t.Error(err)
	}
}

// A name that is used again does not have the series of the released name.
func TestInformerMetrics_ReleasedNamesHaveNoSeries(t *testing.T) {
	m := metrics.NewInformerMetrics()
	name := newName(t, "controller")
	m.NewQueuedItemMetric(name.WithResource(widgets)).Set(7)
	if got := len(gather(t, m)); got != 3 {
		t.Errorf("%d series, want 3", got)
	}
	name.Release()
	again := newName(t, "controller").WithResource(widgets)
	gauge := m.NewQueuedItemMetric(again)
	checkSeries(t, gather(t, m), map[string]float64{
		`informer_queued_items{group="example.com",name="controller",resource="widgets",version="v1"}`: 0,
	})
	gauge.Set(1)
	m.ForgetInformer(again)
	if diff := cmp.Diff(map[string]float64{}, gather(t, m)); diff != "" {
		t.Errorf("at the end (-want +got):\n%s", diff)
	}
}

func TestInformerMetrics_AnyNameIsALabel(t *testing.T) {
	m := metrics.NewInformerMetrics()
	for i, text := range []string{"\xff", "\xfe", `a"b`, "a\nb", "<b>", "\x00"} {
		name := newName(t, text)
		m.NewQueuedItemMetric(name.WithResource(widgets)).Set(float64(i))
		m.NewQueuedItemMetric(name.WithResource(schema.GroupVersionResource{Group: text, Version: text, Resource: text})).Set(float64(i))
	}
	if got := len(gather(t, m)); got != 3*2*5 { // two names have equal label values
		t.Errorf("%d series, want 30", got)
	}
	if _, err := testutil.CollectAndLint(m); err != nil {
		t.Error(err)
	}
}
