package source_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
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

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// testSet is an informer on a set of namespaces.
type testSet struct {
	*testInformer
	set *source.Namespaces
}

// newTestSet returns a testSet whose namespaces have the objects a and b each. Namespace other, which is not in the set,
// has an object.
func newTestSet(t *testing.T, modify func(*source.Config), before func(*fakecluster.Cluster), names ...string) *testSet {
	t.Helper()
	cluster := fakecluster.New(widgetType)
	for _, namespace := range append(slices.Clone(names), "other") {
		create(t, cluster, namespace, "a", "red")
		create(t, cluster, namespace, "b", "red")
	}
	if before != nil {
		before(cluster)
	}
	s := &testSet{set: source.NewNamespaces(names...)}
	s.testInformer = newTestInformer(t, func(cfg *source.Config) {
		cfg.Namespaces, cfg.Client = s.set, source.Unstructured(cluster)
		if modify != nil {
			modify(cfg)
		}
	})
	s.cluster = cluster
	return s
}

func (s *testSet) checkKeys(when string, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.keys()); diff != "" {
		s.t.Errorf("%s the store has (-want +got):\n%s", when, diff)
	}
}

// requestsIn returns the numbers of lists and watches of widgets in namespace.
func (s *testSet) requestsIn(namespace string) (lists, watches int) {
	for _, req := range s.cluster.Requests("list", widgets) {
		if req.Namespace == namespace {
			lists++
		}
	}
	for _, req := range s.cluster.Requests("watch", widgets) {
		if req.Namespace == namespace {
			watches++
		}
	}
	return lists, watches
}

func (s *testSet) checkRequests(when, namespace string, lists, watches int) {
	s.t.Helper()
	if l, w := s.requestsIn(namespace); l != lists || w != watches {
		s.t.Errorf("%s %d lists and %d watches in %s, want %d and %d", when, l, w, namespace, lists, watches)
	}
}

// refuse makes requests in namespace n fail with err; nil: they succeed again.
func refuse(cluster *fakecluster.Cluster, err error) {
	cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
		if req.Namespace == "n" && (req.Verb == "list" || req.Verb == "watch") {
			return err
		}
		return nil
	})
}

var errForbidden = apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("no access"))

func inSet(i int) string { return fmt.Sprintf("n%02d", i) }

func TestNamespaces_EachHasOneListAndOneWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		for i := range 50 {
			names = append(names, inSet(i))
		}
		s := newTestSet(t, nil, nil, names...)
		if !s.HasSynced() {
			t.Error("not synced")
		}
		if got := len(s.keys()); got != 100 {
			t.Errorf("objects = %d, want 100", got)
		}
		if diff := cmp.Diff([]int{50, 0, 50}, asked(s.cluster)); diff != "" {
			t.Errorf("lists, watch-lists, watches (-want +got):\n%s", diff)
		}
		for _, name := range names {
			s.checkRequests("there are", name, 1, 1)
		}
		if got := s.cluster.OpenWatches(widgets); got != 50 {
			t.Errorf("open watches = %d, want 50", got)
		}
		create(t, s.cluster, "n07", "c", "blue")
		create(t, s.cluster, "other", "c", "blue")
		s.expect("after that", "add c blue")
		if took := s.stop(); took != 0 {
			t.Errorf("stopping took %v", took)
		}
		if got := s.cluster.OpenWatches(widgets); got != 0 {
			t.Errorf("open watches = %d after the end", got)
		}
	})
}

func TestNamespaces_OneThatIsAddedIsListedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, nil, nil, "m", "n")
		s.set.Set("other", "m", "n", "m")
		s.expect("added:", "add a red", "add b red")
		s.checkKeys("then", "m/a", "m/b", "n/a", "n/b", "other/a", "other/b")
		for _, name := range []string{"m", "n", "other"} {
			s.checkRequests("then", name, 1, 1)
		}
		create(t, s.cluster, "other", "c", "blue")
		s.expect("later", "add c blue")
		if got := s.cluster.OpenWatches(widgets); got != 3 {
			t.Errorf("open watches = %d, want 3", got)
		}
	})
}

func TestNamespaces_OneThatIsRemovedLosesItsObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, nil, nil, "m", "n")
		s.setColorIn("n", "blue")
		s.expect("painted:", "update a red to a blue")
		s.set.Set("m")
		s.expect("removed:", "delete a blue", "delete b red") // with the last state
		s.checkKeys("then", "m/a", "m/b")
		create(t, s.cluster, "n", "c", "blue")
		s.expect("then")
		if got := s.cluster.OpenWatches(widgets); got != 1 {
			t.Errorf("open watches = %d, want 1", got)
		}
		s.checkRequests("then", "m", 1, 1)
		s.set.Set("m", "n")
		s.expect("added again:", "add b red", "add a blue", "add c blue")
		s.checkRequests("added again:", "n", 2, 2)
		s.set.Set()
		s.checkKeys("without namespaces")
		if got := s.cluster.OpenWatches(widgets); got != 0 {
			t.Errorf("open watches = %d, want 0", got)
		}
	})
}

func TestNamespaces_EmptySetSyncs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, nil, nil)
		if !s.HasSynced() {
			t.Error("not synced")
		}
		if diff := cmp.Diff([]int{0, 0, 0}, asked(s.cluster)); diff != "" {
			t.Errorf("lists, watch-lists, watches (-want +got):\n%s", diff)
		}
		s.set.Set("other")
		s.expect("added:", "add a red", "add b red")
		s.set.Set()
		s.expect("removed:", "delete a red", "delete b red")
	})
}

func TestNamespaces_ForbiddenOneAffectsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, nil, func(cluster *fakecluster.Cluster) { refuse(cluster, errForbidden) }, "m", "n", "o")
		if !s.HasSynced() {
			t.Error("not synced")
		}
		s.checkKeys("at first", "m/a", "m/b", "o/a", "o/b")
		create(t, s.cluster, "m", "c", "red")
		s.expect("meanwhile", "add c red")
		time.Sleep(10 * time.Minute)
		if lists, _ := s.requestsIn("m"); lists != 1 {
			t.Errorf("lists of m = %d, want 1", lists)
		}
		if lists, _ := s.requestsIn("n"); lists < 10 || lists > 40 {
			t.Errorf("lists of n in 10 minutes = %d", lists)
		}
		states := s.source.Namespaces()
		if got := []string{states[0].Name, states[1].Name, states[2].Name}; !slices.Equal(got, []string{"m", "n", "o"}) {
			t.Errorf("names = %v", got)
		}
		n := states[1]
		if n.Listed || !apierrors.IsForbidden(n.Failure.Err) || n.Failure.Verb != "list" || n.Failure.Since.IsZero() || n.Failure.Attempts < 10 {
			t.Errorf("n = %+v", n)
		}
		if m := states[0]; !m.Listed || m.Version == "" || m.Failure.Err != nil {
			t.Errorf("m = %+v", m)
		}
		checkErrors(t, s.observer)
		s.cluster.Intercept(nil)
		time.Sleep(36 * time.Second)
		s.expect("allowed:", "add a red", "add b red")
		if n := s.source.Namespaces()[1]; !n.Listed || n.Failure.Err != nil {
			t.Errorf("allowed: n = %+v", n)
		}
	})
}

// Access that is revoked later concerns one namespace, and its objects stay.
func TestNamespaces_OneIsForbiddenLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, nil, nil, "m", "n")
		refuse(s.cluster, errForbidden)
		s.cluster.CloseWatches(widgets)
		time.Sleep(10 * time.Minute)
		create(t, s.cluster, "m", "c", "red")
		s.expect("meanwhile", "add c red")
		s.checkKeys("meanwhile", "m/a", "m/b", "m/c", "n/a", "n/b")
		if n := s.source.Namespaces()[1]; !n.Listed || !apierrors.IsForbidden(n.Failure.Err) {
			t.Errorf("n = %+v", n)
		}
		checkErrors(t, s.observer)
		s.cluster.Intercept(nil)
		create(t, s.cluster, "n", "c", "red")
		time.Sleep(36 * time.Second)
		s.expect("allowed:", "add c red")
	})
}

// If all namespaces fail, that is a failure of the source.
func TestNamespaces_AllFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, nil, func(cluster *fakecluster.Cluster) {
			cluster.Intercept(failing("list", errForbidden, 0))
		}, "m", "n")
		if s.HasSynced() {
			t.Error("synced")
		}
		if errs := s.observer.errors(); len(errs) == 0 || !apierrors.IsForbidden(errs[0]) {
			t.Errorf("reported errors: %v", errs)
		}
		refuse(s.cluster, errForbidden)
		time.Sleep(36 * time.Second)
		s.checkKeys("with one of them", "m/a", "m/b")
	})
}

// The set changes while its first list fails: the new one is listed without a pause.
func TestNamespaces_SetChangesDuringTheFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, nil, func(cluster *fakecluster.Cluster) {
			cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
				if req.Namespace != "n" {
					return nil
				}
				time.Sleep(time.Second)
				return errForbidden
			})
		}, "n")
		s.set.Set("n", "other")
		time.Sleep(2 * time.Second)
		s.checkKeys("after the second list", "other/a", "other/b")
	})
}

// The type can't be watched: lists of all namespaces replace the watches.
func TestNamespaces_Polling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, func(cfg *source.Config) { cfg.Polling = time.Minute }, func(cluster *fakecluster.Cluster) {
			cluster.Intercept(failing("watch", apierrors.NewMethodNotSupported(widgets.GroupResource(), "watch"), 0))
		}, "m", "n")
		s.setColorIn("m", "blue")
		s.removeInN("b")
		s.set.Set("m", "n", "other")
		time.Sleep(2 * time.Minute)
		s.expect("after a list", "delete b red", "add a red", "add b red", "update a red to a blue")
		s.set.Set("n")
		time.Sleep(2 * time.Minute)
		s.checkKeys("without m and other", "n/a")
		s.set.Follow(map[string]bool{}, "n")
		if gone := s.set.Gone(); gone != 1 {
			t.Errorf("%d namespaces are gone, want n", gone)
		}
		time.Sleep(2 * time.Minute)
		if gone := s.set.Gone(); gone != 0 {
			t.Errorf("the set still knows %d namespaces whose objects it has deleted", gone)
		}
		s.checkKeys("without namespaces")
		if got := asked(s.cluster)[2]; got > 2 {
			t.Errorf("watches = %d, want at most one for each namespace", got)
		}
		checkErrors(t, s.observer)
	})
}

// The watches of a set fail, and then lists replace them: the failures of the watches end.
func TestNamespaces_FailuresOfWatchesEndWhenListsReplaceThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, func(cfg *source.Config) { cfg.Polling = time.Minute }, func(cluster *fakecluster.Cluster) {
			cluster.Intercept(failing("watch", apierrors.NewServiceUnavailable("starting"), 0))
		}, "m", "n")
		time.Sleep(5 * time.Second)
		s.cluster.Intercept(failing("watch", apierrors.NewMethodNotSupported(widgets.GroupResource(), "watch"), 0))
		time.Sleep(3 * time.Minute)
		for _, state := range s.source.Namespaces() {
			if state.Failure.Err != nil {
				t.Errorf("%s = %+v", state.Name, state.Failure)
			}
		}
		before := len(s.observer.errors())
		refuse(s.cluster, errForbidden)
		time.Sleep(3 * time.Minute)
		if errs := s.observer.errors()[before:]; len(errs) != 0 {
			t.Errorf("a failure of n is one of the source: %v", errs)
		}
	})
}

// A namespace that does not respond delays the first list for a minute, and no other one after that.
func TestNamespaces_HangingOneDoesNotBlockTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var free atomic.Bool
		s := newTestSet(t, nil, func(cluster *fakecluster.Cluster) {
			cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
				if req.Namespace == "n" && req.Verb == "list" && !free.Load() {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			})
		}, "m", "n")
		if s.HasSynced() {
			t.Error("synced without n")
		}
		time.Sleep(61 * time.Second)
		s.checkKeys("after a minute", "m/a", "m/b")
		if n := s.source.Namespaces()[1]; n.Failure.Err == nil || !strings.Contains(n.Failure.Err.Error(), "not responded") {
			t.Errorf("n = %+v", n)
		}
		free.Store(true)
		time.Sleep(11 * time.Minute)
		s.checkKeys("then", "m/a", "m/b", "n/a", "n/b")
	})
}

// The watch of one namespace can't continue: only that one is listed again, and gives the changes since then.
func TestNamespaces_ExpiredWatchOfOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, endless, nil, "m", "n")
		var expired atomic.Int64
		s.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Verb == "watch" && req.Namespace == "n" && expired.Add(1) == 1 {
				s.setColorIn("n", "blue")             //nolint:contextcheck // the context of the test
				s.removeInN("b")                      //nolint:contextcheck // the context of the test
				create(t, s.cluster, "n", "c", "red") //nolint:contextcheck // the context of the test
				return apierrors.NewResourceExpired("too old")
			}
			return nil
		})
		time.Sleep(2 * time.Second) // a watch that ends earlier is a failure
		s.cluster.CloseWatches(widgets)
		s.expect("after that", "delete b red", "update a red to a blue", "add c red")
		s.checkRequests("after that", "m", 1, 2)
		s.checkRequests("after that", "n", 2, 3)
	})
}

func TestNamespaces_CutWatchesContinue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, endless, nil, "m", "n")
		for range 5 {
			time.Sleep(2 * time.Second)
			s.cluster.CloseWatches(widgets)
			synctest.Wait()
		}
		s.checkRequests("after 5 ends", "m", 1, 6)
		s.checkRequests("after 5 ends", "n", 1, 6)
		create(t, s.cluster, "n", "c", "red")
		s.expect("after that", "add c red")
	})
}

// paging is a client that sends lists in pages of the requested size.
type paging struct {
	source.Client
	mu    sync.Mutex
	pages map[string]int // by namespace
}

func (p *paging) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	p.mu.Lock()
	if p.pages == nil {
		p.pages = map[string]int{}
	}
	p.pages[namespace]++
	p.mu.Unlock()
	all, err := p.Client.List(ctx, gvr, namespace, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	list := all.(*unstructured.UnstructuredList)
	from := 0
	if opts.Continue != "" {
		from, _ = strconv.Atoi(opts.Continue)
	}
	list.Items = list.Items[from:]
	if int64(len(list.Items)) > opts.Limit {
		list.Items = list.Items[:opts.Limit]
		list.SetContinue(strconv.Itoa(from + len(list.Items)))
	}
	return list, nil
}

func TestNamespaces_ListsInPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var client *paging
		s := newTestSet(t, func(cfg *source.Config) {
			client = &paging{Client: cfg.Client}
			cfg.PageSize, cfg.Client = 1, client
		}, nil, "m", "n")
		s.checkKeys("with pages of one object", "m/a", "m/b", "n/a", "n/b")
		s.set.Set("m", "n", "other")
		s.checkKeys("with another namespace", "m/a", "m/b", "n/a", "n/b", "other/a", "other/b")
		if diff := cmp.Diff(map[string]int{"m": 2, "n": 2, "other": 2}, client.pages); diff != "" {
			t.Errorf("pages (-want +got):\n%s", diff)
		}
	})
}

func TestNamespaces_TypeIsDeletedAndCreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, nil, nil, "m", "n")
		s.deleteType()
		s.checkKeys("without the type")
		s.set.Set("m", "o")
		s.createType()
		create(t, s.cluster, "o", "c", "red")
		create(t, s.cluster, "n", "c", "red")
		s.checkKeys("with the new type", "o/c")
		create(t, s.cluster, "m", "d", "red")
		s.checkKeys("later", "m/d", "o/c")
	})
}

// Cluster-scoped objects are in no namespace: there is one list and one watch.
func TestNamespaces_ClusterScopedType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(blockType)
		create(t, cluster, "", "a", "red")
		r := runInformer(t, source.Config{
			Client: source.Unstructured(cluster), GVR: blocks, Namespaces: source.NewNamespaces("m", "n"),
			Availability: source.NewAvailability(source.Type{Serving: source.Served, GVR: blocks}),
		})
		if diff := cmp.Diff([]string{"a"}, r.keys()); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		if got := len(cluster.Requests("watch", blocks)); got != 1 {
			t.Errorf("watches = %d, want 1", got)
		}
		if got := r.source.Namespaces(); got != nil {
			t.Errorf("namespaces = %v", got)
		}
		r.stop()
	})
}

// A transform may fail, and may change keys: also then, each namespace has its own objects.
func TestNamespaces_TransformFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := source.NewNamespaces("m", "n")
		cluster := fakecluster.New(widgetType)
		for _, namespace := range []string{"m", "n", "o"} {
			create(t, cluster, namespace, "good", "red")
			create(t, cluster, namespace, "bad", "red")
		}
		src := source.New(source.Config{Client: source.Unstructured(cluster), GVR: widgets, Namespaces: set})
		if err := src.SetTransform(func(obj any) (any, error) {
			object := obj.(*unstructured.Unstructured)
			if object.GetName() == "bad" {
				return nil, errors.New("bad")
			}
			object.SetName("moved-" + object.GetNamespace())
			object.SetNamespace("all")
			return object, nil
		}); err != nil {
			t.Fatal(err)
		}
		r := runSource(t, src)
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
		set.Set("m", "n", "o")
		check("with another", 3, "all/moved-m", "all/moved-n", "all/moved-o")
		set.Set("n", "o")
		check("without the first", 2, "all/moved-n", "all/moved-o")
		set.Set("all", "n", "o")
		synctest.Wait()
		set.Set("n", "o")
		check("without the namespace of the new keys", 2, "all/moved-n", "all/moved-o")
		r.stop()
	})
}

// The version of the whole is the smallest one: the reflector has everything up to it.
func TestNamespaces_VersionIsTheSmallestOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, nil, func(cluster *fakecluster.Cluster) { cluster.SetVersion(100) }, "m", "n")
		check := func(when string) {
			t.Helper()
			synctest.Wait()
			states := s.source.Namespaces()
			want := min(states[0].Version, states[1].Version) // both have three digits
			if got := s.source.State(); got.Version != want || got.Rewinds != 0 {
				t.Errorf("%s the version is %s with %d rewinds, want the smallest of %+v", when, got.Version, got.Rewinds, states)
			}
		}
		check("after the lists")
		first := s.source.State().Version
		for i := range 3 { // events of namespaces are not in the order of their versions
			s.setColorIn("n", fmt.Sprint(i))
			check("after an event in n")
		}
		if got := s.source.State().Version; got != first {
			t.Errorf("version = %s, want still %s: m has no event", got, first)
		}
		s.setColorIn("m", "blue")
		check("after an event in m")
		if got := s.source.State().Version; got == first {
			t.Errorf("version = %s, want that of n", got)
		}
		s.set.Set("n", "other")
		check("with another set")
	})
}

// The lists of a set are one list for a queue: the namespaces are listed one after the other.
func TestNamespaces_QueueLimitsTheirLists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int64
		s := newTestSet(t, func(cfg *source.Config) { cfg.Queue = source.NewListQueue(1, 0) }, func(cluster *fakecluster.Cluster) {
			cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
				if req.Verb == "list" {
					most.Store(max(most.Load(), now.Add(1)))
					time.Sleep(time.Second)
					now.Add(-1)
				}
				return nil
			})
		}, "m", "n", "o")
		time.Sleep(10 * time.Second)
		s.checkKeys("then", "m/a", "m/b", "n/a", "n/b", "o/a", "o/b")
		if got := most.Load(); got != 1 {
			t.Errorf("lists at the same time = %d, want 1", got)
		}
	})
}

// The set changes while the objects of a namespace are passed on.
func TestNamespaces_OneIsRemovedDuringItsFirstList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, set, busy := fakecluster.New(widgetType), source.NewNamespaces("m"), make(chan struct{})
		create(t, cluster, "m", "a", "red")
		create(t, cluster, "n", "a", "red")
		src := source.New(source.Config{Client: source.Unstructured(cluster), GVR: widgets, Namespaces: set})
		if err := src.SetTransform(func(obj any) (any, error) {
			if obj.(metav1.Object).GetNamespace() == "n" {
				<-busy
			}
			return obj, nil
		}); err != nil {
			t.Fatal(err)
		}
		r := runSource(t, src)
		set.Set("m", "n")
		synctest.Wait()
		set.Set("m")
		synctest.Wait()
		close(busy)
		time.Sleep(time.Second) // a deletion waits for the object in the store
		if diff := cmp.Diff([]string{"m/a"}, r.keys()); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		r.stop()
	})
}

// All namespaces are listed again, since another server may serve the type. One of them fails: its objects stay.
func TestNamespaces_OneFailsWhenAllAreListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, nil, nil, "m", "n")
		refuse(s.cluster, errForbidden)
		now, _ := s.available.Current()
		now.Unsettled = true
		s.available.Set(now)
		time.Sleep(time.Minute)
		s.expect("meanwhile")
		s.checkKeys("meanwhile", "m/a", "m/b", "n/a", "n/b")
		s.cluster.Intercept(nil)
		s.removeInN("b")
		time.Sleep(36 * time.Second)
		s.expect("allowed:", "delete b red")
	})
}

// While the type is held, no request is sent. A namespace that is added is listed after that.
func TestNamespaces_HeldTypeSendsNoRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, nil, nil, "m", "n")
		set(s.available, source.Held)
		s.set.Set("m", "other")
		s.expect("held:", "delete a red", "delete b red")
		s.checkRequests("held:", "other", 0, 0)
		create(t, s.cluster, "m", "c", "red")
		s.expect("held:", "add c red")
		set(s.available, source.Served)
		s.expect("served:", "add a red", "add b red")
	})
}

// A list that may be of another type, which is not known yet, has no effect.
func TestNamespaces_ListIsConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var other atomic.Bool
		s := newTestSet(t, func(cfg *source.Config) {
			cfg.Confirm = func(context.Context, source.Type) bool { return !other.Load() }
		}, nil, "m")
		other.Store(true)
		s.set.Set("m", "other")
		s.expect("with another type:")
		other.Store(false)
		time.Sleep(time.Second)
		s.expect("confirmed:", "add a red", "add b red")
	})
}

// An object that can't be decoded fails the list of its namespace, if nothing may be left out.
func TestNamespaces_StrictDecodingFailsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestSet(t, func(cfg *source.Config) {
			cfg.Strict = true
			cfg.Client = spoiling{cfg.Client}
		}, nil, "m")
		s.set.Set("m", "other")
		synctest.Wait()
		if state := s.source.Namespaces()[1]; state.Listed || !errors.Is(state.Failure.Err, source.ErrDecode) {
			t.Errorf("other = %+v", state)
		}
		s.checkKeys("then", "m/a", "m/b")
		create(t, s.cluster, "m", "c", "red")
		s.expect("then", "add c red")
	})
}

// spoiling is a client whose objects of namespace other can't be converted.
type spoiling struct{ source.Client }

func (s spoiling) Convert() func(runtime.Object) (runtime.Object, error) {
	return func(obj runtime.Object) (runtime.Object, error) {
		if obj.(metav1.Object).GetNamespace() == "other" {
			return nil, errors.New("bad")
		}
		return obj, nil
	}
}

func (s *testSet) setColorIn(namespace, color string) {
	client := s.cluster.Resource(widgets).Namespace(namespace)
	obj, err := client.Get(s.t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	obj.SetLabels(map[string]string{"color": color})
	if _, err := client.Update(s.t.Context(), obj, metav1.UpdateOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *testSet) removeInN(name string) {
	if err := s.cluster.Resource(widgets).Namespace("n").Delete(s.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		s.t.Fatal(err)
	}
}

// As without a set, the server has responded to the first watches when the watch is open: fake clients send only
// later events. A namespace that does not respond delays it by a second.
func TestNamespaces_TheWatchIsOpenWhenEachNamespaceHasResponded(t *testing.T) {
	for name, tc := range map[string]struct{ delay, want time.Duration }{
		"soon":  {300 * time.Millisecond, 300 * time.Millisecond},
		"never": {time.Hour, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := fakecluster.New(widgetType)
				create(t, cluster, "m", "a", "red")
				create(t, cluster, "n", "a", "red")
				cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
					if req.Verb == "watch" && req.Namespace == "n" {
						select {
						case <-time.After(tc.delay):
						case <-ctx.Done():
						}
					}
					return ctx.Err()
				})
				s := source.New(source.Config{
					Client: source.Unstructured(cluster), GVR: widgets, Namespaces: source.NewNamespaces("m", "n"), Availability: newAvailability(source.Served),
				})
				<-startList(t.Context(), s)
				begun := time.Now()
				w, err := gateOf(s).WatchWithContext(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begun); took != tc.want {
					t.Errorf("the watch is open after %v, want %v", took, tc.want)
				}
				w.Stop()
			})
		})
	}
}

// When the names are known, the failures of the requests for them do not fail the source, but they are reported.
func TestNamespaces_LaterFailuresOfTheirNamesAreReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := make(chan error)
		set := source.NewFollowedNamespaces(func(ctx context.Context, set *source.Namespaces, failed func(string, error)) {
			set.Set("ns")
			for {
				select {
				case err := <-fail:
					failed(source.VerbWatch, err)
				case <-ctx.Done():
					return
				}
			}
		})
		var reported []error
		w := newTestInformer(t, func(cfg *source.Config) {
			cfg.Namespaces, cfg.Report = set, func(_ context.Context, err error) { reported = append(reported, err) }
		}, "a")
		fail <- errForbidden
		fail <- apierrors.NewResourceExpired("the ordinary end of a watch")
		synctest.Wait()
		if len(reported) != 1 || !errors.Is(reported[0], errForbidden) {
			t.Errorf("reported: %v, want the first failure", reported)
		}
		checkErrors(t, w.observer)
	})
}
