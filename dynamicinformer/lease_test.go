package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// acquire returns a lease that the test needs.
func acquire(t *testing.T, f *dynamicinformer.Factory, gvr schema.GroupVersionResource, opts ...dynamicinformer.ResourceOption) *dynamicinformer.Lease {
	t.Helper()
	l, err := f.Acquire(t.Context(), gvr, opts...)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	return l
}

// isDone reports whether no handler of l is called any more.
func isDone(l *dynamicinformer.Lease) bool {
	synctest.Wait()
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

// inLeases runs a test in a bubble, with a started factory on a cluster with widgets and
// blocks.
func inLeases(t *testing.T, test func(t *testing.T, cluster *fakecluster.Cluster, f *dynamicinformer.Factory), opts ...dynamicinformer.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		f := newFactory(t, cluster, opts...)
		f.Start(t.Context())
		test(t, cluster, f)
		shutdown(t, f)
		for _, gvr := range []schema.GroupVersionResource{widgets, blocks} {
			if got := cluster.OpenWatches(gvr); got != 0 {
				t.Errorf("open watches of %s after Shutdown: %d", gvr.Resource, got)
			}
		}
	})
}

func TestAcquire_FirstStartsAndLastReleaseEnds(t *testing.T) {
	inLeases(t, func(t *testing.T, cluster *fakecluster.Cluster, f *dynamicinformer.Factory) {
		for range 3 {
			before := len(cluster.Requests("watch", widgets))
			a, b := acquire(t, f, widgets), acquire(t, f, widgets)
			if err := a.WaitForSync(t.Context()); err != nil {
				t.Fatal(err)
			}
			a.Release()
			a.Release() // is one
			synctest.Wait()
			if got := cluster.OpenWatches(widgets); got != 1 {
				t.Errorf("open watches while there is a lease: %d", got)
			}
			b.Release()
			if !isDone(a) || !isDone(b) {
				t.Error("a lease without handlers that is released is not done")
			}
			if got := cluster.OpenWatches(widgets); got != 0 {
				t.Errorf("open watches after the last release: %d", got)
			}
			if got := len(cluster.Requests("watch", widgets)) - before; got != 1 {
				t.Errorf("watches = %d, want 1", got)
			}
			if got := f.Status(); len(got) != 0 {
				t.Errorf("what is forgotten has a status: %+v", got)
			}
		}
	})
}

func TestAcquire_ValidatesBeforeAnythingIsMade(t *testing.T) {
	absent := widgets.GroupVersion().WithResource("gadgets")
	listOnly := fakecluster.Type{GVR: widgets.GroupVersion().WithResource("lists"), Kind: "List", Verbs: []string{"list"}}
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, listOnly)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		for name, tc := range map[string]struct {
			gvr  schema.GroupVersionResource
			opts []dynamicinformer.ResourceOption
			is   error
		}{
			"absent":                    {absent, nil, discovery.ErrNotServed},
			"another version":           {widgets.GroupResource().WithVersion("v2"), nil, discovery.ErrNotServed},
			"can't be watched":          {listOnly.GVR, nil, discovery.ErrVerbNotSupported},
			"can't be watched, ever":    {listOnly.GVR, []dynamicinformer.ResourceOption{dynamicinformer.AllowAbsent()}, discovery.ErrVerbNotSupported},
			"empty":                     {schema.GroupVersionResource{}, nil, discovery.ErrInvalidRef},
			"empty, though it may come": {schema.GroupVersionResource{}, []dynamicinformer.ResourceOption{dynamicinformer.AllowAbsent()}, discovery.ErrInvalidRef},
			"subresource":               {widgets.GroupVersion().WithResource("widgets/status"), nil, discovery.ErrInvalidRef},
			"no version":                {widgets.GroupResource().WithVersion(""), nil, discovery.ErrInvalidRef},
		} {
			l, err := f.Acquire(t.Context(), tc.gvr, tc.opts...)
			if l != nil || !errors.Is(err, tc.is) {
				t.Errorf("%s: %v, %v; want %v", name, l, err, tc.is)
			}
		}
		if _, err := f.Acquire(t.Context(), absent); !meta.IsNoMatchError(err) {
			t.Errorf("apimachinery does not know %v", err)
		}
		if got := f.Status(); len(got) != 0 {
			t.Errorf("made: %+v", got)
		}
		shutdown(t, f)
	})
}

func TestAcquire_ArmsWhatIsAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(blockType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		l := acquire(t, f, widgets, dynamicinformer.AllowAbsent())
		events := &recorder{}
		if _, err := l.AddEventHandler(events); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := l.WaitForSync(ctx)
		if got := reasonOf(t, err); got != dynamicinformer.ReasonNotFound {
			t.Errorf("reason %s, want NotFound", got)
		}
		if got := l.Status(); got.State != dynamicinformer.StateNotServed || got.Leases != 1 {
			t.Errorf("status: %+v", got)
		}
		if got := len(cluster.Requests("list", widgets)) + len(cluster.Requests("watch", widgets)); got != 0 {
			t.Errorf("requests before it is there: %d", got)
		}
		cluster.Serve(widgetType)
		create(t, cluster, widgets, "ns", "a")
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if diff := cmp.Diff([]string{"add ns/a"}, events.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if got := l.Resource(); got.GVK.Kind != "Widget" || !got.Namespaced {
			t.Errorf("resource: %+v", got)
		}
		shutdown(t, f)
	})
}

func TestAcquire_WhenDiscoveryCannotTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == fakecluster.VerbDiscover {
				return apierrors.NewServiceUnavailable("down")
			}
			return nil
		})
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		if _, err := f.Acquire(t.Context(), widgets); !errors.Is(err, discovery.ErrInconclusive) || !apierrors.IsServiceUnavailable(err) {
			t.Errorf("error = %v, want an inconclusive one", err)
		}
		l := acquire(t, f, widgets, dynamicinformer.AllowAbsent())
		synctest.Wait()
		if got := l.Status(); got.State != dynamicinformer.StateUnknown || got.Reason != dynamicinformer.ReasonDiscoveryFailed {
			t.Errorf("status: %+v", got)
		}
		cluster.Intercept(nil)
		l.Retry()
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		shutdown(t, f)
	})
}

// The first caller's question is not everybody's, and its end is nobody's.
func TestAcquire_ContextBoundsDiscoveryAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		hang := make(chan struct{})
		cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
			if req.Verb == fakecluster.VerbDiscover {
				select {
				case <-hang:
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		first, second := make(chan error), make(chan error)
		go func() { _, err := f.Acquire(ctx, widgets, dynamicinformer.AllowAbsent()); first <- err }()
		synctest.Wait()
		go func() { _, err := f.Acquire(t.Context(), widgets); second <- err }()
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("first: %v, want the end of its context", err)
		}
		close(hang)
		if err := <-second; err != nil {
			t.Errorf("second: %v", err)
		}

		ctx, cancel = context.WithCancel(t.Context())
		l, err := f.Acquire(ctx, widgets)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Errorf("after the end of Acquire's context: %v", err)
		}
		shutdown(t, f)
	})
}

func TestAcquire_BeforeStartAndAfterShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		f := newFactory(t, cluster)
		early, never := acquire(t, f, widgets), acquire(t, f, blocks)
		if got := reasonOf(t, early.WaitForSync(timedOut(t))); got != dynamicinformer.ReasonNotStarted {
			t.Errorf("reason %s, want NotStarted", got)
		}
		never.Release()
		f.Start(t.Context())
		if err := early.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := len(cluster.Requests("watch", blocks)); got != 0 {
			t.Errorf("what was released before Start has been asked for")
		}
		shutdown(t, f)
		if _, err := f.Acquire(t.Context(), widgets); !errors.Is(err, dynamicinformer.ErrShutDown) {
			t.Errorf("Acquire after Shutdown: %v", err)
		}
		if !isDone(early) {
			t.Error("the lease of a factory that has ended is not done")
		}
		if got := early.Status().State; got != dynamicinformer.StateStopped {
			t.Errorf("state: %s", got)
		}
		early.Release()

		f = newFactory(t, cluster)
		early = acquire(t, f, widgets)
		shutdown(t, f)
		if !isDone(early) {
			t.Error("the lease of a factory that was never started is not done")
		}
	})
}

// timedOut returns a context that has ended.
func timedOut(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func TestRelease_EndsAHangingListAtOnce(t *testing.T) {
	inLeases(t, func(t *testing.T, cluster *fakecluster.Cluster, f *dynamicinformer.Factory) {
		under := 0
		cluster.Intercept(func(ctx context.Context, _ fakecluster.Request) error {
			under++
			<-ctx.Done()
			under--
			return ctx.Err()
		})
		l := acquire(t, f, widgets)
		time.Sleep(time.Second)
		begun := time.Now()
		l.Release()
		synctest.Wait()
		if took := time.Since(begun); took != 0 || under != 0 || !isDone(l) {
			t.Errorf("after %v requests under way = %d, done = %v", took, under, isDone(l))
		}
	})
}

func TestRelease_FromTheLeasesOwnHandler(t *testing.T) {
	inLeases(t, func(t *testing.T, cluster *fakecluster.Cluster, f *dynamicinformer.Factory) {
		for _, others := range []bool{false, true} {
			l := acquire(t, f, widgets)
			if others {
				acquire(t, f, widgets)
			}
			called, goOn := 0, make(chan struct{})
			_, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
				called++
				l.Release()
				<-goOn
			}})
			if err != nil {
				t.Fatal(err)
			}
			create(t, cluster, widgets, "ns", fmt.Sprint("a", others))
			create(t, cluster, widgets, "ns", fmt.Sprint("b", others))
			if isDone(l) {
				t.Error("done while its handler runs")
			}
			close(goOn)
			if !isDone(l) || called != 1 {
				t.Errorf("done = %v after %d calls, want 1", isDone(l), called)
			}
		}
	})
}

func TestRelease_TakesItsHandlersAndNobodyElses(t *testing.T) {
	inLeases(t, func(t *testing.T, cluster *fakecluster.Cluster, f *dynamicinformer.Factory) {
		a, b := acquire(t, f, widgets), acquire(t, f, widgets)
		ofA, ofB, viaView := &recorder{}, &recorder{}, &recorder{}
		registration, err := b.AddEventHandler(ofB)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := a.AddEventHandler(ofA); err != nil {
			t.Fatal(err)
		}
		if _, err := a.Informer().AddEventHandlerWithResyncPeriod(viaView, time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := a.RemoveEventHandler(registration); err != nil { // is not a's
			t.Error(err)
		}
		create(t, cluster, widgets, "ns", "one")
		synctest.Wait()
		a.Release()
		create(t, cluster, widgets, "ns", "two")
		synctest.Wait()
		for name, got := range map[string][]string{"a": ofA.take(), "a's view": viaView.take()} {
			if diff := cmp.Diff([]string{"add ns/one"}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		if diff := cmp.Diff([]string{"add ns/one", "add ns/two"}, ofB.take()); diff != "" {
			t.Errorf("b (-want +got):\n%s", diff)
		}
		if err := b.RemoveEventHandler(registration); err != nil {
			t.Error(err)
		}
		create(t, cluster, widgets, "ns", "three")
		synctest.Wait()
		if got := ofB.take(); got != nil {
			t.Errorf("a removed handler got %q", got)
		}
		if isDone(b) {
			t.Error("done without a release")
		}
	})
}

// Whoever comes while the old informer ends gets another one at once.
func TestAcquire_DuringAStopDoesNotWait(t *testing.T) {
	inLeases(t, func(t *testing.T, cluster *fakecluster.Cluster, f *dynamicinformer.Factory) {
		create(t, cluster, widgets, "ns", "a")
		l := acquire(t, f, widgets)
		hang := make(chan struct{})
		if _, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-hang }}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		l.Release()
		begun := time.Now()
		again := acquire(t, f, widgets)
		if err := again.WaitForSync(t.Context()); err != nil || time.Since(begun) != 0 {
			t.Errorf("synced after %v: %v", time.Since(begun), err)
		}
		if isDone(l) {
			t.Error("done while its handler hangs")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		stuck, ok := errors.AsType[*dynamicinformer.ShutdownError](f.Shutdown(ctx))
		if !ok || len(stuck.Running) != 1 || stuck.Running[0] != widgets {
			t.Errorf("Shutdown says %v", stuck)
		}
		close(hang)
	})
}

func TestAcquire_LingersForOneWhoComesSoon(t *testing.T) {
	inLeases(t, func(t *testing.T, cluster *fakecluster.Cluster, f *dynamicinformer.Factory) {
		a := acquire(t, f, widgets, dynamicinformer.WithLinger(time.Minute))
		b := acquire(t, f, widgets)
		if err := a.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		a.Release()
		b.Release()
		time.Sleep(59 * time.Second)
		c := acquire(t, f, widgets)
		time.Sleep(time.Hour)
		if got := informersOn(cluster, widgets); got != 1 || cluster.OpenWatches(widgets) != 1 {
			t.Errorf("informers so far: %d, want 1: it did not linger", got)
		}
		c.Release()
		time.Sleep(time.Minute + time.Nanosecond)
		synctest.Wait()
		if got := cluster.OpenWatches(widgets); got != 0 {
			t.Errorf("open watches after the linger: %d", got)
		}
		acquire(t, f, widgets)
		synctest.Wait()
		if got := informersOn(cluster, widgets); got != 2 {
			t.Errorf("informers after it has been forgotten = %d, want another one", got)
		}
		d := acquire(t, f, blocks, dynamicinformer.WithLinger(time.Hour))
		d.Release() // and Shutdown does not wait for it
	})
}

// informersOn returns how many informers have begun to list gvr.
func informersOn(cluster *fakecluster.Cluster, gvr schema.GroupVersionResource) int {
	begun := 0
	for _, req := range cluster.Requests("watch", gvr) {
		if req.Options.SendInitialEvents != nil {
			begun++
		}
	}
	return begun
}

func TestAcquire_SharesWithForResource(t *testing.T) {
	inLeases(t, func(t *testing.T, cluster *fakecluster.Cluster, f *dynamicinformer.Factory) {
		l := acquire(t, f, widgets)
		informer := f.ForResource(widgets).Informer()
		if got := l.Status(); !got.Pinned || got.Leases != 1 {
			t.Errorf("status: %+v", got)
		}
		l.Release()
		synctest.Wait()
		if !informer.HasSynced() || informer.IsStopped() || cluster.OpenWatches(widgets) != 1 {
			t.Error("the release has ended the informer of ForResource")
		}
		again := acquire(t, f, widgets)
		synctest.Wait()
		if got := len(cluster.Requests("watch", widgets)); got != 1 {
			t.Errorf("watches = %d, want 1", got)
		}
		again.Release()

		// One with other options than the factory's is not ForResource's to have.
		red := acquire(t, f, blocks, dynamicinformer.WithLabelSelector("color=red"))
		create(t, cluster, blocks, "", "a")
		whole := f.ForResource(blocks)
		synctest.Wait()
		if got := len(whole.Informer().GetStore().ListKeys()); got != 1 {
			t.Errorf("ForResource has %d objects, want 1", got)
		}
		if got := len(red.Informer().GetStore().ListKeys()); got != 0 {
			t.Errorf("the lease has %d objects, want none", got)
		}
		if f.ForResource(blocks) != whole {
			t.Error("ForResource returns another one")
		}
	})
}

func TestAcquire_ConflictsAreNamed(t *testing.T) {
	keep := func(obj any) (any, error) { return obj, nil }
	other := func(obj any) (any, error) { return obj, nil }
	index := func(obj any) ([]string, error) { return nil, nil }
	for option, tc := range map[string]struct {
		have, want dynamicinformer.ResourceOption
	}{
		"WithNamespace":         {dynamicinformer.WithNamespace("a"), dynamicinformer.WithNamespace("b")},
		"WithLabelSelector":     {nil, dynamicinformer.WithLabelSelector("color=red")},
		"WithFieldSelector":     {dynamicinformer.WithFieldSelector("metadata.name=a"), nil},
		"WithTransform":         {dynamicinformer.WithTransform(keep), dynamicinformer.WithTransform(other)},
		"WithTweakListOptions":  {nil, dynamicinformer.WithTweakListOptions(func(*metav1.ListOptions) {})},
		"WithResync":            {dynamicinformer.WithResync(time.Hour), dynamicinformer.WithResync(time.Minute)},
		"WithWatchListPolicy":   {nil, dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever)},
		"WithPageSize":          {dynamicinformer.WithPageSize(10), dynamicinformer.WithPageSize(20)},
		"WithRemovalPolicy":     {nil, dynamicinformer.WithRemovalPolicy(dynamicinformer.KeepCache)},
		"WithWatchErrorHandler": {nil, dynamicinformer.WithWatchErrorHandler(func(context.Context, *cache.Reflector, error) {})},
		"WithIndexers": {
			dynamicinformer.WithIndexers(cache.Indexers{"x": index}),
			dynamicinformer.WithIndexers(cache.Indexers{"x": func(obj any) ([]string, error) { return []string{"y"}, nil }}),
		},
	} {
		t.Run(option, func(t *testing.T) {
			inLeases(t, func(t *testing.T, _ *fakecluster.Cluster, f *dynamicinformer.Factory) {
				first := acquire(t, f, widgets, tc.have)
				_, err := f.Acquire(t.Context(), widgets, tc.want)
				conflict, is := errors.AsType[*dynamicinformer.ConflictError](err)
				if !is || !errors.Is(err, dynamicinformer.ErrConflict) || conflict.Option != option || conflict.GVR != widgets || conflict.Have == "" || conflict.Want == "" {
					t.Fatalf("error = %v, want a conflict about %s", err, option)
				}
				acquire(t, f, widgets, tc.have).Release() // the same is no conflict
				own := acquire(t, f, widgets, tc.want, dynamicinformer.WithSeparateInformer())
				if err := own.WaitForSync(t.Context()); err != nil {
					t.Error(err)
				}
				first.Release()
				acquire(t, f, widgets, tc.want) // the other one has gone
			})
		})
	}
}

func TestAcquire_IndexersAreAdded(t *testing.T) {
	inLeases(t, func(t *testing.T, cluster *fakecluster.Cluster, f *dynamicinformer.Factory) {
		byName := func(obj any) ([]string, error) {
			object, err := meta.Accessor(obj)
			return []string{object.GetName()}, err
		}
		create(t, cluster, widgets, "ns", "a")
		first := acquire(t, f, widgets)
		if err := first.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			l := acquire(t, f, widgets, dynamicinformer.WithIndexers(cache.Indexers{"name": byName}))
			found, err := l.Informer().GetIndexer().ByIndex("name", "a")
			if err != nil || len(found) != 1 {
				t.Errorf("by index: %v, %v", found, err)
			}
		}
	})
}

func TestLease_ViewRefusesWhatConcernsOthers(t *testing.T) {
	inLeases(t, func(t *testing.T, _ *fakecluster.Cluster, f *dynamicinformer.Factory) {
		l := acquire(t, f, widgets)
		view := l.Informer()
		view.Run(nil) // returns
		view.RunWithContext(t.Context())
		for name, err := range map[string]error{
			"SetTransform":                    view.SetTransform(nil),
			"SetWatchErrorHandler":            view.SetWatchErrorHandler(nil),
			"SetWatchErrorHandlerWithContext": view.SetWatchErrorHandlerWithContext(nil),
		} {
			if err == nil {
				t.Errorf("%s is allowed", name)
			}
		}
		if _, err := view.AddEventHandler(nil); !errors.Is(err, dynamicinformer.ErrNilHandler) {
			t.Errorf("nil handler: %v", err)
		}
		l.Release()
		if _, err := view.AddEventHandler(&recorder{}); !errors.Is(err, dynamicinformer.ErrReleased) {
			t.Errorf("handler after Release: %v", err)
		}
		if err := l.WaitForSync(t.Context()); !errors.Is(err, dynamicinformer.ErrReleased) {
			t.Errorf("wait after Release: %v", err)
		}
		l.Retry()
		_ = l.Resource()
		if got := l.Status().State; got != dynamicinformer.StateStopped {
			t.Errorf("state after the last release: %s", got)
		}
		if _, err := l.Lister().ByNamespace("ns").Get("a"); !apierrors.IsNotFound(err) {
			t.Errorf("lister after Release: %v", err)
		}
	})
}

// A type that hangs, in whatever way, is nobody else's trouble.
func TestLease_StuckTypeHoldsUpNobody(t *testing.T) {
	inLeases(t, func(t *testing.T, cluster *fakecluster.Cluster, f *dynamicinformer.Factory) {
		cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
			if req.GVR == widgets {
				<-ctx.Done()
			}
			return nil
		})
		stuck := acquire(t, f, widgets)
		waiting := make(chan error)
		go func() { waiting <- stuck.WaitForSync(t.Context()) }()
		synctest.Wait()
		begun := time.Now()
		other := acquire(t, f, blocks)
		if err := other.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 0)
		defer cancel()
		if err := f.WaitForSync(ctx, widgets, blocks); reasonOf(t, err) != dynamicinformer.ReasonSyncing {
			t.Errorf("both: %v", err)
		}
		if got := f.Status(); len(got) != 2 {
			t.Errorf("status: %v", got)
		}
		other.Release()
		stuck.Release()
		if took := time.Since(begun); took != 0 {
			t.Errorf("it took %v", took)
		}
		if got := reasonOf(t, <-waiting); got != dynamicinformer.ReasonStopped {
			t.Errorf("who waited learns %s, want Stopped", got)
		}
	})
}

func TestLease_HandlersMayDoEverything(t *testing.T) {
	inLeases(t, func(t *testing.T, cluster *fakecluster.Cluster, f *dynamicinformer.Factory) {
		l := acquire(t, f, widgets)
		done := make(chan struct{})
		_, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
			defer close(done)
			other, err := f.Acquire(t.Context(), blocks)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := other.AddEventHandler(&recorder{}); err != nil {
				t.Error(err)
			}
			same, err := f.Acquire(t.Context(), widgets)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := same.AddEventHandler(&recorder{}); err != nil {
				t.Error(err)
			}
			if err := other.WaitForSync(t.Context()); err != nil {
				t.Error(err)
			}
			_ = f.Status()
			same.Release()
			other.Release()
			<-other.Done()
			<-same.Done()
			l.Retry()
			l.Release()
		}})
		if err != nil {
			t.Fatal(err)
		}
		create(t, cluster, widgets, "ns", "a")
		<-done
		if !isDone(l) {
			t.Error("not done")
		}
	})
}

func TestLease_ManyAtOnce(t *testing.T) {
	inLeases(t, func(t *testing.T, cluster *fakecluster.Cluster, f *dynamicinformer.Factory) {
		create(t, cluster, widgets, "ns", "a")
		var all sync.WaitGroup
		for g := range 100 {
			all.Go(func() {
				for i := range 100 {
					l, err := f.Acquire(t.Context(), widgets)
					if err != nil {
						t.Error(err)
						return
					}
					if (g+i)%10 == 0 {
						if _, err := l.AddEventHandler(&recorder{}); err != nil {
							t.Error(err)
						}
					}
					l.Release()
					<-l.Done()
				}
			})
		}
		all.Wait()
		synctest.Wait()
		if got := cluster.OpenWatches(widgets); got != 0 {
			t.Errorf("open watches: %d", got)
		}
		if got := f.Status(); len(got) != 0 {
			t.Errorf("informers: %v", got)
		}
	})
}
