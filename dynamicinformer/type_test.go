package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// With a resolver without watches, a type is gone if two discovery answers do not have it and a request
// is NotFound.
func TestType_IsRemovedAndInstalledAgain(t *testing.T) {
	for _, policy := range []dynamicinformer.RemovalPolicy{dynamicinformer.EmitDeletes, dynamicinformer.KeepCache} {
		t.Run(policy.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType, blockType)
				f := newFactory(t, cluster, withDiscovery(t, cluster), dynamicinformer.WithRemovalPolicy(policy))
				f.Start(t.Context())
				create(t, cluster, widgets, "ns", "a")
				l := acquire(t, f, widgets)
				events := listen(t, l.Informer())
				if err := l.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				events.take()

				cluster.Withdraw(widgets)
				time.Sleep(4 * time.Second)
				if got := l.Status(); got.State != status.StateDegraded || got.Objects != 1 {
					t.Errorf("before the evidence: %+v", got)
				}
				time.Sleep(3 * time.Minute)
				checkGone(t, l)
				var want []string
				if policy == dynamicinformer.EmitDeletes {
					want = []string{"delete ns/a"}
				}
				if diff := cmp.Diff(want, events.take()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}

				cluster.Serve(widgetType)
				create(t, cluster, widgets, "ns", "b")
				if err := l.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				want = []string{"add ns/b"}
				if policy == dynamicinformer.KeepCache {
					want = []string{"delete ns/a", "add ns/b"}
				}
				if diff := cmp.Diff(want, events.take()); diff != "" {
					t.Errorf("events after the second installation (-want +got):\n%s", diff)
				}
				if got := l.Status(); got.State != status.StateSynced || got.Reason != "" || got.Evidence.Kind != "" {
					t.Errorf("after the second installation: %+v", got)
				}
				shutdown(t, f)
			})
		})
	}
}

// Objects that KeepCache has kept are not synced with the next type before its list is in the store, also
// if the two types can't be distinguished.
func TestType_KeptObjectsAreNotSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		f := newFactory(t, cluster, withDiscovery(t, cluster), dynamicinformer.WithRemovalPolicy(dynamicinformer.KeepCache))
		f.Start(t.Context())
		create(t, cluster, widgets, "ns", "a")
		l := acquire(t, f, widgets)
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		cluster.Withdraw(widgets)
		time.Sleep(3 * time.Minute)
		checkGone(t, l)
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == "list" || req.Verb == "watch" {
				return apierrors.NewServiceUnavailable("not yet")
			}
			return nil
		})
		cluster.Serve(widgetType)
		const objects = 500
		for i := range objects {
			create(t, cluster, widgets, "ns", fmt.Sprint("b", i))
		}
		time.Sleep(time.Minute)
		if now := l.Status(); now.State == status.StateSynced {
			t.Errorf("before the list: %+v", now)
		}
		if err := waitFor(t.Context(), f, time.Minute); err == nil {
			t.Error("synced before the list")
		}
		cluster.Intercept(nil)
		if err := waitFor(t.Context(), f, 2*time.Minute); err != nil {
			t.Fatal(err)
		}
		if keys := l.Informer().GetStore().ListKeys(); len(keys) != objects {
			t.Errorf("synced with %d objects in the store, want %d", len(keys), objects)
		}
		shutdown(t, f)
	})
}

// briefly returns a context that ends in a minute, for waits that must end earlier.
func briefly(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// checkGone checks that the type of l is gone.
func checkGone(t *testing.T, l *dynamicinformer.Lease) {
	t.Helper()
	now := l.Status()
	if now.State != status.StateNotServed || now.Evidence.Kind != discovery.NotListed || now.StaleSince.IsZero() != (now.Objects == 0) {
		t.Errorf("status: %+v", now)
	}
	if err := l.WaitForSync(briefly(t), dynamicinformer.WithFailFast()); reasonOf(t, err) != status.ReasonNotFound {
		t.Errorf("wait: %v", err)
	}
	if !cache.IsDone(l.HasSyncedChecker()) {
		t.Error("HasSynced is false after the first list")
	}
}

func TestType_ForbiddenIsRetriedSlowlyAndOnRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		forbidden := apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("no"))
		answer(cluster, forbidden)
		f := newFactory(t, cluster)
		f.Start(t.Context())
		l := acquire(t, f, widgets)
		if err := l.WaitForSync(briefly(t), dynamicinformer.WithFailFast()); !apierrors.IsForbidden(err) || reasonOf(t, err) != status.ReasonForbidden {
			t.Errorf("wait: %v", err)
		}
		time.Sleep(time.Hour)
		if got := len(cluster.Requests("list", widgets)); got > 150 {
			t.Errorf("lists in an hour: %d", got)
		}
		now := l.Status()
		if now.State != status.StateDegraded || now.NextRetry.IsZero() || time.Until(now.NextRetry) > 36*time.Second || !now.StaleSince.IsZero() {
			t.Errorf("status: %+v", now)
		}
		cluster.Intercept(nil)
		checkRetry(t, l)

		shutdown(t, f)
	})
}

// The cache is kept, and the status has the time since then.
func TestType_KeepsItsCacheWhenPermissionsAreRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		forbidden := apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("no"))
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster)
		f.Start(t.Context())
		l := acquire(t, f, widgets)
		synctest.Wait()
		revoked := time.Now()
		answer(cluster, forbidden)
		cluster.CloseWatches(widgets)
		time.Sleep(time.Hour)
		now := l.Status()
		if now.State != status.StateDegraded || now.Reason != status.ReasonForbidden || now.Objects != 1 || now.Verb != "watch" {
			t.Errorf("status: %+v", now)
		}
		if late := now.StaleSince.Sub(revoked); late < 0 || late > 2*time.Second {
			t.Errorf("stale since %v after the revocation", late)
		}
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Errorf("wait after the first sync: %v", err)
		}
		shutdown(t, f)
	})
}

func TestLease_WatchReturnsTheLastState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		l := acquire(t, f, widgets)
		ctx, cancel := context.WithCancel(t.Context())
		watch, stop := iter.Pull(l.Watch(t.Context()))
		defer stop()
		others, stopOthers := iter.Pull(l.Watch(ctx))
		defer stopOthers()
		if first, open := others(); !open || first.State != status.StateUnknown {
			t.Errorf("another loop: %s", first.State)
		}
		next := func() status.State {
			synctest.Wait()
			now, _ := watch()
			return now.State
		}
		if got := next(); got != status.StateUnknown {
			t.Errorf("before Start: %s", got)
		}
		f.Start(t.Context())
		if got := next(); got != status.StateSynced { // without other states before
			t.Errorf("after Start: %s", got)
		}
		answer(cluster, apierrors.NewServiceUnavailable("down"))
		cluster.CloseWatches(widgets)
		time.Sleep(time.Second)
		if got := next(); got != status.StateDegraded {
			t.Errorf("during the failure: %s", got)
		}
		cluster.Intercept(nil)
		time.Sleep(time.Minute)
		if got := next(); got != status.StateSynced {
			t.Errorf("after the failure: %s", got)
		}
		others() // states that the loop has not received
		cancel()
		if _, open := others(); open {
			t.Error("the loop continues after the end of its context")
		}
		l.Release()
		if got := next(); got != status.StateStopped {
			t.Errorf("after Release: %s", got)
		}
		if _, open := watch(); open {
			t.Error("the loop continues after the end of the informer")
		}
		shutdown(t, f)
	})
}

func TestVersionPolicy_DeterminesTheVersionOfRequests(t *testing.T) {
	v2 := widgets.GroupResource().WithVersion("v2")
	typeV2 := widgetType
	typeV2.GVR = v2
	for _, tc := range []struct {
		policy        discovery.VersionPolicy
		text          string
		before, after string // before and after v2 is also served
	}{
		{discovery.Exact(), "Exact", "v1", "v1"},
		{discovery.FollowPreferred(), "FollowPreferred", "v1", "v1"}, // the cluster prefers the first version
		{discovery.FirstOf("v2", "v1"), "FirstOf(v2, v1)", "v1", "v2"},
	} {
		t.Run(tc.text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				f := newFactory(t, cluster, withDiscovery(t, cluster))
				f.Start(t.Context())
				l := acquire(t, f, widgets, dynamicinformer.WithVersionPolicy(tc.policy))
				if err := l.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				if got := l.Resource().GVR.Version; got != tc.before || l.Status().VersionPolicy.String() != tc.text {
					t.Errorf("in %s under %s, want %s", got, l.Status().VersionPolicy, tc.before)
				}
				cluster.Serve(typeV2)
				time.Sleep(2 * time.Minute)
				if got := l.Resource().GVR.Version; got != tc.after {
					t.Errorf("later in %s, want %s", got, tc.after)
				}
				for version, want := range map[string]int{"v1": 1, "v2": 1} {
					if version != tc.after {
						want = 0
					}
					if got := cluster.OpenWatches(widgets.GroupResource().WithVersion(version)); got != want {
						t.Errorf("open watches in %s: %d, want %d", version, got, want)
					}
				}
				shutdown(t, f)
			})
		})
	}
}

func TestVersionPolicy_ALeaseHasOneVersion(t *testing.T) {
	f := newFactory(t, fakecluster.New(widgetType))
	_, err := f.Acquire(t.Context(), widgets, dynamicinformer.WithVersionPolicy(discovery.EveryVersion()))
	if wrong, is := errors.AsType[*dynamicinformer.OptionError](err); !is || wrong.Option != "WithVersionPolicy" || wrong.Value != "EveryVersion" {
		t.Errorf("Acquire: %v", err)
	}
}

func TestVersionPolicy_LeasesWithDifferentPoliciesDoNotShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		acquire(t, f, widgets)
		acquire(t, f, widgets, dynamicinformer.WithVersionPolicy(discovery.FollowPreferred()))
		acquire(t, f, widgets, dynamicinformer.WithVersionPolicy(discovery.FollowPreferred()))
		if err := f.WaitForSync(t.Context(), dynamicinformer.WithResources(widgets)); err != nil {
			t.Error(err)
		}
		if got := cluster.OpenWatches(widgets); got != 2 {
			t.Errorf("open watches = %d, want 2", got)
		}
		shutdown(t, f)
	})
}

// As in client-go, whose informer then calls its default handler.
func TestInformer_NilWatchErrorHandlerIsTheUsualOne(t *testing.T) {
	for name, set := range map[string]func(cache.SharedIndexInformer) error{
		"SetWatchErrorHandler":            func(i cache.SharedIndexInformer) error { return i.SetWatchErrorHandler(nil) },
		"SetWatchErrorHandlerWithContext": func(i cache.SharedIndexInformer) error { return i.SetWatchErrorHandlerWithContext(nil) },
		"after another one": func(i cache.SharedIndexInformer) error {
			if err := i.SetWatchErrorHandler(func(*cache.Reflector, error) { panic("called") }); err != nil {
				return err
			}
			return i.SetWatchErrorHandlerWithContext(nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				answer(cluster, apierrors.NewServiceUnavailable("down"))
				f := newFactory(t, cluster)
				if err := set(f.ForResource(widgets).Informer()); err != nil {
					t.Fatal(err)
				}
				ctx, failures := withLog(t, t.Context())
				start(ctx, f)
				time.Sleep(time.Second)
				if len(failures()) == 0 {
					t.Error("the failure is not logged")
				}
				shutdown(t, f)
			})
		})
	}
}

// A watch error handler for client-go's informer gets the same arguments.
func TestInformer_CallsTheWatchErrorHandlerOfTheUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		answer(cluster, apierrors.NewServiceUnavailable("down"))
		f := newFactory(t, cluster)
		informer := f.ForResource(widgets).Informer()
		var calls atomic.Int32
		err := informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
			calls.Add(1)
			cache.DefaultWatchErrorHandler(ctx, r, err) // uses the name of the reflector
			if !apierrors.IsServiceUnavailable(err) {
				t.Errorf("error: %v", err)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, failures := withLog(t, t.Context())
		start(ctx, f)
		time.Sleep(time.Second)
		if calls.Load() < 2 || len(failures()) == 0 {
			t.Errorf("called %d times, logged %d", calls.Load(), len(failures()))
		}
		if err := informer.SetWatchErrorHandler(func(*cache.Reflector, error) {}); err == nil {
			t.Error("no error for a handler that is set while the informer runs")
		}
		shutdown(t, f)
	})
}

// The first list hangs, and the type is removed and installed again. It is listed at once, and not after
// the next question to discovery some minutes later.
func TestType_IsRemovedBeforeItsFirstList(t *testing.T) {
	for range 10 {
		synctest.Test(t, func(t *testing.T) {
			cluster := fakecluster.New(widgetType, blockType)
			cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
				if req.GVR == widgets && req.Verb != fakecluster.VerbDiscover {
					<-ctx.Done()
				}
				return nil
			})
			f := newFactory(t, cluster, withDiscovery(t, cluster))
			f.Start(t.Context())
			l := acquire(t, f, widgets)
			time.Sleep(time.Second)
			cluster.Withdraw(widgets)
			time.Sleep(5 * time.Minute)
			cluster.Intercept(nil)
			cluster.Serve(widgetType)
			begun := time.Now()
			if err := l.WaitForSync(t.Context()); err != nil || time.Since(begun) > 2*time.Minute {
				t.Errorf("synced after %v: %v", time.Since(begun), err)
			}
			shutdown(t, f)
		})
	}
}

// A transform may return objects of any type. Reflectors accept deletions of one type only.
func TestType_DeletionsOfTransformedObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster, withDiscovery(t, cluster), dynamicinformer.WithTransform(func(obj any) (any, error) {
			object, err := meta.Accessor(obj)
			if err != nil {
				return obj, nil //nolint:nilerr // not an object
			}
			slim := &metav1.PartialObjectMetadata{}
			slim.SetName(object.GetName())
			slim.SetNamespace(object.GetNamespace())
			slim.SetUID(object.GetUID())
			slim.SetResourceVersion(object.GetResourceVersion())
			return slim, nil
		}))
		f.Start(t.Context())
		l := acquire(t, f, widgets)
		events := listen(t, l.Informer())
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		cluster.Withdraw(widgets)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"add ns/a", "delete ns/a"}, events.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if got := l.Informer().GetStore().ListKeys(); len(got) != 0 {
			t.Errorf("objects in the store: %v", got)
		}
		shutdown(t, f)
	})
}

func TestWaitForSync_FailFastReturnsForTheFirstLastingReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
			if req.GVR == blocks {
				<-ctx.Done()
				return ctx.Err()
			}
			return apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("no"))
		})
		f := newFactory(t, cluster)
		f.Start(t.Context())
		f.ForResource(blocks)
		f.ForResource(widgets)
		begun := time.Now()
		err := f.WaitForSync(briefly(t), dynamicinformer.WithFailFast(), dynamicinformer.WithResources(blocks, widgets))
		if !apierrors.IsForbidden(err) || time.Since(begun) > time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		shutdown(t, f)
	})
}

// A resolver that starts after the end of a type has no event for it. The type is gone after two NotServed
// answers and a NotFound.
func TestType_EndBeforeTheStartOfTheResolver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		var up atomic.Bool
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == fakecluster.VerbDiscover && req.GVR.Empty() && !up.Load() {
				return apierrors.NewServiceUnavailable("not yet")
			}
			return nil
		})
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		l := acquire(t, f, widgets)
		events := listen(t, l.Informer())
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cluster.Withdraw(widgets)
		up.Store(true)
		time.Sleep(10 * time.Second)
		if got := l.Status(); got.State != status.StateDegraded || got.Objects != 1 {
			t.Errorf("after one answer: %s, %d objects", got.State, got.Objects)
		}
		time.Sleep(5 * time.Minute)
		checkGone(t, l)
		if diff := cmp.Diff([]string{"add ns/a", "delete ns/a"}, events.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		shutdown(t, f)
	})
}

// A type that was admitted while CRDs were forbidden gets the UID of its CRD as soon as they are permitted, and with
// it, another CRD of that name is noticed.
func TestType_LearnsItsCRDLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.hideCRDs(true)
		cluster.define("ships")
		f := cluster.factory(t)
		f.Start(t.Context())
		l := acquire(t, f, kindOf("ships"))
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if got := l.Resource(); got.CRDUID != "" {
			t.Fatalf("the UID %q is known while CRDs are forbidden", got.CRDUID)
		}
		cluster.hideCRDs(false)
		time.Sleep(2 * time.Minute) // the interval of forbidden lists is a minute by now
		if got, want := string(l.Resource().CRDUID), cluster.has("ships"); got != want {
			t.Errorf("the UID is %q, and the CRD has %q", got, want)
		}
		if got := l.Status(); got.State != status.StateSynced || got.Generation != 0 {
			t.Errorf("after the CRD is known: %+v", got)
		}

		cluster.hideCRDs(true)
		time.Sleep(time.Minute)
		cluster.define("ships")
		time.Sleep(time.Minute)
		cluster.hideCRDs(false)
		time.Sleep(5 * time.Minute) // the interval of forbidden lists has grown
		if got := l.Status(); got.State != status.StateSynced || got.Generation != 1 {
			t.Errorf("after another CRD has the name: %+v", got)
		}
		shutdown(t, f)
	})
}

// The resolver of a factory that begins with more than four types asks about all types. Its informers learn their CRDs
// later too.
func TestType_ManyTypesLearnTheirCRDsLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.hideCRDs(true)
		f := cluster.factory(t)
		for i := range 5 {
			name := fmt.Sprint("ships", i)
			cluster.define(name)
			f.ForResource(kindOf(name))
		}
		f.Start(t.Context())
		if err := f.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		cluster.hideCRDs(false)
		time.Sleep(2 * time.Minute) // the interval of forbidden lists is a minute by now
		for _, now := range f.Status() {
			if got, want := string(now.Resource.CRDUID), cluster.has(now.GVR.Resource); got != want {
				t.Errorf("%s: the UID is %q, and the CRD has %q", now.GVR.Resource, got, want)
			}
		}
		shutdown(t, f)
	})
}
