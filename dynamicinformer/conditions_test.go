package dynamicinformer_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

// withLog returns ctx with a logger at the default verbosity, and a function that returns the error
// lines of that logger.
func withLog(t *testing.T, ctx context.Context) (_ context.Context, failures func() []ktesting.LogEntry) {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
	sink := logger.GetSink().(ktesting.Underlier)
	return klog.NewContext(ctx, logger), func() []ktesting.LogEntry {
		return slices.DeleteFunc(sink.GetBuffer().Data(), func(e ktesting.LogEntry) bool { return e.Type != ktesting.LogError })
	}
}

// reasonsIn returns the reasons in lines.
func reasonsIn(lines []ktesting.LogEntry) []any {
	var reasons []any
	for _, line := range lines {
		if i := slices.Index(line.ParameterKVList, any("reason")); i >= 0 {
			reasons = append(reasons, line.ParameterKVList[i+1])
		}
	}
	return reasons
}

func TestLog_OneLineForEachReasonNotForEachRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, failures := withLog(t, t.Context())
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		f.ForResource(widgets)
		answer(cluster, apierrors.NewForbidden(widgets.GroupResource(), "", nil))
		start(ctx, f)
		time.Sleep(10 * time.Minute)
		answer(cluster, apierrors.NewServiceUnavailable("down"))
		time.Sleep(10 * time.Minute)
		cluster.Intercept(nil)
		if err := f.WaitForSync(ctx); err != nil {
			t.Fatal(err)
		}
		// After a success, the same reason is logged again.
		answer(cluster, apierrors.NewServiceUnavailable("down"))
		cluster.CloseWatches(widgets)
		time.Sleep(10 * time.Minute)

		if got := len(cluster.Requests("list", widgets)); got < 20 {
			t.Errorf("only %d retries", got)
		}
		want := []any{status.ReasonForbidden, status.ReasonUnavailable, status.ReasonUnavailable}
		if diff := cmp.Diff(want, reasonsIn(failures())); diff != "" {
			t.Errorf("reasons logged (-want +got):\n%s", diff)
		}
		shutdown(t, f)
	})
}

// Since and Attempts begin again after a successful request.
func TestNotSyncedError_CountsFromTheFirstConsecutiveFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		f.ForResource(widgets)
		answer(cluster, apierrors.NewServiceUnavailable("down"))
		begun := time.Now()
		start(ctx, f)
		first := notSynced(t, waitFor(ctx, f, time.Minute))
		if !first.Since.Equal(begun) || first.Attempts < 4 {
			t.Errorf("since %v with %d attempts, want since %v", first.Since, first.Attempts, begun)
		}
		if first.Verb != "list" || first.Namespace != "" || first.GVR != widgets {
			t.Errorf("error: %+v", first)
		}
		later := notSynced(t, waitFor(ctx, f, time.Minute))
		if !later.Since.Equal(begun) || later.Attempts <= first.Attempts {
			t.Errorf("later: since %v with %d attempts", later.Since, later.Attempts)
		}
		shutdown(t, f)
	})
}

// A successful watch-list ends the failure of a watch.
func TestLog_EachOutageOfAWatchIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, failures := withLog(t, t.Context())
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		f.ForResource(widgets)
		start(ctx, f)
		for range 3 {
			answer(cluster, apierrors.NewServiceUnavailable("down"))
			cluster.CloseWatches(widgets)
			time.Sleep(time.Hour)
			cluster.Intercept(nil)
			time.Sleep(time.Hour)
		}
		want := []any{status.ReasonUnavailable, status.ReasonUnavailable, status.ReasonUnavailable}
		if diff := cmp.Diff(want, reasonsIn(failures())); diff != "" {
			t.Errorf("reasons logged (-want +got):\n%s", diff)
		}
		shutdown(t, f)
	})
}

// A NotServed answer ends when discovery reports that the type is served, also if the list then hangs.
func TestNotSyncedError_NotServedEndsWhenTheTypeIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(blockType)
		f := newFactory(t, cluster, withDiscovery(t, cluster), dynamicinformer.WithNamespace("ns"))
		f.ForResource(widgets)
		time.Sleep(time.Hour) // without a wait
		start(ctx, f)
		clusterScoped := widgetType
		clusterScoped.Namespaced = false
		cluster.Serve(clusterScoped)
		cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
			if req.Verb != fakecluster.VerbDiscover {
				<-ctx.Done()
			}
			return nil
		})
		got := notSynced(t, waitFor(ctx, f, 30*time.Second))
		if got.Reason != status.ReasonSyncing || got.Err != nil || got.Namespace != "" {
			t.Errorf("while the list hangs: %+v", got)
		}
		if waited := time.Since(got.Since); waited > 2*time.Minute {
			t.Errorf("syncing for %v, including an hour before Start", waited)
		}
		shutdown(t, f)
	})
}

// An expired version is not a failure, unless versions expire repeatedly.
func TestStatus_AnExpiredVersionIsNotAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		f := newFactory(t, cluster)
		l := syncedLease(t, f)
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == "list" {
				time.Sleep(time.Second) // otherwise a status may be replaced before it is received
			}
			return nil
		})
		for i := range 3 {
			var states []status.State
			ctx, enough := context.WithCancel(t.Context())
			seen := make(chan struct{})
			go func() {
				defer close(seen)
				for now := range l.Watch(ctx) {
					states = append(states, now.State)
				}
			}()
			synctest.Wait()
			create(t, cluster, blocks, "", "a"+string(rune('0'+i))) // the watch has no event for it
			cluster.Expire(widgets)
			cluster.CloseWatches(widgets)
			time.Sleep(10 * time.Second)
			enough()
			<-seen
			often := i == 2                                              // soon after the previous expiry
			if !often && slices.Contains(states, status.StateDegraded) { // otherwise the loop may receive only the last state
				t.Errorf("round %d: %v", i, states)
			}
			if got := l.Status(); (got.Traffic.Failures != nil) != often || got.State != status.StateSynced {
				t.Errorf("round %d: %s, failures %v", i, got.State, got.Traffic.Failures)
			}
			if i == 0 {
				time.Sleep(2 * time.Minute)
			}
		}
		shutdown(t, f)
	})
}

// The server of a type may have changed when it rejects a watch. A resolver without watches polls at once,
// and does not poll again for each rejected watch.
func TestType_ARejectedWatchMakesTheResolverPollOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		syncedLease(t, f)
		polls := func(during time.Duration) int {
			before := len(cluster.Requests(fakecluster.VerbDiscover, schema.GroupVersionResource{}))
			time.Sleep(during)
			return len(cluster.Requests(fakecluster.VerbDiscover, schema.GroupVersionResource{})) - before
		}
		time.Sleep(2 * time.Minute)
		for polls(time.Second) > 0 { // so that the next poll is a minute away
		}
		for polls(time.Second) == 0 {
		}
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == "watch" {
				return apierrors.NewMethodNotSupported(widgets.GroupResource(), "watch")
			}
			return nil
		})
		cluster.CloseWatches(widgets)
		if got := polls(2 * time.Second); got != 1 {
			t.Errorf("polls within 2 s of the rejected watch: %d, want 1", got)
		}
		time.Sleep(2 * time.Minute)
		if got := polls(10 * time.Minute); got > 12 {
			t.Errorf("polls within 10 minutes, while watches are rejected: %d", got)
		}
		shutdown(t, f)
	})
}

// While requests are NotFound, and discovery does not explain that, a resolver without watches polls
// more often. They may be those in one namespace of a set.
func TestType_AnUnexplainedNotFoundMakesTheResolverPoll(t *testing.T) {
	for name, opts := range map[string][]dynamicinformer.LeaseOption{"all": nil, "in one namespace": {dynamicinformer.WithNamespaces("a", "b")}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { unexplained(t, apierrors.NewNotFound(widgets.GroupResource(), ""), opts) })
		})
	}
}

// So does a response with objects in namespaces of a type that discovery reports as cluster-scoped.
func TestType_AnotherScopeMakesTheResolverPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { unexplained(t, source.ErrWrongScope, nil) })
}

func unexplained(t *testing.T, failure error, opts []dynamicinformer.LeaseOption) {
	t.Helper()
	cluster := fakecluster.New(widgetType)
	f := newFactory(t, cluster, withDiscovery(t, cluster))
	syncedLease(t, f, opts...)
	polls := func() int {
		before := len(cluster.Requests(fakecluster.VerbDiscover, schema.GroupVersionResource{}))
		time.Sleep(20 * time.Second)
		return len(cluster.Requests(fakecluster.VerbDiscover, schema.GroupVersionResource{})) - before
	}
	time.Sleep(time.Minute)
	if got := polls(); got > 1 {
		t.Errorf("polls within 20 s, without failures: %d", got)
	}
	cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
		if req.Verb == fakecluster.VerbDiscover || req.Namespace == "b" {
			return nil
		}
		return failure
	})
	cluster.CloseWatches(widgets)
	time.Sleep(time.Second)
	if got := polls(); got < 3 {
		t.Errorf("polls within 20 s, while requests fail with %v: %d", failure, got)
	}
	cluster.Intercept(nil)
	time.Sleep(2 * time.Minute)
	if got := polls(); got > 1 {
		t.Errorf("polls within 20 s, long after: %d", got)
	}
	shutdown(t, f)
}

// Without namespaces, there are no requests whose success ends earlier failures.
func TestNamespaces_FailuresEndWithTheLastNamespace(t *testing.T) {
	inSet(t, func(in bubble) {
		t, f := in.T, in.factory
		l := acquire(t, f, widgets, dynamicinformer.WithNamespaces("a"))
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		in.cluster.Intercept(func(context.Context, fakecluster.Request) error { return apierrors.NewServiceUnavailable("down") })
		in.cluster.CloseWatches(widgets)
		time.Sleep(time.Second)
		if i := l.Status(); i.State != status.StateDegraded {
			t.Errorf("status: %s", i)
		}
		if err := l.SetNamespaces(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if i := l.Status(); i.State != status.StateSynced || i.Objects != 0 {
			t.Errorf("status: %s", i)
		}
	})
}
