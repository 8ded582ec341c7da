package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	kubefake "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

func TestAcquire_FirstStartsAndLastReleaseEnds(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
		for range 3 {
			before := len(cluster.Requests("watch", widgets))
			a, b := acquire(t, f, widgets), acquire(t, f, widgets)
			if err := a.WaitForSync(t.Context()); err != nil {
				t.Fatal(err)
			}
			a.Release()
			a.Release() // counts once
			synctest.Wait()
			if got := cluster.OpenWatches(widgets); got != 1 {
				t.Errorf("open watches while there is a lease: %d", got)
			}
			b.Release()
			if !isDone(a) || !isDone(b) {
				t.Error("a released lease without handlers is not done")
			}
			if got := cluster.OpenWatches(widgets); got != 0 {
				t.Errorf("open watches after the last release: %d", got)
			}
			if got := len(cluster.Requests("watch", widgets)) - before; got != 1 {
				t.Errorf("watches = %d, want 1", got)
			}
			if got := f.Status(); len(got) != 0 {
				t.Errorf("status of a released informer: %+v", got)
			}
		}
	})
}

func TestAcquire_ValidatesBeforeItCreatesAnInformer(t *testing.T) {
	absent := widgets.GroupVersion().WithResource("gadgets")
	listOnly := fakecluster.Type{GVR: widgets.GroupVersion().WithResource("lists"), Kind: "List", Verbs: []string{"list"}}
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, listOnly)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		for name, tc := range map[string]struct {
			gvr  schema.GroupVersionResource
			opts []dynamicinformer.LeaseOption
			is   error
		}{
			"absent":                                 {absent, nil, discovery.ErrNotServed},
			"another version":                        {widgets.GroupResource().WithVersion("v2"), nil, discovery.ErrNotServed},
			"can't be watched":                       {listOnly.GVR, nil, discovery.ErrVerbNotSupported},
			"can't be watched, with WithAllowAbsent": {listOnly.GVR, []dynamicinformer.LeaseOption{dynamicinformer.WithAllowAbsent()}, discovery.ErrVerbNotSupported},
			"empty":                                  {schema.GroupVersionResource{}, nil, discovery.ErrInvalidRef},
			"empty, with WithAllowAbsent":            {schema.GroupVersionResource{}, []dynamicinformer.LeaseOption{dynamicinformer.WithAllowAbsent()}, discovery.ErrInvalidRef},
			"subresource":                            {widgets.GroupVersion().WithResource("widgets/status"), nil, discovery.ErrInvalidRef},
			"no version":                             {widgets.GroupResource().WithVersion(""), nil, discovery.ErrInvalidRef},
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
			t.Errorf("informers: %+v", got)
		}
		shutdown(t, f)
	})
}

func TestAcquire_AllowAbsentWaitsForTheType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(blockType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		l := acquire(t, f, widgets, dynamicinformer.WithAllowAbsent())
		events := &recorder{}
		if _, err := l.AddEventHandler(events); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := l.WaitForSync(ctx)
		if got := reasonOf(t, err); got != status.ReasonNotFound {
			t.Errorf("reason %s, want NotFound", got)
		}
		if got := l.Status(); got.State != status.StateNotServed || got.Leases != 1 {
			t.Errorf("status: %+v", got)
		}
		if got := len(cluster.Requests("list", widgets)) + len(cluster.Requests("watch", widgets)); got != 0 {
			t.Errorf("requests before the type is served: %d", got)
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

// A program may have leases on thousands of types that are not installed: each has one goroutine, which waits, also with handlers.
func TestAcquire_AbsentTypesHaveOneGoroutineEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(blockType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		lease := func(n int) {
			l := acquire(t, f, widgets.GroupVersion().WithResource(fmt.Sprint("absent", n)), dynamicinformer.WithAllowAbsent())
			if _, err := l.AddEventHandler(&recorder{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		goroutines := func() int {
			stacks := make([]byte, 1<<20)
			return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), ", synctest bubble ")
		}
		lease(0)
		before := goroutines()
		for n := range 20 {
			lease(n + 1)
		}
		if got := goroutines() - before; before < 2 || got != 20 {
			t.Errorf("20 more types have %d more goroutines than %d", got, before)
		}
		shutdown(t, f)
	})
}

func TestAcquire_WhenDiscoveryIsInconclusive(t *testing.T) {
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
			t.Errorf("error = %v, want ErrInconclusive", err)
		}
		l := acquire(t, f, widgets, dynamicinformer.WithAllowAbsent())
		synctest.Wait()
		if got := l.Status(); got.State != status.StateUnknown || got.Reason != status.ReasonDiscoveryFailed {
			t.Errorf("status: %+v", got)
		}
		time.Sleep(time.Hour) // until the pauses between questions have their maximum
		cluster.Intercept(nil)
		checkRetry(t, l)
		shutdown(t, f)
	})
}

func TestAcquire_ContextLimitsOnlyDiscovery(t *testing.T) {
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
		go func() { _, err := f.Acquire(ctx, widgets, dynamicinformer.WithAllowAbsent()); first <- err }()
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
		if got := reasonOf(t, early.WaitForSync(timedOut(t))); got != status.ReasonNotStarted {
			t.Errorf("reason %s, want NotStarted", got)
		}
		never.Release()
		f.Start(t.Context())
		if err := early.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := len(cluster.Requests("watch", blocks)); got != 0 {
			t.Errorf("requests for an informer that was released before Start")
		}
		shutdown(t, f)
		if _, err := f.Acquire(t.Context(), widgets); !errors.Is(err, dynamicinformer.ErrShutDown) {
			t.Errorf("Acquire after Shutdown: %v", err)
		}
		if !isDone(early) {
			t.Error("the lease of a factory that has ended is not done")
		}
		if got := early.Status().State; got != status.StateStopped {
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

// The resolver has been stopped. It would send requests, and wait for a server that does not respond.
func TestAcquire_AfterShutdownAsksNoServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		time.Sleep(time.Minute)
		shutdown(t, f)
		cluster.Intercept(func(ctx context.Context, _ fakecluster.Request) error {
			<-ctx.Done()
			return ctx.Err()
		})
		begun := time.Now()
		for _, acquire := range []func() (*dynamicinformer.Lease, error){
			func() (*dynamicinformer.Lease, error) { return f.Acquire(t.Context(), widgets) },
			func() (*dynamicinformer.Lease, error) { return f.Acquire(timedOut(t), gadgets) },
			func() (*dynamicinformer.Lease, error) { return f.AcquireRef(t.Context(), "gadget") },
		} {
			if _, err := acquire(); !errors.Is(err, dynamicinformer.ErrShutDown) {
				t.Errorf("Acquire after Shutdown: %v", err)
			}
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("it took %v", took)
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

func TestAcquire_DuringAStopDoesNotWait(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
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

func TestAcquire_SharesALingeringInformer(t *testing.T) {
	inLeases(t, func(in bubble) {
		t, cluster, f := in.T, in.cluster, in.factory
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
			t.Errorf("informers so far: %d, want 1 that lingers", got)
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
			t.Errorf("informers after the linger = %d, want another one", got)
		}
		d := acquire(t, f, blocks, dynamicinformer.WithLinger(time.Hour))
		d.Release() // Shutdown does not wait for the linger
	})
}

// informersOn returns the number of informers that have begun to list gvr.
func informersOn(cluster *fakecluster.Cluster, gvr schema.GroupVersionResource) int {
	begun := 0
	for _, req := range cluster.Requests("watch", gvr) {
		if req.Options.SendInitialEvents != nil {
			begun++
		}
	}
	return begun
}

// Lease.Resource is complete when Acquire returns, before the informer runs.
func TestLease_ResourceIsCompleteAfterAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		for _, opts := range [][]dynamicinformer.LeaseOption{nil, {dynamicinformer.WithSeparateInformer()}, {dynamicinformer.WithAllowAbsent()}} {
			if got := acquire(t, f, widgets, opts...).Resource(); got.GVR != widgets || got.GVK.Kind != "Widget" || !got.Namespaced || len(got.Verbs) == 0 {
				t.Errorf("before Start: %+v", got)
			}
		}
		if got := acquire(t, f, gadgets, dynamicinformer.WithAllowAbsent()).Resource(); got.GVR != gadgets || got.GVK.Kind != "" {
			t.Errorf("resource of an absent type: %+v", got)
		}
		shutdown(t, f)
	})
}

// An informer that has ended, or has other options, does not tell that the type can have this one.
func TestAcquire_ValidatesBesideAnInformerThatCanNotBeShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.DropIn().ForResource(widgets)
		stop := make(chan struct{})
		f.DropIn().Start(stop)
		time.Sleep(time.Minute)
		close(stop)
		time.Sleep(time.Minute)
		cluster.Withdraw(widgets)
		time.Sleep(time.Hour)
		f.Start(t.Context())
		time.Sleep(time.Minute) // until discovery is sure
		if _, err := f.Acquire(t.Context(), widgets); !errors.Is(err, discovery.ErrNotServed) {
			t.Errorf("of a type that is gone: %v", err)
		}
		shutdown(t, f)
	})
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(fakecluster.Type{GVR: widgets, Kind: "Widget", Namespaced: true, Verbs: []string{"list", "get"}})
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		f.Start(t.Context())
		l := acquire(t, f, widgets, dynamicinformer.WithPolling(time.Minute), dynamicinformer.WithLinger(time.Hour))
		time.Sleep(10 * time.Second)
		l.Release()
		if _, err := f.Acquire(t.Context(), widgets); !errors.Is(err, discovery.ErrVerbNotSupported) {
			t.Errorf("of a type without watch: %v", err)
		}
		shutdown(t, f)
	})
}

// A lease with other indexers may come before ForResource, or after it.
func TestForResource_HasTheIndexersOfTheFactory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		index := func(name string) dynamicinformer.InformerOption {
			return dynamicinformer.WithIndexers(cache.Indexers{name: func(any) ([]string, error) { return []string{name}, nil }})
		}
		all := informers.NewSharedInformerFactory(kubefake.NewClientset(), 0)
		for name, forResource := range map[string]func(*dynamicinformer.Factory) cache.SharedIndexInformer{
			"ForResource": func(f *dynamicinformer.Factory) cache.SharedIndexInformer { return f.ForResource(widgets).Informer() },
			"DropIn": func(f *dynamicinformer.Factory) cache.SharedIndexInformer {
				return f.DropIn().ForResource(widgets).Informer()
			},
			"ObjectOrMetadata": func(f *dynamicinformer.Factory) cache.SharedIndexInformer {
				i, err := dynamicinformer.ObjectOrMetadata(all, f).ForResource(widgets)
				if err != nil {
					t.Fatal(err)
				}
				return i.Informer()
			},
		} {
			f := newFactory(t, cluster, index("byNode"), dynamicinformer.WithMetadataClient(newMetadataClient(t)))
			start(t.Context(), f)
			opts := []dynamicinformer.LeaseOption{index("byOwner")}
			if name == "ObjectOrMetadata" {
				opts = append(opts, dynamicinformer.WithMetadataOnly())
			}
			acquire(t, f, widgets, opts...)
			informer := forResource(f)
			for _, index := range []string{"byOwner", "byNode", cache.NamespaceIndex} {
				if _, err := informer.GetIndexer().ByIndex(index, "x"); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			shutdown(t, f)
		}
	})
}
