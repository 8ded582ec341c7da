package stub_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/process"
	"github.com/gvrkit/gvrkit/bench/stub"
)

// timeout is longer than any step of a test takes.
const timeout = 3 * time.Minute

func TestMain(m *testing.M) {
	if process.Role() == stub.Role { // the server of a test runs in a process of this program
		if err := stub.RunProcess(context.Background()); err != nil { //nolint:forbidigo // a process has no other context
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// startKind serves the first n objects of a kind until the test ends.
func startKind(t *testing.T, name string, n int) (stub.Client, objects.Kind) {
	t.Helper()
	handler, err := stub.New(t.Context(), stub.Config{Kind: name, Objects: n})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return stub.Client{Host: server.URL}, named(t, name)
}

func named(t *testing.T, name string) objects.Kind {
	t.Helper()
	kind, err := harness.Find(objects.All(), name, func(k objects.Kind) string { return k.Name })
	if err != nil {
		t.Fatal(err)
	}
	return kind
}

func dynamicClient(t *testing.T, c stub.Client) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func change(t *testing.T, c stub.Client, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if err := c.Change(ctx, n); err != nil {
		t.Fatal(err)
	}
}

// inform runs client-go's informer until the test ends. It returns the store, which has synced, and
// a channel of updated objects.
func inform(t *testing.T, c stub.Client, kind objects.Kind) (cache.Store, <-chan *unstructured.Unstructured) {
	t.Helper()
	return informOf[*unstructured.Unstructured](t, dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient(t, c), 0), kind)
}

func informOf[T any](t *testing.T, factory dynamicinformer.DynamicSharedInformerFactory, kind objects.Kind) (cache.Store, <-chan T) {
	t.Helper()
	informer := factory.ForResource(kind.GVR).Informer()
	updates := make(chan T, 10_000)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, obj any) { updates <- obj.(T) },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx.Done())
	t.Cleanup(factory.Shutdown)
	t.Cleanup(cancel) // runs before Shutdown
	wait, stop := context.WithTimeout(t.Context(), timeout)
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
			t.Fatal("the channel was closed")
		}
		return v
	case <-time.After(timeout):
		t.Fatal("timeout")
	}
	panic("unreachable")
}

func versionOf(i int) string { return objects.FormatVersion(objects.Version(i)) }

func TestObjects_AnInformerGetsAllChanges(t *testing.T) {
	const n = 30
	eventsOf := map[string]int{"ipamblock": 100, "mix": 700}
	for _, kind := range objects.All() {
		for _, watchList := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/watchList=%t", kind.Name, watchList), func(t *testing.T) {
				featurestesting.SetFeatureDuringTest(t, features.WatchListClient, watchList)
				c, kind := startKind(t, kind.Name, n)
				store, updates := inform(t, c, kind)
				if got := len(store.ListKeys()); got != n {
					t.Fatalf("%d objects cached, want %d", got, n)
				}
				firsts := make([]*unstructured.Unstructured, n)
				for i := range n {
					firsts[i] = &unstructured.Unstructured{Object: kind.Object(i)}
					got, _, err := store.Get(firsts[i])
					if diff := cmp.Diff(any(firsts[i]), got); diff != "" || err != nil {
						t.Fatalf("object %d: %v\n%s", i, err, diff)
					}
				}
				change(t, c, eventsOf[kind.Name])
				for k := range eventsOf[kind.Name] {
					u := next(t, updates)
					first := firsts[k%n]
					if u.GetName() != first.GetName() || u.GetResourceVersion() != versionOf(n+k) || u.GetGeneration() != first.GetGeneration()+int64(k/n)+1 {
						t.Fatalf("event %d: %s, version %s, generation %d", k, u.GetName(), u.GetResourceVersion(), u.GetGeneration())
					}
				}
			})
		}
	}
}

// counters has the path of the counter of each kind.
var counters = map[string][]string{"ipamblock": {"spec", "sequenceNumber"}, "mix": {"status", "observedGeneration"}}

func TestObjects_AChangeIncrementsCounterAndGeneration(t *testing.T) {
	for _, kind := range objects.All() {
		counter := func(i int) (int64, bool) {
			n, found, _ := unstructured.NestedInt64(kind.Object(i), counters[kind.Name]...)
			return n, found
		}
		n := 1
		for _, found := counter(0); !found; _, found = counter(n - 1) {
			n++
		}
		c, _ := startKind(t, kind.Name, n)
		_, updates := inform(t, c, kind)
		change(t, c, n)
		var got *unstructured.Unstructured
		for range n {
			got = next(t, updates)
		}
		want := &unstructured.Unstructured{Object: kind.Object(n - 1)}
		want.SetResourceVersion(versionOf(2*n - 1))
		want.SetGeneration(want.GetGeneration() + 1)
		value, _ := counter(n - 1)
		if err := unstructured.SetNestedField(want.Object, value+1, counters[kind.Name]...); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind.Name, diff)
		}
	}
}

func TestLists_HavePagesExceptFromVersion0(t *testing.T) {
	c, kind := startKind(t, "mix", 25)
	resource := dynamicClient(t, c).Resource(kind.GVR)
	opts := metav1.ListOptions{Limit: 10}
	var sizes []int
	var items []unstructured.Unstructured
	for {
		page, err := resource.List(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := page.GetResourceVersion(), versionOf(24); got != want {
			t.Errorf("the list is of version %s, want %s", got, want)
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
	all, err := resource.List(t.Context(), metav1.ListOptions{Limit: 10, ResourceVersion: "0"})
	if err != nil || len(all.Items) != 25 || all.GetContinue() != "" {
		t.Errorf("from version 0: %d objects, %v", len(all.Items), err)
	}
}

func TestLists_APageExpiresAndAWatchHasTheLastChanges(t *testing.T) {
	c, kind := startKind(t, "mix", 5)
	resource := dynamicClient(t, c).Resource(kind.GVR)
	first, err := resource.List(t.Context(), metav1.ListOptions{Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	before := metav1.ListOptions{ResourceVersion: first.GetResourceVersion()}
	change(t, c, 2)
	if _, err := resource.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: first.GetContinue()}); !apierrors.IsGone(err) {
		t.Errorf("the second page: %v, want Gone", err)
	}
	w, err := resource.Watch(t.Context(), before)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	for i := range 2 {
		if u := next(t, w.ResultChan()).Object.(*unstructured.Unstructured); u.GetResourceVersion() != versionOf(5+i) {
			t.Errorf("event %d has version %s", i, u.GetResourceVersion())
		}
	}
	change(t, c, 1)
	if _, err := resource.Watch(t.Context(), before); !apierrors.IsGone(err) {
		t.Errorf("a watch before the last changes: %v, want Gone", err)
	}
}

func TestServer_RefusesInvalidRequests(t *testing.T) {
	c, kind := startKind(t, "mix", 1)
	client := dynamicClient(t, c)
	if _, err := client.Resource(kind.GVR).List(t.Context(), metav1.ListOptions{Continue: "?"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a continue token: %v, want BadRequest", err)
	}
	other := kind.GVR
	other.Resource = "gadgets"
	if _, err := client.Resource(other).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("another resource: %v, want NotFound", err)
	}
	if err := c.Change(t.Context(), -1); err == nil || !strings.Contains(err.Error(), "400") {
		t.Errorf("-1 changes: %v", err)
	}
}

func TestStart_ServesInAProcess(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector waits for a second otherwise
	c, stop, err := stub.Start(t.Context(), stub.Config{Kind: "mix", Objects: 1})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := dynamicClient(t, c).Resource(named(t, "mix").GVR).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("list: %v, %v", list, err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, _, err := stub.Start(t.Context(), stub.Config{Kind: "pods"}); err == nil || !strings.Contains(err.Error(), `unknown name "pods"`) {
		t.Errorf("an unknown kind: %v", err)
	}
}

func TestWatches_SendEachChangeOnce(t *testing.T) {
	const n, events = 5, 300
	c, kind := startKind(t, "mix", n)
	_, updates := inform(t, c, kind)
	changed := make(chan error, 1)
	go func() { changed <- c.Change(t.Context(), events) }()
	for range 5 { // these watches begin between changes
		store, _ := inform(t, c, kind)
		if got := len(store.ListKeys()); got != n {
			t.Errorf("%d objects, want %d", got, n)
		}
	}
	for k := range events {
		if u := next(t, updates); u.GetResourceVersion() != versionOf(n+k) {
			t.Fatalf("event %d has version %s", k, u.GetResourceVersion())
		}
	}
	if err := <-changed; err != nil {
		t.Error(err)
	}
}

// metadataOf returns the metadata that a list or a watch of a kind has for an object.
func metadataOf(t *testing.T, obj map[string]any) metav1.ObjectMeta {
	t.Helper()
	text, err := json.Marshal(obj)
	var partial metav1.PartialObjectMetadata
	if err := errors.Join(err, json.Unmarshal(text, &partial)); err != nil {
		t.Fatal(err)
	}
	return partial.ObjectMeta
}

func TestMetadata_AnInformerGetsAllChangesInProtobuf(t *testing.T) {
	const n, events = 10, 25
	for _, kind := range objects.All() {
		for _, watchList := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/watchList=%t", kind.Name, watchList), func(t *testing.T) {
				featurestesting.SetFeatureDuringTest(t, features.WatchListClient, watchList)
				c, kind := startKind(t, kind.Name, n)
				client, types := metadataClient(t, c)
				factory := metadatainformer.NewSharedInformerFactory(client, 0)
				store, updates := informOf[*metav1.PartialObjectMetadata](t, factory, kind)
				for i := range n {
					want := metadataOf(t, kind.Object(i))
					got, _, err := store.Get(&metav1.PartialObjectMetadata{ObjectMeta: want})
					if err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(want, got.(*metav1.PartialObjectMetadata).ObjectMeta); diff != "" {
						t.Fatalf("object %d:\n%s", i, diff)
					}
				}
				change(t, c, events)
				for k := range events {
					want := metadataOf(t, kind.Object(k%n))
					want.ResourceVersion, want.Generation = versionOf(n+k), want.Generation+int64(k/n)+1
					if diff := cmp.Diff(want, next(t, updates).ObjectMeta); diff != "" {
						t.Fatalf("event %d:\n%s", k, diff)
					}
				}
				page, err := client.Resource(kind.GVR).List(t.Context(), metav1.ListOptions{Limit: 4})
				if err != nil || len(page.Items) != 4 || page.Continue == "" || *page.RemainingItemCount != n-4 || page.ResourceVersion != versionOf(n+events-1) {
					t.Errorf("page: %+v, %v", page.ListMeta, err)
				}
				for _, contentType := range types() {
					if contentType != "application/vnd.kubernetes.protobuf" {
						t.Errorf("a response in %s", contentType)
					}
				}
			})
		}
	}
}

// metadataClient returns a client of metadata, and a function that returns the types of the responses that it has got.
func metadataClient(t *testing.T, c stub.Client) (metadata.Interface, func() []string) {
	t.Helper()
	var (
		mu    sync.Mutex
		types []string
	)
	cfg := c.Config()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(req *http.Request) (*http.Response, error) {
			res, err := next.RoundTrip(req)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				types = append(types, res.Header.Get("Content-Type"))
			}
			return res, err
		})
	})
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(types)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// Several kinds have the same objects, each with its own name of the kind.
func TestServer_SeveralKinds(t *testing.T) {
	for _, kind := range objects.All() {
		handler, err := stub.New(t.Context(), stub.Config{Kind: kind.Name, Objects: 3, Kinds: 2})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(handler)
		defer server.Close()
		c := stub.Client{Host: server.URL}
		var lists [2]*unstructured.UnstructuredList
		for number := range lists {
			as := stub.KindNumber(kind, number)
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			lists[number], err = dynamicClient(t, c).Resource(as.GVR).List(ctx, metav1.ListOptions{})
			if err != nil || len(lists[number].Items) != 3 {
				t.Fatal(lists[number], err)
			}
			initial := true
			w, err := dynamicClient(t, c).Resource(as.GVR).Watch(ctx, metav1.ListOptions{SendInitialEvents: &initial})
			if err != nil {
				t.Fatal(err)
			}
			for range 4 { // the objects and the bookmark
				if got := (<-w.ResultChan()).Object.GetObjectKind().GroupVersionKind(); got != as.GVK {
					t.Errorf("the watch of %v has %v", as.GVK, got)
				}
			}
			w.Stop()
			for i := range lists[number].Items {
				if got := lists[number].Items[i].GroupVersionKind(); got != as.GVK {
					t.Errorf("the list of %v has %v", as.GVK, got)
				}
				lists[number].Items[i].SetGroupVersionKind(kind.GVK)
			}
		}
		if diff := cmp.Diff(lists[0].Items, lists[1].Items); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
	}
}
