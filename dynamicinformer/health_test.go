package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// The interfaces of k8s.io/apiserver and controller-runtime.
var (
	_ interface {
		Name() string
		Check(req *http.Request) error
	} = (*dynamicinformer.HealthCheck)(nil)
	_ func(req *http.Request) error = (*dynamicinformer.HealthCheck)(nil).Check
	_ http.Handler                  = (*dynamicinformer.HealthCheck)(nil)
)

// checkHealth expects that check fails with a text that begins and ends as want, or that it succeeds if
// want is empty.
func checkHealth(t *testing.T, when string, check *dynamicinformer.HealthCheck, want string) {
	t.Helper()
	synctest.Wait()
	got := ""
	if err := check.Check(nil); err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("%s %s: %q, want %q", check.Name(), when, got, want)
	}
}

func TestReadyz_WaitsForServedTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		all, named := f.Readyz(), f.Readyz(dynamicinformer.WithResources(blocks))
		checkHealth(t, "without informers", all, "")
		checkHealth(t, "of one without an informer", named, "ipamblocks.v1.crd.projectcalico.org: there is no informer on it")
		f.ForResource(widgets)
		f.ForResource(blocks)
		checkHealth(t, "before Start", f.Readyz(dynamicinformer.WithResources(widgets)), "widgets.v1.example.com: Unknown (NotStarted)")
		f.Start(t.Context())
		if err := f.WaitForSync(t.Context(), dynamicinformer.WithResources(widgets)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		checkHealth(t, "of all that is served", all, "")
		checkHealth(t, "of a type that is not served", named, "ipamblocks.v1.crd.projectcalico.org: NotServed (NotFound) for 30s")
		cluster.Serve(blockType)
		if err := f.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		checkHealth(t, "when it is", named, "")
		shutdown(t, f)
		if err := all.Check(nil); err == nil || !strings.Contains(err.Error(), "widgets.v1.example.com: Stopped") {
			t.Errorf("after Shutdown: %v", err)
		}
	})
}

// A factory that has been shut down is not ready, also if its leases have been released before.
func TestReadyz_FailsAfterShutdownWithoutInformers(t *testing.T) {
	inLeases(t, func(in bubble) {
		l := acquire(in.T, in.factory, widgets)
		ready, healthy := in.factory.Readyz(), in.factory.Healthz(dynamicinformer.WithHealthTolerance(0))
		time.Sleep(time.Second)
		checkHealth(in.T, "with an informer", ready, "")
		l.Release()
		checkHealth(in.T, "without informers", ready, "")
		shutdown(in.T, in.factory)
		checkHealth(in.T, "after Shutdown", ready, "the factory has been shut down")
		checkHealth(in.T, "after Shutdown", healthy, "")
	})
}

// A type that has been served is missed also if it is not named.
func TestReadyz_ReportsATypeThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.ForResource(widgets)
		f.ForResource(kindOf("ships")) // never served
		f.Start(t.Context())
		time.Sleep(time.Minute)
		cluster.Withdraw(widgets)
		time.Sleep(time.Minute)
		checkHealth(t, "within five minutes", f.Readyz(), "")
		time.Sleep(time.Hour)
		if err := f.Readyz().Check(nil); err == nil || !strings.Contains(err.Error(), "widgets.v1.example.com: NotServed") || strings.Contains(err.Error(), "ships") {
			t.Errorf("after an hour: %v", err)
		}
		shutdown(t, f)
	})
}

func TestHealth_ToleratesShortFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		f.ForResource(widgets)
		f.Start(t.Context())
		if err := f.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		ready, never := f.Readyz(dynamicinformer.WithHealthTolerance(time.Minute)), f.Readyz(dynamicinformer.WithHealthTolerance(-1))
		healthy, named := f.Healthz(), f.Healthz(dynamicinformer.WithResources(widgets), nil)
		limited, unlimited := f.Healthz(dynamicinformer.WithHealthTolerance(time.Minute)), f.Healthz(dynamicinformer.WithResources(widgets), dynamicinformer.WithHealthTolerance(-1))
		cluster.Intercept(func(context.Context, fakecluster.Request) error {
			return apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("not you"))
		})
		cluster.CloseWatches(widgets)
		time.Sleep(50 * time.Second)
		checkHealth(t, "within a minute", ready, "")
		time.Sleep(20*time.Second + 500*time.Millisecond)
		checkHealth(t, "after it", ready, "widgets.v1.example.com: Degraded (Forbidden) for 70s")
		checkHealth(t, "if that may last", never, "")
		checkHealth(t, "which a restart does not heal", healthy, "")
		checkHealth(t, "which may last a minute", limited, "widgets.v1.example.com: Degraded (Forbidden) for 70s")
		checkHealth(t, "of one that is named, within five minutes", named, "")
		time.Sleep(5 * time.Minute)
		checkHealth(t, "after them", named, "widgets.v1.example.com: Degraded (Forbidden) for 6m10s")
		checkHealth(t, "of one that is named, without a limit", unlimited, "")
		cluster.Intercept(nil)
		time.Sleep(time.Minute)
		checkHealth(t, "when it has healed", ready, "")
		shutdown(t, f)
	})
}

// A failing transform is shown by health checks also if all other objects are served.
func TestReadyz_ReportsObjectsThatATransformFailsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "a")
		create(t, cluster, widgets, "ns", "b")
		relabel(t, cluster, "b", "error")
		f := newFactory(t, cluster, dynamicinformer.WithTransform(rejectBad))
		f.ForResource(widgets)
		f.Start(t.Context())
		if err := f.WaitForSync(t.Context()); err != nil {
			t.Errorf("the others are not served: %v", err)
		}
		ready := f.Readyz(dynamicinformer.WithHealthTolerance(time.Minute))
		time.Sleep(50 * time.Second)
		checkHealth(t, "within a minute", ready, "")
		time.Sleep(20*time.Second + 500*time.Millisecond)
		checkHealth(t, "after it", ready, "widgets.v1.example.com: Degraded (TransformFailed) for 70s")
		relabel(t, cluster, "b", "")
		time.Sleep(time.Second)
		checkHealth(t, "when the object is good", ready, "")
		shutdown(t, f)
	})
}

// An outage does not make an informer ready that has left out objects for longer than the tolerance.
func TestReadyz_ReportsObjectsThatAreLeftOutAlsoWhileRequestsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "a")
		relabel(t, cluster, "a", "error")
		f := newFactory(t, cluster, dynamicinformer.WithTransform(rejectBad))
		f.ForResource(widgets)
		f.Start(t.Context())
		ready := f.Readyz(dynamicinformer.WithHealthTolerance(time.Minute))
		time.Sleep(70 * time.Second)
		checkHealth(t, "before an outage", ready, "widgets.v1.example.com: Degraded (TransformFailed) for 70s")
		cluster.Intercept(func(context.Context, fakecluster.Request) error { return errors.New("broken") })
		cluster.CloseWatches(widgets)
		time.Sleep(10 * time.Second)
		checkHealth(t, "during it", ready, "widgets.v1.example.com: Degraded (Unavailable) for 10s, objects are left out for 80s (TransformFailed 1)")
		if healthy := f.Healthz(dynamicinformer.WithHealthTolerance(2 * time.Minute)); healthy.Check(nil) != nil {
			t.Errorf("within two minutes: %v", healthy.Check(nil))
		}
		cluster.Intercept(nil)
		time.Sleep(20 * time.Second)
		checkHealth(t, "after it", ready, "widgets.v1.example.com: Degraded (TransformFailed) for 100s")
		shutdown(t, f)
	})
}

// An informer that has never synced is not ready, without tolerance.
func TestReadyz_FailsAtOnceForAnInformerThatHasNeverSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		cluster.Intercept(func(context.Context, fakecluster.Request) error { return errors.New("broken") })
		f := newFactory(t, cluster)
		f.ForResource(widgets)
		f.Start(t.Context())
		checkHealth(t, "at once", f.Readyz(), "widgets.v1.example.com: Degraded (Unavailable) for 0s")
		checkHealth(t, "at once", f.Healthz(dynamicinformer.WithResources(widgets)), "")
		shutdown(t, f)
	})
}

func TestHealthz_ChecksHandlers(t *testing.T) {
	inLeases(t, func(in bubble) {
		create(in.T, in.cluster, widgets, "ns", "a")
		l := acquire(in.T, in.factory, widgets)
		handler := newSlow()
		if _, err := l.AddEventHandler(handler); err != nil {
			in.Fatal(err)
		}
		synctest.Wait()
		check := in.factory.Healthz(dynamicinformer.WithHandlerTimeout(time.Minute))
		time.Sleep(time.Minute)
		checkHealth(in.T, "while a call may last", check, "")
		time.Sleep(time.Second)
		checkHealth(in.T, "when it lasts for longer", check, "widgets.v1.example.com: handler dynamicinformer_test.slow has been in one call for 61s, 1 event waiting")
		checkHealth(in.T, "of other types", in.factory.Healthz(dynamicinformer.WithHandlerTimeout(time.Minute), dynamicinformer.WithResources(blocks)),
			"ipamblocks.v1.crd.projectcalico.org: there is no informer on it")
		handler.doneWith(1)
		checkHealth(in.T, "afterwards", check, "")
		l.Release()
	})
}

func TestHealthError_IsBounded(t *testing.T) {
	f := newFactory(t, fakecluster.New())
	for i := range 100 {
		f.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: fmt.Sprintf("things%03d", i)})
	}
	err := f.Readyz().Check(nil)
	unhealthy, is := errors.AsType[*status.HealthError](err)
	if !is || len(unhealthy.Problems) != 20 || unhealthy.More != 80 || !strings.HasSuffix(err.Error(), "; and 80 more") {
		t.Errorf("error: %v", err)
	}
	shutdown(t, f)
}

// A slow list is not unhealthy, also that of a type that is served again.
func TestHealth_ToleratesSlowLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		hang := func(ctx context.Context, req fakecluster.Request) error {
			if req.Verb == fakecluster.VerbDiscover {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}
		cluster.Intercept(hang)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		healthy, ready := f.Healthz(dynamicinformer.WithResources(widgets)), f.Readyz(dynamicinformer.WithResources(widgets))
		f.ForResource(widgets)
		checkHealth(t, "before Start", healthy, "")
		f.Start(t.Context())
		time.Sleep(50 * time.Second)
		checkHealth(t, "of one that lists", healthy, "")
		checkHealth(t, "of one that lists for the first time", ready, "widgets.v1.example.com: Starting (Syncing) for 50s")
		cluster.Intercept(nil)
		time.Sleep(10 * time.Minute)
		checkHealth(t, "when it has listed", ready, "")

		cluster.Withdraw(widgets)
		time.Sleep(3 * time.Minute)
		checkHealth(t, "of a type that has gone lately", ready, "")
		cluster.Intercept(hang)
		cluster.Serve(widgetType)
		time.Sleep(4 * time.Minute)
		checkHealth(t, "of one that has come back", ready, "")
		cluster.Intercept(nil)
		shutdown(t, f)
	})
}

// A server of k8s.io/apiserver has checks with these names. It serves one check under each name.
func TestHealthCheck_NamesAreNotThoseOfAnAPIServer(t *testing.T) {
	f := newFactory(t, fakecluster.New())
	ready, healthy := f.Readyz().Name(), f.Healthz().Name()
	if taken := []string{"ping", "log", "informer-sync", "shutdown", "etcd", "etcd-readiness"}; slices.Contains(taken, ready) || slices.Contains(taken, healthy) || ready == healthy {
		t.Errorf("names %q and %q", ready, healthy)
	}
	shutdown(t, f)
}

func TestHealthCheck_IsAnHTTPHandler(t *testing.T) {
	f := newFactory(t, fakecluster.New())
	check := f.Readyz(dynamicinformer.WithResources(widgets, blocks))
	for _, tc := range []struct {
		handler http.Handler
		code    int
		body    string
	}{
		{f.Readyz(), http.StatusOK, "ok\n"},
		{check, http.StatusInternalServerError, "gvrkit-informer-sync failed:\nwidgets.v1.example.com: there is no informer on it\nipamblocks.v1.crd.projectcalico.org: there is no informer on it\n"},
	} {
		got := look(t, tc.handler, "")
		if got.Code != tc.code || got.Body.String() != tc.body || got.Header().Get("Cache-Control") != "no-store" || got.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%d %q %v, want %d %q", got.Code, got.Body, got.Header(), tc.code, tc.body)
		}
	}
	shutdown(t, f)
}
