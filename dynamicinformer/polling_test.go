package dynamicinformer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// listable is widgetType without watches.
func listable() fakecluster.Type {
	listable := widgetType
	listable.Verbs = []string{"create", "delete", "get", "list", "update"}
	return listable
}

func TestPolling_ListsATypeThatCannotBeWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(listable())
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		if _, err := f.Acquire(t.Context(), widgets); !errors.Is(err, discovery.ErrVerbNotSupported) {
			t.Errorf("without polling: %v", err)
		}
		l := acquire(t, f, widgets, dynamicinformer.WithPolling(time.Minute))
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		events := &recorder{}
		if _, err := l.AddEventHandler(events); err != nil {
			t.Fatal(err)
		}
		create(t, cluster, widgets, "ns", "b")
		time.Sleep(10 * time.Minute)
		if diff := cmp.Diff([]string{"add ns/a", "add ns/b"}, events.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if got := l.Status(); got.State != status.StateSynced || len(cluster.Requests("watch", widgets)) != 0 {
			t.Errorf("%s, %d watches", got.Summary(time.Now()), len(cluster.Requests("watch", widgets)))
		}
		if got := l.Status().String(); !strings.Contains(got, "(listed every 1m0s)") {
			t.Errorf("status: %s", got)
		}
		if got := fmt.Sprint(f.Explain(widgets)); !strings.Contains(got, "The type can't be watched. It is listed in all namespaces every 1m0s; successful so far: 1") {
			t.Errorf("Explain: %s", got)
		}
		if text, err := json.Marshal(l.Status()); err != nil || !strings.Contains(string(text), `"pollPeriod":"1m0s"`) {
			t.Errorf("JSON: %s, %v", text, err)
		}
		shutdown(t, f)
	})
}

func TestPolling_PausesForASecondAtLeast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(listable())
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		l := acquire(t, f, widgets, dynamicinformer.WithPolling(time.Nanosecond))
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if lists := len(cluster.Requests("list", widgets)); lists < 50 || lists > 70 {
			t.Errorf("%d lists in a minute", lists)
		}
		shutdown(t, f)
	})
}

// A list that fails makes the informer degraded, also if there is no watch.
func TestPolling_AFailedListIsAReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(listable())
		f := newFactory(t, cluster, withDiscovery(t, cluster), dynamicinformer.WithPolling(time.Minute))
		f.Start(t.Context())
		informer := f.ForResource(widgets).Informer() // the option of a factory
		if err := f.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == "list" {
				return apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("no"))
			}
			return nil
		})
		time.Sleep(2 * time.Minute)
		if got := f.Status()[0]; got.State != status.StateDegraded || got.Reason != status.ReasonForbidden || got.Verb != "list" {
			t.Errorf("status: %s", got)
		}
		cluster.Intercept(nil)
		create(t, cluster, widgets, "ns", "a")
		time.Sleep(5 * time.Minute)
		if got := f.Status()[0]; got.State != status.StateSynced || len(informer.GetStore().List()) != 1 {
			t.Errorf("after the failure: %s", got)
		}
		shutdown(t, f)
	})
}

// A type that can be watched is watched; one that can't is followed with the option only.
func TestPolling_IsOnlyForTypesWithoutWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(listable(), blockType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		for _, tc := range []struct {
			opts []dynamicinformer.LeaseOption
			want []string
		}{
			{nil, []string{"ipamblocks"}},
			{[]dynamicinformer.LeaseOption{dynamicinformer.WithPolling(time.Minute)}, []string{"ipamblocks", "widgets"}},
		} {
			ctx, cancel := context.WithCancel(t.Context())
			var mu sync.Mutex
			var started []string
			ended := make(chan error)
			go func() {
				ended <- f.Follow(ctx, discovery.Selector{}, dynamicinformer.FollowFuncs{Started: func(l *dynamicinformer.Lease) {
					mu.Lock()
					defer mu.Unlock()
					started = append(started, l.Resource().GVR.Resource)
				}}, dynamicinformer.WithLeaseOptions(tc.opts...))
			}()
			time.Sleep(5 * time.Minute)
			for _, i := range f.Status() {
				if watched := len(cluster.Requests("watch", i.GVR)) > 0; watched != (i.GVR == blocks) || i.State != status.StateSynced {
					t.Errorf("watched: %t; %s", watched, i)
				}
			}
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			slices.Sort(started)
			if diff := cmp.Diff(tc.want, started); diff != "" {
				t.Errorf("started (-want +got):\n%s", diff)
			}
		}
		shutdown(t, f)
	})
}

// Lists replace the watches that have failed before the server refused one.
func TestPolling_EndsEarlierFailuresOfWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		var watches atomic.Int64
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			switch {
			case req.Verb != "watch":
				return nil
			case watches.Add(1) < 5:
				return apierrors.NewInternalError(errBad)
			}
			return apierrors.NewMethodNotSupported(widgets.GroupResource(), "watch")
		})
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		l := acquire(t, f, widgets, dynamicinformer.WithPolling(time.Minute))
		time.Sleep(10 * time.Minute)
		if got := l.Status(); got.State != status.StateSynced {
			t.Errorf("status: %s", got)
		}
		shutdown(t, f)
	})
}

// A refused list is not a refused watch, after which lists follow at once.
func TestPolling_PausesAfterARefusedList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(listable())
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		l := acquire(t, f, widgets, dynamicinformer.WithPolling(time.Minute))
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == "list" {
				return apierrors.NewMethodNotSupported(widgets.GroupResource(), "list")
			}
			return nil
		})
		time.Sleep(10 * time.Minute)
		if got := len(cluster.Requests("list", widgets)); got > 40 {
			t.Errorf("%d lists in ten minutes", got)
		}
		if got := l.Status(); got.Reason != status.ReasonVerbNotSupported {
			t.Errorf("status: %s", got)
		}
		cluster.Intercept(nil)
		time.Sleep(2 * time.Minute)
		if got := l.Status(); got.State != status.StateSynced {
			t.Errorf("status: %s", got)
		}
		shutdown(t, f)
	})
}
