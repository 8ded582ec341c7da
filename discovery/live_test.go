package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/typefacts"
)

var gadgets = schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "gadgets"}

const gadgetsCRD = "gadgets.example.org"

// never is a pace at which nothing is asked for by the clock.
func never() discovery.Option { return discovery.WithPace(time.Hour, time.Hour, time.Hour) }

// quick is a pace for tests that wait for the clock.
func quick() discovery.Option {
	return discovery.WithPace(10*time.Millisecond, 20*time.Millisecond, 100*time.Millisecond)
}

// run runs a resolver of s until the test ends, and returns it when it knows what is served.
func run(tb testing.TB, s *apiServer, opts ...discovery.Option) *discovery.Resolver {
	tb.Helper()
	r := s.resolver(tb, opts...)
	ctx, cancel := context.WithCancel(tb.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := r.Run(ctx); err != nil {
			tb.Errorf("Run: %v", err)
		}
	})
	tb.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	eventually(tb, "the resolver knows what is served", func() bool {
		status := r.Status()
		told := status.CRDs.State != discovery.SourceConnecting && status.APIServices.State != discovery.SourceConnecting
		return status.Types > 0 && told && discovery.Idle(r)
	})
	return r
}

func eventually(tb testing.TB, what string, holds func() bool) {
	tb.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			tb.Fatalf("never: %s", what)
		}
	}
}

// listener hands out the events of one subscriber.
type listener struct {
	t    *testing.T
	next func() (discovery.Event, bool)
}

// listen subscribes, and skips what is there already. A type that marks the end of
// that is not needed: all of it is there when the subscription begins.
func listen(t *testing.T, r *discovery.Resolver, opts ...discovery.SubscribeOption) *listener {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	next, stop := iter.Pull(r.Subscribe(ctx, opts...))
	t.Cleanup(func() {
		cancel()
		stop()
	})
	l := &listener{t: t, next: next}
	for range r.Status().Types {
		if event, some := next(); !some || event.Type != discovery.Added {
			t.Fatalf("at the beginning: %v, %v", event, some)
		}
	}
	return l
}

// wants checks that the next events are these, as they print.
func (l *listener) wants(want ...string) []discovery.Event {
	l.t.Helper()
	var (
		got    []string
		events []discovery.Event
	)
	for range want {
		event, some := l.next()
		if !some {
			got = append(got, "nothing")
			break
		}
		got = append(got, event.String())
		events = append(events, event)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		l.t.Fatalf("events (-want +got):\n%s", diff)
	}
	return events
}

// crdServer is a server with built-in groups, CRDs and no APIServices.
func crdServer(t *testing.T, definitions ...definition) (*apiServer, *collection) {
	t.Helper()
	s := newServer(t, aggregated, coreGroup, appsGroup)
	crds := newCollection()
	for _, d := range definitions {
		crds.put(d.object())
	}
	s.collections(t, crds, nil)
	return s, crds
}

func TestRun_KnownTypesNeedNoRequest(t *testing.T) {
	s, _ := crdServer(t, define(gadgetsCRD, "1"))
	r := run(t, s, never())
	s.paths()
	for range 1000 {
		for _, ref := range []string{"gadgets", "pods", "Gadget.example.org", "deploy"} {
			if _, err := r.Resolve(t.Context(), ref); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := r.Validate(t.Context(), gadgets); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.paths(); len(got) > 0 {
		t.Errorf("requests: %v", got)
	}
}

func TestRun_ACRDDefinesAllFieldsOfItsType(t *testing.T) {
	d := define(gadgetsCRD, "uid-1")
	d.versions = []string{"v1alpha1", "v2", "v1"}
	d.served = map[string]bool{"v2": true, "v1alpha1": true}
	s, _ := crdServer(t, d)
	got, err := run(t, s, never()).Resolve(t.Context(), "xga")
	if err != nil {
		t.Fatal(err)
	}
	want := discovery.Resource{
		GVR:          gadgets.GroupResource().WithVersion("v2"),
		GVK:          schema.GroupVersionKind{Group: "example.org", Version: "v2", Kind: "Gadget"},
		Singular:     "gadget",
		ShortNames:   []string{"xga"},
		Categories:   []string{"testing"},
		Namespaced:   true,
		Verbs:        []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"},
		Subresources: []string{"status"},
		Versions:     []string{"v2", "v1alpha1"},
		Backing:      discovery.BackingCRD,
		CRDUID:       "uid-1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Resolve (-want +got):\n%s", diff)
	}
}

func TestRun_ANewCRDIsReportedAtOnce(t *testing.T) {
	s, crds := crdServer(t)
	r := run(t, s, never())
	l := listen(t, r)
	s.documents()
	crds.put(define(gadgetsCRD, "1").object())
	l.wants("Added gadgets.v1.example.org")
	if _, err := r.Resolve(t.Context(), "gadget"); err != nil {
		t.Error(err)
	}
	if got := s.documents(); got > 4 {
		t.Errorf("asked for %d documents", got)
	}
}

// The documents may be behind. The CRD of an awaited type is read.
func TestRun_AnAwaitedCRDIsServedBeforeDocumentsListIt(t *testing.T) {
	s, crds := crdServer(t)
	s.mu.Lock()
	s.behind = true
	s.mu.Unlock()
	r := run(t, s, never())
	l := listen(t, r)
	stop := typefacts.Of(r).Expect(gadgets.GroupResource())
	defer stop()
	d := define(gadgetsCRD, "1")
	d.conditions = nil
	crds.put(d.object())
	eventually(t, "it is known not to be established", func() bool { return typefacts.Of(r).Pending(gadgets.GroupResource()) != nil })
	crds.put(define(gadgetsCRD, "1").object())
	got := l.wants("Added gadgets.v1.example.org")[0].Resource
	if got.CRDUID != "1" || got.Backing != discovery.BackingCRD || got.Singular != "gadget" {
		t.Errorf("%+v", got)
	}
	if err := typefacts.Of(r).Pending(gadgets.GroupResource()); err != nil {
		t.Errorf("Pending = %v", err)
	}
}

// CRDs are large, since they have schemas.
func TestRun_ReadsNoCRDThatDocumentsList(t *testing.T) {
	s, crds := crdServer(t, define(gadgetsCRD, "1"), define("widgets.example.org", "2"))
	r := run(t, s, never())
	l := listen(t, r)
	s.paths() // if the documents were late, it has been read for them
	defer typefacts.Of(r).Expect(gadgets.GroupResource())()
	crds.put(define("doodads.example.org", "3").object())
	l.wants("Added doodads.v1.example.org")
	if slices.Contains(s.paths(), crdPath+"/"+gadgetsCRD) {
		t.Error("it was read")
	}
}

// Only the CRD has the conversion.
func TestRun_AnotherConversionOfAnAwaitedTypeIsReported(t *testing.T) {
	s, crds := crdServer(t, define(gadgetsCRD, "1"))
	s.mu.Lock()
	s.behind = true // so that the CRD is what tells
	s.mu.Unlock()
	s.serve(coreGroup, gadgetGroup)
	r := run(t, s, never())
	l := listen(t, r)
	defer typefacts.Of(r).Expect(gadgets.GroupResource())()
	d := define(gadgetsCRD, "1")
	d.noise = "1"
	crds.put(d.object())
	eventually(t, "the CRD is read", func() bool { return slices.Contains(s.paths(), crdPath+"/"+gadgetsCRD) })
	eventually(t, "what it says is known", func() bool { return discovery.Idle(r) })
	d.strategy = "Webhook"
	crds.put(d.object())
	l.wants("Changed gadgets.v1.example.org [Conversion]")
}

// Documents list the type of a deleted CRD for a while. The type must not return.
func TestRun_ADeletedCRDIsRemovedAtOnceAlthoughDocumentsListIt(t *testing.T) {
	s, crds := crdServer(t, define(gadgetsCRD, "1"))
	s.serve(coreGroup, group{name: "example.org", versions: []version{{name: "v1", resources: []metav1.APIResource{
		{Name: "gadgets", SingularName: "gadget", Kind: "Gadget", Verbs: all},
	}}}})
	r := run(t, s, discovery.WithPace(10*time.Millisecond, time.Hour, time.Hour))
	l := listen(t, r)
	crds.remove(gadgetsCRD)
	events := l.wants("Removed gadgets.v1.example.org (CRDDeleted)")
	if got := events[0].Evidence.CRDUID; got != "1" {
		t.Errorf("UID of the evidence = %q", got)
	}
	s.paths()
	_, err := r.Validate(t.Context(), gadgets)
	checkKind(t, err, discovery.ErrNotServed)
	s.serve(coreGroup) // the documents follow
	crds.put(define("widgets.example.org", "2").object())
	l.wants("Added widgets.v1.example.org")
	if _, err := r.Resolve(t.Context(), "gadgets"); !errors.Is(err, discovery.ErrNotServed) {
		t.Errorf("afterwards: %v", err)
	}
}

func TestRun_ARecreatedCRDIsRemovedAndAdded(t *testing.T) {
	for name, recreate := range map[string]func(*collection){
		"while watched": func(c *collection) {
			c.remove(gadgetsCRD)
			c.put(define(gadgetsCRD, "2").object())
		},
		"unseen": func(c *collection) {
			c.forget(gadgetsCRD)
			c.mu.Lock()
			c.objects[gadgetsCRD] = define(gadgetsCRD, "2").object()
			c.mu.Unlock()
			c.cut()
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, crds := crdServer(t, define(gadgetsCRD, "1"))
			l := listen(t, run(t, s, never()))
			recreate(crds)
			events := l.wants("Removed gadgets.v1.example.org (CRDDeleted)", "Added gadgets.v1.example.org")
			if old, now := events[0].Resource.CRDUID, events[1].Resource.CRDUID; old != "1" || now != "2" {
				t.Errorf("UIDs %q and %q, want 1 and 2", old, now)
			}
		})
	}
}

func TestRun_WritesThatChangeNoTypeHaveNoEvents(t *testing.T) {
	for name, tc := range map[string]struct {
		write func(d *definition, i int)
		most  int // requests
	}{
		"status":             {func(d *definition, i int) { d.message = fmt.Sprint(i) }, 0},
		"schema or caBundle": {func(d *definition, i int) { d.noise = fmt.Sprint(i) }, 6}, // of 500
	} {
		t.Run(name, func(t *testing.T) {
			s, crds := crdServer(t, define(gadgetsCRD, "1"))
			r := run(t, s, never(), discovery.WithGap(time.Hour/40))
			l := listen(t, r, discovery.WithLabelChanges())
			s.paths()
			d := define(gadgetsCRD, "1")
			for i := range 500 {
				tc.write(&d, i)
				crds.put(d.object())
				if i%5 == 0 { // each fifth write shows that those before it have been seen
					d.labels = map[string]string{"a": fmt.Sprint(i)}
					crds.put(d.object())
					l.wants("Changed gadgets.v1.example.org [Labels]") // the first there is
				}
			}
			d.labels = map[string]string{"a": "b"}
			crds.put(d.object())
			l.wants("Changed gadgets.v1.example.org [Labels]")
			if got := s.paths(); len(got) > tc.most {
				t.Errorf("requests: %v", got)
			}
		})
	}
}

func TestRun_ChangesAreReported(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*definition)
		want   string
	}{
		"version added":     {func(d *definition) { d.versions, d.served["v2"] = append(d.versions, "v2"), true }, "Changed gadgets.v2.example.org [Versions]"},
		"version not first": {func(d *definition) { d.versions, d.served["v1beta1"] = append(d.versions, "v1beta1"), true }, "Changed gadgets.v1.example.org [Versions]"},
		"scope":             {func(d *definition) { d.scope = "Cluster" }, "Changed gadgets.v1.example.org [Scope]"},
		"kind":              {func(d *definition) { d.kind = "Doodad" }, "Changed gadgets.v1.example.org [Names]"},
		"terminating":       {func(d *definition) { d.terminating = true }, "Changed gadgets.v1.example.org [Terminating]"},
		"none served":       {func(d *definition) { d.served["v1"] = false }, "Removed gadgets.v1.example.org (NoVersionServed)"},
	} {
		t.Run(name, func(t *testing.T) {
			s, crds := crdServer(t, define(gadgetsCRD, "1"))
			l := listen(t, run(t, s, never()))
			d := define(gadgetsCRD, "1")
			tc.change(&d)
			crds.put(d.object())
			l.wants(tc.want)
		})
	}
}

// Subscribers that keep objects while their CRD exists hear of its end, once.
func TestRun_TheEndOfACRDThatServesNothingIsReported(t *testing.T) {
	s, crds := crdServer(t, define(gadgetsCRD, "1"))
	l := listen(t, run(t, s, never()))
	d := define(gadgetsCRD, "1")
	d.served["v1"] = false
	crds.put(d.object())
	l.wants("Removed gadgets.v1.example.org (NoVersionServed)")
	crds.remove(gadgetsCRD)
	l.wants("Removed gadgets.v1.example.org (CRDDeleted)")
	crds.put(define(gadgetsCRD, "2").object())
	l.wants("Added gadgets.v1.example.org")
	crds.remove(gadgetsCRD)
	l.wants("Removed gadgets.v1.example.org (CRDDeleted)")
}

func TestRun_ErrorOfACRDThatIsNotEstablishedHasTheReason(t *testing.T) {
	d := define(gadgetsCRD, "1")
	d.conditions = map[string]string{"NamesAccepted": "False", "Established": "False"}
	d.message = `"Gadget" is already in use`
	s, crds := crdServer(t, d)
	r := run(t, s, never())
	eventually(t, "documents are asked for again, as they don't list it", func() bool { return s.documentsSoFar() >= 4 })
	s.paths()
	for _, ref := range []string{gadgetsCRD, "gadget", "Gadget.v1.example.org"} {
		_, err := r.Resolve(t.Context(), ref)
		got := asType[*discovery.NotEstablishedError](t, err, discovery.ErrNotEstablished)
		if got.CRD != gadgetsCRD || got.Condition != "NamesAccepted" || got.Message != d.message || !meta.IsNoMatchError(err) {
			t.Errorf("%s: %+v", ref, got)
		}
	}
	if got := s.paths(); len(got) > 0 {
		t.Errorf("requests: %v", got)
	}
	l := listen(t, r)
	crds.put(define(gadgetsCRD, "1").object())
	l.wants("Added gadgets.v1.example.org")
}

// The message of a condition may have 32 KB.
func TestResolve_ErrorOfACRDThatIsNotEstablishedIsShort(t *testing.T) {
	d := define(gadgetsCRD, "1")
	d.conditions = map[string]string{"NamesAccepted": "False"}
	d.message = strings.Repeat("é", 16<<10)
	s, _ := crdServer(t, d)
	_, err := s.resolver(t).Resolve(t.Context(), gadgetsCRD)
	got := asType[*discovery.NotEstablishedError](t, err, discovery.ErrNotEstablished)
	if n := len(got.Message); n > 1024 || n < 1000 || !utf8.ValidString(got.Message) || len(got.Error()) > 1200 {
		t.Errorf("a message of %d bytes, in a text of %d bytes", n, len(got.Error()))
	}
}

// Without a run, the CRD is read for the reason.
func TestResolve_ErrorOfACRDThatIsNotEstablishedHasTheReason(t *testing.T) {
	d := define(gadgetsCRD, "1")
	d.conditions = nil
	s, _ := crdServer(t, d)
	r := s.resolver(t)
	_, err := r.Resolve(t.Context(), gadgetsCRD)
	got := asType[*discovery.NotEstablishedError](t, err, discovery.ErrNotEstablished)
	if got.CRD != gadgetsCRD || got.Condition != "" {
		t.Errorf("%+v", got)
	}
	_, err = r.Validate(t.Context(), gadgets)
	checkKind(t, err, discovery.ErrNotEstablished)
}

func TestRun_AnUnknownTypeNeedsOneRequestUntilTheNextChange(t *testing.T) {
	kind := schema.GroupKind{Group: "example.org", Kind: "Gadget"}
	for name, tc := range map[string]struct {
		ask     func(ctx context.Context, r *discovery.Resolver) error
		request string // its class
	}{
		"a GVR":  {func(ctx context.Context, r *discovery.Resolver) error { _, err := r.Validate(ctx, gadgets); return err }, "version"},
		"a kind": {func(ctx context.Context, r *discovery.Resolver) error { _, err := r.ResolveGK(ctx, kind); return err }, "named"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *memoryServer, r *discovery.Resolver) {
				t.Helper()
				next, _ := started(t, w, r, func() { // the server has no APIServices
					w.dropAPI("v1.apiregistration.k8s.io")
					w.fault["apis.list"] = "404"
				})
				if status := r.Status(); status.CRDs.State != discovery.SourceCurrent || status.APIServices.State != discovery.SourceAbsent {
					t.Fatalf("%+v", status)
				}
				for round := range 2 {
					w.update(func() { clear(w.counts) })
					for range 10 { // no time passes, so that the run sends no request
						checkKind(t, tc.ask(t.Context(), r), discovery.ErrNotServed)
					}
					w.update(func() {
						if len(w.counts) != 1 || w.counts[tc.request] != 1 {
							t.Errorf("round %d: requests: %v", round, w.counts)
						}
						w.setCRD(crdObject{name: "bolts.hardware.org", uid: "9", group: "hardware.org", plural: "bolts", kind: "Bolt", versions: []string{"v1", "v2"}[:round+1], established: true})
					})
					sleep(time.Minute)
					wantEvents(t, next, []string{"Added bolts.v1.hardware.org", "Changed bolts.v2.hardware.org [Versions]"}[round])
				}
				w.update(func() { w.setCRD(gadget("v1")) })
				sleep(time.Minute)
				wantEvents(t, next, "Added gadgets.v1.example.org")
				if _, err := r.ResolveGK(t.Context(), kind); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// begin runs a resolver of s until the test ends, and returns it once it runs.
func begin(t *testing.T, s *apiServer, opts ...discovery.Option) *discovery.Resolver {
	t.Helper()
	r := s.resolver(t, opts...)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		wg.Wait()
	})
	<-r.Running()
	return r
}

// Otherwise a change of the backing would not be noticed.
func TestRun_TheFirstSnapshotHasTheBackings(t *testing.T) {
	s := newServer(t, aggregated, coreGroup)
	crds := newCollection(define(gadgetsCRD, "1").object())
	apis := newCollection(
		apiServiceOf("", "v1", "", "True", map[string]string{"kube-aggregator.kubernetes.io/automanaged": "onstart"}),
		apiServiceOf("example.org", "v1", "", "True", map[string]string{"kube-aggregator.kubernetes.io/automanaged": "true"}),
		apiServiceOf("metrics.k8s.io", "v1beta1", "metrics", "True", nil))
	s.collections(t, crds, apis)
	s.serve(coreGroup, gadgetGroup, metricsGroup)
	nodes := schema.GroupVersionResource{Group: "metrics.k8s.io", Version: "v1beta1", Resource: "nodes"}
	for path, collection := range map[string]*collection{crdPath: crds, apiServicePath: apis, apiServicePath + "/v1beta1.metrics.k8s.io": apis} {
		t.Run(path[strings.LastIndex(path, "/")+1:], func(t *testing.T) {
			lists := make(chan struct{})
			s.answer(path, func(w http.ResponseWriter, req *http.Request) {
				select {
				case <-lists:
				case <-req.Context().Done():
				}
				collection.ServeHTTP(w, req)
			})
			defer s.answer(path, nil)
			r := begin(t, s, never(), discovery.WithPatience(time.Hour), discovery.WithQuestionPatience(time.Hour))
			eventually(t, "documents are there", func() bool { return r.Status().Documents.State == discovery.SourceCurrent })
			if got := r.Status().Types; got != 0 {
				t.Errorf("%d types are known before the lists", got)
			}
			close(lists)
			for gvr, want := range map[schema.GroupVersionResource]discovery.Backing{gadgets: discovery.BackingCRD, nodes: discovery.BackingAggregated} {
				if res, err := r.ResolveGVR(t.Context(), gvr); err != nil || res.Backing != want {
					t.Errorf("%v: %q, %v", gvr, res.Backing, err)
				}
			}
		})
	}
}

func TestRun_TheFirstSnapshotDoesNotWaitForAListThatHangs(t *testing.T) {
	s, _ := crdServer(t, define(gadgetsCRD, "1"))
	s.serve(coreGroup, gadgetGroup)
	s.answer(crdPath, hang)
	r := begin(t, s, never(), discovery.WithPatience(20*time.Millisecond))
	eventually(t, "types are known", func() bool { return r.Status().Types > 0 })
	if res, err := r.Resolve(t.Context(), "gadgets"); err != nil || res.CRDUID != "" {
		t.Errorf("gadgets have UID %q, %v", res.CRDUID, err)
	}
}

func TestRun_AFailedStartDelaysNoQuestion(t *testing.T) {
	s, _ := crdServer(t)
	s.answer("/api", refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError))
	s.answer("/apis", refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError))
	const patience = 30 * time.Second // a question that waits for a snapshot takes longer
	r := begin(t, s, never(), discovery.WithQuestionPatience(patience))
	eventually(t, "documents can't be had", func() bool { return r.Status().Documents.State == discovery.SourceFailing })
	begun := time.Now()
	if _, err := r.ResolveGVR(t.Context(), deployments); err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took >= patience {
		t.Errorf("it took %v", took)
	}
}

func TestResolver_RunningIsClosedWhileRunRuns(t *testing.T) {
	s, _ := crdServer(t)
	r := s.resolver(t)
	for range 2 {
		running := r.Running()
		select {
		case <-running:
			t.Fatal("it does not run")
		default:
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- r.Run(ctx) }()
		<-running
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
	}
}
