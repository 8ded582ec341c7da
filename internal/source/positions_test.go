package source_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/budget"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// moveGood is a transform that fails for objects named bad, and gives the others keys in namespace all.
func moveGood(obj any) (any, error) {
	object := obj.(*unstructured.Unstructured)
	if object.GetName() == "bad" {
		return nil, errors.New("bad")
	}
	object.SetName("moved-" + object.GetNamespace())
	object.SetNamespace("all")
	return object, nil
}

// What a transform has made of the objects of a namespace stays known while its lists fail.
func TestNamespaces_OneFailsInSeveralPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		for _, namespace := range []string{"m", "n"} {
			create(t, cluster, namespace, "good", "red")
			create(t, cluster, namespace, "bad", "red")
		}
		src := source.New(source.Config{
			Client: source.Unstructured(cluster), GVR: widgets, Namespaces: source.NewNamespaces("m", "n"), Polling: time.Minute,
			Availability: source.NewAvailability(source.Type{Serving: source.Served, GVR: widgets, Namespaced: true, Unwatchable: true}),
		})
		if err := src.SetTransform(moveGood); err != nil {
			t.Fatal(err)
		}
		r := runSource(t, src)
		defer r.stop()
		check := func(when string, rejected int, want ...string) {
			t.Helper()
			if diff := cmp.Diff(want, r.keys()); diff != "" {
				t.Errorf("%s keys (-want +got):\n%s", when, diff)
			}
			if got := src.State().Rejected.Count; got != rejected {
				t.Errorf("%s rejected = %d, want %d", when, got, rejected)
			}
		}
		check("at first", 2, "all/moved-m", "all/moved-n")
		refuse(cluster, errForbidden)
		for range 3 {
			time.Sleep(67 * time.Second)
			check("after a poll without n", 2, "all/moved-m", "all/moved-n")
		}
		refuse(cluster, nil)
		s := testSet{testInformer: &testInformer{t: t, cluster: cluster}}
		s.removeInN("good")
		s.removeInN("bad")
		time.Sleep(67 * time.Second)
		check("after a poll of both", 1, "all/moved-m")
		src.SetNamespaces("n")
		time.Sleep(67 * time.Second)
		check("after a poll without m", 0)
	})
}

// A list that fails in each namespace of the set does not keep the objects of those that have left it.
func TestNamespaces_OneIsRemovedWhileAllOthersFailInPolls(t *testing.T) {
	for name, remove := range map[string]func(set *source.Namespaces){
		"moved": func(set *source.Namespaces) { set.Set("n") },
		"gone":  func(set *source.Namespaces) { set.Follow(map[string]bool{"n": false}, "m") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestSet(t, func(cfg *source.Config) { cfg.Polling, cfg.MarkMoved = time.Minute, true }, func(cluster *fakecluster.Cluster) {
					cluster.Intercept(failing("watch", apierrors.NewMethodNotSupported(widgets.GroupResource(), "watch"), 0))
				}, "m", "n")
				events := s.noteEvents()
				time.Sleep(2 * time.Minute)
				refuse(s.cluster, errForbidden)
				remove(s.set)
				time.Sleep(3 * time.Minute)
				synctest.Wait()
				want := map[string][]string{"moved": {"move a", "move b"}, "gone": {"delete a", "delete b"}}[name]
				if diff := cmp.Diff(want, *events); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				s.checkKeys("without m", "n/a", "n/b")
				if gone := s.set.Gone(); gone != 0 {
					t.Errorf("the set still knows %d namespaces whose objects it has deleted", gone)
				}
				refuse(s.cluster, nil)
				s.removeInN("b")
				time.Sleep(3 * time.Minute)
				s.checkKeys("after a list", "n/a")
			})
		})
	}
}

// replaceType replaces the CRD by another one with an object of that color in m and n. The source has no evidence that the first one was gone.
func (s *testSet) replaceType(color string) {
	s.cluster.Serve(widgetType)
	create(s.t, s.cluster, "m", "new", color)
	create(s.t, s.cluster, "n", "new", color)
	now, _ := s.available.Current()
	now.Generation++
	s.available.Set(now)
	synctest.Wait()
}

// The store gets the objects of a list later than the reflector.
func TestNamespaces_AreListedWhenTheStoreHasTheirObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, nil, nil, "m", "n")
		has := map[string]bool{"m/a": true, "m/b": true}
		s.source.LookUp(func(key string) (any, bool) { return nil, has[key] })
		check := func(when string, want ...string) {
			t.Helper()
			unlisted, _, _ := s.source.Unlisted("")
			var got []string
			for _, namespace := range unlisted {
				got = append(got, namespace.Name)
				if namespace.Listed {
					t.Errorf("%s %s is listed", when, namespace.Name)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s unlisted (-want +got):\n%s", when, diff)
			}
		}
		check("without n:", "n")
		has["n/a"] = true
		check("with an object of n:", "n")
		s.set.Set("m")
		check("after n has left:")
		s.set.Set("m", "n")
		synctest.Wait()
		has["n/a"] = false
		check("n again:", "n")
		has["n/a"], has["n/b"] = true, true
		check("with n:")
		clear(has)
		check("after the list:") // later events may be late
	})
}

// The list of another generation fails in one namespace. The list of the generation before says nothing about it.
func TestNamespaces_OneFailsWhenTheTypeIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, nil, nil, "m", "n")
		refuse(s.cluster, errForbidden)
		s.replaceType("red")
		time.Sleep(time.Minute)
		s.checkKeys("forbidden:", "m/new")
		if unlisted, _, _ := s.source.Unlisted("n"); len(unlisted) != 1 {
			t.Errorf("unlisted = %+v, want n", unlisted)
		}
		if n := s.source.Namespaces()[1]; n.Listed || n.Version != "" {
			t.Errorf("n = %+v", n)
		}
		refuse(s.cluster, nil)
		time.Sleep(36 * time.Second)
		s.checkKeys("allowed:", "m/new", "n/new")
		if unlisted, _, _ := s.source.Unlisted(""); len(unlisted) != 0 {
			t.Errorf("unlisted = %+v", unlisted)
		}
	})
}

// The watches of the previous type may have sent objects of the new one. If a namespace can't be listed at first, its objects stay for a limited time.
func TestNamespaces_OneFailsSoonAfterTheTypeIsReplaced(t *testing.T) {
	unavailable := apierrors.NewTooManyRequests("storage is (re)initializing", 1)
	for name, tc := range map[string]struct {
		err   error
		after time.Duration // of the first list that succeeds
		want  []string      // events
	}{
		"for a moment": {unavailable, 2 * time.Second, nil},
		"for long":     {unavailable, 12 * time.Second, []string{"delete in-n", "add in-n"}},
		"forbidden":    {errForbidden, 2 * time.Second, []string{"delete in-n", "add in-n"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				queue := source.NewListQueue(1, 0)
				s := newTestSet(t, func(cfg *source.Config) { cfg.Queue = queue }, nil, "m", "n")
				for _, namespace := range []string{"m", "n"} {
					for _, former := range []string{"a", "b"} {
						if err := s.cluster.Resource(widgets).Namespace(namespace).Delete(t.Context(), former, metav1.DeleteOptions{}); err != nil {
							t.Fatal(err)
						}
					}
					create(t, s.cluster, namespace, "in-"+namespace, "red") // by the watches of the previous type
				}
				synctest.Wait()
				events := s.noteEvents()
				refuse(s.cluster, tc.err)
				now, _ := s.available.Current()
				now.Generation, now.Since = now.Generation+1, time.Now()
				s.available.Set(now)
				synctest.Wait()
				others := newLists(t, queue)
				defer others.finish()
				others.add("a") // another list of the source would wait for it
				time.Sleep(tc.after)
				refuse(s.cluster, nil)
				time.Sleep(36 * time.Second)
				synctest.Wait()
				if !slices.Equal(*events, tc.want) {
					t.Errorf("events = %q, want %q", *events, tc.want)
				}
				s.checkKeys("at the end", "m/in-m", "n/in-n")
			})
		})
	}
}

// A server requests a long pause of one namespace: the others do not wait for that, and their objects stay.
func TestNamespaces_OneIsThrottledForLongAfterTheTypeIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, nil, nil, "m", "n")
		for _, namespace := range []string{"m", "n"} {
			create(t, s.cluster, namespace, "in-"+namespace, "red") // by the watches of the previous type
		}
		synctest.Wait()
		events, lists := s.noteEvents(), len(s.cluster.Requests("list", widgets))
		refuse(s.cluster, apierrors.NewTooManyRequests("later", 3600))
		now, _ := s.available.Current()
		now.Generation, now.Since = now.Generation+1, time.Now()
		s.available.Set(now)
		time.Sleep(10 * time.Second)
		create(t, s.cluster, "m", "later", "red")
		synctest.Wait()
		if want := []string{"delete a", "delete b", "delete in-n", "add later"}; !slices.Equal(*events, want) {
			t.Errorf("events = %q, want %q", *events, want)
		}
		s.checkKeys("at the end", "m/a", "m/b", "m/in-m", "m/later")
		if got := len(s.cluster.Requests("list", widgets)) - lists; got > 5 {
			t.Errorf("%d lists", got)
		}
		if due := s.source.State().Due; due.After(time.Now().Add(time.Minute)) {
			t.Errorf("the next list is at %v", due)
		}
	})
}

// An empty cache of a namespace has no slots of a shard.
func TestShard_NamespaceFailsWhenTheTypeIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shard := newTestShard(part(0, 1))
		s := newTestSet(t, func(cfg *source.Config) { cfg.Shard = shard }, nil, "m", "n")
		if _, loaded := s.source.IsLoaded(""); !loaded {
			t.Error("the first list is not loaded")
		}
		refuse(s.cluster, errForbidden)
		s.replaceType("red")
		time.Sleep(time.Minute)
		if _, loaded := s.source.IsLoaded(""); loaded {
			t.Error("loaded without n")
		}
		refuse(s.cluster, nil)
		time.Sleep(36 * time.Second)
		s.checkKeys("allowed:", "m/new", "n/new")
		if _, loaded := s.source.IsLoaded(""); !loaded {
			t.Error("n is not loaded")
		}
	})
}

// Objects without a name belong to their namespace, also if they are left out.
func TestNamespaces_NamelessObjectsLeaveWithTheirNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, func(cfg *source.Config) { cfg.Client = nameless{cfg.Client} }, nil, "m", "n")
		check := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for _, rejected := range s.source.Report().Names {
				got = append(got, rejected.Key)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s left out (-want +got):\n%s", when, diff)
			}
		}
		check("at first", "m/(no name, UID m)", "n/(no name, UID n)")
		s.set.Set("n")
		check("without m", "n/(no name, UID n)")
		s.set.Set()
		check("without namespaces")
	})
}

// nameless is a client whose lists also have an object without a name for each namespace.
type nameless struct{ source.Client }

func (n nameless) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	list, err := n.Client.List(ctx, gvr, namespace, opts)
	if err == nil {
		obj := newObject("")
		obj.SetNamespace(namespace)
		obj.SetUID(types.UID(namespace))
		items := list.(*unstructured.UnstructuredList)
		items.Items = append(items.Items, *obj)
	}
	return list, err
}

// Only Retry lists a type again that does not fit into a memory budget.
func TestNamespaces_AnotherSetDoesNotRepeatRefusedLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, func(cfg *source.Config) { cfg.Budget = budget.New(100_000) }, nil, "m", "n")
		s.replaceType(strings.Repeat("x", 200_000))
		check := func(when string, want int) {
			t.Helper()
			time.Sleep(time.Hour)
			for _, namespace := range []string{"m", "n"} {
				s.checkRequests(when, namespace, want, 1)
			}
		}
		check("refused:", 2)
		s.source.SetNamespaces("n", "m")
		check("with the same names:", 2)
		s.source.Retry()
		check("after Retry:", 3)
	})
}

// Also if lists of all namespaces replace watches, only Retry lists a namespace again that does not fit into a memory budget.
func TestPoll_RetryRepeatsTheRefusedListOfANamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, func(cfg *source.Config) {
			cfg.Budget, cfg.Polling = budget.New(100_000), time.Minute
			now, _ := cfg.Availability.Current()
			now.Unwatchable = true
			cfg.Availability.Set(now)
		}, nil, "m")
		create(t, s.cluster, "large", "x", strings.Repeat("x", 200_000))
		check := func(when string, want int) {
			t.Helper()
			time.Sleep(time.Hour)
			s.checkRequests(when, "large", want, 0)
		}
		s.source.SetNamespaces("large", "m")
		check("refused:", 1)
		s.source.Retry()
		check("after Retry:", 2)
		s.source.SetNamespaces("large") // the only one: all lists fail
		check("alone:", 2)
		s.source.Retry()
		check("alone, after Retry:", 3)
	})
}

// Also if all namespaces must be listed again, only Retry lists one again that does not fit into a memory budget.
func TestNamespaces_RetryRepeatsTheRefusedListOfTheOnlyNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, func(cfg *source.Config) { cfg.Budget = budget.New(100_000) }, nil, "m")
		create(t, s.cluster, "large", "x", strings.Repeat("x", 200_000))
		s.source.SetNamespaces("large")
		synctest.Wait()
		now, _ := s.available.Current()
		now.Unsettled = true
		s.available.Set(now)
		time.Sleep(time.Hour)
		s.checkRequests("refused:", "large", 1, 0)
		s.source.Retry()
		time.Sleep(time.Hour)
		s.checkRequests("after Retry:", "large", 2, 0)
	})
}

// anyVersion is a client whose server has the objects in each version.
type anyVersion struct{ source.Client }

func (c anyVersion) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	list, err := c.Client.List(ctx, widgets, namespace, opts)
	if err == nil {
		err = meta.EachListItem(list, func(item runtime.Object) error {
			item.GetObjectKind().SetGroupVersionKind(gvr.GroupVersion().WithKind("Widget"))
			return nil
		})
	}
	return list, err
}

func (c anyVersion) Watch(ctx context.Context, _ schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	return c.Client.Watch(ctx, widgets, namespace, opts)
}

// nextVersion changes the type to version v2.
func (s *testSet) nextVersion() {
	now, _ := s.available.Current()
	now.GVR.Version = "v2"
	s.available.Set(now)
}

// checkVersions compares the keys and the versions of the objects in the store.
func (s *testSet) checkVersions(when string, want ...string) {
	s.t.Helper()
	var got []string
	for _, key := range s.keys() {
		obj, _, err := s.GetStore().GetByKey(key)
		if err != nil {
			s.t.Fatal(err)
		}
		got = append(got, key+" "+obj.(*unstructured.Unstructured).GroupVersionKind().Version)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("%s the store has (-want +got):\n%s", when, diff)
	}
}

// The type changes to another version while a namespace is forbidden: its objects change to it later, also those that
// are the same.
func TestNamespaces_OneIsForbiddenWhileTheVersionChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, func(cfg *source.Config) { cfg.Client = anyVersion{cfg.Client} }, nil, "m", "n")
		refuse(s.cluster, errForbidden)
		now, _ := s.available.Current()
		now.GVR.Version = "v2"
		s.available.Set(now)
		time.Sleep(time.Minute)
		s.checkVersions("forbidden:", "m/a v2", "m/b v2", "n/a v1", "n/b v1")
		s.cluster.Intercept(nil)
		time.Sleep(36 * time.Second)
		s.checkVersions("allowed:", "m/a v2", "m/b v2", "n/a v2", "n/b v2")
	})
}

// polledSet returns a testSet on a type that can't be watched, with a period of a minute.
func polledSet(t *testing.T, modify func(*source.Config), names ...string) *testSet {
	t.Helper()
	return newTestSet(t, func(cfg *source.Config) {
		now, _ := cfg.Availability.Current()
		now.Unwatchable = true
		cfg.Availability.Set(now)
		cfg.Polling = time.Minute
		if modify != nil {
			modify(cfg)
		}
	}, nil, names...)
}

// Also the next list of all namespaces changes the objects of a namespace that could not be listed.
func TestNamespaces_OneFailsInThePollOfAnotherVersion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := polledSet(t, func(cfg *source.Config) { cfg.Client = anyVersion{cfg.Client} }, "m", "n")
		refuse(s.cluster, errors.New("down"))
		s.nextVersion()
		time.Sleep(3 * time.Minute)
		s.checkVersions("failing:", "m/a v2", "m/b v2", "n/a v1", "n/b v1")
		s.cluster.Intercept(nil)
		time.Sleep(67 * time.Second)
		s.checkVersions("listed:", "m/a v2", "m/b v2", "n/a v2", "n/b v2")
	})
}

func TestNamespaces_OneIsForbiddenUntilTheTypeIsUnsettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, func(cfg *source.Config) { cfg.Client = anyVersion{cfg.Client} }, nil, "m", "n")
		refuse(s.cluster, errForbidden)
		s.nextVersion()
		time.Sleep(2 * time.Second)
		s.checkVersions("forbidden:", "m/a v2", "m/b v2", "n/a v1", "n/b v1")
		s.cluster.Intercept(nil)
		now, _ := s.available.Current()
		now.Unsettled = true
		s.available.Set(now)
		time.Sleep(time.Minute)
		s.checkVersions("allowed:", "m/a v2", "m/b v2", "n/a v2", "n/b v2")
	})
}

// An object of a namespace that can't be listed after a restore may have another state with the same version.
func TestNamespaces_OneFailsInThePollAfterARestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := polledSet(t, nil, "m", "n")
		backup := s.cluster.Backup()
		s.setColorIn("n", "blue")
		for _, color := range []string{"blue", "red", "blue"} {
			s.setColorIn("m", color)
		}
		time.Sleep(67 * time.Second)
		s.expect("before", "update a red to a blue", "update a red to a blue")
		s.cluster.Restore(backup)
		s.setColorIn("n", "green") // with the version of the lost state
		refuse(s.cluster, errors.New("down"))
		time.Sleep(67 * time.Second)
		s.expect("without n", "update a blue to a red")
		s.cluster.Intercept(nil)
		time.Sleep(67 * time.Second)
		s.expect("with n", "update a blue to a green")
	})
}
