package dynamicinformer_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// everyTenSeconds is the resync period of a handler whose informer has none.
func everyTenSeconds() cache.HandlerOptions {
	return cache.HandlerOptions{ResyncPeriod: new(10 * time.Second)}
}

// history checks the calls of a handler. Each call takes a random time.
type history struct {
	t       *testing.T
	random  *rand.Rand
	busy    atomic.Bool // during a call
	mu      sync.Mutex
	last    map[string]string
	resyncs map[string]int
}

func (h *history) call(key string, check func()) {
	if h.busy.Swap(true) {
		h.t.Errorf("two calls at a time, the second for %s", key)
	}
	h.mu.Lock()
	check()
	h.mu.Unlock()
	time.Sleep(time.Duration(h.random.Int64N(int64(time.Second))))
	h.busy.Store(false)
}

func (h *history) OnAdd(obj any, _ bool) {
	u := obj.(*unstructured.Unstructured)
	h.call(u.GetName(), func() {
		if last := h.last[u.GetName()]; last != "" {
			h.t.Errorf("%s is added again, after version %s", u.GetName(), last)
		}
		h.last[u.GetName()] = u.GetResourceVersion()
	})
}

func (h *history) OnUpdate(old, obj any) {
	before, u := old.(*unstructured.Unstructured), obj.(*unstructured.Unstructured)
	h.call(u.GetName(), func() {
		if last := h.last[u.GetName()]; last != before.GetResourceVersion() {
			h.t.Errorf("%s: the update begins with version %s, and the last call ended with %q", u.GetName(), before.GetResourceVersion(), last)
		}
		h.last[u.GetName()] = u.GetResourceVersion()
		if before == u {
			h.resyncs[u.GetName()]++
		}
	})
}

func (h *history) OnDelete(obj any) {
	u := obj.(*unstructured.Unstructured)
	h.call(u.GetName(), func() { delete(h.last, u.GetName()) })
}

// A slow handler gets its own resyncs between events of a random sequence. No call has an outdated state, or
// that of a deleted object.
func TestResync_OfAHandlerIsInOrder(t *testing.T) {
	for _, coalescing := range []bool{false, true} {
		for seed := range uint64(20) {
			t.Run(fmt.Sprintf("coalescing %t, seed %d", coalescing, seed), func(t *testing.T) {
				inLeases(t, func(in bubble) {
					random := rand.New(rand.NewPCG(seed, 0))                                                                             //nolint:gosec // a reproducible sequence
					h := &history{t: in.T, random: rand.New(rand.NewPCG(seed, 1)), last: map[string]string{}, resyncs: map[string]int{}} //nolint:gosec // as above
					var opts []dynamicinformer.LeaseOption
					if coalescing {
						opts = append(opts, dynamicinformer.WithCoalescing(0))
					}
					l := acquire(in.T, in.factory, widgets, opts...)
					if _, err := l.AddEventHandlerWithOptions(h, everyTenSeconds()); err != nil {
						in.Fatal(err)
					}
					exists := map[string]bool{}
					for i := range 60 {
						name := fmt.Sprint(random.IntN(4))
						switch {
						case !exists[name]:
							create(in.T, in.cluster, widgets, "ns", name)
							exists[name] = true
						case random.IntN(3) == 0:
							deleteWidget(in.T, in.cluster, name)
							delete(exists, name)
						default:
							setValue(in.T, in.cluster, name, fmt.Sprint(i))
						}
						time.Sleep(time.Duration(random.Int64N(int64(2 * time.Second))))
					}
					time.Sleep(time.Minute) // the handler gets the rest
					h.mu.Lock()
					clear(h.resyncs)
					h.mu.Unlock()
					time.Sleep(time.Minute)
					h.mu.Lock()
					defer h.mu.Unlock()
					if len(h.last) != len(exists) {
						in.Errorf("the handler has %d objects, want %d", len(h.last), len(exists))
					}
					for name := range exists {
						if got := h.resyncs[name]; got < 5 || got > 7 {
							in.Errorf("%s: %d resyncs in a minute", name, got)
						}
					}
				})
			})
		}
	}
}

// The end of a lease, and that of a factory, wait for a call of a handler's own resync.
func TestResync_OfAHandlerEndsWithItsLease(t *testing.T) {
	for _, end := range []string{"release", "removal", "shutdown"} {
		t.Run(end, func(t *testing.T) {
			inLeases(t, func(in bubble) {
				create(in.T, in.cluster, widgets, "ns", "a")
				l := acquire(in.T, in.factory, widgets)
				other := acquire(in.T, in.factory, widgets) // the informer goes on
				handler := &values{let: make(chan struct{})}
				r, err := l.AddEventHandlerWithOptions(handler, everyTenSeconds())
				if err != nil {
					in.Fatal(err)
				}
				synctest.Wait()
				handler.allow(1)
				time.Sleep(11 * time.Second) // the call of the resync blocks
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					switch end {
					case "release":
						l.Release()
						<-l.Done()
					case "removal":
						if err := cache.ShutDownEventHandler(l.Informer(), r); err != nil {
							in.Error(err)
						}
					case "shutdown":
						shutdown(in.T, in.factory)
					}
				}()
				synctest.Wait()
				select {
				case <-ended:
					in.Error("the end does not wait for the call")
				default:
				}
				handler.allow(1)
				<-ended
				time.Sleep(time.Minute)
				if diff := cmp.Diff([]string{"add a initial", "update a a"}, handler.take()); diff != "" {
					in.Errorf("calls (-want +got):\n%s", diff)
				}
				other.Release()
			})
		})
	}
}

// A handler that never ran has no goroutine, and its registration ends when it is removed.
func TestResync_OfAHandlerThatIsRemovedBeforeTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		create(t, cluster, widgets, "ns", "a")
		factory := dynamicinformer.NewDynamicSharedInformerFactory(cluster, 0)
		informer := factory.ForResource(widgets).Informer()
		removed, handler := &recorder{}, &recorder{}
		r, err := informer.AddEventHandlerWithOptions(removed, everyTenSeconds())
		if err != nil {
			t.Fatal(err)
		}
		if err := informer.RemoveEventHandler(r); err != nil {
			t.Fatal(err)
		}
		select {
		case <-r.(interface{ ShutdownChan() <-chan struct{} }).ShutdownChan():
		default:
			t.Error("the registration has not ended")
		}
		if _, err := informer.AddEventHandlerWithOptions(handler, everyTenSeconds()); err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		factory.Start(stop)
		time.Sleep(15 * time.Second)
		if diff := cmp.Diff([]string{"add ns/a", "update ns/a"}, handler.take()); diff != "" {
			t.Errorf("calls (-want +got):\n%s", diff)
		}
		if got := removed.take(); got != nil {
			t.Errorf("calls of the removed handler: %q", got)
		}
		close(stop)
		factory.Shutdown()
	})
}

// A handler that removes itself during a resync is not called again.
func TestResync_OfAHandlerThatRemovesItself(t *testing.T) {
	inLeases(t, func(in bubble) {
		create(in.T, in.cluster, widgets, "ns", "a")
		create(in.T, in.cluster, widgets, "ns", "b")
		l := acquire(in.T, in.factory, widgets)
		var updates atomic.Int32
		registered := make(chan cache.ResourceEventHandlerRegistration, 1)
		r, err := l.AddEventHandlerWithOptions(cache.ResourceEventHandlerFuncs{UpdateFunc: func(any, any) {
			updates.Add(1)
			if err := l.Informer().RemoveEventHandler(<-registered); err != nil {
				in.Error(err)
			}
		}}, everyTenSeconds())
		if err != nil {
			in.Fatal(err)
		}
		registered <- r
		time.Sleep(time.Minute)
		if got := updates.Load(); got != 1 {
			in.Errorf("%d calls, want 1", got)
		}
	})
}

// The panics of a handler's own resync are those of its other calls.
func TestResync_OfAHandlerThatPanics(t *testing.T) {
	inLeases(t, func(in bubble) {
		create(in.T, in.cluster, widgets, "ns", "a")
		l := acquire(in.T, in.factory, widgets, dynamicinformer.WithHandlerRecovery())
		panics := cache.ResourceEventHandlerFuncs{UpdateFunc: func(any, any) { panic("an update") }}
		if _, err := l.AddEventHandlerWithOptions(panics, everyTenSeconds()); err != nil {
			in.Fatal(err)
		}
		time.Sleep(25 * time.Second)
		got := handlerOf(in.T, l)
		if got.Panics != 2 || got.Reason != status.ReasonHandlerPanicked || !strings.HasPrefix(got.LastFailed, "ns/a") || got.Backlog != 0 {
			in.Errorf("status of the handler: %+v", got)
		}
	})
}

// client-go's resync withholds updates without another resourceVersion from handlers whose resync is not due.
func TestResync_DoesNotWithholdUpdatesWithoutAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		obj := newObject("a", nil) // objects of client-go's fake client have no version
		obj.SetNamespace("ns")
		obj.SetGroupVersionKind(widgets.GroupVersion().WithKind("Widget"))
		client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{widgets: "WidgetList"}, obj)
		client.PrependWatchReactor("*", func(clienttesting.Action) (bool, watch.Interface, error) {
			return true, nil, apierrors.NewMethodNotSupported(widgets.GroupResource(), "watch")
		})
		f := newFactory(t, client, dynamicinformer.WithPolling(30*time.Second), dynamicinformer.WithResync(10*time.Minute))
		f.Start(t.Context())
		l := acquire(t, f, widgets)
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		handlers := map[string]*values{"never": {}, "late": {}}
		if _, err := l.AddEventHandlerWithOptions(handlers["never"], cache.HandlerOptions{ResyncPeriod: new(time.Duration)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Minute)
		if _, err := l.AddEventHandler(handlers["late"]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(6 * time.Minute) // the informer has had its period, and the late handler has not
		for _, handler := range handlers {
			handler.take()
		}
		obj.SetLabels(map[string]string{"value": "new"})
		if _, err := client.Resource(widgets).Namespace("ns").Update(t.Context(), obj, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		for name, handler := range handlers {
			if got := handler.take(); len(got) != 1 {
				t.Errorf("the handler %q has got %q, want one update", name, got)
			}
		}
		shutdown(t, f)
	})
}
