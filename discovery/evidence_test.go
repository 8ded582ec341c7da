package discovery_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/typefacts"
)

var gadgetGroup = group{name: "example.org", versions: []version{{name: "v1", resources: []metav1.APIResource{
	{Name: "gadgets", SingularName: "gadget", Kind: "Gadget", ShortNames: []string{"xga"}, Categories: []string{"testing"}, Namespaced: true, Verbs: crdVerbs},
	{Name: "gadgets/status", Kind: "Gadget", Namespaced: true, Verbs: all},
}}}}

// extensionsGroup is what documents of a server with CRDs list.
var extensionsGroup = group{name: "apiextensions.k8s.io", versions: []version{{name: "v1", resources: []metav1.APIResource{
	{Name: "customresourcedefinitions", SingularName: "customresourcedefinition", Kind: "CustomResourceDefinition", Verbs: all},
}}}}

// A proxy may have lost its server, or the server may restart its handlers.
func TestEvidence_AFailedListOfCRDsRemovesNothing(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"404":           http.NotFound,
		"another list":  say("application/json", `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}`),
		"a 500":         refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError),
		"not forbidden": refuse(http.StatusUnauthorized, metav1.StatusReasonUnauthorized),
	} {
		t.Run(name, func(t *testing.T) {
			s, crds := crdServer(t, define(gadgetsCRD, "1"))
			s.serve(coreGroup, extensionsGroup)
			r := run(t, s, never(), discovery.WithForbiddenPace(10*time.Millisecond))
			l := listen(t, r)
			s.answer(crdPath, answer)
			crds.cut()
			eventually(t, "the list fails", func() bool { return r.Status().CRDs.Verb == "list" && discovery.Idle(r) })
			if res, err := r.Resolve(t.Context(), "gadgets"); err != nil || res.CRDUID != "1" {
				t.Errorf("%+v, %v", res, err)
			}
			s.answer(crdPath, nil)
			eventually(t, "it works again", func() bool { return r.Status().CRDs.State == discovery.SourceCurrent })
			crds.put(define("widgets.example.org", "2").object())
			l.wants("Added widgets.v1.example.org")
		})
	}
}

// A new CRD is not established yet, also if documents still list the resources of the CRD before it.
func TestEvidence_ARecreatedCRDIsAnotherTypeAtOnce(t *testing.T) {
	fresh := define(gadgetsCRD, "2")
	fresh.conditions = nil
	for name, recreate := range map[string]func(*collection){
		"watched": func(c *collection) {
			c.remove(gadgetsCRD)
			c.put(fresh.object())
		},
		"unseen": func(c *collection) {
			c.mu.Lock()
			c.objects[gadgetsCRD] = fresh.object()
			c.mu.Unlock()
			c.cut()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, crds := crdServer(t, define(gadgetsCRD, "1"))
			s.serve(coreGroup, gadgetGroup)
			r := run(t, s, never())
			l := listen(t, r)
			recreate(crds)
			if got := l.wants("Removed gadgets.v1.example.org (CRDDeleted)")[0].Evidence.CRDUID; got != "1" {
				t.Errorf("UID of the evidence = %q", got)
			}
			eventually(t, "it watches", func() bool { return r.Status().CRDs.State == discovery.SourceCurrent && discovery.Idle(r) })
			_, err := r.Validate(t.Context(), gadgets)
			if !errors.Is(err, discovery.ErrNotServed) { // not established, if the event has arrived already
				t.Errorf("Validate: %v", err)
			}
			crds.put(define(gadgetsCRD, "2").object())
			if got := l.wants("Added gadgets.v1.example.org")[0].Resource.CRDUID; got != "2" {
				t.Errorf("UID = %q", got)
			}
		})
	}
}

// Informers ignore the deletion of another CRD than the one that they know.
func TestEvidence_IsTheDeletionOfTheKnownCRD(t *testing.T) {
	recreated := func(w *memoryServer) {
		again := gadget("v1")
		again.uid = "2"
		w.dropCRD(gadgetsCRD)
		w.setCRD(again)
	}
	for name, happens := range map[string]func(t *testing.T, w *memoryServer, r *discovery.Resolver, stop func()){
		"recreated and deleted at once": func(_ *testing.T, w *memoryServer, _ *discovery.Resolver, _ func()) {
			w.update(func() { recreated(w); w.dropCRD(gadgetsCRD) })
		},
		"recreated between runs, and deleted before the first document": func(t *testing.T, w *memoryServer, r *discovery.Resolver, stop func()) {
			t.Helper()
			stop()
			w.update(func() { recreated(w); w.fault["named"], w.fault["core"] = "503", "503" })
			runFor(t, r)
			sleep(10 * time.Second)
			w.update(func() { w.dropCRD(gadgetsCRD) })
			sleep(10 * time.Second)
			w.update(func() { clear(w.fault) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				next, stop := started(t, w, r, func() { w.setCRD(gadget("v1")) })
				ctx, cancel := context.WithCancel(t.Context())
				var (
					wg      sync.WaitGroup
					deleted discovery.Evidence
				)
				wg.Go(func() {
					for e := range r.Subscribe(ctx) {
						if e.Type == discovery.Removed {
							deleted = e.Evidence
						}
					}
				})
				synctest.Wait()
				happens(t, w, r, stop)
				sleep(5 * time.Minute)
				cancel()
				wg.Wait()
				if deleted.Kind != discovery.CRDDeleted || deleted.CRDUID != "1" {
					t.Errorf("evidence: %+v, want the deletion of the CRD with UID 1", deleted)
				}
				wantEvents(t, next, "Removed gadgets.v1.example.org (CRDDeleted)")
			})
		})
	}
}

// A new CRD may not be readable, and not be served yet. A document that does not list the type may be read
// before the deletion of the old CRD is reported.
func TestEvidence_TheResourceOfADeletedCRDIsNotAddedForANewCRD(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		bolt := func(versions ...string) crdObject {
			return crdObject{name: "bolts.example.org", uid: "3", group: "example.org", plural: "bolts", kind: "Bolt", versions: versions, established: true}
		}
		next, stop := started(t, w, r, func() {
			w.fault["crds.get"] = "403"
			w.setCRD(gadget("v2"))
			w.setCRD(bolt("v1"))
		})
		defer stop()
		for after := time.Millisecond; after < 10*time.Millisecond; after += time.Millisecond {
			w.update(func() { w.setCRD(bolt("v2", "v1")) }) // documents are requested
			sleep(after)
			w.update(func() {
				again := gadget("v1")
				again.uid, again.established = "2", false
				w.dropCRD(gadgetsCRD)
				w.setCRD(again)
			})
			sleep(time.Second)
			if events := next(); !slices.Contains(events, "Removed gadgets.v2.example.org (CRDDeleted)") || slices.Contains(events, "Added gadgets.v2.example.org") {
				t.Errorf("after %v: events: %q", after, events)
			}
			w.update(func() {
				w.dropCRD(gadgetsCRD)
				w.setCRD(gadget("v2"))
				w.setCRD(bolt("v1"))
			})
			sleep(5 * time.Minute)
			next()
		}
	})
}

// While a watch fails, the known types stay, and documents may add types.
func TestEvidence_DocumentsAddTypesWhileAWatchFails(t *testing.T) {
	s := newServer(t, aggregated, coreGroup)
	crds := newCollection(define("widgets.example.org", "1").object())
	apis := newCollection(
		apiServiceOf("", "v1", "", "True", map[string]string{"kube-aggregator.kubernetes.io/automanaged": "onstart"}),
		apiServiceOf("example.org", "v1", "", "True", map[string]string{"kube-aggregator.kubernetes.io/automanaged": "true"}))
	s.collections(t, crds, apis)
	r := run(t, s, discovery.WithPace(5*time.Millisecond, 5*time.Millisecond, time.Hour))
	l := listen(t, r)
	for _, path := range []string{crdPath, apiServicePath} {
		s.answer(path, refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError))
	}
	crds.cut()
	apis.cut()
	eventually(t, "both watches fail", func() bool {
		status := r.Status()
		return status.CRDs.State == discovery.SourceFailing && status.APIServices.State == discovery.SourceFailing
	})
	defer typefacts.Of(r).Expect(gadgets.GroupResource())()
	s.serve(coreGroup, gadgetGroup, metricsGroup)
	l.wants("Added gadgets.v1.example.org", "Added nodes.v1beta1.metrics.k8s.io")
	if _, err := r.Resolve(t.Context(), "widgets"); err != nil {
		t.Errorf("what was known: %v", err)
	}
}

// A new run does not know the documents of the last run.
func TestEvidence_ASecondRunNeedsTwoDocumentsToo(t *testing.T) {
	s := newServer(t, aggregated, coreGroup, exampleGroup)
	r := s.resolver(t, discovery.WithPace(5*time.Millisecond, 5*time.Millisecond, 200*time.Millisecond))
	start := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = r.Run(ctx)
		}()
		return func() {
			cancel()
			<-ended
		}
	}
	stop := start()
	eventually(t, "the types are known", func() bool { return r.Status().Types > 0 })
	l := listen(t, r)
	stop()
	s.serve(coreGroup)
	begun := time.Now()
	stop = start()
	defer stop()
	l.wants("Removed widgets.v1.example.com (NotListed)", "Removed flanges.v1beta1.example.com (NotListed)")
	if took := time.Since(begun); took < 200*time.Millisecond {
		t.Errorf("gone after %v, on the word of one answer", took)
	}
}

// For example while the server is starting.
func TestEvidence_AnAPIServiceThatDocumentsDoNotListIsInconclusive(t *testing.T) {
	s := newServer(t, aggregated, coreGroup, metricsGroup)
	apis := newCollection(metricsService("True"))
	s.collections(t, newCollection(), apis)
	r := run(t, s, discovery.WithPace(5*time.Millisecond, 5*time.Millisecond, time.Hour))
	l := listen(t, r)
	s.serve(coreGroup)
	apis.put(metricsService("False"))
	s.documents()
	eventually(t, "documents were asked for", func() bool { return s.documentsSoFar() > 4 })
	if _, err := r.Resolve(t.Context(), "nodes.metrics.k8s.io"); err != nil {
		t.Errorf("last known: %v", err)
	}
	// And what it may have besides can't be told.
	_, err := r.Resolve(t.Context(), "unicorns.metrics.k8s.io")
	checkInconclusive(t, err, "unicorns.metrics.k8s.io", nil)
	s.serve(coreGroup, metricsGroup, exampleGroup)
	l.wants("Added widgets.v1.example.com")
}

func TestEvidence_ANewAPIServiceEndsAStoredRefusal(t *testing.T) {
	s := newServer(t, aggregated, coreGroup)
	apis := newCollection()
	s.collections(t, newCollection(), apis)
	r := run(t, s, never())
	eventually(t, "both are watched", func() bool { return r.Status().APIServices.State == discovery.SourceCurrent })
	nodes := schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "nodes"}
	_, err := r.ResolveGVR(t.Context(), nodes)
	checkKind(t, err, discovery.ErrNotServed)
	s.answer("/apis/metrics.k8s.io/v1beta1", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, "application/json", versionDoc(metricsGroup, metricsGroup.versions[0]))
	})
	apis.put(metricsService("True"))
	eventually(t, "it is found", func() bool {
		_, err := r.ResolveGVR(t.Context(), nodes)
		return err == nil
	})
}

// When the last caller leaves, the responses so far are incomplete.
func TestEvidence_ACancelledQuestionDoesNotAffectOthers(t *testing.T) {
	s, _ := crdServer(t)
	r := run(t, s, never())
	eventually(t, "all is certain", func() bool { return r.Status().APIServices.State == discovery.SourceAbsent })
	arrived := make(chan struct{}, 1)
	s.answer("/apis", func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := r.Resolve(ctx, "unicorns"); !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled one: %v", err)
	}
	s.answer("/apis", nil)
	_, err := r.ResolveGVR(t.Context(), gadgets)
	checkKind(t, err, discovery.ErrNotServed)
}

func TestEvidence_ACancelledQuestionRemovesNothing(t *testing.T) {
	s := newServer(t, legacy, coreGroup, appsGroup)
	s.collections(t, newCollection(), nil)
	r := run(t, s, never())
	eventually(t, "all is certain", func() bool { return r.Status().APIServices.State == discovery.SourceAbsent })
	_, err := r.Resolve(t.Context(), "unicorns")
	checkKind(t, err, discovery.ErrNotServed)
	arrived := make(chan struct{}, 1)
	s.answer("/apis/apps/v1", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case arrived <- struct{}{}:
		default:
		}
		<-r.Context().Done()
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-arrived
		cancel()
	}()
	if _, err := r.Resolve(ctx, "dragons"); !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled one: %v", err)
	}
	s.paths()
	ctx, cancel = context.WithTimeout(t.Context(), 5*time.Second) // so that a request is not waited for
	defer cancel()
	_, err = r.Resolve(ctx, "unicorns")
	checkKind(t, err, discovery.ErrNotServed)
	if got := s.paths(); len(got) > 0 {
		t.Errorf("requests: %v", got)
	}
}

func TestEvidence_DocumentsThatLackFieldsAreInconclusive(t *testing.T) {
	const v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, tc := range []struct{ contentType, body string }{
		{"application/json", `{}`},
		{"application/json", `null`},
		{"application/json", `{"message":"maintenance"}`},
		{"application/json", `{"kind":"APIGroupList"}`},
		{"application/json", `{"kind":"APIGroupList","groups":[{"name":"example.com"}]}`},
		{"application/json", `{"kind":"APIGroupList","groups":[{"versions":[{"version":"v1"}]}]}`},
		{"application/json", `{"kind":"APIGroupList","groups":[{"name":"example.com","versions":[{"groupVersion":"example.com/v1"}]}]}`},
		{v2, `{"kind":"APIGroupDiscoveryList"}`},
		{v2, `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"example.com"}}]}`},
		{v2, `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"example.com"},"versions":[{"freshness":"Current"}]}]}`},
		{v2, `{"kind":"APIGroupDiscoveryList","items":[{"versions":[{"version":"v1","resources":[{"resource":"widgets","responseKind":{"kind":"Widget"},"scope":"Cluster","verbs":["list"]}]}]}]}`},
	} {
		t.Run(tc.body, func(t *testing.T) {
			s := newServer(t, aggregated, everything()...)
			s.answer("/apis", say(tc.contentType, tc.body))
			r := s.resolver(t)
			for _, ref := range []string{"widgets.example.com", "widgets"} {
				_, err := r.Resolve(t.Context(), ref)
				checkInconclusive(t, err, ref, nil)
			}
			if _, err := r.Resolve(t.Context(), "pods"); err != nil {
				t.Errorf("of the other root: %v", err)
			}
			// What was known stands.
			s.answer("/apis", nil)
			eventually(t, "what fails is asked again", func() bool {
				_, err := r.Resolve(t.Context(), "widgets")
				return err == nil
			})
			s.answer("/apis", say(tc.contentType, tc.body))
			if _, err := r.Resolve(t.Context(), "widgets"); err != nil {
				t.Errorf("last known: %v", err)
			}
		})
	}
}

func TestInconclusiveError_Again(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			s := newServer(t, f, everything()...)
			s.answer("/apis", busy)
			begun := time.Now()
			r := s.resolver(t)
			for range 2 {
				_, err := r.Resolve(t.Context(), "widgets.example.com")
				got := asType[*discovery.InconclusiveError](t, err, discovery.ErrInconclusive)
				if wait := got.Again.Sub(begun); wait < 29*time.Second || wait > 40*time.Second || got.Asked.Before(begun) {
					t.Errorf("asked at %v, and again in %v", got.Asked, wait)
				}
			}
		})
	}
}

// No pause is longer than ten minutes.
func TestInconclusiveError_AgainIsAtMostTenMinutes(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	s.answer("/apis", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "7200")
		refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)(w, r)
	})
	r := s.resolver(t)
	for range 2 {
		_, err := r.Resolve(t.Context(), "widgets.example.com")
		got := asType[*discovery.InconclusiveError](t, err, discovery.ErrInconclusive)
		if wait := got.Again.Sub(got.Asked); wait < 9*time.Minute || wait > 10*time.Minute+time.Second {
			t.Errorf("again in %v", wait)
		}
	}
}

func TestRun_RequestsAreSpaced(t *testing.T) {
	s := newServer(t, aggregated, coreGroup, metricsGroup)
	apis := newCollection(metricsService("True"))
	s.collections(t, newCollection(), apis)
	const gap = 100 * time.Millisecond
	r := run(t, s, never(), discovery.WithGap(gap))
	eventually(t, "both are watched", func() bool { return r.Status().APIServices.State == discovery.SourceCurrent })
	s.documents()
	begun := time.Now()
	for range 100 {
		apis.put(metricsService("False"))
		apis.put(metricsService("True"))
	}
	l := listen(t, r)
	apis.put(apiServiceOf("z.example.com", "v1", "", "True", nil))
	s.serve(coreGroup, metricsGroup, exampleGroup)
	l.wants("Added widgets.v1.example.com")
	got, took := s.documents(), time.Since(begun)
	// A tenth of the gap is between the first two requests, and twice as long between the next ones, up to the gap. That begins again after twice the gap.
	requests, pause := 1+2*int(took/(2*gap)), gap/10
	for left := took - pause; left >= 0; left -= pause {
		requests, pause = requests+1, min(2*pause, gap)
	}
	if got > 2*requests {
		t.Errorf("%d documents in %v", got, took)
	}
}

// The event answers the question, also if the group version is behind.
func TestRun_ARemovedVersionNeedsNoRequest(t *testing.T) {
	d := define(gadgetsCRD, "1")
	d.versions, d.served["v1beta1"] = []string{"v1", "v1beta1"}, true
	s, crds := crdServer(t, d)
	r := run(t, s, never())
	eventually(t, "all is certain", func() bool { return r.Status().APIServices.State == discovery.SourceAbsent })
	l := listen(t, r)
	d.served["v1beta1"] = false
	crds.put(d.object())
	l.wants("Changed gadgets.v1.example.org [Versions]")
	s.paths()
	for _, version := range []string{"v1beta1", "v9"} { // of v9 there was no event: the CRD says all of its versions
		_, err := r.ResolveGVR(t.Context(), gadgets.GroupResource().WithVersion(version))
		got := asType[*discovery.NotServedError](t, err, discovery.ErrNotServed)
		if len(got.Versions) != 1 || got.Versions[0] != "v1" {
			t.Errorf("%s: versions = %v", version, got.Versions)
		}
		if got := s.paths(); len(got) > 0 {
			t.Errorf("%s: requests: %v", version, got)
		}
	}
}

// If the CRD of a type becomes known later than the type, it may have replaced the CRD of the document.
func TestEvidence_ACRDThatIsNewerThanItsTypeHasReplacedAnother(t *testing.T) {
	for name, tc := range map[string]struct {
		age    time.Duration
		events []string
	}{
		"younger": {-time.Minute, []string{"Removed gadgets.v1.example.org (CRDDeleted)", "Added gadgets.v1.example.org"}},
		"older":   {time.Minute, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := define(gadgetsCRD, "1").object()
			o["metadata"].(map[string]any)["creationTimestamp"] = time.Now().Add(-tc.age).UTC().Format(time.RFC3339)
			s := newServer(t, aggregated, coreGroup, gadgetGroup)
			crds := newCollection(o)
			s.collections(t, crds, nil)
			s.serve(coreGroup, gadgetGroup)
			s.answer(crdPath, refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))
			r := run(t, s, quick())
			l := listen(t, r)
			s.answer(crdPath, nil)
			if tc.events != nil {
				l.wants(tc.events...)
			}
			crds.put(define("widgets.example.org", "2").object())
			l.wants("Added widgets.v1.example.org")
			if res, err := r.Resolve(t.Context(), "gadgets"); err != nil || res.CRDUID != "1" {
				t.Errorf("gadgets have UID %q, %v", res.CRDUID, err)
			}
		})
	}
}

// A user may be allowed to list APIServices, and not to get them. Then the CRD of that name may not serve
// the type.
func TestEvidence_ATypeWhoseAPIServiceCannotBeReadHasNoCRD(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		w.update(func() {
			w.fault["apis.get"], w.fault["crds.get"] = "403", "403"
			w.setCRD(gadget("v1"))
			w.serveByService("gadgets")
		})
		next := recordEvents(t, r)
		runFor(t, r)
		sleep(time.Minute)
		if res, err := r.ResolveGVR(t.Context(), gadgets); err != nil || res.CRDUID != "" || res.Backing != discovery.BackingUnknown {
			t.Errorf("%q by %q, %v", res.Backing, res.CRDUID, err)
		}
		next()
		w.update(func() { w.dropCRD(gadgetsCRD) })
		sleep(3 * time.Minute)
		wantEvents(t, next)
	})
}

// If APIServices are forbidden, the documents decide in the end.
func TestEvidence_AnotherServerMayServeATypeAfterItsCRD(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		w.update(func() {
			w.fault["apis.list"] = "403"
			w.setCRD(gadget("v1"))
		})
		runFor(t, r)
		sleep(time.Minute)
		w.update(func() {
			w.serveByService("gadgets")
			w.dropCRD(gadgetsCRD)
		})
		sleep(2 * time.Minute)
		if _, err := r.ResolveGVR(t.Context(), gadgets); err != nil {
			t.Error(err)
		}
	})
}

// The CRD is established, and another server receives the requests for the type.
func TestEvidence_ACRDThatDocumentsContradictIsNotServed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		w.update(func() { w.fault["apis.list"] = "403" })
		runFor(t, r)
		sleep(time.Minute)
		defer typefacts.Of(r).Expect(gadgets.GroupResource())()
		w.update(func() {
			w.setCRD(gadget("v1"))
			w.serveByService("others")
		})
		sleep(time.Second)
		if _, err := r.ResolveGVR(t.Context(), gadgets); err != nil {
			t.Error("at first: ", err)
		}
		sleep(3 * time.Minute)
		if _, err := r.ResolveGVR(t.Context(), gadgets); !errors.Is(err, discovery.ErrNotServed) {
			t.Error(err)
		}
	})
}

// Documents that are older than the deletion of a CRD list its type. They do not describe the server of an
// APIService that is still to be read.
func TestEvidence_TheDeletionOfACRDIsReportedOnce(t *testing.T) {
	for name, upset := range map[string]func(w *memoryServer){
		"and an APIService comes": func(w *memoryServer) {},
		"and it can't be read":    func(w *memoryServer) { w.fault["apis.get"] = "403" },
		"and APIServices are forbidden": func(w *memoryServer) {
			w.fault["apis.get"], w.fault["apis.list"], w.fault["apis.watch"] = "403", "403", "403"
		},
	} {
		t.Run(name, func(t *testing.T) {
			for after := 5 * time.Millisecond; after < 25*time.Millisecond; after += 2 * time.Millisecond {
				inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
					t.Helper()
					next, _ := started(t, w, r, func() {
						upset(w)
						w.setCRD(gadget("v1"))
					})
					w.update(func() { w.dropCRD(gadgetsCRD) })
					sleep(after)
					w.update(func() { w.serveByService("others") })
					sleep(time.Minute)
					wantEvents(t, next, "Removed gadgets.v1.example.org (CRDDeleted)", "Added others.v1.example.org")
				})
			}
		})
	}
}

func TestEvidence_ATypeThatIsRemovedAfterItsCRDIsNotListed(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		next, _ := started(t, w, r, func() {
			w.fault["apis.get"] = "403"
			w.setCRD(gadget("v2", "v1"))
		})
		w.update(func() { w.dropCRD(gadgetsCRD) })
		sleep(5 * time.Millisecond)
		w.update(func() { w.serveByService("gadgets") })
		sleep(20 * time.Second)
		wantEvents(t, next, "Removed gadgets.v2.example.org (CRDDeleted)", "Added gadgets.v1.example.org")
		w.update(func() {
			w.setAPI(&apiServiceObject{name: "v1.example.org", auto: "true", available: true})
		})
		sleep(time.Minute)
		wantEvents(t, next, "Removed gadgets.v1.example.org (NotListed)")
	})
}

// A run that does not know the APIServices yet starts with the state of the last run: the deletion of a CRD
// does not affect a type that another server serves.
func TestEvidence_ASecondRunKnowsTheBackingOfAType(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		next, stop := started(t, w, r, func() {
			w.serveByService("gadgets")
			w.setCRD(gadget("v1"))
		})
		stop()
		w.update(func() { w.fault["apis.list"], w.fault["named"] = "hang", "hang" })
		runFor(t, r)
		sleep(time.Second)
		w.update(func() {
			w.dropCRD(gadgetsCRD)
			w.fault["named"] = ""
		})
		sleep(time.Minute)
		wantEvents(t, next)
	})
}

// Documents can't contradict a CRD that is not established: they rightly leave it out.
func TestEvidence_ACRDThatIsEstablishedLateIsServedBeforeDocumentsListIt(t *testing.T) {
	inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
		t.Helper()
		waiting := gadget("v1")
		waiting.established = false
		next, _ := started(t, w, r, func() { w.setCRD(waiting) })
		sleep(2 * time.Minute)
		w.update(func() {
			w.lags = []time.Duration{time.Hour}
			w.setCRD(gadget("v1"))
		})
		sleep(5 * time.Second)
		wantEvents(t, next, "Added gadgets.v1.example.org")
	})
}

// A type that another server may serve does not end with a CRD of its name that comes and goes: the end of the
// CRD that served it has been reported. What else changes just before decides which documents are requested.
func TestEvidence_TheEndOfACRDIsReportedOnceForATypeThatStays(t *testing.T) {
	for before := time.Millisecond; before < 60*time.Millisecond; before += 3 * time.Millisecond {
		inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
			t.Helper()
			next, _ := started(t, w, r, func() {
				w.fault["apis.get"] = "403"
				w.setCRD(gadget("v2"))
				w.serveByService("gadgets")
			})
			w.update(func() {
				w.setCRD(crdObject{name: "widgets.example.com", uid: "3", group: "example.com", plural: "widgets", kind: "Widget", versions: []string{"v1"}, established: true})
			})
			sleep(before)
			w.update(func() { w.dropCRD(gadgetsCRD) })
			sleep(time.Minute)
			next()
			w.update(func() {
				again := gadget("v1")
				again.uid = "2"
				w.setCRD(again)
			})
			sleep(5 * time.Second)
			w.update(func() { w.dropCRD(gadgetsCRD) })
			sleep(time.Minute)
			wantEvents(t, next)
		})
	}
}

// Subscribers that got the removal of a type while CRDs were forbidden learn later what became of its CRD.
func TestEvidence_ACRDThatIsKnownAgainIsEvidence(t *testing.T) {
	unestablished := func(uid string) func(w *memoryServer) {
		return func(w *memoryServer) {
			again := gadget("v1")
			again.established = false
			if again.uid != uid {
				w.dropCRD(gadgetsCRD)
			}
			again.uid = uid
			w.setCRD(again)
		}
	}
	for name, tc := range map[string]struct {
		happens func(w *memoryServer)
		want    []string
	}{
		"it serves no version":          {unestablished("1"), []string{"Removed gadgets.v1.example.org (NoVersionServed)"}},
		"another one serves no version": {unestablished("2"), []string{"Removed gadgets.v1.example.org (CRDDeleted)"}},
		"it is deleted":                 {func(w *memoryServer) { w.dropCRD(gadgetsCRD) }, []string{"Removed gadgets.v1.example.org (CRDDeleted)"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				next, _ := started(t, w, r, func() { w.setCRD(gadget("v1")) })
				w.update(func() {
					w.fault["crds.list"], w.fault["crds.watch"], w.fault["crds.get"] = "403", "403", "403"
					w.endWatches(w.crds, true)
				})
				sleep(time.Minute)
				w.update(func() { tc.happens(w) })
				sleep(5 * time.Minute)
				wantEvents(t, next, "Removed gadgets.v1.example.org (NotListed)")
				w.update(func() { clear(w.fault) })
				sleep(10 * time.Minute)
				wantEvents(t, next, tc.want...)
				w.update(func() { w.setCRD(gadget("v1")) })
				sleep(time.Minute)
				wantEvents(t, next, "Added gadgets.v1.example.org")
			})
		})
	}
}
