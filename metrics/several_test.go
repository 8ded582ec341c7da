package metrics_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// Several informers on a resource have common series: sums, and the worst state.
func TestCollector_InformersOnAResourceHaveCommonSeries(t *testing.T) {
	inBubble(t, func(in bubble) {
		in.create("w0")
		in.acquire(widgets)
		in.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Namespace == "ns" && req.Verb != "create" {
				return apierrors.NewForbidden(widgets.GroupResource(), "", nil)
			}
			return nil
		})
		in.acquire(widgets, dynamicinformer.WithSeparateInformer())
		in.acquire(widgets, dynamicinformer.WithSeparateInformer(), dynamicinformer.WithNamespace("ns"))
		in.acquire(widgets, dynamicinformer.WithVersionPolicy(discovery.FollowPreferred()))
		<-time.After(30 * time.Second)
		all := gather(in.T, in.collector)
		checkSeries(in.T, all, map[string]float64{
			`informers{state="Synced"}`:         3,
			`informers{state="Degraded"}`:       1,
			ofWidgets("informer_leases"):        4,
			ofWidgets("informer_objects"):       3,
			ofWidgets("informer_watches_total"): 3,
			`informer_state{group="example.com",resource="widgets",state="Synced",version="v1"}`:      0,
			`informer_state{group="example.com",resource="widgets",state="Degraded",version="v1"}`:    1,
			`informer_reason{group="example.com",reason="Forbidden",resource="widgets",version="v1"}`: 1,
		})
		if got := all[`informer_failures_total{group="example.com",reason="Forbidden",resource="widgets",version="v1"}`]; got < 2 {
			in.Errorf("failures = %v, want some", got)
		}
	})
}

// If one of two informers ends, its counts are kept, and no event is counted twice. The series end
// with the last informer, and start at zero with the next one.
func TestCollector_CountersDoNotDecrease(t *testing.T) {
	const forbidden = `informer_failures_total{group="example.com",reason="Forbidden",resource="widgets",version="v1"}`
	inBubble(t, func(in bubble) {
		in.create("w0")
		first := in.acquire(widgets)
		in.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Namespace == "ns" && req.Verb != "create" {
				return apierrors.NewForbidden(widgets.GroupResource(), "", nil)
			}
			return nil
		})
		refused := in.acquire(widgets, dynamicinformer.WithSeparateInformer(), dynamicinformer.WithNamespace("ns"))
		in.acquire(widgets, dynamicinformer.WithSeparateInformer()).Release()
		<-time.After(time.Minute)
		last := in.acquire(widgets, dynamicinformer.WithSeparateInformer())
		before := gather(in.T, in.collector)
		first.Release()
		refused.Release()
		for range 2 {
			after := gather(in.T, in.collector)
			checkSeries(in.T, after, map[string]float64{
				forbidden:                          before[forbidden],
				ofWidgets("informer_events_total"): before[ofWidgets("informer_events_total")],
				ofWidgets("informer_lists_total"):  before[ofWidgets("informer_lists_total")],
				ofWidgets("informer_objects"):      1,
			})
		}
		in.create("w1")
		synctest.Wait()
		if before[forbidden] == 0 {
			in.Error("nothing was forbidden")
		}
		checkSeries(in.T, gather(in.T, in.collector), map[string]float64{
			ofWidgets("informer_events_total"): before[ofWidgets("informer_events_total")] + 1,
		})
		last.Release()
		if left := ofResources(gather(in.T, in.collector)); len(left) > 0 {
			in.Errorf("left: %v", left)
		}
		in.acquire(widgets)
		again := gather(in.T, in.collector)
		checkSeries(in.T, again, map[string]float64{ofWidgets("informer_events_total"): 2}) // the objects
		if failures, told := again[forbidden]; told {
			in.Errorf("failures of the next informer: %v", failures)
		}
	})
}

// Later counts of an informer that continues are not counted for an informer that has ended.
func TestCollector_CountsOfAContinuingInformerAreAdded(t *testing.T) {
	inBubble(t, func(in bubble) {
		create := func(prefix string, n int) {
			for i := range n {
				in.create(fmt.Sprint(prefix, i))
			}
			synctest.Wait()
		}
		events := func() float64 { return gather(in.T, in.collector)[ofWidgets("informer_events_total")] }
		create("w", 10)
		last := in.acquire(widgets)
		first := in.acquire(widgets, dynamicinformer.WithSeparateInformer())
		if got := events(); got != 20 {
			in.Errorf("two informers: %v", got)
		}
		first.Release()
		create("x", 15)
		if got := events(); got != 35 {
			in.Errorf("after 15 more events of one informer: %v, want 35", got)
		}
		last.Release()
		in.acquire(widgets)
		if got := events(); got != 25 {
			in.Errorf("the next informer, after the end of all: %v, want 25", got)
		}
		create("y", 1)
		if got := events(); got != 26 {
			in.Errorf("after one more event: %v, want 26", got)
		}
	})
}
