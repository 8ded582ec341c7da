package metrics

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/status"
)

// metricsOf is a collector of statuses.
type metricsOf []status.Informer

func (metricsOf) Describe(descs chan<- *prometheus.Desc) { (&collector{}).Describe(descs) }

func (m metricsOf) Collect(to chan<- prometheus.Metric) {
	for _, r := range summarize(m, time.Now()) {
		r.collect(to)
	}
}

// The collector counts failed objects by reason, also while requests fail.
func TestCollector_CountsFailedObjectsByReason(t *testing.T) {
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	failing := func(counts map[status.Reason]uint64) status.Informer {
		return status.Informer{GVR: gvr, State: status.StateDegraded, Reason: status.ReasonForbidden, Quarantine: status.Quarantine{Counts: counts}}
	}
	panicking := status.Informer{GVR: gvr, State: status.StateSynced, Handlers: []status.Handler{
		{Reason: status.ReasonHandlerPanicked, FailedObjects: 4}, {Reason: status.ReasonHandlerPanicked, FailedObjects: 3}, {Panics: 9},
	}}
	two, both := map[status.Reason]uint64{"TransformFailed": 2}, map[status.Reason]uint64{"TransformFailed": 3, "IndexFailed": 1}
	got := metricsOf{panicking, failing(two), failing(both), failing(nil)}
	want := strings.ReplaceAll(`# HELP NAME Number of objects that are left out of the cache or of an index, by reason, and of objects for which handlers have panicked. The status has their keys.
# TYPE NAME gauge
NAME{group="example.com",reason="HandlerPanicked",resource="widgets",version="v1"} 7
NAME{group="example.com",reason="IndexFailed",resource="widgets",version="v1"} 1
NAME{group="example.com",reason="TransformFailed",resource="widgets",version="v1"} 5
`, "NAME", "gvrkit_informer_failed_objects")
	if err := testutil.CollectAndCompare(got, strings.NewReader(want), "gvrkit_informer_failed_objects"); err != nil {
		t.Error(err)
	}
}
