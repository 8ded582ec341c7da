package discovery_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/typefacts"
)

func TestRun_PollsIfWatchesAreForbidden(t *testing.T) {
	s := newServer(t, aggregated, coreGroup)
	s.answer(crdPath, refuse(http.StatusForbidden, metav1.StatusReasonForbidden))
	s.answer(apiServicePath, refuse(http.StatusForbidden, metav1.StatusReasonForbidden))
	r := run(t, s, quick())
	l := listen(t, r)
	if status := r.Status(); status.CRDs.State != discovery.SourceForbidden || status.APIServices.State != discovery.SourceForbidden ||
		status.CRDs.Err == nil || status.CRDs.Verb != "list" {
		t.Errorf("status = %+v", status)
	}
	defer typefacts.Of(r).Expect(widgets.GroupResource())()
	s.serve(coreGroup, exampleGroup)
	l.wants("Added widgets.v1.example.com", "Added flanges.v1beta1.example.com")
	begun := time.Now()
	s.serve(coreGroup)
	l.wants("Removed widgets.v1.example.com (NotListed)", "Removed flanges.v1beta1.example.com (NotListed)")
	if took := time.Since(begun); took < 100*time.Millisecond {
		t.Errorf("gone after %v, on the word of one answer", took)
	}
}

// One of several API servers may be behind.
func TestRun_ATypeThatOneDocumentDoesNotListStays(t *testing.T) {
	s := newServer(t, aggregated, coreGroup, exampleGroup)
	s.answer(crdPath, refuse(http.StatusForbidden, metav1.StatusReasonForbidden))
	r := run(t, s, discovery.WithPace(time.Millisecond, time.Millisecond, time.Hour))
	s.serve(coreGroup)
	s.documents()
	defer typefacts.Of(r).Expect(widgets.GroupResource())()
	eventually(t, "asked some times", func() bool { return s.documentsSoFar() > 20 })
	if _, err := r.Resolve(t.Context(), "widgets"); err != nil {
		t.Error(err)
	}
}

// A server that responds NotFound to a request for CRDs may have them a moment later, and there are no events meanwhile.
func TestRun_AnExpectedTypeIsPolledForWhileCRDsSeemAbsent(t *testing.T) {
	s := newServer(t, aggregated, coreGroup, exampleGroup)
	r := run(t, s, discovery.WithPace(time.Millisecond, time.Millisecond, time.Hour))
	eventually(t, "CRDs are absent", func() bool { return r.Status().CRDs.State == discovery.SourceAbsent })
	before := s.documentsSoFar()
	defer typefacts.Of(r).Expect(widgets.GroupResource())()
	eventually(t, "asked some times", func() bool { return s.documentsSoFar() > before+20 })
}

func TestRun_CRDsAndAPIServicesMayBeAbsent(t *testing.T) {
	s := newServer(t, aggregated, coreGroup)
	r := run(t, s, never())
	eventually(t, "both are absent", func() bool {
		status := r.Status()
		return status.CRDs.State == discovery.SourceAbsent && status.APIServices.State == discovery.SourceAbsent
	})
	got, err := r.Resolve(t.Context(), "pods")
	if err != nil || got.Backing != discovery.BackingBuiltIn {
		t.Errorf("pods: %v, %v", got.Backing, err)
	}
}

// metrics is an aggregated API.
var metricsGroup = group{name: "metrics.k8s.io", versions: []version{{name: "v1beta1", resources: []metav1.APIResource{
	{Name: "nodes", Kind: "NodeMetrics", Verbs: all},
}}}}

func metricsService(available string) object {
	return apiServiceOf("metrics.k8s.io", "v1beta1", "metrics-server", available, nil)
}

func TestRun_UnavailableAPIServiceRemovesNothing(t *testing.T) {
	s := newServer(t, aggregated, coreGroup, metricsGroup)
	apis := newCollection(metricsService("True"))
	s.collections(t, newCollection(), apis)
	r := run(t, s, discovery.WithPace(time.Millisecond, time.Millisecond, time.Hour))
	l := listen(t, r)
	s.serve(coreGroup, stale(metricsGroup, "v1beta1"))
	s.documents()
	apis.put(metricsService("False"))
	eventually(t, "the documents were asked for", func() bool { return s.documentsSoFar() > 2 })
	got, err := r.Resolve(t.Context(), "nodes.metrics.k8s.io")
	if err != nil || got.Backing != discovery.BackingAggregated {
		t.Errorf("last known: %v, %v", got, err)
	}
	_, err = r.Resolve(t.Context(), "unicorns.metrics.k8s.io")
	checkInconclusive(t, err, "unicorns.metrics.k8s.io", nil)
	// Its end is another thing.
	s.serve(coreGroup)
	apis.remove("v1beta1.metrics.k8s.io")
	l.wants("Removed nodes.v1beta1.metrics.k8s.io (NotListed)")
}

// Discovery is behind the APIServices by up to a minute.
func TestRun_AnAvailableAPIServiceIsAwaited(t *testing.T) {
	s := newServer(t, aggregated, coreGroup)
	apis := newCollection()
	s.collections(t, newCollection(), apis)
	r := run(t, s, discovery.WithPace(time.Millisecond, time.Hour, time.Hour))
	l := listen(t, r)
	s.documents()
	apis.put(metricsService("True"))
	eventually(t, "asked again and again", func() bool { return s.documentsSoFar() > 10 })
	s.serve(coreGroup, metricsGroup)
	l.wants("Added nodes.v1beta1.metrics.k8s.io")
}

func TestRun_FailedDocumentsAreRequestedAgain(t *testing.T) {
	s, _ := crdServer(t)
	s.answer("/apis", refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError))
	s.answer("/api", refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError))
	r := s.resolver(t, discovery.WithPace(time.Millisecond, time.Hour, time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.Run(ctx) })
	defer wg.Wait()
	defer cancel()
	eventually(t, "the documents fail", func() bool { return r.Status().Documents.State == discovery.SourceFailing })
	s.answer("/apis", nil)
	s.answer("/api", nil)
	eventually(t, "the types are known", func() bool { return r.Status().Types > 0 })
}

func TestRun_AConcurrentRunIsAnError(t *testing.T) {
	s, _ := crdServer(t)
	r := run(t, s, never())
	if err := r.Run(t.Context()); !errors.Is(err, discovery.ErrRunning) {
		t.Errorf("Run = %v", err)
	}
}

func TestRun_AfterItsEndQuestionsSendRequests(t *testing.T) {
	s, crds := crdServer(t)
	r := s.resolver(t, never())
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.Run(ctx) })
	eventually(t, "the types are known", func() bool { return r.Status().Types > 0 })
	cancel()
	wg.Wait()
	eventually(t, "no watch is open", func() bool { return crds.open() == 0 })
	s.paths()
	if _, err := r.Resolve(t.Context(), "pods"); err != nil {
		t.Error(err)
	}
	if got := s.documents(); got != 2 {
		t.Errorf("asked for %d documents, want 2", got)
	}
	if r.Status().Running {
		t.Error("it is said to run")
	}
}

// A subscriber of both runs gets the changes, and no event twice.
func TestRun_ASecondRunReportsTheChangesSinceTheFirst(t *testing.T) {
	s, crds := crdServer(t, define(gadgetsCRD, "1"), define("widgets.example.org", "2"))
	r := s.resolver(t, never())
	start := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = r.Run(ctx) })
		eventually(t, "the types are known", func() bool { return r.Status().Documents.State == discovery.SourceCurrent })
		return func() {
			cancel()
			wg.Wait()
		}
	}
	stop := start()
	eventually(t, "the types are known", func() bool { return r.Status().CRDs.State == discovery.SourceCurrent && discovery.Idle(r) })
	l := listen(t, r)
	stop()
	crds.forget(gadgetsCRD)
	stop = start()
	defer stop()
	events := l.wants("Removed gadgets.v1.example.org (CRDDeleted)")
	if got := events[0].Evidence.CRDUID; got != "1" {
		t.Errorf("UID of the evidence = %q", got)
	}
	crds.put(define("doodads.example.org", "3").object())
	l.wants("Added doodads.v1.example.org")
}

func TestRun_RefusalsOfSeveralTypesAreStored(t *testing.T) {
	s, _ := crdServer(t)
	r := run(t, s, never())
	eventually(t, "all is certain", func() bool { return r.Status().APIServices.State == discovery.SourceAbsent })
	for range 3 {
		for _, ref := range []string{"unicorns", "dragons", "griffins.example.org"} {
			_, err := r.Resolve(t.Context(), ref)
			checkKind(t, err, discovery.ErrNotServed)
		}
	}
	if got := s.documents(); got > 2+3*2 {
		t.Errorf("asked for %d documents", got)
	}
}

// A server that creates APIServices for all its types has an APIService for each served group version. Its
// documents may still list removed types.
func TestRun_AGroupVersionWithoutAPIServiceIsNotServed(t *testing.T) {
	onStart := map[string]string{"kube-aggregator.kubernetes.io/automanaged": "onstart"}
	byCRD := map[string]string{"kube-aggregator.kubernetes.io/automanaged": "true"}
	ghosts := group{name: "example.org", versions: []version{{name: "v1", resources: []metav1.APIResource{
		{Name: "gadgets", SingularName: "gadget", Kind: "Gadget", Verbs: all},
	}}}}
	s := newServer(t, aggregated, coreGroup, ghosts, metricsGroup)
	crds := newCollection()
	apis := newCollection(apiServiceOf("", "v1", "", "True", onStart), metricsService("True"))
	s.collections(t, crds, apis)
	r := run(t, s, never())
	if got := r.Status().Types; got != 3 {
		t.Errorf("%d types, want pods, componentstatuses and nodes", got)
	}
	l := listen(t, r)
	apis.put(apiServiceOf("example.org", "v1", "", "True", byCRD))
	crds.put(define(gadgetsCRD, "1").object())
	l.wants("Added gadgets.v1.example.org")
	res, err := r.Resolve(t.Context(), "gadgets")
	if err != nil || res.Backing != discovery.BackingCRD || res.CRDUID != "1" {
		t.Errorf("%+v, %v", res, err)
	}
}

// The permission is granted, and revoked later.
func TestRun_ForbiddenWatchesAreTriedAgain(t *testing.T) {
	s, crds := crdServer(t, define(gadgetsCRD, "1"))
	s.serve(coreGroup, group{name: "example.org", versions: []version{{name: "v1", resources: []metav1.APIResource{
		{Name: "gadgets", SingularName: "gadget", Kind: "Gadget", ShortNames: []string{"xga"}, Categories: []string{"testing"}, Namespaced: true, Verbs: crdVerbs},
		{Name: "gadgets/status", Kind: "Gadget", Namespaced: true, Verbs: all},
	}}}})
	// Listing is allowed, watching is not: what was listed is not kept up to date.
	s.answer(crdPath, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") != "" {
			refuse(http.StatusForbidden, metav1.StatusReasonForbidden)(w, r)
			return
		}
		crds.ServeHTTP(w, r)
	})
	r := run(t, s, never(), discovery.WithForbiddenPace(20*time.Millisecond))
	eventually(t, "it is forbidden", func() bool { return r.Status().CRDs.State == discovery.SourceForbidden })
	l := listen(t, r)
	if res, err := r.Resolve(t.Context(), "gadgets"); err != nil || res.CRDUID != "" {
		t.Errorf("%+v, %v", res, err)
	}
	s.answer(crdPath, nil)
	eventually(t, "it watches", func() bool { return r.Status().CRDs.State == discovery.SourceCurrent && discovery.Idle(r) })
	if res, err := r.Resolve(t.Context(), "gadgets"); err != nil || res.CRDUID != "1" {
		t.Errorf("%+v, %v", res, err)
	}
	crds.put(define("widgets.example.org", "2").object())
	l.wants("Added widgets.v1.example.org") // the first that happens: knowing more is no change
}

// crdVerbs are what a custom resource supports.
var crdVerbs = metav1.Verbs{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}

// A program asks for all its types when it starts.
func TestRun_QuestionsWaitForTheFirstSnapshot(t *testing.T) {
	s, _ := crdServer(t, define(gadgetsCRD, "1"), define("widgets.example.org", "2"))
	r := s.resolver(t, never())
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _ = r.Run(ctx) })
	eventually(t, "it runs", func() bool { return r.Status().Running })
	for _, ref := range []string{"gadgets", "widgets", "pods", "gadget.v1.example.org"} {
		if _, err := r.Resolve(ctx, ref); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.Validate(ctx, gadgets); err != nil {
		t.Error(err)
	}
	if got := s.documents(); got != 2 {
		t.Errorf("asked for %d documents, want 2", got)
	}
}

func TestRun_QuestionsDoNotWaitForAFailedStart(t *testing.T) {
	s, _ := crdServer(t)
	s.answer("*", refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable))
	r := s.resolver(t, never())
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() { _ = r.Run(ctx) })
	eventually(t, "it runs", func() bool { return r.Status().Running })
	_, err := r.Resolve(ctx, "pods")
	checkInconclusive(t, err, "pods", nil)
}

// Its response for the core group is complete.
func TestRun_AServerWithoutACoreGroupIsConclusive(t *testing.T) {
	s := newServer(t, legacy, appsGroup, exampleGroup)
	s.answer("/api", say("application/json", `{"kind":"APIVersions","versions":[]}`))
	s.answer(crdPath, refuse(http.StatusForbidden, metav1.StatusReasonForbidden))
	r := run(t, s, quick())
	if status := r.Status().Documents; status.State != discovery.SourceCurrent {
		t.Errorf("documents: %+v", status)
	}
	l := listen(t, r)
	defer typefacts.Of(r).Expect(widgets.GroupResource())()
	s.serve(appsGroup)
	l.wants("Removed widgets.v1.example.com (NotListed)", "Removed flanges.v1beta1.example.com (NotListed)")
}
