package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// written creates a widget, and returns its version.
func written(t *testing.T, cluster *fakecluster.Cluster, name string) string {
	t.Helper()
	obj, err := cluster.Resource(widgets).Namespace("ns").Create(t.Context(), newObject(name, nil), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return obj.GetResourceVersion()
}

func TestAtLeast_TheCacheHasTheObjectThatWasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		delay := time.Duration(0) // of each event
		f := newFactory(t, cluster, dynamicinformer.WithTransform(func(obj any) (any, error) {
			time.Sleep(delay)
			return obj, nil
		}))
		l := syncedLease(t, f)
		for i := range 20 {
			delay = time.Duration(i) * 7 * time.Millisecond
			name, begun := fmt.Sprintf("w%d", i), time.Now()
			version := written(t, cluster, name)
			if err := l.AtLeast(t.Context(), version); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Lister().Get("ns/" + name); err != nil {
				t.Errorf("after %v: %v", time.Since(begun), err)
			}
			if took := time.Since(begun); took > delay+10*time.Millisecond {
				t.Errorf("it took %v, the event %v", took, delay)
			}
			before := time.Now()
			if err := l.AtLeast(t.Context(), version); err != nil || time.Since(before) > 0 {
				t.Errorf("a second time, after %v: %v", time.Since(before), err)
			}
		}
		if lists := cluster.Requests("list", widgets); len(lists) > 1 {
			t.Errorf("%d lists", len(lists))
		}
		shutdown(t, f)
	})
}

// An informer that has not listed yet does not have the version of any object.
func TestAtLeast_WaitsForTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		version := written(t, cluster, "a")
		answer(cluster, apierrors.NewForbidden(widgets.GroupResource(), "", errBad))
		f := newFactory(t, cluster)
		f.Start(t.Context())
		l := acquire(t, f, widgets)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := l.AtLeast(ctx, version)
		if !errors.Is(err, status.ErrVersion) || !errors.Is(err, status.ErrNotSynced) || !errors.Is(err, context.DeadlineExceeded) || !apierrors.IsForbidden(err) {
			t.Errorf("error: %v", err)
		}
		if !strings.HasPrefix(err.Error(), "widgets.v1.example.com: the cache has no version, want "+version+": ") {
			t.Errorf("text: %v", err)
		}
		cluster.Intercept(nil)
		if err := l.AtLeast(t.Context(), version); err != nil {
			t.Error(err)
		}
		shutdown(t, f)
	})
}

func TestAtLeast_Errors(t *testing.T) {
	for name, tc := range map[string]struct {
		version string
		happens func(f *dynamicinformer.Factory, l *dynamicinformer.Lease, cluster *fakecluster.Cluster)
		want    error
		text    string
		within  time.Duration
	}{
		"no version":   {version: "", want: status.ErrVersionInvalid, text: `resourceVersion "": a resourceVersion is a decimal number`},
		"not a number": {version: "abc", want: status.ErrVersionInvalid, text: `resourceVersion "abc": a resourceVersion is a decimal number`},
		"released":     {version: "1", happens: func(_ *dynamicinformer.Factory, l *dynamicinformer.Lease, _ *fakecluster.Cluster) { l.Release() }, want: dynamicinformer.ErrReleased},
		"the factory is shut down": {version: "1000", text: "the informer has ended", within: time.Second, happens: func(f *dynamicinformer.Factory, _ *dynamicinformer.Lease, _ *fakecluster.Cluster) {
			go func() { _ = f.Shutdown(context.Background()) }() //nolint:forbidigo // it outlives the call
		}},
		"the versions decrease, and the watch goes on": {version: "1000", want: status.ErrVersionLost, text: "its version is 12", within: 3 * time.Second, happens: func(_ *dynamicinformer.Factory, _ *dynamicinformer.Lease, cluster *fakecluster.Cluster) {
			cluster.SetVersion(12)
		}},
		"the versions decrease, and the watch ends": {version: "1000", want: status.ErrVersionLost, within: time.Second, happens: func(_ *dynamicinformer.Factory, _ *dynamicinformer.Lease, cluster *fakecluster.Cluster) {
			cluster.SetVersion(1)
			answered := false
			cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
				if again := req.Verb == "watch" && !answered; again {
					answered = true
					return apierrors.NewResourceExpired("too old")
				}
				return nil
			})
			cluster.CloseWatches(widgets)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				create(t, cluster, widgets, "ns", "a")
				f := newFactory(t, cluster)
				l := syncedLease(t, f)
				synctest.Wait()
				begun := time.Now()
				if tc.happens != nil {
					tc.happens(f, l, cluster)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				err := l.AtLeast(ctx, tc.version)
				if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
					t.Errorf("error: %v, want %v, %q", err, tc.want, tc.text)
				}
				if took := time.Since(begun); took > tc.within {
					t.Errorf("it took %v", took)
				}
				shutdown(t, f)
			})
		})
	}
}

// A server that can't be asked does not end the wait.
func TestAtLeast_AsksTheServerSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		l := syncedLease(t, f)
		synctest.Wait()
		before := len(cluster.Requests("list", widgets))
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == "list" {
				return apierrors.NewServiceUnavailable("down")
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		if err := l.AtLeast(ctx, "1000"); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "widgets.v1.example.com: the cache is at version 1, want 1000: ") {
			t.Errorf("error: %v", err)
		}
		lists := cluster.Requests("list", widgets)[before:]
		if len(lists) < 5 || len(lists) > 10 {
			t.Errorf("%d lists in 10 minutes", len(lists))
		}
		for _, list := range lists {
			if diff := cmp.Diff(metav1.ListOptions{Limit: 1}, list.Options); diff != "" {
				t.Errorf("a list is not consistent, or of more than one object (-want +got):\n%s", diff)
			}
		}
		if got := l.Status(); got.State != status.StateSynced || got.Attempts != 0 || len(got.Traffic.Failures) > 0 {
			t.Errorf("the questions are in the status: %+v", got)
		}
		shutdown(t, f)
	})
}

// The versions of another type may be from another server.
func TestAtLeast_AnotherTypeHasOtherVersions(t *testing.T) {
	for version, policy := range map[int64]dynamicinformer.RemovalPolicy{1: dynamicinformer.KeepCache, 2: dynamicinformer.EmitDeletes, 2_000_000: dynamicinformer.KeepCache} {
		synctest.Test(t, func(t *testing.T) {
			cluster := newCRDCluster()
			cluster.SetVersion(1000)
			cluster.define("ships")
			f := cluster.factory(t, dynamicinformer.WithRemovalPolicy(policy))
			f.Start(t.Context())
			l := acquire(t, f, kindOf("ships"))
			if err := l.WaitForSync(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			done := make(chan error)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			go func() { done <- l.AtLeast(ctx, "1000000") }()
			synctest.Wait()
			cluster.undefine("ships")
			cluster.SetVersion(version)
			cluster.define("ships")
			if err := <-done; !errors.Is(err, status.ErrTypeReplaced) {
				t.Errorf("version %d: %v", version, err)
			}
			shutdown(t, f)
		})
	}
}

// While no server serves the version of the lease, the cache has the objects of the former type. A write can only be to the next one.
func TestAtLeast_WaitsForTheTypeThatIsServedNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships")
		f := cluster.factory(t)
		f.Start(t.Context())
		l := acquire(t, f, kindOf("ships"))
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		cluster.change("ships", versions(map[string]bool{"v1": false, "v2": true}))
		time.Sleep(time.Minute)
		if got := l.Status(); got.Reason != status.ReasonVersionNotServed || !got.Listed {
			t.Fatalf("the version is not served: %+v", got)
		}
		done := make(chan error)
		go func() { done <- l.AtLeast(t.Context(), "1000") }()
		time.Sleep(time.Minute)
		cluster.SetVersion(1000)
		cluster.define("ships")
		if err := <-done; err != nil {
			t.Error(err)
		}
		shutdown(t, f)
	})
}

// The cache that KeepCache keeps is that of a type that is gone.
func TestAtLeast_ACacheThatIsKeptHasNoVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster, withDiscovery(t, cluster), dynamicinformer.WithRemovalPolicy(dynamicinformer.KeepCache))
		l := syncedLease(t, f)
		cluster.Withdraw(widgets)
		time.Sleep(time.Hour)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.AtLeast(ctx, "1"); !errors.Is(err, status.ErrNotSynced) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error: %v", err)
		}
		shutdown(t, f)
	})
}

// An informer whose type was never served has not run.
func TestAtLeast_EndsWithAnInformerThatHasNotRun(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, f *dynamicinformer.Factory, l *dynamicinformer.Lease, cancel func()){
		"release": func(_ *testing.T, _ *dynamicinformer.Factory, l *dynamicinformer.Lease, _ func()) { l.Release() },
		"shutdown": func(t *testing.T, f *dynamicinformer.Factory, _ *dynamicinformer.Lease, _ func()) {
			t.Helper()
			shutdown(t, f)
		},
		"end of contexts": func(_ *testing.T, _ *dynamicinformer.Factory, _ *dynamicinformer.Lease, cancel func()) { cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(blockType)
				f := newFactory(t, cluster, withDiscovery(t, cluster))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				f.Start(ctx)
				l := acquire(t, f, widgets, dynamicinformer.WithAllowAbsent())
				waits, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				done := make(chan error)
				go func() { done <- l.AtLeast(waits, "5") }()
				time.Sleep(time.Minute)
				ended := time.Now()
				end(t, f, l, cancel)
				err := <-done
				if !errors.Is(err, status.ErrVersion) || waits.Err() != nil || time.Since(ended) > time.Second {
					t.Errorf("%v after the end: %v", time.Since(ended), err)
				}
				if !l.Informer().IsStopped() {
					t.Error("the informer has not been stopped")
				}
				shutdown(t, f)
			})
		})
	}
}

// The informer of a type that was never served ends with the stop channel of its factory.
func TestDropIn_AnInformerThatHasNotRunEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(blockType)
		f := newFactory(t, cluster, withDiscovery(t, cluster))
		informer := f.DropIn().ForResource(widgets).Informer()
		stop := make(chan struct{})
		if informer.IsStopped() {
			t.Error("the informer is stopped before its start")
		}
		f.DropIn().Start(stop)
		time.Sleep(time.Minute)
		close(stop)
		synctest.Wait()
		_, err := informer.AddEventHandler(&recorder{})
		if err == nil || errors.Is(err, dynamicinformer.ErrShutDown) || !informer.IsStopped() {
			t.Errorf("stopped: %t, error %v", informer.IsStopped(), err)
		}
		shutdown(t, f)
		if _, err := informer.AddEventHandler(&recorder{}); !errors.Is(err, dynamicinformer.ErrShutDown) {
			t.Errorf("after the shutdown: %v", err)
		}
	})
}
