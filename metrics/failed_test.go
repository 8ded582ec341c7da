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

// The collector counts failed objects for any reason.
func TestCollector_CountsFailedObjectsByReason(t *testing.T) {
	gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	failing := func(reason status.Reason, failed uint64) status.Informer {
		return status.Informer{GVR: gvr, State: status.StateDegraded, Reason: reason, FailedObjects: failed, LastFailed: "ns/a"}
	}
	panicking := status.Informer{GVR: gvr, State: status.StateSynced, Handlers: []status.Handler{
		{Reason: status.ReasonHandlerPanicked, FailedObjects: 4}, {Reason: status.ReasonHandlerPanicked, FailedObjects: 3}, {Panics: 9},
	}}
	got := metricsOf{panicking, failing("TransformFailed", 2), failing("TransformFailed", 3), failing("IndexFailed", 1), failing("Forbidden", 0)}
	want := strings.ReplaceAll(`# HELP NAME Number of objects that the reason concerns, by reason; no series if the reason concerns requests or the type. For HandlerPanicked, the sum over all handlers. The status has the key of the last one.
# TYPE NAME gauge
NAME{group="example.com",reason="HandlerPanicked",resource="widgets",version="v1"} 7
NAME{group="example.com",reason="IndexFailed",resource="widgets",version="v1"} 1
NAME{group="example.com",reason="TransformFailed",resource="widgets",version="v1"} 5
`, "NAME", "gvrkit_informer_failed_objects")
	if err := testutil.CollectAndCompare(got, strings.NewReader(want), "gvrkit_informer_failed_objects"); err != nil {
		t.Error(err)
	}
}
