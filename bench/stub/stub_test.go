package stub_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/process"
	"github.com/gvrkit/gvrkit/bench/stub"
	"github.com/gvrkit/gvrkit/bench/usage"
)

// patience only ends a test that hangs: under load everything takes long.
const patience = 3 * time.Minute

func TestMain(m *testing.M) {
	if process.Role() == stub.Role { // the process of a test is this program, too
		if err := stub.RunProcess(context.Background()); err != nil {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// start serves a server until the test ends.
func start(t *testing.T, config stub.Config) (stub.Client, *stub.Server) {
	t.Helper()
	handler, err := stub.New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return stub.Client{Host: server.URL}, handler
}

// startKind serves the first n objects of a kind.
func startKind(t *testing.T, name string, n int) (stub.Client, objects.Kind) {
	t.Helper()
	kind, err := objects.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	client, _ := start(t, stub.Config{Kind: name, Objects: n})
	return client, kind
}

func config(c stub.Client) *rest.Config { return &rest.Config{Host: c.Host, QPS: -1} }

func dynamicClient(t *testing.T, c stub.Client) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config(c))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func change(t *testing.T, c stub.Client, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := c.Change(ctx, n); err != nil {
		t.Fatal(err)
	}
}

// follow runs client-go's informer until the test ends. It returns the store once it has
// synced, and what it is updated with.
func follow(t *testing.T, c stub.Client, kind objects.Kind) (cache.Store, <-chan *unstructured.Unstructured) {
	t.Helper()
	factory := dynamicinformer.NewDynamicSharedInformerFactory(dynamicClient(t, c), 0)
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

func versionOf(i int) string { return objects.FormatVersion(objects.Version(i)) }

func TestObjects_AnInformerFollowsThem(t *testing.T) {
	const n = 30
	eventsOf := map[string]int{"ipamblock": 100, "mix": 700} // more than a change may be ahead
	for _, kind := range objects.All() {
		for _, watchList := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/watchList=%t", kind.Name, watchList), func(t *testing.T) {
				featurestesting.SetFeatureDuringTest(t, features.WatchListClient, watchList)
				c, kind := startKind(t, kind.Name, n)
				store, updates := follow(t, c, kind)
				if got := len(store.ListKeys()); got != n {
					t.Fatalf("%d objects cached, want %d", got, n)
				}
				for i := range n {
					want := &unstructured.Unstructured{Object: kind.Object(i)}
					got, _, err := store.Get(want)
					if diff := cmp.Diff(any(want), got); diff != "" || err != nil {
						t.Fatalf("object %d: %v\n%s", i, err, diff)
					}
				}
				change(t, c, eventsOf[kind.Name])
				for k := range eventsOf[kind.Name] {
					u := next(t, updates)
					first := unstructured.Unstructured{Object: kind.Object(k % n)}
					if u.GetName() != first.GetName() || u.GetResourceVersion() != versionOf(n+k) || u.GetGeneration() != first.GetGeneration()+int64(k/n)+1 {
						t.Fatalf("event %d: %s, version %s, generation %d", k, u.GetName(), u.GetResourceVersion(), u.GetGeneration())
					}
				}
			})
		}
	}
}

func TestObjects_AChangeIncrementsAndLeavesTheRest(t *testing.T) {
	for _, kind := range objects.All() {
		counter := func(i int) (int64, bool) {
			n, found, _ := unstructured.NestedInt64(kind.Object(i), kind.Counter...)
			return n, found
		}
		n := 1
		for _, found := counter(0); !found; _, found = counter(n - 1) {
			n++
		}
		c, _ := startKind(t, kind.Name, n)
		_, updates := follow(t, c, kind)
		change(t, c, n)
		var got *unstructured.Unstructured
		for range n {
			got = next(t, updates)
		}
		want := &unstructured.Unstructured{Object: kind.Object(n - 1)}
		want.SetResourceVersion(versionOf(2*n - 1))
		want.SetGeneration(want.GetGeneration() + 1)
		value, _ := counter(n - 1)
		if err := unstructured.SetNestedField(want.Object, value+1, kind.Counter...); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", kind.Name, diff)
		}
	}
}

func TestLists_HavePagesUnlessAnyVersionWillDo(t *testing.T) {
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

func TestLists_APageAndAWatchOfAnEarlierVersionAreGone(t *testing.T) {
	c, kind := startKind(t, "mix", 5)
	resource := dynamicClient(t, c).Resource(kind.GVR)
	first, err := resource.List(t.Context(), metav1.ListOptions{Limit: 2})
	if err != nil {
		t.Fatal(err)
	}
	_, updates := follow(t, c, kind)
	change(t, c, 1)
	next(t, updates)
	if _, err := resource.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: first.GetContinue()}); !apierrors.IsResourceExpired(err) {
		t.Errorf("the second page: %v, want Expired", err)
	}
	w, err := resource.Watch(t.Context(), metav1.ListOptions{ResourceVersion: first.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if e := next(t, w.ResultChan()); e.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(e.Object)) {
		t.Errorf("a watch: %v %v", e.Type, e.Object)
	}
}

func TestWatches_EndWithTheirTimeout(t *testing.T) {
	c, kind := startKind(t, "mix", 1)
	second := int64(1)
	w, err := dynamicClient(t, c).Resource(kind.GVR).Watch(t.Context(), metav1.ListOptions{ResourceVersion: versionOf(0), TimeoutSeconds: &second})
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

func TestServer_RefusesInvalidRequests(t *testing.T) {
	c, kind := startKind(t, "mix", 1)
	client := dynamicClient(t, c)
	if _, err := client.Resource(kind.GVR).List(t.Context(), metav1.ListOptions{Continue: "?"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a continue token: %v, want BadRequest", err)
	}
	if _, err := client.Resource(kind.GVR).List(t.Context(), metav1.ListOptions{ResourceVersion: "x"}); !apierrors.IsBadRequest(err) {
		t.Errorf("a version: %v, want BadRequest", err)
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
	p, err := stub.Start(t.Context(), stub.Config{CRDs: 1})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := dynamicClient(t, p.Client).Resource(stub.CRDs).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("list: %v, %v", list, err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if _, err := stub.Start(t.Context(), stub.Config{Kind: "pods"}); err == nil || !strings.Contains(err.Error(), `no kind "pods"`) {
		t.Errorf("an unknown kind: %v", err)
	}
}

// everything returns the kinds of all types of a server with n CRDs, by their GVRs.
func everything(t *testing.T, n int) map[schema.GroupVersionResource]string {
	t.Helper()
	types, err := stub.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range stub.Definitions(n) {
		types = append(types, d.Types...)
	}
	all := map[schema.GroupVersionResource]string{}
	for _, of := range types {
		all[of.GVR] = of.GVK.Kind
	}
	if len(all) != len(types) || len(all) < 70 {
		t.Errorf("%d types have %d names", len(types), len(all))
	}
	return all
}

func TestDiscovery_HasAllTypesInBothFormats(t *testing.T) {
	c, _ := start(t, stub.Config{CRDs: 20, SchemaBytes: 1000})
	cfg := config(c)
	traffic := usage.Count(cfg)
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	want := everything(t, 20)
	for name, client := range map[string]discovery.DiscoveryInterface{"aggregated": client, "legacy": client.WithLegacy()} {
		before := traffic.Counts().Requests()
		_, lists, err := client.ServerGroupsAndResources()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got := map[schema.GroupVersionResource]string{}
		for _, list := range lists {
			gv, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil {
				t.Fatal(err)
			}
			for _, resource := range list.APIResources {
				if !strings.Contains(resource.Name, "/") {
					got[gv.WithResource(resource.Name)] = resource.Kind
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if requests := traffic.Counts().Requests() - before; (requests == 2) != (name == "aggregated") {
			t.Errorf("%s: %v requests", name, requests)
		}
	}
}

// get asks a server without a connection.
func get(t *testing.T, s http.Handler, path string, header map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestDiscovery_SendsNoDocumentThatIsKnown(t *testing.T) {
	_, s := start(t, stub.Config{CRDs: 1})
	first := get(t, s, "/apis", map[string]string{"Accept": discovery.AcceptV2})
	etag := first.Header().Get("ETag")
	if first.Code != http.StatusOK || etag == "" || first.Header().Get("Vary") != "Accept" {
		t.Fatalf("%d, %v", first.Code, first.Header())
	}
	again := get(t, s, "/apis", map[string]string{"Accept": discovery.AcceptV2, "If-None-Match": etag})
	if again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("%d with %d bytes", again.Code, again.Body.Len())
	}
	other := get(t, s, "/apis", map[string]string{"Accept": discovery.AcceptV2, "If-None-Match": `"other"`})
	if diff := cmp.Diff(first.Body.String(), other.Body.String()); diff != "" {
		t.Error(diff)
	}
	legacy := get(t, s, "/apis", map[string]string{"Accept": discovery.AcceptV1, "If-None-Match": etag})
	if legacy.Code != http.StatusOK || legacy.Header().Get("ETag") != "" {
		t.Errorf("legacy: %d, %v", legacy.Code, legacy.Header())
	}
}

func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, condition := range conditions {
		if c := condition.(map[string]any); c["type"] == "Established" {
			return c["status"] == "True"
		}
	}
	return false
}

func TestCRDs_AreAsLargeAsAskedForAndNoCopies(t *testing.T) {
	const n, size = 20, 30_000
	c, _ := start(t, stub.Config{CRDs: n, SchemaBytes: size})
	list, err := dynamicClient(t, c).Resource(stub.CRDs).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != n {
		t.Fatalf("%d CRDs, %v", len(list.Items), err)
	}
	var all []byte
	for i := range list.Items {
		crd := &list.Items[i]
		text, err := crd.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
		if len(text) < size*8/10 || len(text) > size*13/10 {
			t.Errorf("%s has %d bytes, want %d", crd.GetName(), len(text), size)
		}
		plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
		group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
		if crd.GetName() != plural+"."+group || !established(crd) || crd.GetUID() == "" {
			t.Errorf("%s: %s of %s, established %v, UID %q", crd.GetName(), plural, group, established(crd), crd.GetUID())
		}
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	if compressed := len(w.EncodeAll(all, nil)) / n; compressed < size/4 {
		t.Errorf("%d bytes a CRD when compressed", compressed)
	}
}

// watchFrom watches from now until the test ends.
func watchFrom(t *testing.T, c stub.Client, gvr schema.GroupVersionResource) watch.Interface {
	t.Helper()
	resource := dynamicClient(t, c).Resource(gvr)
	list, err := resource.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := resource.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

func TestNewcomers_ComeAndGo(t *testing.T) {
	c, s := start(t, stub.Config{CRDs: 2, SchemaBytes: 500})
	crds, apis := watchFrom(t, c, stub.CRDs), watchFrom(t, c, stub.APIServices)
	newcomer := stub.Newcomer(0)
	listed := func() bool {
		in := strings.Contains(get(t, s, "/apis", map[string]string{"Accept": discovery.AcceptV2}).Body.String(), newcomer.Types[0].GVR.Group)
		if alone := get(t, s, "/apis/"+newcomer.Types[0].GVR.GroupVersion().String(), nil); in != (alone.Code == http.StatusOK) {
			t.Errorf("in the document: %v, by itself: %d", in, alone.Code)
		}
		return in
	}
	before := time.Now()
	at, err := c.Create(t.Context(), 0)
	if err != nil || at.Before(before.Add(-time.Millisecond)) || at.After(time.Now()) || !listed() {
		t.Fatalf("created at %v, listed: %v: %v", at, listed(), err)
	}
	if _, err := c.Create(t.Context(), 0); err == nil {
		t.Error("it can be created twice")
	}
	if err := c.Delete(t.Context(), 0); err != nil || listed() {
		t.Fatalf("listed: %v: %v", listed(), err)
	}
	if err := c.Delete(t.Context(), 0); err == nil {
		t.Error("it can be deleted twice")
	}
	for _, want := range []struct {
		kind        watch.EventType
		established bool
	}{{watch.Added, false}, {watch.Modified, true}, {watch.Deleted, true}} {
		event := next(t, crds.ResultChan())
		crd, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type != want.kind || crd.GetName() != newcomer.Name() || established(crd) != want.established {
			t.Errorf("event %s of %v, want %+v of %s", event.Type, event.Object, want, newcomer.Name())
		}
	}
	for _, want := range []watch.EventType{watch.Added, watch.Deleted} {
		for range newcomer.Types {
			if event := next(t, apis.ResultChan()); event.Type != want {
				t.Errorf("event %s of an APIService, want %s", event.Type, want)
			}
		}
	}
}

func TestCRDs_HaveNamesOfTheirOwn(t *testing.T) {
	names, kinds := map[string]int{}, map[schema.GroupKind]int{}
	for _, d := range append(stub.Definitions(1500), stub.Newcomer(0), stub.Newcomer(1)) {
		names[d.Name()]++
		kinds[d.Types[0].GVK.GroupKind()]++
	}
	if len(names) != 1502 || len(kinds) != 1502 {
		t.Errorf("%d names, %d kinds", len(names), len(kinds))
	}
}

func TestServer_SendsMetadataOnly(t *testing.T) {
	c, _ := start(t, stub.Config{CRDs: 2, SchemaBytes: 5000})
	cfg := config(c)
	traffic := usage.Count(cfg)
	client, err := metadata.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	crds := client.Resource(stub.CRDs)
	list, err := crds.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 || list.Items[0].UID == "" || list.Items[0].Generation != 1 {
		t.Fatalf("list: %+v, %v", list, err)
	}
	if n := traffic.Counts().Bytes; n > 2000 {
		t.Errorf("the list has %d bytes", n)
	}
	w, err := crds.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := c.Create(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	event := next(t, w.ResultChan())
	if object, ok := event.Object.(*metav1.PartialObjectMetadata); !ok || event.Type != watch.Added || object.Name != stub.Newcomer(0).Name() {
		t.Errorf("event %s of %v", event.Type, event.Object)
	}
	one, err := crds.Get(t.Context(), stub.Newcomer(0).Name(), metav1.GetOptions{})
	if err != nil || one.UID == "" {
		t.Errorf("one: %v, %v", one, err)
	}
}

func TestServer_SendsOneCRD(t *testing.T) {
	c, _ := start(t, stub.Config{CRDs: 2, SchemaBytes: 500})
	crds, name := dynamicClient(t, c).Resource(stub.CRDs), stub.NewDefinition(1).Name()
	if crd, err := crds.Get(t.Context(), name, metav1.GetOptions{}); err != nil || crd.GetName() != name || !established(crd) {
		t.Errorf("%v, %v", crd, err)
	}
	if _, err := crds.Get(t.Context(), stub.Newcomer(0).Name(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("one that does not exist: %v", err)
	}
}

func TestDefinition_CRDIsAManifest(t *testing.T) {
	crd, err := stub.NewDefinition(3).CRD(20_000)
	if err != nil {
		t.Fatal(err)
	}
	text, err := crd.MarshalJSON()
	if err != nil || len(text) < 16_000 || len(text) > 26_000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if crd.GetUID() != "" || crd.GetResourceVersion() != "" || crd.Object["status"] != nil || crd.GetName() != stub.NewDefinition(3).Name() {
		t.Errorf("%+v", crd.Object["metadata"])
	}
}
