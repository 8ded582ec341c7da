package source_test

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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/sharding"
)

// A list of all slots may replace the failed one: the failure ends when that list succeeds.
func TestShard_FailureOfAListStaysUntilAListSucceeds(t *testing.T) {
	for name, modify := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, shard := sharded(t, part(0, 2), 20, modify)
				w.cluster.Intercept(failing("list", errors.New("down"), 0))
				shard.set(part(0, 1))
				time.Sleep(9 * time.Second)
				failed := w.observer.reports()
				w.cluster.Expire(widgets)
				w.cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
					if req.Verb == "list" {
						<-ctx.Done()
						return ctx.Err()
					}
					return apierrors.NewResourceExpired("too old")
				})
				w.cluster.CloseWatches(widgets)
				time.Sleep(20 * time.Second)
				if reports := w.observer.reports(); failed[len(failed)-1] != "list failed" || slices.Contains(reports[len(failed):], "list succeeded") {
					t.Errorf("reports = %v, and then %v", failed, reports[len(failed):])
				}
				w.cluster.Intercept(nil)
				w.cluster.CloseWatches(widgets)
				time.Sleep(20 * time.Minute)
				w.checkStore(part(0, 1))
				if reports := w.observer.reports(); !slices.Contains(reports[len(failed):], "list succeeded") {
					t.Errorf("reports = %v after a list", reports[len(failed):])
				}
			})
		})
	}
}

// overtaken is a client that holds back the response to the first list of slots, until a list of other slots has begun.
type overtaken struct {
	source.Client
	slots     sharding.Slots
	held      *atomic.Bool
	overtakes chan struct{}
}

func (c overtaken) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	if opts.ShardSelector != c.slots.Selector() {
		if c.held.CompareAndSwap(true, false) {
			close(c.overtakes)
			time.Sleep(time.Second)
		}
		return c.Client.List(ctx, gvr, namespace, opts)
	}
	list, err := c.Client.List(ctx, gvr, namespace, opts)
	c.held.Store(true)
	select {
	case <-c.overtakes:
	case <-ctx.Done():
		list, err = nil, ctx.Err()
	}
	return list, err
}

// A list of gained slots that a whole list has overtaken is earlier: it deletes nothing.
func TestShard_ListThatIsOvertaken(t *testing.T) {
	for name, modify := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := overtaken{nil, part(1, 2), &atomic.Bool{}, make(chan struct{})}
				w, shard := sharded(t, part(0, 2), 20, func(cfg *source.Config) {
					modify(cfg)
					client.Client = cfg.Client
					cfg.Client = client
				})
				if _, err := w.AddEventHandler(w.handler); err != nil {
					t.Fatal(err)
				}
				shard.set(part(0, 1))
				synctest.Wait() // the server has made the list
				for i := range 20 {
					w.create(fmt.Sprintf("late%d", i))
				}
				w.cluster.Expire(widgets)
				w.cluster.CloseWatches(widgets)
				time.Sleep(time.Minute)
				select {
				case <-client.overtakes:
				default:
					t.Error("no list has overtaken that of the gained slots")
				}
				w.checkStore(part(0, 1))
				for _, event := range w.handler.take() {
					if !strings.HasPrefix(event, "add ") {
						t.Errorf("the handler got %q", event)
					}
				}
			})
		})
	}
}

// The events that a watch repeats since a list of gained slots are forgotten when the store has them.
func TestShard_RepeatedEventsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const each = 20
		w, shard := sharded(t, part(0, 2), 4, func(cfg *source.Config) {
			cfg.Client = delayed{Client: cfg.Client, beforeList: func() { time.Sleep(time.Second) }}
		})
		time.Sleep(5 * time.Second)
		for i := range 8 {
			shard.set(part(0, 1))
			synctest.Wait() // the server has made the list
			for j := range each {
				w.create(fmt.Sprintf("late%d-%d", i, j))
			}
			time.Sleep(5 * time.Second)
			if repeated := w.source.Repeated(); repeated == 0 || repeated > each {
				t.Errorf("the source knows %d repeated events of %d", repeated, each)
			}
			w.checkStore(part(0, 1))
			shard.set(part(0, 2))
			time.Sleep(5 * time.Second)
		}
	})
}

// The error of a list of gained slots says which namespace of a set it is of.
func TestShard_ErrorsOfGainedListsHaveTheNamespace(t *testing.T) {
	for name, undecodable := range map[string]bool{"a list fails": false, "a list can't be decoded": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reported []error
				w, shard := sharded(t, part(0, 2), 20, func(cfg *source.Config) {
					cfg.Namespaces = source.NewNamespaces("ns")
					cfg.Report = func(_ context.Context, err error) { reported = append(reported, err) }
					if undecodable {
						cfg.Strict, cfg.Client = true, selective{cfg.Client}
					}
				})
				if !undecodable {
					w.cluster.Intercept(failing("list", errors.New("down"), 0))
				}
				shard.set(part(0, 1))
				time.Sleep(10 * time.Second)
				w.stop()
				if len(reported) == 0 {
					t.Error("no error")
				}
				for _, err := range reported {
					var list *source.ListError
					var in *source.NamespaceError
					if !errors.As(err, &list) || !errors.As(err, &in) || in.Namespace != "ns" {
						t.Errorf("%v is not of a list of the namespace", err)
					}
				}
			})
		})
	}
}

// A list of gained slots has objects of later versions than the watch, until the next watch is open. Their deletions are not of an earlier
// version.
func TestShard_DeletionsAreNotOlderThanGainedObjects(t *testing.T) {
	for name, modify := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, shard := sharded(t, part(0, 2), 10, modify)
				synctest.Wait()
				last := w.createIn(part(1, 2))
				had := map[string]string{}
				_, err := w.AddEventHandler(cache.ResourceEventHandlerFuncs{
					AddFunc: func(obj any) {
						added := obj.(metav1.Object)
						had[added.GetName()] = added.GetResourceVersion()
					},
					DeleteFunc: func(obj any) {
						deleted := obj.(metav1.Object)
						if before(deleted.GetResourceVersion(), had[deleted.GetName()]) {
							t.Errorf("the deletion of %s has version %s, and its addition %s", deleted.GetName(), deleted.GetResourceVersion(), had[deleted.GetName()])
						}
						delete(had, deleted.GetName())
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				w.cluster.Intercept(failing("watch", errors.New("down"), 0))
				shard.set(part(0, 1))
				synctest.Wait()
				if had[last] == "" {
					t.Errorf("%s has not been added", last)
				}
				shard.set(sharding.Slots{})
				synctest.Wait()
				if w.checkStore(sharding.Slots{}); len(had) > 0 {
					t.Errorf("objects without a deletion: %v", had)
				}
			})
		})
	}
}

// createIn creates objects until one is in slots, and returns its name.
func (w *testInformer) createIn(slots sharding.Slots) string {
	for i := 0; ; i++ {
		name := fmt.Sprintf("new%d", i)
		w.create(name)
		obj, err := w.cluster.Resource(widgets).Namespace("ns").Get(w.t.Context(), name, metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		if slots.Has(slotOf(obj)) {
			return name
		}
	}
}

// The open watch is silent after a restore of etcd: the list of gained slots shows it.
func TestShard_ListOfGainedSlotsShowsARestore(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, shard := sharded(t, part(0, 2), 20, func(cfg *source.Config) {
					scope(cfg)
				})
				backup := w.cluster.Backup()
				w.removeIn(part(0, 1), 10)
				w.create("later0", "later1", "later2", "later3")
				synctest.Wait()
				w.cluster.Restore(backup)
				lists := len(w.selectors("list"))
				shard.set(part(0, 1))
				time.Sleep(time.Minute)
				if n := len(w.selectors("list")) - lists; n > 5 {
					t.Errorf("%d lists", n)
				}
				var rewound *source.RewoundError
				if errs := w.observer.errors(); len(errs) != 1 || !errors.As(errs[0], &rewound) {
					t.Errorf("errors = %v", errs)
				}
				w.checkStore(part(0, 1))
			})
		})
	}
}

// A comparison of versions and a list of gained slots may both show it.
func TestShard_ReportsARestoreOnce(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, shard := sharded(t, part(0, 2), 20, scope)
				backup := w.cluster.Backup()
				w.create("later0", "later1", "later2", "later3")
				synctest.Wait()
				var compared atomic.Int64
				arrived := make(chan struct{})
				gained := part(0, 1).Minus(part(0, 2)).Selector()
				w.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
					switch {
					case req.Verb != "list":
					case req.Options.ShardSelector == gained:
						<-arrived
					case req.Options.Limit == 1 && compared.Add(1) == 1:
						close(arrived)
						time.Sleep(time.Second)
					}
					return nil
				})
				shard.set(part(0, 1))
				synctest.Wait()
				w.cluster.Restore(backup)
				time.Sleep(time.Minute)
				var rewound *source.RewoundError
				if errs := w.observer.errors(); len(errs) != 1 || !errors.As(errs[0], &rewound) || compared.Load() == 0 {
					t.Errorf("errors = %v after %d comparisons", errs, compared.Load())
				}
				w.checkStore(part(0, 1))
			})
		})
	}
}
