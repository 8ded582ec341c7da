package dynamicinformer_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// uid sets the UID of a CRD to an earlier one.
func uid(old string) func(crd map[string]any) {
	return func(crd map[string]any) { crd["metadata"].(map[string]any)["uid"] = old }
}

// A CRD serves no version, and is deleted after that: then its objects are gone.
func TestGeneration_CRDThatServesNothingIsDeleted(t *testing.T) {
	for name, happens := range map[string]func(w *crdCluster){
		"deleted":   func(w *crdCluster) { w.undefine("ships") },
		"recreated": func(w *crdCluster) { w.define("ships", versions(map[string]bool{"v1": false})) },
		"restored": func(w *crdCluster) {
			old := w.has("ships")
			w.undefine("ships")
			w.define("ships", uid(old), versions(map[string]bool{"v1": false}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newCRDCluster()
				cluster.define("ships")
				create(t, cluster, kindOf("ships"), "ns", "a")
				f := cluster.factory(t)
				f.Start(t.Context())
				l := acquire(t, f, kindOf("ships"))
				events := listen(t, l.Informer())
				if err := l.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				cluster.change("ships", versions(map[string]bool{"v1": false}))
				time.Sleep(10 * time.Minute)
				if diff := cmp.Diff([]string{"add ns/a"}, events.take()); diff != "" {
					t.Errorf("while it serves nothing (-want +got):\n%s", diff)
				}
				happens(cluster)
				time.Sleep(time.Minute)
				if diff := cmp.Diff([]string{"delete ns/a"}, events.take()); diff != "" {
					t.Errorf("after its end (-want +got):\n%s", diff)
				}
				if got := l.Status(); got.State != status.StateNotServed || got.Objects != 0 {
					t.Errorf("status: %+v", got)
				}
				cluster.define("ships")
				create(t, cluster, kindOf("ships"), "ns", "b")
				time.Sleep(time.Minute)
				if diff := cmp.Diff([]string{"add ns/b"}, events.take()); diff != "" {
					t.Errorf("after its return (-want +got):\n%s", diff)
				}
				shutdown(t, f)
			})
		})
	}
}

// A CRD is deleted and etcd is restored from a backup: the CRD returns with its old UID.
func TestGeneration_RestoredCRDIsServedAgain(t *testing.T) {
	for name, between := range map[string]time.Duration{"at once": 0, "a second later": time.Second, "an hour later": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newCRDCluster()
				cluster.define("ships")
				create(t, cluster, kindOf("ships"), "ns", "a")
				f := cluster.factory(t)
				f.Start(t.Context())
				l := acquire(t, f, kindOf("ships"), dynamicinformer.WithAllowAbsent())
				events := listen(t, l.Informer())
				for generation := 1; generation <= 3; generation++ {
					if err := l.WaitForSync(t.Context()); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					events.take()
					old := cluster.has("ships")
					cluster.undefine("ships")
					time.Sleep(between)
					cluster.define("ships", uid(old))
					create(t, cluster, kindOf("ships"), "ns", "a")
					time.Sleep(10 * time.Second)
					if err := l.WaitForSync(t.Context()); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					got, once := events.take(), []string{"delete ns/a", "add ns/a"}
					if diff := cmp.Diff(once, got); diff != "" {
						t.Errorf("events (-want +got):\n%s", diff)
					}
					if got := l.Status(); got.State != status.StateSynced || got.Generation != generation || string(got.Resource.CRDUID) != old {
						t.Errorf("%+v, want Synced, generation %d, UID %s", got, generation, old)
					}
				}
				shutdown(t, f)
			})
		})
	}
}

// scope sets the scope of a CRD.
func scope(scope string) func(crd map[string]any) {
	return func(crd map[string]any) { crd["spec"].(map[string]any)["scope"] = scope }
}

// lateServer is a client whose lists of all objects have none while it is behind, and the newest version: its server has not noticed yet that the
// scope of the type has changed.
type lateServer struct {
	dynamic.Interface
	behind *atomic.Bool
}

func (c lateServer) Resource(gvr schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return lateResource{c.Interface.Resource(gvr), c.behind}
}

type lateResource struct {
	dynamic.NamespaceableResourceInterface
	behind *atomic.Bool
}

func (r lateResource) Namespace(namespace string) dynamic.ResourceInterface {
	return lateNamespace{r.NamespaceableResourceInterface.Namespace(namespace), r.behind}
}

type lateNamespace struct {
	dynamic.ResourceInterface
	behind *atomic.Bool
}

func (r lateNamespace) List(ctx context.Context, opts metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := r.ResourceInterface.List(ctx, opts)
	if err == nil && r.behind.Load() {
		list.Items = nil
	}
	return list, err
}

// A type gets another scope, and one of two servers lists no objects, until it notices that. A list when the type has settled has them, also for
// an informer that has begun after the change. No other type is listed again.
func TestGeneration_ATypeWithAnotherScopeIsListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, behind := newCRDCluster(), &atomic.Bool{}
		cluster.define("ships")
		cluster.define("boats")
		create(t, cluster, kindOf("ships"), "ns", "old")
		f := newFactory(t, lateServer{cluster, behind}, dynamicinformer.WithDiscovery(cluster.resolver(t)), dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever))
		f.Start(t.Context())
		first := acquire(t, f, kindOf("ships"))
		acquire(t, f, kindOf("boats"))
		time.Sleep(time.Minute)
		behind.Store(true)
		cluster.Serve(fakecluster.Type{GVR: kindOf("ships"), Kind: kindName("ships")})
		create(t, cluster, kindOf("ships"), "", "new") // before an informer can watch the type
		cluster.mu.Lock()
		cluster.replaceLocked("ships", scope("Cluster"))
		cluster.mu.Unlock()
		cluster.define("boats")
		time.Sleep(2 * time.Second)
		second := acquire(t, f, kindOf("ships"), dynamicinformer.WithSeparateInformer())
		events := []*recorder{listen(t, first.Informer()), listen(t, second.Informer())}
		time.Sleep(time.Second)
		for _, events := range events {
			if got := events.take(); len(got) > 0 {
				t.Errorf("while the server is behind: %v", got)
			}
		}
		lists := func(name string) int { return len(cluster.Requests("list", kindOf(name))) }
		ships, boats := lists("ships"), lists("boats")
		behind.Store(false)
		time.Sleep(20 * time.Second)
		for _, events := range events {
			if diff := cmp.Diff([]string{"add new"}, events.take()); diff != "" {
				t.Errorf("when it has settled (-want +got):\n%s", diff)
			}
		}
		third := acquire(t, f, kindOf("ships"), dynamicinformer.WithSeparateInformer())
		time.Sleep(time.Hour)
		if err := third.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		if ships, boats = lists("ships")-ships, lists("boats")-boats; ships != 3 || boats != 0 {
			t.Errorf("%d lists of ships and %d of boats after that, want one of ships by each informer, and none of boats", ships, boats)
		}
		shutdown(t, f)
	})
}

// A CRD is deleted and created again while discovery fails. The informer's watch goes on with the new objects
// before the informer knows of the new CRD. Each object has one event nevertheless.
func TestGeneration_ObjectsThatCameBeforeTheirCRDAreNotDeleted(t *testing.T) {
	for name, lasts := range map[string]time.Duration{"a short failure": time.Second, "a long failure": 10 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newCRDCluster()
				cluster.define("ships")
				create(t, cluster, kindOf("ships"), "ns", "old")
				f := cluster.factory(t)
				f.Start(t.Context())
				l := acquire(t, f, kindOf("ships"))
				events := listen(t, l.Informer())
				if err := l.WaitForSync(t.Context()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				events.take()
				cluster.breakDiscovery(true)
				cluster.define("ships")
				create(t, cluster, kindOf("ships"), "ns", "early")
				time.Sleep(lasts)
				if diff := cmp.Diff([]string{"delete ns/old", "add ns/early"}, events.take()); diff != "" {
					t.Errorf("while discovery fails (-want +got):\n%s", diff)
				}
				cluster.breakDiscovery(false)
				time.Sleep(2 * time.Minute)
				if diff := cmp.Diff([]string(nil), events.take()); diff != "" {
					t.Errorf("when the CRD is known (-want +got):\n%s", diff)
				}
				if got := l.Status(); got.State != status.StateSynced || got.Generation != 1 || string(got.Resource.CRDUID) != cluster.has("ships") {
					t.Errorf("%+v, want Synced, generation 1, UID %s", got, cluster.has("ships"))
				}
				shutdown(t, f)
			})
		})
	}
}

// A CRD is replaced by one that serves nothing. The objects stay for 10 s, in which the informer is not synced.
func TestGeneration_ReplacedByACRDThatServesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newCRDCluster()
		cluster.define("ships")
		create(t, cluster, kindOf("ships"), "ns", "a")
		f := cluster.factory(t)
		f.Start(t.Context())
		l := acquire(t, f, kindOf("ships"))
		events := listen(t, l.Informer())
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		cluster.mu.Lock()
		cluster.replaceLocked("ships", versions(map[string]bool{"v1": false})) // the watch of its objects stays open
		cluster.mu.Unlock()
		time.Sleep(9 * time.Second)
		if diff := cmp.Diff([]string{"add ns/a"}, events.take()); diff != "" {
			t.Errorf("after 9 s (-want +got):\n%s", diff)
		}
		if got := l.Status(); got.State == status.StateSynced || got.Objects != 1 {
			t.Errorf("after 9 s: %+v", got)
		}
		time.Sleep(2 * time.Second)
		if diff := cmp.Diff([]string{"delete ns/a"}, events.take()); diff != "" {
			t.Errorf("after 11 s (-want +got):\n%s", diff)
		}
		if got := l.Status(); got.State != status.StateNotServed || got.Objects != 0 {
			t.Errorf("after 11 s: %+v", got)
		}
		shutdown(t, f)
	})
}

// The reflector has the list of another generation before the store, which waits for an index
// function. The test is not in a bubble, whose time does not pass while a goroutine waits for a lock.
func TestGeneration_SyncedWhenTheStoreHasTheList(t *testing.T) {
	for _, tc := range []struct {
		name    string
		policy  dynamicinformer.RemovalPolicy
		version int64 // of the previous generation
	}{
		{"EmitDeletes", dynamicinformer.EmitDeletes, 0},
		{"KeepCache", dynamicinformer.KeepCache, 0},
		{"EmitDeletes, after larger versions", dynamicinformer.EmitDeletes, 1_000_000},
		{"KeepCache, after larger versions", dynamicinformer.KeepCache, 1_000_000},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cluster := newCRDCluster()
			cluster.SetVersion(tc.version)
			cluster.define("ships")
			reached, release := make(chan struct{}), make(chan struct{})
			released := sync.OnceFunc(func() { close(release) })
			defer released()
			byName := func(obj any) ([]string, error) {
				key, err := cache.MetaNamespaceKeyFunc(obj)
				if key == "ns/z" {
					close(reached)
					<-release
				}
				return []string{key}, err
			}
			f := cluster.factory(t, dynamicinformer.WithRemovalPolicy(tc.policy), dynamicinformer.WithIndexers(cache.Indexers{"name": byName}))
			f.Start(t.Context())
			create(t, cluster, kindOf("ships"), "ns", "a")
			l := acquire(t, f, kindOf("ships"), dynamicinformer.WithAllowAbsent())
			if err := l.WaitForSync(t.Context()); err != nil {
				t.Fatal(err)
			}
			until := func(is func(now status.Informer) bool) {
				for now := range l.Watch(t.Context()) {
					if is(now) {
						return
					}
				}
			}
			until(func(now status.Informer) bool { return now.Resource.CRDUID != "" })
			cluster.Intercept(func(_ context.Context, req fakecluster.Request) error { // requests wait until the generation is known
				if req.Verb == "list" || req.Verb == "watch" {
					return apierrors.NewServiceUnavailable("not yet")
				}
				return nil
			})
			cluster.undefine("ships")
			cluster.SetVersion(500)
			cluster.define("ships")
			create(t, cluster, kindOf("ships"), "ns", "b")
			create(t, cluster, kindOf("ships"), "ns", "z")
			until(func(now status.Informer) bool { return now.Generation == 1 })
			cluster.Intercept(nil)
			l.Retry()
			<-reached
			until(func(now status.Informer) bool { return now.Objects == 2 && !now.Flushing })
			short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if err := l.WaitForSync(short); !errors.Is(err, status.ErrNotSynced) {
				t.Errorf("wait before the store has the list: %v", err)
			}
			if got := l.Status(); got.State == status.StateSynced {
				t.Errorf("status before the store has the list: %+v", got)
			}
			released()
			if err := l.WaitForSync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := l.Status(); got.State != status.StateSynced {
				t.Errorf("WaitForSync has returned, and the state is %s (%s)", got.State, got.Reason)
			}
			all, err := l.Lister().List(labels.Everything())
			if err != nil || len(all) != 2 {
				t.Errorf("the store has %d objects (%v), want 2", len(all), err)
			}
			shutdown(t, f)
		})
	}
}

// Without UIDs, a type that is served again is not synced before the next list, although its objects
// were kept.
func TestGeneration_KeptCacheIsNotSyncedBeforeTheNextList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType, blockType)
		create(t, cluster, widgets, "ns", "a")
		f := newFactory(t, cluster, withDiscovery(t, cluster), dynamicinformer.WithRemovalPolicy(dynamicinformer.KeepCache))
		l := syncedLease(t, f)
		cluster.Withdraw(widgets)
		time.Sleep(5 * time.Minute)
		checkGone(t, l)

		answer(cluster, apierrors.NewServiceUnavailable("down"))
		cluster.Serve(widgetType)
		time.Sleep(5 * time.Minute)
		if got := l.Status(); got.State == status.StateSynced || got.Resource.GVR != widgets || got.Evidence.Kind != "" {
			t.Errorf("before the list: %+v", got)
		}
		if err := waitFor(t.Context(), f, time.Minute); reasonOf(t, err) != status.ReasonUnavailable {
			t.Errorf("wait: %v", err)
		}
		cluster.Intercept(nil)
		if err := l.WaitForSync(t.Context()); err != nil {
			t.Errorf("after the list: %v", err)
		}
		shutdown(t, f)
	})
}

// A forbidden watch does not prevent the list. WaitForSync returns the same with each watch-list
// policy, with and without FailFast.
func TestWaitForSync_ForbiddenWatchHasOneResult(t *testing.T) {
	for _, policy := range []dynamicinformer.WatchListPolicy{dynamicinformer.WatchListAuto, dynamicinformer.WatchListNever, dynamicinformer.WatchListAnywhere} {
		for _, failFast := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/FailFast=%t", policy, failFast), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cluster := fakecluster.New(widgetType)
					create(t, cluster, widgets, "ns", "a")
					cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
						if req.Verb == "watch" {
							return apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("no"))
						}
						time.Sleep(time.Second)
						return nil
					})
					f := newFactory(t, cluster, dynamicinformer.WithWatchListPolicy(policy))
					f.Start(t.Context())
					l := acquire(t, f, widgets)
					var opts []dynamicinformer.WaitOption
					if failFast {
						opts = append(opts, dynamicinformer.WithFailFast(), nil)
					}
					if err := l.WaitForSync(t.Context(), opts...); err != nil {
						t.Errorf("wait: %v", err)
					}
					time.Sleep(time.Minute)
					if got := l.Status(); got.State != status.StateDegraded || got.Reason != status.ReasonForbidden || got.Verb != "watch" || got.StaleSince.IsZero() {
						t.Errorf("status: %+v", got)
					}
					shutdown(t, f)
				})
			})
		}
	}
}
