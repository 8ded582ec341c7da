package cases

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/lister"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/envtest/fixture"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

func beforeItsCRD(s *scenario) string {
	w := s.watch(s.gvr)
	cause := s.cause(w, status.ReasonNotFound)
	before := s.proxy.Requests(s.ofType())
	s.install(s.crd)
	s.create(0, 3)
	s.must("3 adds", func() bool { return s.log.counts().adds >= 3 })
	s.settle()
	return fmt.Sprintf("a wait returns %s; %s for the type before it is served; then %s", cause, count(before, "request"), s.log)
}

func namesConflict(s *scenario) string {
	other := fixture.NewCRD(s.gvr.Group, "Vessel", "v1")
	s.check(unstructured.SetNestedField(other.Object, "Ship", "spec", "names", "kind"))
	s.install(other)
	w := s.watch(s.gvr)
	s.define(s.crd)
	s.must("a condition", func() bool {
		crd, err := s.admin.Resource(fixture.Definitions).Get(s.ctx, s.crd.GetName(), metav1.GetOptions{})
		s.check(err)
		conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
		return len(conditions) > 0
	})
	cause := s.cause(w, status.ReasonNamesNotAccepted)
	before := s.proxy.Requests(s.ofType())
	s.undefine(other)
	return fmt.Sprintf("a wait returns %s; %s for the type; %s when the other CRD is deleted", cause, count(before, "request"), w.wait(s.ctx, limit))
}

func notFound(s *scenario) string {
	w := s.ready(10)
	requests := s.notFoundFor(w, 77, s.ofType())
	documents := s.notFoundFor(w, 78, faultproxy.Any(s.ofType(), faultproxy.Discovery(s.gvr.Group)))
	s.settle()
	return fmt.Sprintf("404 for lists and watches: %s; also for documents: %s; %s", requests, documents, s.log.roughly())
}

// notFoundFor lets requests fail for two seconds, while an object gets this size. It returns what becomes of the cache.
func (s *scenario) notFoundFor(w watcher, size int, of faultproxy.Match) string {
	s.Helper()
	cache, begun := "the cache stays readable", time.Now()
	s.proxy.Inject(of, faultproxy.Fail(404))
	s.proxy.CutWatches(s.ofType())
	s.resize(0, size)
	look := func() {
		if all, readable := w.objects(); !readable || len(all) != 10 {
			cache = "the cache is dropped"
		}
	}
	s.must("two seconds in which the implementation notices the failures", func() bool {
		look()
		noticed := cache != "the cache stays readable" || w.state() == nothing || strings.HasPrefix(w.state(), string(status.StateDegraded))
		return noticed && time.Since(begun) > 2*time.Second
	})
	s.proxy.Heal()
	s.must("the update", func() bool { look(); return has(w, 0, size)() })
	return cache
}

func manyDeletions(s *scenario) string {
	const objects = 300
	w := s.ready(objects)
	s.settle() // client-go lists again after a watch of less than a second without an event
	s.proxy.Inject(s.ofType(), breaking(20_000))
	s.proxy.CutWatches(s.ofType())
	s.must("another watch", func() bool { return s.proxy.OpenWatches(s.ofType()) == 1 })
	s.undefine(s.crd)
	s.must("the end of the type", func() bool { _, readable := w.objects(); return !readable })
	eventually(s.ctx, 15*time.Second, func() bool { return s.log.counts().deletes >= objects })
	s.observe() // no event follows
	c := s.log.counts()
	deletes := count(c.deletes, "delete")
	if c.deletes > 0 && c.deletes < objects {
		deletes = "only the deletes before the end of the watch"
	}
	return fmt.Sprintf("%s, %s, %s; then it says %s; %s", count(c.adds, "add"), count(c.updates, "update"), deletes, w.state(), count(s.proxy.OpenWatches(s.ofType()), "open watch"))
}

// breaking breaks the next watch after n bytes. Later requests are NotFound: a busy server ends watches of a type that is deleted before
// it has sent all deletions.
func breaking(n int) faultproxy.Fault {
	watched := new(atomic.Bool)
	return func(next http.Handler) http.Handler {
		cut, gone := faultproxy.CutAt(n)(next), faultproxy.Fail(http.StatusNotFound)(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if faultproxy.ParseRequest(r).Verb == "watch" && !watched.Swap(true) {
				cut.ServeHTTP(w, r)
			} else {
				gone.ServeHTTP(w, r)
			}
		})
	}
}

func unseenDeletion(s *scenario) string {
	const objects = 20
	w := s.ready(objects)
	s.proxy.Inject(s.ofType(), faultproxy.Fail(503))
	s.proxy.CutWatches(s.ofType())
	s.undefine(s.crd)
	s.proxy.Heal()
	s.must("the end of the type", func() bool { _, readable := w.objects(); return !readable })
	eventually(s.ctx, 15*time.Second, func() bool { return s.log.counts().deletes >= objects })
	s.observe() // no event follows
	return s.log.String()
}

// otherKind replaces the CRD while the watch is disconnected, so that no event of a deletion arrives.
func otherKind(s *scenario) string {
	w := s.ready(2)
	s.proxy.Inject(s.ofType(), faultproxy.Fail(503))
	s.proxy.CutWatches(s.ofType())
	s.undefine(s.crd)
	s.must("the end of the type", func() bool { _, readable := w.objects(); return !readable })
	s.proxy.Heal()
	const kind = "Vessel"
	s.check(unstructured.SetNestedField(s.crd.Object, kind, "spec", "names", "kind"))
	s.check(unstructured.SetNestedField(s.crd.Object, kind+"List", "spec", "names", "listKind"))
	s.install(s.crd)
	s.create(0, 2, func(obj *unstructured.Unstructured) { obj.SetKind(kind) })
	s.must("the objects of the other kind", func() bool { return s.log.counts().adds >= 4 })
	s.settle()
	all, _ := w.objects()
	others := 0
	for _, obj := range all {
		if obj.GetKind() == kind {
			others++
		}
	}
	return fmt.Sprintf("%s; the cache has %s, %d of the other kind", s.log, count(len(all), "object"), others)
}

func preferredVersion(s *scenario) string {
	s.crd = fixture.NewCRD(s.gvr.Group, "Ship", "v1beta1", "v1")
	s.gvr.Version = "v1beta1"
	s.serveOnly(s.crd, "v1beta1")
	w := s.ready(5)
	s.settle() // client-go lists again after a watch of less than a second without an event
	s.serves("v1beta1", "v1")
	s.must("the other version in discovery", func() bool { return discovers(w, "v1") })
	s.observe()
	s.proxy.CutWatches(s.ofType()) // the next one is of the first version, too
	s.settle()
	requests := "all requests are for the first version"
	if slices.ContainsFunc(s.proxy.Past(s.ofType()), func(r faultproxy.Request) bool { return r.Version != s.gvr.Version }) {
		requests = "some requests are for the other version"
	}
	return fmt.Sprintf("%s; %s", s.log.roughly(), requests)
}

func staleDocument(s *scenario) string {
	w := s.ready(3)
	s.proxy.Inject(faultproxy.AnyDiscovery(), faultproxy.StaleGroup(s.gvr.Group))
	before := s.proxy.Requests(faultproxy.AnyDiscovery())
	s.install(fixture.NewCRD(s.gvr.Group, "Boat", "v1")) // a reason to request documents
	s.must("a stale document", func() bool { return s.proxy.Requests(faultproxy.AnyDiscovery()) > before })
	boats := s.watch(schema.GroupVersionResource{Group: s.gvr.Group, Version: "v1", Resource: "boats"}).wait(s.ctx, limit)
	s.observe()
	s.resize(0, 77)
	s.must("the update", has(w, 0, 77))
	s.settle()
	return fmt.Sprintf("%s; a wait for a type that is created meanwhile returns %s", s.log, boats)
}

func failedDiscovery(s *scenario) string {
	s.install(s.crd)
	s.proxy.Inject(faultproxy.AnyDiscovery(), faultproxy.Times(1, faultproxy.Fail(500)))
	got := s.watch(s.gvr).wait(s.ctx, limit)
	s.must("another request after the one that fails", func() bool { return s.proxy.Requests(faultproxy.AnyDiscovery()) > 1 })
	return "a wait returns " + got
}

// twoHarbors creates two objects in one namespace and one in another one.
func (s *scenario) twoHarbors() {
	s.Helper()
	s.install(s.crd)
	s.create(0, 2)
	_, err := s.admin.Resource(s.gvr).Namespace("dock").Create(s.ctx, fixture.NewObject(s.gvr.GroupVersion().WithKind("Ship"), name(2), 2, nil), metav1.CreateOptions{})
	s.check(err)
}

func allForbidden(s *scenario) string {
	s.twoHarbors()
	s.proxy.Inject(faultproxy.All(s.ofType(), faultproxy.Namespace("")), faultproxy.Fail(403))
	cause := s.cause(s.watch(s.gvr), status.ReasonForbidden)
	w := s.watch(s.gvr, "harbor", "dock")
	got := w.wait(s.ctx, limit)
	s.must("all objects", func() bool { return s.log.counts().adds >= 3 })
	s.settle()
	return fmt.Sprintf("a wait for all namespaces returns %s; %s of the two namespaces: %s, %s", cause, count(informers(w), "informer"), got, s.log)
}

func missingNamespace(s *scenario) string {
	s.twoHarbors()
	w := s.watch(s.gvr, "harbor", "nowhere")
	got := w.wait(s.ctx, limit)
	s.must("the objects", func() bool { return s.log.counts().adds >= 2 })
	s.settle()
	return fmt.Sprintf("%s; %s", got, s.log)
}

func namespaceForbidden(s *scenario) string {
	s.twoHarbors()
	w := s.watch(s.gvr, "harbor", "dock")
	if got := w.wait(s.ctx, limit); got != synced {
		s.Fatal(got)
	}
	docks := faultproxy.All(s.ofType(), faultproxy.Namespace("dock"))
	before := s.proxy.Requests(docks)
	s.proxy.Inject(docks, faultproxy.Fail(403))
	s.proxy.CutWatches(docks)
	s.must("a failure", func() bool { return s.proxy.Requests(docks) > before })
	s.says(w, string(status.ReasonForbidden))
	s.resize(0, 77)
	s.must("the update in the other namespace", has(w, 0, 77))
	meanwhile := fmt.Sprintf("it says %s; %s; the other namespace gets updates", w.state(), cached(w))
	s.patchIn("dock", name(2), `{"spec":{"size":88}}`)
	s.proxy.Heal()
	w.retry()
	later := "its updates arrive"
	if !eventually(s.ctx, limit, has(w, 2, 88)) {
		later = "its updates do not arrive"
	}
	return fmt.Sprintf("%s; when it is allowed again, %s", meanwhile, later)
}

func versionRemoved(s *scenario) string {
	fixture.Serve(s.crd, "v1", "v2")
	w := s.ready(5)
	s.serves("v2")
	s.must("the end of the version", func() bool {
		_, readable := w.objects()
		return !readable || strings.Contains(w.state(), "VersionNotServed")
	})
	meanwhile := fmt.Sprintf("it says %s; %s", w.state(), cached(w))
	s.serves("v1")
	s.resize(0, 77)
	s.must("the update", has(w, 0, 77))
	s.settle()
	return fmt.Sprintf("%s; when it is served again, %s in total", meanwhile, s.log)
}

func irrelevantWrites(s *scenario) string {
	s.check(unstructured.SetNestedMap(s.crd.Object, fixture.ConversionWebhook(0), "spec", "conversion"))
	s.ready(5)
	before := s.proxy.Requests(s.ofType())
	for i := range 50 {
		s.patchCRD(fmt.Sprintf(`{"metadata":{"annotations":{"note":"%d"}}}`, i))
	}
	s.observe()
	s.settle()
	text := fmt.Sprintf("after writes of annotations, %s for the type", count(s.proxy.Requests(s.ofType())-before, "request"))
	before = s.proxy.Requests(s.ofType())
	for i := range 50 {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"conversion": fixture.ConversionWebhook(i + 1)}})
		s.check(err)
		s.patchCRD(string(patch))
	}
	s.must("the end of the watch", func() bool { return s.proxy.Requests(s.ofType()) > before }) // the server replaces the storage
	s.observe()
	s.settle()
	return text + "; the server ends the watch after writes of the caBundle; " + s.log.roughly()
}

func conversionFails(s *scenario) string {
	fixture.Serve(s.crd, "v1", "v2")
	s.check(unstructured.SetNestedMap(s.crd.Object, map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []any{"v1"}, "clientConfig": map[string]any{"url": "https://127.0.0.1:1/"},
	}}, "spec", "conversion"))
	other := fixture.NewCRD(s.gvr.Group, "Boat", "v1")
	s.install(s.crd, other)
	s.create(0, 1)
	w := s.watch(s.gvr.GroupResource().WithVersion("v2"))
	cause := s.cause(w, status.ReasonConversionFailed)
	boats := s.watch(schema.GroupVersionResource{Group: s.gvr.Group, Version: "v1", Resource: "boats"}).wait(s.ctx, limit)
	s.patchCRD(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
	return fmt.Sprintf("a wait returns %s; another type is %s; %s when the conversion works", cause, boats, w.wait(s.ctx, limit))
}

func stuckFinalizer(s *scenario) string {
	s.install(s.crd)
	s.create(0, 1, func(obj *unstructured.Unstructured) { obj.SetFinalizers([]string{"example.com/stuck"}) })
	w := s.watch(s.gvr)
	if got := w.wait(s.ctx, limit); got != synced {
		s.Fatal(got)
	}
	s.check(s.admin.Resource(fixture.Definitions).Delete(s.ctx, s.crd.GetName(), metav1.DeleteOptions{}))
	s.must("the deletion of the object", func() bool {
		all, _ := w.objects()
		return len(all) == 1 && all[0].GetDeletionTimestamp() != nil
	})
	s.says(w, "terminating")
	requests := s.whileItTerminates()
	meanwhile := fmt.Sprintf("%s; it says %s; %s", requests, w.state(), cached(w))
	s.must("the update", func() bool { return s.log.counts().updates > 0 })
	before := s.log.String()
	s.patch(name(0), `{"metadata":{"finalizers":null}}`)
	s.must("the end of the object", func() bool { return s.log.counts().deletes > 0 })
	s.must("the end of the type", func() bool { _, readable := w.objects(); return !readable })
	s.observe() // no event follows
	return fmt.Sprintf("%s; %s; when the finalizer is removed, %s in total", meanwhile, before, s.log)
}

// whileItTerminates describes the answers of the server to requests for a type that is deleted.
func (s *scenario) whileItTerminates() string {
	s.Helper()
	ship := fixture.NewObject(s.gvr.GroupVersion().WithKind("Ship"), name(1), 1, nil)
	_, err := s.ships().Create(s.ctx, ship, metav1.CreateOptions{})
	create := "succeeds"
	if apierrors.IsForbidden(err) && strings.Contains(err.Error(), "terminating") {
		create = "fails"
	}
	list, err := s.ships().List(s.ctx, metav1.ListOptions{})
	s.check(err)
	return fmt.Sprintf("a create %s, and a list returns %s", create, count(len(list.Items), "object"))
}

func subresource(s *scenario) string {
	versions, _, err := unstructured.NestedSlice(s.crd.Object, "spec", "versions")
	s.check(err)
	versions[0].(map[string]any)["subresources"] = map[string]any{"status": map[string]any{}}
	s.check(unstructured.SetNestedSlice(s.crd.Object, versions, "spec", "versions"))
	s.install(s.crd)
	w := s.watch(s.gvr.GroupVersion().WithResource("ships/status"))
	cause := w.wait(s.ctx, 3*time.Second)
	requests := "requests are repeated"
	if !eventually(s.ctx, 10*time.Second, func() bool { return s.proxy.Requests(s.ofType()) > 1 }) {
		requests = count(s.proxy.Requests(s.ofType()), "request")
	}
	return fmt.Sprintf("a wait for a subresource returns %s; %s", cause, requests)
}

func forbidden(s *scenario) string {
	s.install(s.crd)
	s.create(0, 3)
	s.proxy.Inject(s.ofType(), faultproxy.Fail(403))
	w := s.watch(s.gvr)
	cause := s.cause(w, status.ReasonForbidden)
	boats := s.watch(s.boats()).wait(s.ctx, limit)
	s.proxy.Heal()
	w.retry()
	got := w.wait(s.ctx, limit)
	s.must("the objects", func() bool { return s.log.counts().adds >= 3 })
	s.settle()
	return fmt.Sprintf("a wait returns %s; another type is %s; when it is allowed: %s, %s", cause, boats, got, s.log)
}

func revoked(s *scenario) string {
	w := s.ready(3)
	s.proxy.Inject(s.ofType(), faultproxy.Fail(403))
	s.proxy.CutWatches(s.ofType())
	s.must("a failure", func() bool { return len(s.proxy.Past(faultproxy.All(s.ofType(), faultproxy.Verb("watch")))) >= 3 })
	s.says(w, string(status.ReasonForbidden))
	meanwhile := fmt.Sprintf("it says %s; %s", w.state(), cached(w))
	s.resize(0, 77)
	s.delete(2)
	s.create(3, 1)
	s.proxy.Heal()
	w.retry()
	s.must("all changes", func() bool { return has(w, 0, 77)() && has(w, 3, 3)() && !has(w, 2, 2)() })
	s.settle()
	return fmt.Sprintf("%s; one object is changed, one deleted and one created; when they are granted again, %s in total", meanwhile, s.log)
}

func leaveWhileItHangs(s *scenario) string {
	s.install(s.crd)
	s.proxy.Inject(s.ofType(), faultproxy.Hang())
	w := s.watch(s.gvr)
	s.must("a request", func() bool { return s.proxy.OpenWatches(s.ofType()) == 1 })
	begun, left := time.Now(), make(chan time.Duration, 1)
	go func() { w.leave(); left <- time.Since(begun) }()
	const soon = 5 * time.Second // the restart loop ends an informer that does not sync after 10 s
	text := "the request does not end"
	if eventually(s.ctx, soon, func() bool { return s.proxy.OpenWatches(s.ofType()) == 0 }) {
		text = "the request ends within 5 s"
	}
	select {
	case took := <-left:
		if took <= soon {
			return "leaving returns, and " + text
		}
	case <-time.After(limit):
	}
	return "leaving takes longer than 5 s, and " + text
}

func twoWaits(s *scenario) string {
	other := fixture.NewCRD(s.gvr.Group, "Boat", "v1")
	s.install(s.crd, other)
	resume := make(chan struct{})
	s.proxy.Answer(s.ofType(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-resume:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	}))
	w := s.watch(s.gvr)
	second := make(chan string)
	go func() { second <- w.wait(s.ctx, 4*limit) }()
	first := s.cause(w, status.ReasonSyncing)
	boats := s.watch(schema.GroupVersionResource{Group: s.gvr.Group, Version: "v1", Resource: "boats"}).wait(s.ctx, limit)
	s.proxy.Heal()
	close(resume) // a list may hang instead of a watch
	return fmt.Sprintf("the wait that ends returns %s; the other one: %s; another type: %s", first, <-second, boats)
}

func expiredWatch(s *scenario) string {
	w := s.ready(6)
	s.offline(func() {
		s.resize(1, 77)
		s.delete(2)
		s.create(6, 1)
	})
	s.must("all changes", func() bool { return has(w, 1, 77)() && has(w, 6, 6)() && !has(w, 2, 2)() })
	s.settle()
	return s.log.String()
}

// settle waits until the handler has all events of the cache: that of a last change is after all others. The log forgets it.
func (s *scenario) settle() {
	s.Helper()
	s.settled++
	last := 900 + s.settled
	s.resize(1, last)
	s.must("the last change", func() bool { return s.log.forget(int64(last)) })
}

func recreatedObject(s *scenario) string {
	w := s.ready(2)
	s.offline(func() {
		s.delete(0)
		s.create(0, 1, func(obj *unstructured.Unstructured) { obj.Object["spec"] = map[string]any{"size": int64(77)} })
	})
	s.must("the new object", has(w, 0, 77))
	s.settle()
	return s.log.String()
}

func bookmarkMissing(s *scenario) string {
	s.install(s.crd)
	s.create(0, 3)
	s.proxy.Inject(s.ofType(), faultproxy.NeverInitialEventsEnd())
	w := s.watch(s.gvr)
	return fmt.Sprintf("within %.0f s: %s", limit.Seconds(), w.wait(s.ctx, limit))
}

func noBookmarks(s *scenario) string {
	w := s.ready(3)
	s.settle() // client-go lists again after a watch of less than a second without an event
	s.proxy.Inject(s.ofType(), faultproxy.DropBookmarks())
	s.proxy.CutWatches(s.ofType())
	for i := range 3 {
		s.resize(i, 77)
	}
	eventually(s.ctx, limit, func() bool { return s.log.counts().updates >= 3 })
	s.says(w, string(status.StateSynced))
	s.settle()
	return fmt.Sprintf("when three objects have changed: %s; it says %s", s.log, w.state())
}

// list responds to lists with items, and to watches with a stream that has event and does not end. It refuses watch-lists.
func (s *scenario) list(version string, items []json.RawMessage, event json.RawMessage) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		switch {
		case query.Get("sendInitialEvents") != "":
			faultproxy.Status(http.StatusBadRequest, "BadRequest", "sendInitialEvents is not known").ServeHTTP(w, r)
		case query.Get("watch") == "":
			_ = json.NewEncoder(w).Encode(map[string]any{
				"apiVersion": s.gvr.GroupVersion().String(), "kind": "ShipList",
				"metadata": map[string]any{"resourceVersion": version}, "items": items,
			})
		default:
			if event != nil {
				_ = json.NewEncoder(w).Encode(map[string]any{"type": "ADDED", "object": event})
			}
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
}

func (s *scenario) ship(name, version, spec string) json.RawMessage {
	return fmt.Appendf(nil, `{"apiVersion":%q,"kind":"Ship","metadata":{"name":%q,"namespace":"harbor","uid":%q,"resourceVersion":%q},"spec":%s}`,
		s.gvr.GroupVersion(), name, name, version, spec)
}

func oddVersions(s *scenario) string {
	s.install(s.crd)
	var texts []string
	for _, version := range []string{"", "0", "seven"} {
		s.proxy.Heal()
		s.proxy.Answer(s.ofType(), s.list(version, []json.RawMessage{s.ship(name(1), version, `{"size":1}`)}, s.ship(name(2), version, `{"size":2}`)))
		w := s.watch(s.gvr)
		got := "works"
		if w.wait(s.ctx, limit) != synced || !eventually(s.ctx, limit, func() bool { return has(w, 1, 1)() && has(w, 2, 2)() }) {
			got = "fails"
		}
		texts = append(texts, fmt.Sprintf("%q %s", version, got))
		w.stop()
	}
	return strings.Join(texts, ", ")
}

// ship is the Go type of ships.
type ship struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size int64 `json:"size"`
	} `json:"spec"`
}

func (s *ship) DeepCopyObject() runtime.Object {
	c := *s
	s.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// typed describes a typed read of the whole cache.
func typed(w watcher, gvr schema.GroupVersionResource) string {
	ours, is := w.(*gvrkit)
	if !is {
		return "it has no typed reads"
	}
	objects, err := lister.NewTyped[*ship](ours.lease.Informer().GetIndexer(), gvr).List(nil)
	text := fmt.Sprintf("a typed read returns %d", len(objects))
	if err != nil && strings.Contains(err.Error(), "harbor/"+name(0)) {
		text += " and an error that names the other"
	}
	return text
}

func malformedObject(s *scenario) string {
	s.install(s.crd)
	s.create(0, 1, func(obj *unstructured.Unstructured) { obj.Object["spec"] = map[string]any{"size": "large"} })
	s.create(1, 99)
	w := s.watch(s.gvr)
	got := w.wait(s.ctx, limit)
	return fmt.Sprintf("%s; %s; %s", got, cached(w), typed(w, s.gvr))
}

// berth is the Go type of ships whose fields may be null.
type berth struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Allocations []*int64 `json:"allocations"`
		Owner       *string  `json:"owner"`
	} `json:"spec"`
}

func (b *berth) DeepCopyObject() runtime.Object { c := *b; return &c }

func nulls(s *scenario) string {
	const spec = `{"allocations":[null,0,null,1],"owner":null}`
	s.install(s.crd)
	s.create(0, 1, func(obj *unstructured.Unstructured) {
		obj.Object["spec"] = map[string]any{"allocations": []any{nil, int64(0), nil, int64(1)}, "owner": nil}
	})
	p, labels := s.program(nil), map[string]string{"transformed": "true"}
	informer := p.ForResource(s.gvr).Informer()
	s.check(informer.SetTransform(func(obj any) (any, error) {
		u := obj.(*unstructured.Unstructured)
		u.SetLabels(labels)
		return u, nil
	}))
	s.start(p)
	all, converted := unstructuredOf(informer.GetStore()), &berth{}
	if !maps.Equal(all[0].GetLabels(), labels) {
		s.Errorf("the transform was not called: %v", all[0])
	}
	if s.name == "gvrkit" {
		berths, err := lister.NewTyped[*berth](informer.GetIndexer(), s.gvr).List(nil)
		s.check(err)
		converted = berths[0]
	} else {
		s.check(runtime.DefaultUnstructuredConverter.FromUnstructured(all[0].Object, converted))
	}
	back, err := runtime.DefaultUnstructuredConverter.ToUnstructured(converted)
	s.check(err)
	var texts []string
	for _, form := range []struct {
		name  string
		value any
	}{
		{"decoded", all[0].Object["spec"]}, {"copied", all[0].DeepCopy().Object["spec"]}, {"converted to a Go type", converted.Spec}, {"and back", back["spec"]},
	} {
		got, err := json.Marshal(form.value)
		s.check(err)
		is := "equal"
		if string(got) != spec {
			is = string(got)
		}
		texts = append(texts, form.name+": "+is)
	}
	return "the JSON, with a transform of another field, " + strings.Join(texts, ", ")
}

func largeIntegers(s *scenario) string {
	s.install(s.crd)
	var items []json.RawMessage
	numbers := []string{"9223372036854775808", "9007199254740993", "9223372036854775807"}
	for i, number := range numbers {
		items = append(items, s.ship(name(i), "7", `{"size":`+number+`}`))
	}
	s.proxy.Answer(s.ofType(), s.list("7", items, nil))
	w := s.watch(s.gvr)
	w.wait(s.ctx, limit)
	var texts []string
	all, _ := w.objects()
	for _, obj := range all {
		size := obj.Object["spec"].(map[string]any)["size"]
		kind := "rounded"
		if i := slices.IndexFunc(numbers, func(n string) bool { return n == fmt.Sprint(size) }); i >= 0 && obj.GetName() == name(i) {
			kind = "exact"
		}
		texts = append(texts, fmt.Sprintf("%s as %T, %s", obj.GetName(), size, kind))
	}
	slices.Sort(texts)
	text := strings.Join(texts, "; ")
	for i, what := range []string{"2^63", "2^53+1", "2^63-1"} {
		text = strings.Replace(text, name(i), what, 1)
	}
	return text + "; " + typed(w, s.gvr)
}

// manyTypes asks for the kinds of many types, and starts informers of a part of them. It runs on a server of its own: other cases create types, and
// gvrkit asks for documents again that may not have a new type.
func manyTypes(s *scenario) string {
	const types, watched = 100, 30
	own := fixture.StartEmbedded(s.T)
	s = newScenarioOn(s.T, s.implementation, own.Config())
	var crds []*unstructured.Unstructured
	for i := range types {
		crds = append(crds, fixture.NewCRD(s.gvr.Group, fmt.Sprintf("Ship%d", i), "v1"))
	}
	s.check(own.InstallCRDs(s.ctx, crds...))
	for range 3 { // gvrkit asks for 10 s
		s.observe()
	}
	mapper := s.mapper(s)
	s.observe() // gvrkit's has read the documents; one that is asked at once would ask itself
	for i := range types {
		if _, err := mapper.RESTMapping(schema.GroupKind{Group: s.gvr.Group, Kind: fmt.Sprintf("Ship%d", i)}); err != nil {
			s.Fatal(err)
		}
	}
	documents := s.proxy.Requests(faultproxy.AnyDiscovery())

	of := faultproxy.Group(s.gvr.Group)
	proceed := make(chan struct{})
	s.proxy.Inject(of, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-proceed:
				next.ServeHTTP(w, r)
			case <-r.Context().Done():
			}
		})
	})
	p := s.limitedProgram(8)
	for i := range watched {
		p.ForResource(s.gvr.GroupVersion().WithResource(fmt.Sprintf("ship%ds", i)))
	}
	p.Start(p.stopCh)
	s.must("the lists of some types", func() bool { return s.proxy.Requests(of) > 0 })
	s.observe()
	lists := s.proxy.Requests(of)
	close(proceed)
	s.start(p)
	return fmt.Sprintf("%s for documents; %s at a time; then all are synced", count(documents, "request"), count(lists, "list"))
}
