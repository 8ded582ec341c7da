package dynamicinformer_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// notSynced returns the first NotSyncedError in err.
func notSynced(t *testing.T, err error) *status.NotSyncedError {
	t.Helper()
	var notSynced *status.NotSyncedError
	if !errors.As(err, &notSynced) || !errors.Is(err, status.ErrNotSynced) {
		t.Fatalf("error is %v, want a NotSyncedError", err)
	}
	return notSynced
}

// reasonOf returns the reason of the first NotSyncedError in err.
func reasonOf(t *testing.T, err error) status.Reason {
	t.Helper()
	return notSynced(t, err).Reason
}

// waitFor waits at most d for gvrs.
func waitFor(ctx context.Context, f *dynamicinformer.Factory, d time.Duration, gvrs ...schema.GroupVersionResource) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return f.WaitForSync(ctx, dynamicinformer.WithResources(gvrs...))
}

// answer makes every list and watch of widgets fail with err.
func answer(cluster *fakecluster.Cluster, err error) {
	cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
		if req.GVR == widgets {
			return err
		}
		return nil
	})
}

func TestWaitForSync_ReturnsTheReason(t *testing.T) {
	resource := widgets.GroupResource()
	for _, tc := range []struct {
		name   string
		err    error
		want   status.Reason
		holds  func(error) bool
		within string
	}{
		{"forbidden", apierrors.NewForbidden(resource, "", errors.New(`user "x" may not`)), status.ReasonForbidden, apierrors.IsForbidden, `to the user in a ClusterRole: - {apiGroups: ["example.com"], resources: ["widgets"], verbs: ["list", "watch"]}`},
		{"unauthorized", apierrors.NewUnauthorized("no token"), status.ReasonUnauthorized, apierrors.IsUnauthorized, "credentials"},
		{"not found", apierrors.NewNotFound(resource, ""), status.ReasonNotFound, apierrors.IsNotFound, "cannot list"},
		{"method", apierrors.NewMethodNotSupported(resource, "list"), status.ReasonVerbNotSupported, apierrors.IsMethodNotSupported, "cannot list"},
		{"throttled", apierrors.NewTooManyRequests("slowly", 1), status.ReasonThrottled, apierrors.IsTooManyRequests, "slowly"},
		{"conversion", apierrors.NewInternalError(errors.New("conversion webhook for x failed")), status.ReasonConversionFailed, apierrors.IsInternalError, "webhook"},
		{"HTML", errors.New("serializer for text/html doesn't exist"), status.ReasonDecodeFailed, isAny, "text/html"},
		{"no JSON", errors.New("couldn't get version/kind; json parse error: invalid character '<'"), status.ReasonDecodeFailed, isAny, "json"},
		{"cut short", io.ErrUnexpectedEOF, status.ReasonDecodeFailed, isAny, "check which server responds"},
		{"broken off", fmt.Errorf("unexpected error when reading response body. Please retry. Original error: %w", io.ErrUnexpectedEOF), status.ReasonUnavailable, isAny, "reachable"},
		{"unavailable", apierrors.NewServiceUnavailable("down"), status.ReasonUnavailable, apierrors.IsServiceUnavailable, "reachable"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				cluster := fakecluster.New(widgetType)
				answer(cluster, tc.err)
				f := newFactory(t, cluster)
				f.ForResource(widgets)
				f.Start(ctx)
				err := waitFor(ctx, f, 5*time.Second)
				if got := reasonOf(t, err); got != tc.want {
					t.Errorf("reason = %s, want %s", got, tc.want)
				}
				if at := notSynced(t, err).At; !at.Equal(time.Now()) {
					t.Errorf("the error is of %v ago", time.Since(at))
				}
				if !tc.holds(err) {
					t.Errorf("the error does not unwrap to the server's: %v", err)
				}
				for _, part := range []string{"widgets.v1.example.com: not synced: cannot list: ", tc.within, "attempts"} {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("error %q lacks %q", err, part)
					}
				}
				shutdown(t, f)
			})
		})
	}
}

// A server that rejects the request for a document has not said whether the type is served: the type is
// not absent, and the program is not ready.
func TestDiscovery_ARejectedRequestIsNotAnAbsentType(t *testing.T) {
	for reason, err := range map[status.Reason]error{
		status.ReasonUnauthorized:    apierrors.NewUnauthorized("no token"),
		status.ReasonForbidden:       apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no discovery for you")),
		status.ReasonTLS:             x509.UnknownAuthorityError{},
		status.ReasonDiscoveryFailed: apierrors.NewServiceUnavailable("down"),
	} {
		t.Run(string(reason), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				cluster.Intercept(func(context.Context, fakecluster.Request) error { return err })
				f := newFactory(t, cluster, withDiscovery(t, cluster))
				f.ForResource(widgets)
				start(t.Context(), f)
				time.Sleep(time.Minute)
				got := f.Status()[0]
				if got.State != status.StateUnknown || got.Reason != reason {
					t.Errorf("%s (%s), want Unknown (%s)", got.State, got.Reason, reason)
				}
				if err := f.Readyz().Check(nil); err == nil {
					t.Error("the program is ready")
				}
				if text := f.Explain(widgets).String(); strings.Contains(text, "NotServed") || !strings.Contains(text, "No list or watch has been sent.") {
					t.Errorf("explanation: %s", text)
				}
				cluster.Intercept(nil)
				if err := f.WaitForSync(t.Context()); err != nil {
					t.Error(err)
				}
				shutdown(t, f)
			})
		})
	}
}

func isAny(error) bool { return true }

func TestDiscovery_ForbiddenAdvisesAboutDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			return apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no discovery for you"))
		})
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.ForResource(widgets)
		start(ctx, f)
		err := waitFor(ctx, f, time.Second)
		if reasonOf(t, err) != status.ReasonForbidden || !strings.Contains(err.Error(), "WithDiscovery(nil)") {
			t.Errorf("error: %v", err)
		}
		shutdown(t, f)
	})
}

func TestWaitForSync_StuckTypeDoesNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType, blockType)
		cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
			if req.GVR == widgets {
				<-ctx.Done()
			}
			return nil
		})
		f := newFactory(t, cluster)
		f.ForResource(widgets)
		f.ForResource(blocks)
		f.Start(ctx)
		begun := time.Now()
		if err := f.WaitForSync(ctx, dynamicinformer.WithResources(blocks)); err != nil {
			t.Errorf("WaitForSync of the healthy type: %v", err)
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("it took %v", took)
		}
		err := waitFor(ctx, f, 30*time.Second)
		if got := reasonOf(t, err); got != status.ReasonSyncing {
			t.Errorf("reason of a request that hangs = %s, want Syncing", got)
		}
		later := waitFor(ctx, f, time.Minute)
		if got := reasonOf(t, later); got != status.ReasonUnavailable {
			t.Errorf("reason of a request that has hung for a minute = %s, want Unavailable", got)
		}
		if strings.Contains(err.Error(), "ipamblocks") {
			t.Errorf("the healthy type is in the error: %v", err)
		}
		shutdown(t, f)
	})
}

func TestWaitForSync_SyncedFactoryIgnoresTheEndOfTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		f := newFactory(t, fakecluster.New(widgetType))
		f.ForResource(widgets)
		start(ctx, f)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if err := f.WaitForSync(ended); err != nil {
			t.Errorf("WaitForSync: %v", err)
		}
		shutdown(t, f)
	})
}

func TestWaitForSync_NotStartedStoppedUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		answer(cluster, apierrors.NewServiceUnavailable("down"))
		f := newFactory(t, cluster)
		begun := time.Now()
		if got := reasonOf(t, f.WaitForSync(ctx, dynamicinformer.WithResources(blocks))); got != status.ReasonNotStarted || time.Since(begun) > 0 {
			t.Errorf("never requested: %s after %v, want NotStarted at once", got, time.Since(begun))
		}
		f.ForResource(widgets)
		if got := reasonOf(t, waitFor(ctx, f, time.Second, widgets)); got != status.ReasonNotStarted {
			t.Errorf("before Start: %s", got)
		}
		start(ctx, f)
		waiting := make(chan error)
		go func() { waiting <- f.WaitForSync(ctx, dynamicinformer.WithResources(widgets)) }()
		shutdown(t, f)
		if got := reasonOf(t, <-waiting); got != status.ReasonStopped {
			t.Errorf("after Shutdown: %s, want Stopped", got)
		}
	})
}

func TestWaitForSync_EndsWhenTheFactoryCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		f := newFactory(t, fakecluster.New(widgetType))
		f.ForResource(widgets)
		waiting := make(chan error)
		go func() { waiting <- f.WaitForSync(ctx, dynamicinformer.WithResources(widgets)) }()
		synctest.Wait()
		shutdown(t, f) // without Start
		if got := reasonOf(t, <-waiting); got != status.ReasonStopped {
			t.Errorf("reason = %s, want Stopped", got)
		}
	})
}

func TestDiscovery_NoRequestIsSentBeforeTheTypeIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(blockType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		events := listen(t, f.ForResource(widgets).Informer())
		start(ctx, f)

		err := waitFor(ctx, f, 10*time.Minute, widgets)
		if got := reasonOf(t, err); got != status.ReasonNotFound || !meta.IsNoMatchError(err) || !errors.Is(err, discovery.ErrNotServed) {
			t.Errorf("absent type: %v", err)
		}
		for _, verb := range []string{"list", "watch"} {
			if got := len(cluster.Requests(verb, widgets)); got != 0 {
				t.Errorf("%s requests for a type that is not served: %d", verb, got)
			}
		}
		// Every 10 s for a minute and then every 50 s, because discovery can't be watched, and each group
		// version is a request.
		asked := len(cluster.Requests(fakecluster.VerbDiscover, schema.GroupVersionResource{}))
		if asked < 14 || asked > 24 {
			t.Errorf("%d discovery requests in 10 minutes", asked)
		}

		cluster.Serve(widgetType)
		create(t, cluster, widgets, "ns", "a")
		if err := waitFor(ctx, f, time.Minute, widgets); err != nil {
			t.Errorf("after the type is served: %v", err)
		}
		synctest.Wait()
		if got := events.take(); len(got) != 1 {
			t.Errorf("events: %q", got)
		}
		shutdown(t, f)
	})
}

func TestDiscovery_NewTypeIsNoticedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(blockType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.ForResource(widgets)
		start(ctx, f)
		cluster.Serve(widgetType)
		begun := time.Now()
		if err := f.WaitForSync(ctx, dynamicinformer.WithResources(widgets)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took > 1100*time.Millisecond {
			t.Errorf("synced after %v, want 1.1 s at most", took)
		}
		shutdown(t, f)
	})
}

func TestDiscovery_NotServedAnswersHaveReasons(t *testing.T) {
	readOnly := widgetType
	readOnly.Verbs = []string{"get", "list"}
	other := widgetType
	other.GVR.Version = "v2"
	for _, tc := range []struct {
		name   string
		serve  fakecluster.Type
		want   status.Reason
		within string
		state  status.State // Readyz does not wait for a type that is not served
	}{
		{"not watchable", readOnly, status.ReasonVerbNotSupported, "; use WithPolling, if the type supports list", status.StateDegraded},
		{"another version", other, status.ReasonVersionNotServed, "it is served in v2", status.StateNotServed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				cluster := fakecluster.New(tc.serve)
				f := newFactory(t, cluster, withDiscovery(t, cluster))
				f.ForResource(widgets)
				start(ctx, f)
				err := waitFor(ctx, f, time.Second)
				if got := reasonOf(t, err); got != tc.want || !strings.Contains(err.Error(), tc.within) {
					t.Errorf("%s: %v", got, err)
				}
				if got := len(cluster.Requests("list", widgets)); got != 0 {
					t.Errorf("list requests: %d", got)
				}
				explains := strings.Contains(f.Explain(widgets).String(), "No list or watch is sent until the type is served.")
				ready, notServed := f.Readyz().Check(nil) == nil, tc.state == status.StateNotServed
				if s := f.Status()[0]; s.State != tc.state || ready != notServed || explains != notServed {
					t.Errorf("status %s, ready: %v\n%s", s, ready, f.Explain(widgets))
				}
				shutdown(t, f)
			})
		})
	}
}

func TestDiscovery_AFailureIsNotAnAbsentType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == fakecluster.VerbDiscover {
				return apierrors.NewServiceUnavailable("aggregated API is down")
			}
			return nil
		})
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.ForResource(widgets)
		start(ctx, f)
		err := waitFor(ctx, f, time.Second)
		if got := reasonOf(t, err); got != status.ReasonDiscoveryFailed || meta.IsNoMatchError(err) {
			t.Errorf("%s: %v", got, err)
		}
		cluster.Intercept(nil)
		if err := waitFor(ctx, f, time.Minute); err != nil {
			t.Errorf("after the failure: %v", err)
		}
		shutdown(t, f)
	})
}

func TestDiscovery_ClusterScopedIgnoresNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType, blockType)
		create(t, cluster, blocks, "", "b")
		create(t, cluster, widgets, "ns", "in")
		create(t, cluster, widgets, "other", "out")
		f := newFactory(t, cluster, withDiscovery(t, cluster), dynamicinformer.WithNamespace("ns"))
		clusterScoped := f.ForResource(blocks)
		namespaced := f.ForResource(widgets)
		start(ctx, f)
		if err := f.WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		if got := clusterScoped.Informer().GetStore().ListKeys(); len(got) != 1 || got[0] != "b" {
			t.Errorf("cluster-scoped keys: %q", got)
		}
		if got := namespaced.Informer().GetStore().ListKeys(); len(got) != 1 || got[0] != "ns/in" {
			t.Errorf("namespaced keys: %q", got)
		}
		shutdown(t, f)
	})
}

// A wait ends when the list is complete, at any moment.
func TestWaitForSync_DoesNotMissTheEndOfTheList(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	for range 500 {
		f := newFactory(t, cluster)
		f.ForResource(widgets)
		l := acquire(t, f, widgets)
		f.Start(t.Context())
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		var watching sync.WaitGroup
		watching.Go(func() {
			for now := range l.Watch(ctx) {
				if now.State == status.StateSynced {
					return
				}
			}
			t.Error("Watch has not told that it is synced")
		})
		if err := f.WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		watching.Wait()
		cancel()
		shutdown(t, f)
	}
}

// client-go's fakes lose events between a list and a watch, so WaitForSync waits for the watch. If a watch
// has no response, as with some proxies, the wait ends after a while.
func TestWaitForSync_WaitsForTheFirstWatchForALimitedTime(t *testing.T) {
	for name, tc := range map[string]struct {
		answer, takes time.Duration
		open          int
	}{
		"that is answered soon": {30 * time.Millisecond, 30 * time.Millisecond, 1},
		"that is not":           {time.Hour, 100 * time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
					if err := noWatchList(ctx, req); err != nil || req.Verb != "watch" {
						return err
					}
					timer := time.NewTimer(tc.answer)
					defer timer.Stop()
					select {
					case <-timer.C:
					case <-ctx.Done():
					}
					return nil
				})
				f := newFactory(t, cluster)
				f.ForResource(widgets)
				f.Start(t.Context())
				begun := time.Now()
				synced := f.DropIn().WaitForCacheSync(t.Context().Done())
				if took := time.Since(begun); !synced[widgets] || took != tc.takes {
					t.Errorf("synced %v after %v, want %v", synced, took, tc.takes)
				}
				if err := f.WaitForSync(t.Context()); err != nil {
					t.Error(err)
				}
				if got := cluster.OpenWatches(widgets); got != tc.open {
					t.Errorf("open watches = %d, want %d", got, tc.open)
				}
				shutdown(t, f)
			})
		})
	}
}

// The type is replaced after its list, while WaitForSync waits for the first watch.
func TestWaitForSync_TypeThatIsReplacedDuringTheFirstWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships")
		create(t, cluster, kindOf("ships"), "ns", "a")
		cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
			if err := noWatchList(ctx, req); err != nil || req.Verb != "watch" || req.GVR.Resource != "ships" {
				return err
			}
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return nil
		})
		f := cluster.factory(t)
		f.Start(t.Context())
		l := acquire(t, f, kindOf("ships"), dynamicinformer.WithAllowAbsent())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- l.WaitForSync(ctx) }()
		time.Sleep(50 * time.Millisecond)
		cluster.undefine("ships")
		time.Sleep(10 * time.Second)
		if len(done) > 0 {
			t.Error("the wait has ended without the type")
		}
		cluster.define("ships")
		if err := <-done; err != nil || ctx.Err() != nil {
			t.Errorf("%v, %v", err, ctx.Err())
		}
		shutdown(t, f)
	})
}

// The reason is the one that ended the wait, also if the type is served while WaitForSync returns.
func TestWaitForSync_FailFastReturnsOnlyLastingReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		f := cluster.factory(t)
		f.Start(t.Context())
		l := acquire(t, f, kindOf("ships"), dynamicinformer.WithAllowAbsent())
		for range 200 {
			time.Sleep(time.Minute)
			var waiting sync.WaitGroup
			for n := range 200 {
				waiting.Go(func() {
					for range n {
						runtime.Gosched()
					}
					if err := l.WaitForSync(t.Context(), dynamicinformer.WithFailFast()); err != nil && !reasonOf(t, err).Lasting() {
						t.Error(err)
					}
				})
			}
			cluster.define("ships")
			waiting.Wait()
			time.Sleep(time.Minute)
			cluster.undefine("ships")
		}
		shutdown(t, f)
	})
}

// The refusal of a list of all namespaces is no reason to give up: lists of those that are allowed follow.
func TestAllowedNamespaces_FailFastWaitsForThoseThatAreAllowed(t *testing.T) {
	inSet(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		cluster.Serve(namespaceType)
		labelNamespace(t, cluster, "a", "red")
		forbid(cluster, "")
		l := acquire(t, f, widgets, dynamicinformer.WithAllowedNamespaces())
		if err := l.WaitForSync(briefly(t), dynamicinformer.WithFailFast()); err != nil {
			t.Fatal(err)
		}
		if got := l.Status().Traffic.Failures; len(got) != 0 {
			t.Errorf("failures = %v", got)
		}
	})
}

// A user who may list no Namespace objects either gets the rule for these.
func TestAllowedNamespaces_FailFastWithoutNamespaceObjects(t *testing.T) {
	inSet(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		cluster.Serve(namespaceType)
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.GVR == namespaceType.GVR || req.GVR == widgets {
				return apierrors.NewForbidden(req.GVR.GroupResource(), "", errors.New(`User "bob" cannot list`))
			}
			return nil
		})
		l := acquire(t, f, widgets, dynamicinformer.WithAllowedNamespaces())
		err := l.WaitForSync(briefly(t), dynamicinformer.WithFailFast())
		if err == nil || !strings.Contains(err.Error(), `resources: ["namespaces"]`) {
			t.Errorf("error = %v", err)
		}
	})
}
