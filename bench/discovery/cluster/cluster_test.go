package cluster_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
)

var (
	crds = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	apis = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
)

func newCluster(t *testing.T, size cluster.Size) *cluster.Cluster {
	t.Helper()
	c, err := cluster.New(size)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// start serves a cluster, and returns its address.
func start(t *testing.T, size cluster.Size) cluster.Admin {
	t.Helper()
	server := httptest.NewServer(newCluster(t, size))
	t.Cleanup(server.Close)
	return cluster.Admin{Host: server.URL}
}

func dynamicClient(t *testing.T, admin cluster.Admin) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(&rest.Config{Host: admin.Host, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// everything returns which types a cluster with n CRDs has to serve, by their GVR.
func everything(t *testing.T, n int) map[schema.GroupVersionResource]string {
	t.Helper()
	types, err := cluster.BuiltIn()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range cluster.Definitions(n) {
		types = append(types, d.Types...)
	}
	all := map[schema.GroupVersionResource]string{}
	for _, of := range types {
		all[of.GVR] = of.GVK.Kind
	}
	if len(all) != len(types) {
		t.Errorf("%d types have %d names", len(types), len(all))
	}
	return all
}

func TestCluster_ServesAllTypesInBothFormats(t *testing.T) {
	admin := start(t, cluster.Size{CRDs: 20, SchemaBytes: 1000})
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: admin.Host, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	want := everything(t, 20)
	for name, c := range map[string]discovery.DiscoveryInterface{"aggregated": client, "legacy": client.WithLegacy()} {
		before, err := admin.Counts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, lists, err := c.ServerGroupsAndResources()
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
		after, err := admin.Counts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if requests := after.Since(before).Requests; (requests == 2) != (name == "aggregated") {
			t.Errorf("%s: %d requests", name, requests)
		}
	}
}

// do asks c without a connection.
func do(t *testing.T, c http.Handler, method, path string, header map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w
}

func get(t *testing.T, c http.Handler, path string, header map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	return do(t, c, http.MethodGet, path, header)
}

func TestCluster_SendsNoDocumentThatIsKnown(t *testing.T) {
	c := newCluster(t, cluster.Size{CRDs: 1})
	first := get(t, c, "/apis", map[string]string{"Accept": discovery.AcceptV2})
	etag := first.Header().Get("ETag")
	if first.Code != http.StatusOK || etag == "" || first.Header().Get("Vary") != "Accept" {
		t.Fatalf("%d, %v", first.Code, first.Header())
	}
	again := get(t, c, "/apis", map[string]string{"Accept": discovery.AcceptV2, "If-None-Match": etag})
	if again.Code != http.StatusNotModified || again.Body.Len() > 0 {
		t.Errorf("%d with %d bytes", again.Code, again.Body.Len())
	}
	other := get(t, c, "/apis", map[string]string{"Accept": discovery.AcceptV2, "If-None-Match": `"other"`})
	if diff := cmp.Diff(first.Body.String(), other.Body.String()); diff != "" {
		t.Error(diff)
	}
	legacy := get(t, c, "/apis", map[string]string{"Accept": discovery.AcceptV1, "If-None-Match": etag})
	if legacy.Code != http.StatusOK || legacy.Header().Get("ETag") != "" {
		t.Errorf("legacy: %d, %v", legacy.Code, legacy.Header())
	}
}

func TestCluster_CountsWhatItIsAskedAndSends(t *testing.T) {
	c := newCluster(t, cluster.Size{CRDs: 3, SchemaBytes: 5000})
	bytes := get(t, c, "/api", nil).Body.Len() + get(t, c, "/apis/no/such", nil).Body.Len() +
		get(t, c, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", nil).Body.Len()
	get(t, c, "/bench/counts", nil)
	var counts cluster.Counts
	if err := json.Unmarshal(get(t, c, "/bench/counts", nil).Body.Bytes(), &counts); err != nil {
		t.Fatal(err)
	}
	if want := (cluster.Counts{Requests: 3, Bytes: int64(bytes)}); counts != want {
		t.Errorf("counted %+v, want %+v", counts, want)
	}
}

func TestCluster_ListsCRDsInPages(t *testing.T) {
	const n, size = 20, 30_000
	client := dynamicClient(t, start(t, cluster.Size{CRDs: n, SchemaBytes: size})).Resource(crds)
	opts := metav1.ListOptions{Limit: 7}
	names := map[string]bool{}
	var pages int
	for {
		page, err := client.List(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for i := range page.Items {
			names[page.Items[i].GetName()] = true
			checkCRD(t, &page.Items[i], size)
		}
		if opts.Continue = page.GetContinue(); opts.Continue == "" {
			break
		}
	}
	if len(names) != n || pages != 3 {
		t.Errorf("%d names on %d pages", len(names), pages)
	}
}

func checkCRD(t *testing.T, crd *unstructured.Unstructured, size int) {
	t.Helper()
	text, err := crd.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if len(text) < size*8/10 || len(text) > size*13/10 {
		t.Errorf("%s has %d bytes, and was to have %d", crd.GetName(), len(text), size)
	}
	plural, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "plural")
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	if crd.GetName() != plural+"."+group || !established(crd) || crd.GetUID() == "" {
		t.Errorf("%s: %s of %s, established %v, UID %q", crd.GetName(), plural, group, established(crd), crd.GetUID())
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

// follow watches a collection from now until the test ends.
func follow(t *testing.T, client dynamic.Interface, gvr schema.GroupVersionResource) watch.Interface {
	t.Helper()
	list, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := client.Resource(gvr).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return w
}

// next returns the next event of a watch.
func next(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case event := <-w.ResultChan():
		return event
	case <-time.After(3 * time.Minute):
		t.Fatal("there is no event")
		panic("unreachable")
	}
}

func TestCluster_WatchesSeeANewcomerComeAndGo(t *testing.T) {
	admin := start(t, cluster.Size{CRDs: 2, SchemaBytes: 500})
	client := dynamicClient(t, admin)
	definitions, services := follow(t, client, crds), follow(t, client, apis)
	before := time.Now()
	at, err := admin.Create(t.Context(), 0)
	if err != nil || at.Before(before.Add(-time.Millisecond)) || at.After(time.Now()) {
		t.Fatalf("created at %v: %v", at, err)
	}
	if _, err := admin.Create(t.Context(), 0); err == nil {
		t.Error("it can be created twice")
	}
	if err := admin.Delete(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), 0); err == nil {
		t.Error("it can be deleted twice")
	}
	name := cluster.Newcomer(0).Name()
	for _, want := range []struct {
		kind        watch.EventType
		established bool
	}{{watch.Added, false}, {watch.Modified, true}, {watch.Deleted, true}} {
		event := next(t, definitions)
		crd, ok := event.Object.(*unstructured.Unstructured)
		if !ok || event.Type != want.kind || crd.GetName() != name || established(crd) != want.established {
			t.Errorf("event %s of %v, want %+v of %s", event.Type, event.Object, want, name)
		}
	}
	for _, want := range []watch.EventType{watch.Added, watch.Deleted} {
		if event := next(t, services); event.Type != want {
			t.Errorf("event %s of an APIService, want %s", event.Type, want)
		}
	}
}

func TestCluster_HasNoEventsFromBeforeTheBeginning(t *testing.T) {
	w, err := dynamicClient(t, start(t, cluster.Size{CRDs: 2})).Resource(crds).Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	event := next(t, w)
	if status, ok := event.Object.(*metav1.Status); event.Type != watch.Error || !ok || status.Code != http.StatusGone {
		t.Errorf("event %s: %v", event.Type, event.Object)
	}
}

func TestCluster_DocumentsLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lag = 3 * time.Second
		c := newCluster(t, cluster.Size{Lag: lag})
		newcomer := cluster.Newcomer(5)
		listed := func() bool {
			whole := get(t, c, "/apis", map[string]string{"Accept": discovery.AcceptV2}).Body.String()
			alone := get(t, c, "/apis/"+newcomer.Types[0].GVR.GroupVersion().String(), nil)
			in := strings.Contains(whole, newcomer.Types[0].GVR.Group)
			if in != (alone.Code == http.StatusOK) {
				t.Errorf("in the document: %v, by itself: %d", in, alone.Code)
			}
			return in
		}
		change := func(method string) {
			if w := do(t, c, method, "/bench/newcomers/5", nil); w.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", method, w.Code, w.Body)
			}
		}
		change(http.MethodPut)
		time.Sleep(lag - time.Millisecond) //nolint:forbidigo // in a bubble
		if listed() {
			t.Error("it is listed too early")
		}
		time.Sleep(2 * time.Millisecond) //nolint:forbidigo // in a bubble
		if !listed() {
			t.Error("it is not listed")
		}
		change(http.MethodDelete)
		if listed() {
			t.Error("it is still listed")
		}
		change(http.MethodPut)
		change(http.MethodDelete)
		time.Sleep(2 * lag) //nolint:forbidigo // in a bubble
		if listed() {
			t.Error("what had gone before it was listed is listed")
		}
	})
}

func TestCluster_CRDsAreNoCopies(t *testing.T) {
	const size = 20_000
	facts, err := newCluster(t, cluster.Size{CRDs: 30, SchemaBytes: size}).Facts()
	if err != nil {
		t.Fatal(err)
	}
	if facts.CRDs != 30 || facts.BytesPerCRD < size || facts.CompressedBytesPerCRD < size/4 {
		t.Errorf("%+v", facts)
	}
	if facts.Types != len(everything(t, 30)) || facts.Groups < 29 || facts.GroupVersions <= facts.Groups || facts.DocumentBytes < 10_000 {
		t.Errorf("%+v", facts)
	}
}

func TestDefinitions_HaveNamesOfTheirOwn(t *testing.T) {
	names, kinds := map[string]int{}, map[schema.GroupKind]int{}
	for _, d := range append(cluster.Definitions(1500), cluster.Newcomer(0), cluster.Newcomer(1)) {
		names[d.Name()]++
		kinds[d.Types[0].GVK.GroupKind()]++
	}
	if len(names) != 1502 || len(kinds) != 1502 {
		t.Errorf("%d names, %d kinds", len(names), len(kinds))
	}
}

func TestCluster_SendsMetadataToWhoAsksForIt(t *testing.T) {
	admin := start(t, cluster.Size{CRDs: 2, SchemaBytes: 5000})
	client, err := metadata.NewForConfig(&rest.Config{Host: admin.Host, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	before, err := admin.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(crds).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 || list.Items[0].UID == "" || list.Items[0].Generation != 1 {
		t.Fatalf("list: %+v, %v", list, err)
	}
	after, err := admin.Counts(t.Context())
	if err != nil || after.Since(before).Bytes > 2000 {
		t.Errorf("the list has %d bytes, %v", after.Since(before).Bytes, err)
	}
	w, err := client.Resource(crds).Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if _, err := admin.Create(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	event := next(t, w)
	if object, ok := event.Object.(*metav1.PartialObjectMetadata); !ok || event.Type != watch.Added || object.Name != cluster.Newcomer(0).Name() {
		t.Errorf("event %s of %v", event.Type, event.Object)
	}
	one, err := client.Resource(crds).Get(t.Context(), cluster.Newcomer(0).Name(), metav1.GetOptions{})
	if err != nil || one.UID == "" {
		t.Errorf("one: %v, %v", one, err)
	}
}

func TestCluster_SendsOneCRD(t *testing.T) {
	client := dynamicClient(t, start(t, cluster.Size{CRDs: 2, SchemaBytes: 500})).Resource(crds)
	name := cluster.NewDefinition(1).Name()
	if crd, err := client.Get(t.Context(), name, metav1.GetOptions{}); err != nil || crd.GetName() != name || !established(crd) {
		t.Errorf("%v, %v", crd, err)
	}
	if _, err := client.Get(t.Context(), cluster.Newcomer(0).Name(), metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("one that is not there: %v", err)
	}
}

func TestDefinition_CRDIsWhatAPersonWrites(t *testing.T) {
	crd, err := cluster.NewDefinition(3).CRD(20_000)
	if err != nil {
		t.Fatal(err)
	}
	text, err := crd.MarshalJSON()
	if err != nil || len(text) < 16_000 || len(text) > 26_000 {
		t.Errorf("%d bytes, %v", len(text), err)
	}
	if crd.GetUID() != "" || crd.GetResourceVersion() != "" || crd.Object["status"] != nil || crd.GetName() != cluster.NewDefinition(3).Name() {
		t.Errorf("%+v", crd.Object["metadata"])
	}
}
