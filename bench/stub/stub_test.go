package stub_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/stub"
)

// patience only ends a test that hangs: under load, what has to come takes long.
const patience = 3 * time.Minute

// start serves the first n objects of a kind.
func start(t *testing.T, kindName string, n int) (*httptest.Server, objects.Kind) {
	t.Helper()
	kind, err := objects.Named(kindName)
	if err != nil {
		t.Fatal(err)
	}
	corpus, err := objects.NewCorpus(t.Context(), kind, n)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(stub.NewHandler(corpus))
	t.Cleanup(server.Close)
	return server, kind
}

func client(t *testing.T, server *httptest.Server) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func change(t *testing.T, server *httptest.Server, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := stub.Change(ctx, server.URL, n); err != nil {
		t.Fatal(err)
	}
}

// follow runs client-go's informer on the stub until the test ends. It returns the
// informer when it has synced, and what it is updated with.
func follow(t *testing.T, server *httptest.Server, kind objects.Kind) (cache.Store, <-chan *unstructured.Unstructured) {
	t.Helper()
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client(t, server), 0)
	informer := factory.ForResource(kind.GVR).Informer()
	updates := make(chan *unstructured.Unstructured, 10_000)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, obj any) { updates <- obj.(*unstructured.Unstructured) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	t.Cleanup(factory.Shutdown)
	t.Cleanup(cancel) // first
	wait, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	if !cache.WaitForCacheSync(wait.Done(), informer.HasSynced) {
		t.Fatal("the informer does not sync")
	}
	return informer.GetStore(), updates
}

func next[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v, ok := <-from:
		if !ok {
			t.Fatal("it ended early")
		}
		return v
	case <-time.After(patience):
		t.Fatal("nothing comes")
	}
	panic("unreachable")
}

func expectAll(t *testing.T, store cache.Store, kind objects.Kind, n int) {
	t.Helper()
	if got := len(store.ListKeys()); got != n {
		t.Fatalf("%d objects cached, want %d", got, n)
	}
	for i := range n {
		want := &unstructured.Unstructured{Object: kind.Object(i)}
		got, _, err := store.Get(want)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(any(want), got); diff != "" {
			t.Fatalf("object %d:\n%s", i, diff)
		}
	}
}

func TestStub_AnInformerFollowsIt(t *testing.T) {
	const n = 30
	eventsOf := map[string]int{"ipamblock": 100, "mix": 700} // more than changes may run ahead
	for _, kindName := range objects.Names() {
		for _, watchList := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/watchList=%t", kindName, watchList), func(t *testing.T) {
				featurestesting.SetFeatureDuringTest(t, features.WatchListClient, watchList)
				server, kind := start(t, kindName, n)
				store, updates := follow(t, server, kind)
				expectAll(t, store, kind, n)

				change(t, server, eventsOf[kindName])
				for k := range eventsOf[kindName] {
					u := next(t, updates)
					first := unstructured.Unstructured{Object: kind.Object(k % n)}
					if got, want := u.GetName(), first.GetName(); got != want {
						t.Fatalf("event %d is about %s, not %s", k, got, want)
					}
					if got, want := u.GetResourceVersion(), objects.ResourceVersion(n+k); got != want {
						t.Fatalf("event %d is of version %s, not %s", k, got, want)
					}
					if got, want := u.GetGeneration(), first.GetGeneration()+int64(k/n)+1; got != want {
						t.Fatalf("event %d: generation %d, want %d", k, got, want)
					}
				}
			})
		}
	}
}

func TestStub_AChangeCountsUpAndLeavesTheRest(t *testing.T) {
	for _, kind := range objects.All() {
		n := 1
		for !hasCounter(kind, n-1) {
			n++
		}
		server, _ := start(t, kind.Name, n)
		_, updates := follow(t, server, kind)
		change(t, server, n)
		var got *unstructured.Unstructured
		for range n {
			got = next(t, updates)
		}
		want := &unstructured.Unstructured{Object: kind.Object(n - 1)}
		want.SetResourceVersion(objects.ResourceVersion(2*n - 1))
		want.SetGeneration(want.GetGeneration() + 1)
		counter, _, _ := unstructured.NestedInt64(want.Object, kind.Counter...)
		if err := unstructured.SetNestedField(want.Object, counter+1, kind.Counter...); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind.Name, diff)
		}
	}
}

func hasCounter(kind objects.Kind, i int) bool {
	_, found, _ := unstructured.NestedInt64(kind.Object(i), kind.Counter...)
	return found
}

func TestStub_ListsInPagesUnlessAnyVersionWillDo(t *testing.T) {
	server, kind := start(t, "mix", 25)
	resource := client(t, server).Resource(kind.GVR)
	opts := metav1.ListOptions{Limit: 10}
	var sizes []int
	var items []unstructured.Unstructured
	for {
		page, err := resource.List(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := page.GetResourceVersion(), objects.ResourceVersion(24); got != want {
			t.Errorf("the list is of version %s, not %s", got, want)
		}
		sizes, items = append(sizes, len(page.Items)), append(items, page.Items...)
		if opts.Continue = page.GetContinue(); opts.Continue == "" {
			break
		}
	}
	if diff := cmp.Diff([]int{10, 10, 5}, sizes); diff != "" {
		t.Errorf("pages:\n%s", diff)
	}
	for i := range items {
		if diff := cmp.Diff(kind.Object(i), items[i].Object); diff != "" {
			t.Fatalf("object %d:\n%s", i, diff)
		}
	}
	whole, err := resource.List(t.Context(), metav1.ListOptions{Limit: 10, ResourceVersion: "0"})
	if err != nil || len(whole.Items) != 25 || whole.GetContinue() != "" {
		t.Errorf("from version 0: %d objects, %v", len(whole.Items), err)
	}
}

func TestStub_APageOfAListThatHasPassedIsGone(t *testing.T) {
	server, kind := start(t, "mix", 5)
	resource := client(t, server).Resource(kind.GVR)
	first, err := resource.List(t.Context(), metav1.ListOptions{Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	_, updates := follow(t, server, kind)
	change(t, server, 1)
	next(t, updates)
	_, err = resource.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: first.GetContinue()})
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("the second page: %v, want Expired", err)
	}
}

// discard opens a watch of the changes to come, and reads it without decoding until the
// test ends: the stub changes its objects as fast as a watch is read.
func discard(t *testing.T, server *httptest.Server, kind objects.Kind, n int) {
	t.Helper()
	gvr := kind.GVR
	url := fmt.Sprintf("%s/apis/%s/%s/%s?watch=true&resourceVersion=%s", server.URL, gvr.Group, gvr.Version, gvr.Resource, objects.ResourceVersion(n-1))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	res, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(io.Discard, res.Body) }) // until it is closed
	t.Cleanup(func() {
		_ = res.Body.Close() // it was only read
		reading.Wait()
	})
	if res.StatusCode != http.StatusOK {
		t.Fatalf("watch: %s", res.Status)
	}
}

func TestStub_AWatchReplaysWhatIsKept(t *testing.T) {
	const n, events, recently = 3, 2300, 2000 // some more than are kept, and some less
	server, kind := start(t, "mix", n)
	discard(t, server, kind, n)
	change(t, server, events)
	resource := client(t, server).Resource(kind.GVR)
	watchFrom := func(version string) watch.Event {
		w, err := resource.Watch(t.Context(), metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		return next(t, w.ResultChan())
	}
	first := n + events - recently
	recent := watchFrom(objects.ResourceVersion(first - 1))
	if u, ok := recent.Object.(*unstructured.Unstructured); !ok || recent.Type != watch.Modified || u.GetResourceVersion() != objects.ResourceVersion(first) {
		t.Errorf("from a recent version: %v", recent.Type)
	}
	if old := watchFrom(objects.ResourceVersion(n)); old.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(old.Object)) {
		t.Errorf("from an old version: %v %v", old.Type, old.Object)
	}
}

func TestStub_AWatchEndsWithItsTimeout(t *testing.T) {
	server, kind := start(t, "mix", 1)
	second := int64(1)
	w, err := client(t, server).Resource(kind.GVR).Watch(t.Context(), metav1.ListOptions{ResourceVersion: objects.ResourceVersion(0), TimeoutSeconds: &second})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	select {
	case event, open := <-w.ResultChan():
		if open {
			t.Errorf("an event: %v", event)
		}
	case <-time.After(patience):
		t.Error("it does not end")
	}
}

func TestStub_RefusesWhatMakesNoSense(t *testing.T) {
	server, kind := start(t, "mix", 1)
	c := client(t, server)
	initial := true
	_, err := c.Resource(kind.GVR).Watch(t.Context(), metav1.ListOptions{SendInitialEvents: &initial, AllowWatchBookmarks: true})
	if !apierrors.IsInvalid(err) {
		t.Errorf("initial events of no version: %v, want Invalid", err)
	}
	if _, err := c.Resource(kind.GVR).List(t.Context(), metav1.ListOptions{Continue: "?"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a strange continue key: %v, want BadRequest", err)
	}
	other := kind.GVR
	other.Resource = "gadgets"
	if _, err := c.Resource(other).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("another resource: %v, want NotFound", err)
	}
	if err := stub.Change(t.Context(), server.URL, -1); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("-1 changes: %v", err)
	}
}
