package stub_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/gvrkit/gvrkit/bench/stub"
	"github.com/gvrkit/gvrkit/bench/usage"
)

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

// lists reports whether the documents have a type, and fails if they differ.
func lists(t *testing.T, s http.Handler, of stub.Type) bool {
	t.Helper()
	in := strings.Contains(get(t, s, "/apis", map[string]string{"Accept": discovery.AcceptV2}).Body.String(), of.GVR.Group)
	if alone := get(t, s, "/apis/"+of.GVR.GroupVersion().String(), nil); in != (alone.Code == http.StatusOK) {
		t.Errorf("in the document: %v, by itself: %d", in, alone.Code)
	}
	return in
}

func TestNewcomers_AreCreatedAndDeletedOnce(t *testing.T) {
	c, _ := start(t, stub.Config{CRDs: 1})
	if _, err := c.Create(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Create(t.Context(), 0); err == nil {
		t.Error("it can be created twice")
	}
	if err := c.Delete(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), 0); err == nil {
		t.Error("it can be deleted twice")
	}
}

func TestNewcomers_ComeAndGo(t *testing.T) {
	c, s := start(t, stub.Config{CRDs: 2, SchemaBytes: 500})
	crds, apis := watchFrom(t, c, stub.CRDs), watchFrom(t, c, stub.APIServices)
	newcomer := stub.Newcomer(0)
	listed := func() bool { return lists(t, s, newcomer.Types[0]) }
	before := time.Now()
	at, err := c.Create(t.Context(), 0)
	if err != nil || at.Before(before.Add(-time.Millisecond)) || at.After(time.Now()) || !listed() {
		t.Fatalf("created at %v, listed: %v: %v", at, listed(), err)
	}
	if err := c.Delete(t.Context(), 0); err != nil || listed() {
		t.Fatalf("listed: %v: %v", listed(), err)
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
