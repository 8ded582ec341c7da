package dynamicinformer_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// checkSince checks that l is synced since want, or at most 10 ms later.
func checkSince(t *testing.T, when string, l *dynamicinformer.Lease, want time.Time) {
	t.Helper()
	got := l.Status()
	if got.State != status.StateSynced || got.Since.After(want) || want.Sub(got.Since) > 10*time.Millisecond {
		t.Errorf("%s: %s (%s) since %v, want Synced since %v", when, got.State, got.Reason, got.Since, want)
	}
}

// SyncedSince is the time of the list, of the end of a failure, or of the list of the next type with the
// same name.
func TestStatus_SyncedSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, fakecluster.Type{GVR: gadgets, Kind: "Gadget"})
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		slow := func(_ context.Context, req fakecluster.Request) error {
			if req.GVR == widgets {
				time.Sleep(3 * time.Second)
			}
			return nil
		}
		cluster.Intercept(slow)
		l := acquire(t, f, widgets)
		check := func(what string, want time.Time) {
			t.Helper()
			checkSince(t, what, l, want)
		}
		begun := time.Now()
		time.Sleep(time.Minute)
		check("listed", begun.Add(3*time.Second))

		answer(cluster, apierrors.NewForbidden(widgets.GroupResource(), "", nil))
		cluster.CloseWatches(widgets)
		time.Sleep(time.Minute)
		if got := l.Status(); got.State != status.StateDegraded {
			t.Errorf("forbidden: %+v", got)
		}
		cluster.Intercept(slow)
		l.Retry()
		healed := time.Now()
		time.Sleep(time.Minute)
		check("allowed again", healed.Add(3*time.Second))

		cluster.Withdraw(widgets)
		time.Sleep(2 * time.Minute)
		if got := l.Status(); got.State != status.StateNotServed {
			t.Errorf("after the end of the type: %+v", got)
		}
		cluster.Serve(widgetType)
		back := time.Now()
		if err := l.WaitForSync(t.Context()); err != nil || time.Since(back) < 3*time.Second {
			t.Fatalf("%v after %v", err, time.Since(back))
		}
		synced := time.Now()
		time.Sleep(time.Minute)
		check("served again", synced)
		shutdown(t, f)
	})
}

// A type whose version is not served for a while is not listed again.
func TestStatus_SyncedSinceItsVersionIsServedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, documents := fakecluster.New(widgetType), fakecluster.New(widgetType)
		f := newFactory(t, cluster, withDiscovery(t, documents))
		l := syncedLease(t, f)
		other := widgetType
		other.GVR.Version = "v2"
		documents.Serve(other)
		documents.Withdraw(widgets)
		answer(cluster, apierrors.NewNotFound(widgets.GroupResource(), ""))
		cluster.CloseWatches(widgets)
		time.Sleep(3 * time.Minute)
		if got := l.Status(); got.Reason != status.ReasonVersionNotServed {
			t.Errorf("another version: %s (%s)", got.State, got.Reason)
		}
		cluster.Intercept(nil)
		documents.Serve(widgetType)
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		for l.Status().State != status.StateSynced {
			time.Sleep(time.Millisecond)
		}
		back := time.Now()
		time.Sleep(time.Hour)
		checkSince(t, "served again", l, back)
		shutdown(t, f)
	})
}

// The deletions of old objects are not a list of the next type.
func TestStatus_SyncedSinceTheNextTypeIsListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, fakecluster.Type{GVR: gadgets, Kind: "Gadget"})
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		l := syncedLease(t, f)
		cluster.Withdraw(widgets)
		other := widgetType
		other.Namespaced = false
		cluster.Serve(other)
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.GVR == widgets {
				time.Sleep(30 * time.Second)
			}
			return nil
		})
		for range 300 {
			time.Sleep(time.Second)
			if l.Status().Generation > 0 {
				break
			}
		}
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		synced := time.Now()
		time.Sleep(time.Minute)
		checkSince(t, "of another scope", l, synced)
		if got := l.Status().Generation; got != 1 {
			t.Errorf("generation %d", got)
		}
		shutdown(t, f)
	})
}

// A watch-list with a response is not complete.
func TestStatus_SyncedSinceTheEndOfInitialEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		for i := range 5 {
			create(t, cluster, widgets, "ns", fmt.Sprint("w", i))
		}
		f := newFactory(t, slowStreams{cluster})
		f.Start(t.Context())
		begun := time.Now()
		l := acquire(t, f, widgets)
		if err := l.WaitForSync(t.Context()); err != nil || time.Since(begun) < 10*time.Second {
			t.Fatalf("%v after %v", err, time.Since(begun))
		}
		synced := time.Now()
		time.Sleep(time.Minute)
		checkSince(t, "by watch-list", l, synced)
		shutdown(t, f)
	})
}

// slowStreams is a client whose watches have an event every two seconds.
type slowStreams struct{ dynamic.Interface }

func (c slowStreams) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return slowStream{c.Interface.Resource(gvr)}
}

type slowStream struct {
	dynamic.NamespaceableResourceInterface
}

func (s slowStream) Namespace(namespace string) dynamic.ResourceInterface {
	return slowNamespace{s.NamespaceableResourceInterface.Namespace(namespace)}
}

type slowNamespace struct{ dynamic.ResourceInterface }

func (s slowNamespace) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return delayed(s.ResourceInterface.Watch(ctx, opts))
}

func (s slowStream) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	return delayed(s.NamespaceableResourceInterface.Watch(ctx, opts))
}

func delayed(in watch.Interface, err error) (watch.Interface, error) {
	if err != nil {
		return nil, err
	}
	return watch.Filter(in, func(event watch.Event) (watch.Event, bool) {
		time.Sleep(2 * time.Second)
		return event, true
	}), nil
}
