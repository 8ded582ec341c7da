package source_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// tooMany is more requests than an informer sends in any test. If a reflector repeats requests
// without a pause, the time of the bubble does not pass: further requests get no response.
const tooMany = 100

// If only the watch-list request fails, the informer lists.
func TestInformer_ListFollowsAFailedWatchListRequest(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				create(t, cluster, "ns", "a", "red")
				cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
					if len(cluster.Requests("watch", widgets)) > tooMany {
						<-ctx.Done()
					}
					if req.Options.SendInitialEvents != nil {
						return fault
					}
					return nil
				})
				r := runInformer(t, source.Config{Client: source.Unstructured(cluster), GVR: widgets})
				if r.HasSynced() != (pauseAfter(fault) == 0) {
					t.Errorf("synced at once: %v", r.HasSynced())
				}
				time.Sleep(pauseAfter(fault))
				synctest.Wait()
				if !r.HasSynced() {
					t.Error("not synced")
				}
				if diff := cmp.Diff([]int{1, 1, 1}, asked(cluster)); diff != "" {
					t.Errorf("lists, watch-lists, watches (-want +got):\n%s", diff)
				}
				r.stop()
			})
		})
	}
}

func TestInformer_ListFollowsAnErrorAmongInitialEvents(t *testing.T) {
	for name, fault := range faults {
		status := statusOf(fault)
		if status == nil {
			continue // no server can send it
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				checkFallsBack(t, func(server *watch.FakeWatcher) { server.Error(status) }, pauseAfter(fault))
			})
		})
	}
}

func TestInformer_ListFollowsAnEarlyEndOfInitialEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		checkFallsBack(t, func(server *watch.FakeWatcher) { server.Stop() }, 0)
	})
}

// pauseAfter returns the longest pause before the LIST after a watch-list that has failed with
// fault: one of the faults has a Retry-After of a second.
func pauseAfter(fault error) time.Duration {
	if apierrors.IsTooManyRequests(fault) {
		return 1100 * time.Millisecond
	}
	return 0
}

// checkFallsBack runs an informer whose watch-list fail ends, and expects a list after pause and
// then a watch.
func checkFallsBack(t *testing.T, fail func(server *watch.FakeWatcher), pause time.Duration) {
	t.Helper()
	client := &script{
		list: func(context.Context) (*unstructured.UnstructuredList, error) {
			list := &unstructured.UnstructuredList{}
			list.SetResourceVersion("5")
			return list, nil
		},
	}
	client.watch = func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
		if len(client.requests()) > tooMany {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		server := newServerWatch()
		if opts.SendInitialEvents != nil {
			server.Add(newObject("a"))
			fail(server)
		}
		return server, nil
	}
	r := runInformer(t, source.Config{Client: source.Unstructured(client), GVR: widgets})
	if r.HasSynced() != (pause == 0) {
		t.Errorf("synced at once: %v", r.HasSynced())
	}
	time.Sleep(pause)
	synctest.Wait()
	var got []string
	for _, req := range client.requests() {
		got = append(got, req.Verb+" "+req.Options.ResourceVersion)
	}
	if diff := cmp.Diff([]string{"watch ", "list ", "watch 5"}, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	r.stop()
}

// A reflector's own retries of these errors do not check its context.
func TestInformer_StopsAtOnceAfterEachFault(t *testing.T) {
	interceptors := map[string]fakecluster.Interceptor{
		"requests hang": func(ctx context.Context, _ fakecluster.Request) error { <-ctx.Done(); return ctx.Err() },
		"lists hang": func(ctx context.Context, req fakecluster.Request) error {
			if req.Verb == "list" {
				<-ctx.Done()
			}
			return nil
		},
	}
	for name, fault := range faults {
		var requests atomic.Int32
		interceptors[name] = func(ctx context.Context, _ fakecluster.Request) error {
			if requests.Add(1) > tooMany {
				<-ctx.Done()
			}
			return fault
		}
	}
	for name, intercept := range interceptors {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				cluster.MuteInitialEventsEnd()
				cluster.Intercept(intercept)
				r := runInformer(t, source.Config{Client: source.Unstructured(cluster), GVR: widgets})
				time.Sleep(2*time.Second + 345*time.Millisecond) // at any moment
				if took := r.stop(); took != 0 {
					t.Errorf("stopping took %v", took)
				}
				if got := asked(cluster); got[0]+got[1]+got[2] > 12 {
					t.Errorf("lists, watch-lists, watches in 2 s: %d", got)
				}
			})
		})
	}
}

func TestInformer_StopsAtOnceInASilentWatchList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, observer := fakecluster.New(widgetType), &observer{}
		cluster.MuteInitialEventsEnd()
		r := runInformer(t, source.Config{Client: source.Unstructured(cluster), GVR: widgets, Observer: observer})
		time.Sleep(5 * time.Second)
		if took := r.stop(); took != 0 {
			t.Errorf("stopping took %v", took)
		}
		if got := cluster.OpenWatches(widgets); got != 0 {
			t.Errorf("open watches = %d, want 0", got)
		}
		if got := observer.reports(); got != nil {
			t.Errorf("reports %q, want none", got)
		}
	})
}

// The reflector returns at once. Its list, which ignores its context, is in progress, and Wait
// waits for it.
func TestInformer_WaitsForItsList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == "watch" {
				return faults["expired"]
			}
			time.Sleep(3 * time.Second)
			return nil
		})
		r := runInformer(t, source.Config{Client: source.Unstructured(cluster), GVR: widgets})
		time.Sleep(time.Second)
		begun := time.Now()
		r.cancel()
		<-r.ended
		if took := time.Since(begun); took != 0 {
			t.Errorf("the informer ended after %v", took)
		}
		if took := waitTakes(r.source); took != 2*time.Second {
			t.Errorf("Wait took %v, the rest of the list 2 s", took)
		}
	})
}
