package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// logging returns a context with a logger of this verbosity, and a function that returns the lines of
// informers since its last call, with their reasons.
func logging(t *testing.T, verbosity int) (_ context.Context, lines func() []string) {
	t.Helper()
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(verbosity)))
	buffer, read := logger.GetSink().(ktesting.Underlier).GetBuffer(), 0
	return klog.NewContext(t.Context(), logger), func() (lines []string) {
		synctest.Wait()
		all := buffer.Data()
		defer func() { read = len(all) }()
		for _, entry := range all[read:] {
			values := append(slices.Clone(entry.WithKVList), entry.ParameterKVList...)
			value := func(key string) string {
				if i := slices.Index(values, any(key)); i >= 0 {
					return fmt.Sprint(values[i+1])
				}
				return ""
			}
			if value("resource") == "widgets.v1.example.com" {
				line := entry.Message + " " + value("reason") + value("evidence") + value("objects") + value("linesLeftOut")
				if namespace := value("namespace"); namespace != "" {
					line += " in " + namespace
				}
				lines = append(lines, line)
			}
		}
		return lines
	}
}

// The log has a line for each change, and none for a retry.
func TestLog_HasALineForEachChangeOfAType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := logging(t, 2)
		cluster := fakecluster.New(blockType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		check := func(when string, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, lines()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", when, diff)
			}
		}
		l := acquire(t, f, widgets, dynamicinformer.WithAllowAbsent())
		f.Start(ctx)
		time.Sleep(time.Hour)
		check("not served", "Informer begins ", "Waiting for the resource before listing it NotFound")

		cluster.Serve(widgetType)
		create(t, cluster, widgets, "ns", "a")
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("served", "Recovered NotFound", "Listed 1")

		answer(cluster, apierrors.NewServiceUnavailable("down"))
		cluster.CloseWatches(widgets)
		time.Sleep(time.Hour)
		check("down", "Failed to list or watch, retrying Unavailable")
		cluster.Intercept(nil)
		time.Sleep(time.Hour)
		check("up", "Recovered Unavailable")

		cluster.Withdraw(widgets)
		time.Sleep(time.Hour)
		got := lines()
		if len(got) == 0 || len(got) > 3 || got[len(got)-1] != "The resource is gone, waiting for it to come back NotListed" {
			t.Errorf("after the end of the type: %q", got)
		}
		cluster.Serve(widgetType)
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		back := lines()
		slices.Sort(back) // two goroutines write the lines, at the same time
		if diff := cmp.Diff([]string{"Listed 0", "The resource is there again "}, back); diff != "" {
			t.Errorf("back (-want +got):\n%s", diff)
		}
		shutdown(t, f)
		check("ended", "Informer has ended ")
	})
}

// An ambiguous name has a line in the log of its informer, and in that of Follow.
func TestLog_AmbiguousNameHasOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
		cluster := newCRDCluster()
		cluster.define("ships", shortNames("vessel"))
		f := cluster.factory(t)
		f.Start(ctx)
		acquireRef(t, f, "vessel")
		followed := make(chan error, 1)
		go func() {
			followed <- f.Follow(ctx, discovery.Selector{Names: []string{"vessel"}}, dynamicinformer.FollowFuncs{})
		}()
		time.Sleep(time.Minute)
		for range 3 {
			cluster.define("boats", shortNames("vessel"))
			for range 5 {
				time.Sleep(time.Minute)
				cluster.change("boats", label(fmt.Sprint(time.Now())))
				cluster.change("ships", label(fmt.Sprint(time.Now())))
			}
			cluster.undefine("boats")
			time.Sleep(time.Minute)
		}
		cancel()
		if err := <-followed; err != nil {
			t.Error(err)
		}
		shutdown(t, f)
		want := map[string]int{
			"The name does not mean the resource alone, continuing with it": 3, "Recovered": 3,
			"Can't decide whether to follow the resource, nothing changes": 6, // three times for each of the two
		}
		lines := map[string]int{}
		for _, entry := range logger.GetSink().(ktesting.Underlier).GetBuffer().Data() {
			if want[entry.Message] > 0 {
				lines[entry.Message]++
			}
		}
		if diff := cmp.Diff(want, lines); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
}

// The status names the other objects.
func TestLog_HasALineForTheFirstObjectThatIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := logging(t, 0)
		cluster := fakecluster.New(widgetType)
		client := cluster.Resource(widgets).Namespace("ns")
		bad := func(name string) {
			if _, err := client.Create(t.Context(), newObject(name, map[string]string{"bad": "true"}), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		bad("a")
		f := newFactory(t, cluster)
		l := acquire(t, f, widgets, transformed(func(any) (any, error) { panic(errBad) }))
		f.Start(ctx)
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		bad("b")
		if diff := cmp.Diff([]string{"Objects are left out TransformFailed"}, lines()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if text := l.Status().Message(); !strings.Contains(text, ", log_test.go:") {
			t.Errorf("the place of the panic is missing: %s", text)
		}
		for _, name := range []string{"a", "b"} {
			if err := client.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff([]string{"No object is left out any more "}, lines()); diff != "" {
			t.Errorf("after the deletions (-want +got):\n%s", diff)
		}
		shutdown(t, f)
	})
}

// A failure in one namespace of a set begins and ends by itself: it says nothing about a later failure in all of them.
func TestLog_HasLinesForEachNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := logging(t, 0)
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster, dynamicinformer.WithNamespaces("a", "b"))
		l := acquire(t, f, widgets)
		f.Start(ctx)
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		fails := func(namespace string) fakecluster.Interceptor {
			return func(_ context.Context, req fakecluster.Request) error {
				if namespace != "" && req.Namespace != namespace {
					return nil
				}
				return apierrors.NewServiceUnavailable("down")
			}
		}
		for _, step := range []struct {
			when   string
			faults fakecluster.Interceptor
			want   []string
		}{
			{"one fails", fails("b"), []string{"Failed to list or watch, retrying Unavailable in b"}},
			{"it recovers", nil, []string{"Recovered Unavailable in b"}},
			{"it fails again", fails("b"), []string{"Failed to list or watch, retrying Unavailable in b"}},
			{"both fail", fails(""), []string{"Failed to list or watch, retrying Unavailable"}},
			{"both recover", nil, []string{"Recovered Unavailable", "Recovered Unavailable in b"}},
		} {
			cluster.Intercept(step.faults)
			cluster.CloseWatches(widgets)
			time.Sleep(time.Hour)
			got := lines()
			slices.Sort(got)
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step.when, diff)
			}
		}
		shutdown(t, f)
	})
}

// The handler of a user replaces the log lines about errors, as in client-go.
func TestLog_HasNoErrorThatAUsersHandlerGets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := logging(t, 2)
		cluster := fakecluster.New(widgetType)
		answer(cluster, apierrors.NewServiceUnavailable("down"))
		var failures atomic.Int32
		f := newFactory(t, cluster, dynamicinformer.WithWatchErrorHandler(func(context.Context, *cache.Reflector, error) { failures.Add(1) }))
		acquire(t, f, widgets)
		f.Start(ctx)
		time.Sleep(time.Minute)
		if diff := cmp.Diff([]string{"Informer begins "}, lines()); diff != "" || failures.Load() == 0 {
			t.Errorf("%d calls of the handler, lines (-want +got):\n%s", failures.Load(), diff)
		}
		shutdown(t, f)
	})
}

// The number of lines for a type that changes often is limited.
func TestLog_LinesPerMinuteAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := logging(t, 0)
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		l := acquire(t, f, widgets)
		f.Start(ctx)
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 59 {
			answer(cluster, apierrors.NewServiceUnavailable("down"))
			cluster.CloseWatches(widgets)
			time.Sleep(time.Second / 2)
			cluster.Intercept(nil)
			l.Retry()
			time.Sleep(time.Second / 2)
		}
		if got := l.Status().Traffic.Failures[status.ReasonUnavailable]; got < 59 {
			t.Errorf("failures: %d", got)
		}
		if got := len(lines()); got != 10 {
			t.Errorf("lines in a minute: %d, want 10", got)
		}
		time.Sleep(time.Minute)
		answer(cluster, apierrors.NewServiceUnavailable("down"))
		cluster.CloseWatches(widgets)
		time.Sleep(time.Second)
		got := lines()
		if len(got) != 1 || len(got[0]) <= len("Failed to list or watch, retrying Unavailable") {
			t.Errorf("the next line, with the number of omitted lines: %q", got)
		}
		cluster.Intercept(nil)
		l.Retry()
		time.Sleep(time.Minute)
		for range 10 {
			answer(cluster, apierrors.NewServiceUnavailable("down"))
			cluster.CloseWatches(widgets)
			time.Sleep(time.Second)
			cluster.Intercept(nil)
			l.Retry()
			time.Sleep(time.Second)
		}
		answer(cluster, apierrors.NewInternalError(errors.New("broken")))
		cluster.CloseWatches(widgets)
		time.Sleep(time.Second)
		lines()
		time.Sleep(time.Hour)
		if got := lines(); len(got) != 1 || !strings.HasPrefix(got[0], "Failed to list or watch, retrying ") {
			t.Errorf("the line that the limit has delayed: %q", got)
		}
		cluster.Intercept(nil)
		shutdown(t, f)
	})
}

// An informer without a factory has the lines of one in a factory.
func TestLog_OfAnInformerWithoutAFactory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := logging(t, 0)
		ctx, cancel := context.WithCancel(ctx)
		cluster := fakecluster.New(widgetType)
		informer := dynamicinformer.NewFilteredDynamicInformer(cluster, widgets, "", 0, nil, nil).Informer()
		if err := informer.SetTransform(func(any) (any, error) { return nil, errBad }); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { defer close(ended); informer.RunWithContext(ctx) }()
		time.Sleep(time.Minute)
		for range 2 {
			answer(cluster, apierrors.NewServiceUnavailable("down"))
			cluster.CloseWatches(widgets)
			time.Sleep(time.Hour)
			cluster.Intercept(nil)
			time.Sleep(time.Hour)
			if diff := cmp.Diff([]string{"Failed to list or watch, retrying Unavailable", "Recovered Unavailable"}, lines()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		create(t, cluster, widgets, "ns", "a")
		if diff := cmp.Diff([]string{"Objects are left out TransformFailed"}, lines()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		cancel()
		<-ended
	})
}

// A server that ends each watch at once is a failure with one line, though each watch succeeds at first.
func TestLog_HasALineForWatchesThatEndAtOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		opts []dynamicinformer.Option
		most int // a set has a line for all namespaces, and for each that fails before or after the others
	}{"all namespaces": {nil, 1}, "a set": {[]dynamicinformer.Option{dynamicinformer.WithNamespaces("a", "b")}, 3}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, lines := logging(t, 0)
				cluster := fakecluster.New(widgetType)
				f := newFactory(t, cluster, tc.opts...)
				l := acquire(t, f, widgets)
				f.Start(ctx)
				if err := l.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				for range 10 * 60 * 60 {
					cluster.CloseWatches(widgets)
					time.Sleep(time.Second / 10)
				}
				got := lines()
				if len(got) == 0 || len(got) > tc.most || !strings.HasPrefix(got[0], "Failed to list or watch, retrying Unavailable") {
					t.Errorf("lines of an hour: %q", got)
				}
				time.Sleep(time.Hour)
				if got := lines(); len(got) == 0 || len(got) > tc.most || !strings.HasPrefix(got[0], "Recovered Unavailable") {
					t.Errorf("lines after the end of the failure: %q", got)
				}
				shutdown(t, f)
			})
		})
	}
}

// The end of a watch whose version has expired has no line. If each watch ends so, that is a failure.
func TestLog_HasALineForVersionsThatExpireRepeatedly(t *testing.T) {
	for name, opts := range map[string][]dynamicinformer.Option{"all namespaces": nil, "a set": {dynamicinformer.WithNamespaces("a")}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, lines := logging(t, 0)
				cluster := fakecluster.New(widgetType)
				f := newFactory(t, cluster, opts...)
				l := acquire(t, f, widgets)
				f.Start(ctx)
				if err := l.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
					if req.Verb == "watch" {
						cluster.Intercept(nil)
						return apierrors.NewResourceExpired("too old")
					}
					return nil
				})
				cluster.CloseWatches(widgets)
				time.Sleep(time.Hour)
				if got := lines(); got != nil {
					t.Errorf("one watch: %q", got)
				}
				cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
					if req.Verb == "watch" {
						return apierrors.NewResourceExpired("too old")
					}
					return nil
				})
				cluster.CloseWatches(widgets)
				time.Sleep(time.Hour)
				if diff := cmp.Diff([]string{"Failed to list or watch, retrying Unavailable"}, lines()); diff != "" || l.Status().State != status.StateDegraded {
					t.Errorf("each watch: %s, lines (-want +got):\n%s", l.Status(), diff)
				}
				cluster.Intercept(nil)
				time.Sleep(time.Hour)
				if diff := cmp.Diff([]string{"Recovered Unavailable"}, lines()); diff != "" {
					t.Errorf("none (-want +got):\n%s", diff)
				}
				shutdown(t, f)
			})
		})
	}
}

// The failures of requests for Namespace objects begin and end by themselves, before the names are known and after.
func TestLog_HasLinesForTheNamesOfASet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, lines := logging(t, 0)
		cluster := fakecluster.New(widgetType, namespaceType)
		labelNamespace(t, cluster, "a", "red")
		fail := func(gvr schema.GroupVersionResource) {
			cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
				if req.GVR == gvr {
					return apierrors.NewForbidden(gvr.GroupResource(), "", errBad)
				}
				return nil
			})
			cluster.CloseWatches(gvr)
		}
		fail(namespaceType.GVR)
		f := newFactory(t, cluster, dynamicinformer.WithNamespaceSelector("team=red"))
		acquire(t, f, widgets)
		f.Start(ctx)
		const failed, recovered = "Failed to list or watch, retrying Forbidden", "Recovered Forbidden"
		for _, step := range []struct {
			when   string
			change func()
			want   []string
		}{
			{"the names are not known", func() {}, []string{failed}},
			{"they are known", func() { cluster.Intercept(nil) }, []string{recovered}},
			{"the requests for names fail", func() { fail(namespaceType.GVR) }, []string{failed}},
			{"they recover", func() { cluster.Intercept(nil) }, []string{recovered}},
			{"they fail again", func() { fail(namespaceType.GVR) }, []string{failed}},
			{"the requests for objects fail instead", func() { fail(widgets) }, []string{failed, recovered}},
			{"all recover", func() { cluster.Intercept(nil) }, []string{recovered}},
		} {
			step.change()
			time.Sleep(time.Hour)
			got := lines()
			slices.Sort(got)
			if diff := cmp.Diff(step.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step.when, diff)
			}
		}
		shutdown(t, f)
	})
}

// A user's handler gets the errors of requests for Namespace objects, also before the names are known.
func TestWatchErrorHandler_GetsTheErrorsOfTheNamesOfASet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, namespaceType)
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.GVR == namespaceType.GVR {
				return apierrors.NewForbidden(namespaceType.GVR.GroupResource(), "", errBad)
			}
			return nil
		})
		var last atomic.Value
		f := newFactory(t, cluster, dynamicinformer.WithNamespaceSelector("team=red"),
			dynamicinformer.WithWatchErrorHandler(func(_ context.Context, _ *cache.Reflector, err error) { last.Store(err) }))
		acquire(t, f, widgets)
		f.Start(t.Context())
		time.Sleep(time.Minute)
		if err, is := last.Load().(error); !is || !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "the namespaces of the set") {
			t.Errorf("error %v", last.Load())
		}
		shutdown(t, f)
	})
}
