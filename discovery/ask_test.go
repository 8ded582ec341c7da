package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gvrkit/gvrkit/discovery"
)

// busy answers 503 and wants to be asked again in 30 s.
func busy(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Retry-After", "30")
	refuse(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)(w, r)
}

func TestRetryAfter_IsObeyed(t *testing.T) {
	const path = "/apis/example.com/v1"
	s := newServer(t, aggregated, everything()...)
	s.answer(path, busy)
	r := s.resolver(t)
	begun := time.Now()
	for range 5 {
		_, err := r.Validate(t.Context(), widgets)
		checkInconclusive(t, err, "widgets.v1.example.com", apierrors.IsServiceUnavailable)
		got := asType[*discovery.InconclusiveError](t, err, discovery.ErrInconclusive)
		if wait := got.Again.Sub(begun); wait < 30*time.Second || wait > 40*time.Second {
			t.Errorf("to be asked again in %v, want 30 s", wait)
		}
		if got.Asked.Before(begun) || got.Asked.After(time.Now()) {
			t.Errorf("asked at %v", got.Asked)
		}
	}
	if got := slices.DeleteFunc(s.paths(), func(p string) bool { return p != path }); len(got) != 1 {
		t.Errorf("asked %d times", len(got))
	}
	if _, err := r.Validate(t.Context(), widgetsBeta); err != nil {
		t.Errorf("another group version: %v", err)
	}
}

func TestRetryAfter_IsReadFromHeadersAndStatuses(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"header of a proxy": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "30")
			http.Error(w, "<html>come back later", http.StatusTooManyRequests)
		},
		"a date": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", time.Now().Add(30*time.Second).UTC().Format(http.TimeFormat))
			http.Error(w, "come back later", http.StatusTooManyRequests)
		},
		"status": say429(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":30}}`),
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, aggregated, everything()...)
			s.answer("*", answer)
			_, err := s.resolver(t).Validate(t.Context(), widgets)
			got := asType[*discovery.InconclusiveError](t, err, discovery.ErrInconclusive)
			if wait := time.Until(got.Again); wait < 20*time.Second || !apierrors.IsTooManyRequests(err) {
				t.Errorf("to be asked again in %v: %v", wait, err)
			}
		})
	}
}

func say429(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(body))
	}
}

func TestResolve_LastKnownResourcesStayWhileAGroupFails(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			s := newServer(t, f, everything()...)
			r := s.resolver(t)
			if _, err := r.Resolve(t.Context(), "widgets"); err != nil {
				t.Fatal(err)
			}
			s.serve(coreGroup, stale(stale(exampleGroup, "v1"), "v1beta1"))
			for range 3 { // it is not forgotten by asking
				if got, err := r.Resolve(t.Context(), "widgets"); err != nil || got.GVR != widgets {
					t.Errorf("Resolve = %v, %v", got.GVR, err)
				}
			}
			_, err := r.Resolve(t.Context(), "unicorns.example.com")
			checkInconclusive(t, err, "unicorns.example.com", nil)
			// Gone is gone.
			s.serve(coreGroup)
			_, err = r.Resolve(t.Context(), "widgets")
			checkKind(t, err, discovery.ErrNotServed)
		})
	}
}

// A stale version may have the resources that the server last knew.
func TestResolve_ResourcesOfAStaleGroupVersionAreServed(t *testing.T) {
	s := newServer(t, aggregated, coreGroup)
	s.answer("/apis", say("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", `{
		"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"example.com"},"versions":[
			{"version":"v1","freshness":"Stale","resources":[
				{"resource":"widgets","responseKind":{"group":"example.com","version":"v1","kind":"Widget"},"scope":"Namespaced","verbs":["list","watch"]}]}]}]}`))
	if got, err := s.resolver(t).Resolve(t.Context(), "widgets"); err != nil || got.GVR != widgets {
		t.Errorf("Resolve = %v, %v", got.GVR, err)
	}
}

func TestResolve_UnchangedDocumentsAreNotSentAgain(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	r := s.resolver(t)
	var sent []int
	s.tap = func(status int) { sent = append(sent, status) }
	for range 2 {
		if _, err := r.Resolve(t.Context(), "widgets"); err != nil {
			t.Fatal(err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if want := []int{200, 200, 304, 304}; !slices.Equal(sent, want) {
		t.Errorf("answers %v, want %v", sent, want)
	}
}

// A server before 1.30 has only the beta format. A server with only a later format is asked for the
// legacy format.
func TestResolve_ReadsEachFormat(t *testing.T) {
	for _, tc := range []struct {
		name, contentType string
		asked             int // times for the roots
	}{
		{"beta", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", 2},
		{"later", "application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList", 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newServer(t, legacy, everything()...)
			for _, path := range []string{"/api", "/apis"} {
				s.answer(path, func(w http.ResponseWriter, r *http.Request) {
					if !strings.Contains(r.Header.Get("Accept"), "apidiscovery") {
						s.serveRoot(w, r, everything())
						return
					}
					var groups []group
					for _, g := range everything() {
						if (g.name == "") == (path == "/api") {
							groups = append(groups, g)
						}
					}
					if tc.name == "later" {
						writeJSON(w, tc.contentType, map[string]any{"kind": "Another"})
						return
					}
					writeJSON(w, tc.contentType, aggregatedDoc(groups))
				})
			}
			if got, err := s.resolver(t).Resolve(t.Context(), "widgets"); err != nil || got.GVR != widgets {
				t.Errorf("Resolve = %v, %v", got.GVR, err)
			}
			if got := slices.DeleteFunc(s.paths(), func(p string) bool { return p != "/api" && p != "/apis" }); len(got) != tc.asked {
				t.Errorf("asked for %v", got)
			}
		})
	}
}

func TestResolve_CallersShareRequests(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	arrived, release := make(chan struct{}, 100), make(chan struct{})
	s.answer("/apis", func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		<-release
		s.serveRoot(w, r, everything())
	})
	r := s.resolver(t)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := r.Resolve(t.Context(), "widgets"); err != nil {
				t.Error(err)
			}
		})
	}
	<-arrived
	eventually(t, "all wait", func() bool { return discovery.Waiting(r) == 50 })
	impatient, cancel := context.WithCancel(t.Context())
	wg.Go(func() {
		if _, err := r.Resolve(impatient, "widgets"); !errors.Is(err, context.Canceled) || !errors.Is(err, discovery.ErrInconclusive) {
			t.Errorf("the impatient one: %v", err)
		}
	})
	eventually(t, "the impatient one waits, too", func() bool { return discovery.Waiting(r) == 51 })
	cancel()
	eventually(t, "it has left", func() bool { return discovery.Waiting(r) == 50 })
	close(release)
	wg.Wait()
	if got := s.documents(); got != 2 {
		t.Errorf("asked for %d documents for 51 callers", got)
	}
}

// A response to a request in progress may be older than the question.
func TestResolve_ARefusalIsNotOlderThanItsQuestion(t *testing.T) {
	s := newServer(t, aggregated, coreGroup)
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	s.answer("/apis", func(w http.ResponseWriter, r *http.Request) {
		first := false
		once.Do(func() { first = true })
		if first { // as of before the question
			close(arrived)
			<-release
			s.serveRoot(w, r, []group{coreGroup})
			return
		}
		s.serveRoot(w, r, everything())
	})
	r := s.resolver(t)
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = r.Resolve(t.Context(), "pods") })
	<-arrived
	wg.Go(func() {
		if _, err := r.Resolve(t.Context(), "widgets"); err != nil {
			t.Errorf("the type was there before the question: %v", err)
		}
	})
	eventually(t, "both have asked", func() bool { return discovery.Waiting(r) == 2 })
	close(release)
	wg.Wait()
}

func TestNewForConfig_ObeysARateLimiter(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	r, err := discovery.NewForConfig(&rest.Config{Host: s.URL, RateLimiter: flowcontrol.NewFakeNeverRateLimiter()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := r.Resolve(ctx, "pods"); !errors.Is(err, discovery.ErrInconclusive) {
		t.Errorf("Resolve = %v", err)
	}
	if got := s.paths(); len(got) > 0 {
		t.Errorf("requests: %v", got)
	}
}

// The config may be that of a client for one group.
func TestNewForConfig_IgnoresTheAPIPathOfAGroup(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	r, err := discovery.NewForConfig(&rest.Config{
		Host: s.URL, APIPath: "/apis", ContentConfig: rest.ContentConfig{GroupVersion: new(widgets.GroupVersion())},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resolve(t.Context(), "pods"); err != nil {
		t.Error(err)
	}
	for _, path := range s.paths() {
		if path != "/api" && path != "/apis" {
			t.Errorf("asked for %s", path)
		}
	}
}

// kubectl takes the first group if it is one of Kubernetes itself.
func TestResolve_GroupsOfKubernetesComeFirst(t *testing.T) {
	for _, f := range formats {
		s := newServer(t, f, coreGroup, appsGroup, metricsPods, exampleGroup, served("example.net", "deployments", "widgets"))
		r := s.resolver(t)
		for _, ref := range []string{"pods", "deployments"} {
			if _, err := r.Resolve(t.Context(), ref); err != nil {
				t.Errorf("%s: %v", ref, err)
			}
		}
		_, err := r.Resolve(t.Context(), "widgets")
		got := asType[*discovery.AmbiguousError](t, err, discovery.ErrAmbiguous)
		if want := "widgets: served by several groups; say which one: widgets.v1.example.com or widgets.v1.example.net"; err.Error() != want {
			t.Errorf("error = %v, want %s; %v", err, want, got.Candidates)
		}
	}
}

var metricsPods = group{name: "metrics.k8s.io", versions: []version{{name: "v1beta1", resources: []metav1.APIResource{
	{Name: "pods", Kind: "PodMetrics", Namespaced: true, Verbs: all},
}}}}

// A name may be the plural of one, a short name of another, and so on.
func TestResolve_PluralsComeBeforeSingularsShortNamesAndKinds(t *testing.T) {
	entry := func(plural, short, singular, kind string) group {
		return group{name: "g" + plural + ".example.com", versions: []version{{name: "v1", resources: []metav1.APIResource{
			{Name: plural, SingularName: singular, Kind: kind, ShortNames: []string{short}, Verbs: all},
		}}}}
	}
	groups := []group{
		coreGroup, entry("ds", "d", "d1", "X"), entry("cs", "x", "c", "C"), entry("bs", "b", "x", "B"), entry("x", "a", "a1", "A"),
	}
	for i, want := range []string{"x", "bs", "cs", "ds"} {
		r := newServer(t, aggregated, groups[:len(groups)-i]...).resolver(t)
		got, err := r.Resolve(t.Context(), "x")
		if err != nil || got.GVR.Resource != want {
			t.Errorf("of %d: %v, %v; want %s", len(groups)-i, got.GVR, err, want)
		}
	}
}

func TestNotServedError_GroupServed(t *testing.T) {
	r := newServer(t, aggregated, everything()...).resolver(t)
	for ref, want := range map[string]bool{
		"unicorns.example.com":         true,
		"unicorns.v1.example.com":      true,
		"unicorns.v7.example.com":      true,
		"unicorns.stable.acme.io":      true,
		"unicorns.nobody.example.com":  false, // of another group, or of no version
		"unicorns.example.net":         false,
		"unicorns.v1.acme.io":          true,
		"unicorns":                     false,
		"unicorns.v1.unheard.acme.com": false,
	} {
		_, err := r.Resolve(t.Context(), ref)
		if got := asType[*discovery.NotServedError](t, err, discovery.ErrNotServed).GroupServed; got != want {
			t.Errorf("%s: GroupServed = %v, want %v", ref, got, want)
		}
	}
}

func TestResolve_ByParts(t *testing.T) {
	for _, f := range formats {
		t.Run(string(f), func(t *testing.T) {
			r := newServer(t, f, append(everything(), metricsPods)...).resolver(t)
			for name, ask := range map[string]func() (discovery.Resource, error){
				"GVR": func() (discovery.Resource, error) { return r.ResolveGVR(t.Context(), crdBlocks) },
				"GR":  func() (discovery.Resource, error) { return r.ResolveGR(t.Context(), crdBlocks.GroupResource()) },
				"GVK": func() (discovery.Resource, error) {
					return r.ResolveGVK(t.Context(), crdBlocks.GroupVersion().WithKind("IPAMBlock"))
				},
				"GK": func() (discovery.Resource, error) {
					return r.ResolveGK(t.Context(), crdBlocks.GroupVersion().WithKind("IPAMBlock").GroupKind())
				},
			} {
				if got, err := ask(); err != nil || got.GVR != crdBlocks {
					t.Errorf("%s: %v, %v", name, got.GVR, err)
				}
			}
			core, err := r.ResolveGR(t.Context(), pods.GroupResource())
			if err != nil || core.GVR != pods {
				t.Errorf("the core group by an empty name: %v, %v", core.GVR, err)
			}
			_, err = r.ResolveGR(t.Context(), schema.GroupResource{Resource: widgets.Resource})
			checkKind(t, err, discovery.ErrNotServed) // not of any group
			_, err = r.ResolveGK(t.Context(), crdBlocks.GroupVersion().WithKind("ipamblock").GroupKind())
			checkKind(t, err, discovery.ErrNotServed) // capitals count
			if kindErr := (*meta.NoKindMatchError)(nil); !errors.As(err, &kindErr) {
				t.Errorf("to apimachinery it is %v", err)
			}
		})
	}
}

func TestResolve_InvalidPartsSendNoRequest(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	r := s.resolver(t)
	for _, ask := range []func() error{
		func() error { _, err := r.ResolveGVR(t.Context(), pods.GroupResource().WithVersion("")); return err },
		func() error {
			_, err := r.ResolveGR(t.Context(), schema.GroupResource{Group: "a b", Resource: "pods"})
			return err
		},
		func() error { _, err := r.ResolveGVK(t.Context(), pods.GroupVersion().WithKind("")); return err },
		func() error { _, err := r.ResolveGVK(t.Context(), pods.GroupVersion().WithKind("Po/d")); return err },
		func() error { _, err := r.ResolveGK(t.Context(), schema.GroupKind{}); return err },
		func() error { _, err := r.Await(t.Context(), schema.GroupVersionResource{}); return err },
	} {
		checkKind(t, ask(), discovery.ErrInvalidRef)
	}
	if got := s.paths(); len(got) > 0 {
		t.Errorf("requests: %v", got)
	}
}

// The invalid entry may be the resource of the question.
func TestResolve_InvalidEntriesMakeTheirGroupVersionInconclusive(t *testing.T) {
	const v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for name, entry := range map[string]string{
		"no scope":      `{"resource":"gizmos","responseKind":{"kind":"Gizmo"},"verbs":["list"]}`,
		"unknown scope": `{"resource":"gizmos","responseKind":{"kind":"Gizmo"},"scope":"Galaxy","verbs":["list"]}`,
		"no kind":       `{"resource":"gizmos","scope":"Cluster","verbs":["list"]}`,
		"no name":       `{"responseKind":{"kind":"Gizmo"},"scope":"Cluster","verbs":["list"]}`,
		"a slash":       `{"resource":"gizmos/x","responseKind":{"kind":"Gizmo"},"scope":"Cluster","verbs":["list"]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, aggregated, coreGroup)
			s.answer("/apis", say(v2, `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[`+entry+`]}]}]}`))
			_, err := s.resolver(t).Resolve(t.Context(), "gizmos")
			checkInconclusive(t, err, "gizmos", nil)
		})
	}
	t.Run("only subresources", func(t *testing.T) { // as servers list them
		s := newServer(t, aggregated, coreGroup)
		s.answer("/apis", say(v2, `{"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"example.com"},"versions":[{"version":"v1","resources":[
			{"resource":"gizmos","responseKind":{},"verbs":[],"subresources":[{"subresource":"status"}]}]}]}]}`))
		_, err := s.resolver(t).Resolve(t.Context(), "gizmos")
		checkKind(t, err, discovery.ErrNotServed)
	})
}

func TestValidate_AListWithoutResourcesIsInconclusive(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	s.answer("/apis/example.com/v1", say("application/json", `{"kind":"APIResourceList","groupVersion":"example.com/v1"}`))
	_, err := s.resolver(t).Validate(t.Context(), widgets)
	checkInconclusive(t, err, "widgets.v1.example.com", nil)
	s.format = legacy
	_, err = s.resolver(t).Resolve(t.Context(), "widgets.v1.example.com")
	checkInconclusive(t, err, "widgets.v1.example.com", nil)
}

func TestResolver_FailedPathsArePaused(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"500":  refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError),
		"401":  refuse(http.StatusUnauthorized, metav1.StatusReasonUnauthorized),
		"HTML": say("text/html", "<html><body>Please log in</body></html>"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, aggregated, everything()...)
			r := s.resolver(t)
			s.answer("*", answer)
			for i := range 1000 {
				_, resolve := r.Resolve(t.Context(), fmt.Sprint("unicorns", i))
				_, validate := r.Validate(t.Context(), widgets)
				if !errors.Is(resolve, discovery.ErrInconclusive) || !errors.Is(validate, discovery.ErrInconclusive) {
					t.Fatalf("errors = %v, %v", resolve, validate)
				}
			}
			// Three paths; each twice, and then after pauses that grow to a second.
			if got := len(s.paths()); got > 60 {
				t.Errorf("2000 questions made %d requests", got)
			}
			s.answer("*", nil)
			eventually(t, "the server is asked again", func() bool {
				_, err := r.Validate(t.Context(), widgets)
				return err == nil
			})
		})
	}
}

func TestResolver_ConcurrentCallersShareFailedRequests(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	r := run(t, s, never())
	s.answer("*", refuse(http.StatusInternalServerError, metav1.StatusReasonInternalError))
	s.paths()
	var wg sync.WaitGroup
	for i := range 500 {
		wg.Go(func() {
			if _, err := r.Resolve(t.Context(), fmt.Sprint("unicorns", i)); !errors.Is(err, discovery.ErrInconclusive) {
				t.Errorf("error = %v", err)
			}
		})
	}
	wg.Wait()
	if got := s.documents(); got > 40 {
		t.Errorf("500 questions made %d requests", got)
	}
}

func TestResolver_RequestsForUnknownNamesAreLimited(t *testing.T) {
	for name, ask := range map[string]func(r *discovery.Resolver, i int) error{
		"names": func(r *discovery.Resolver, i int) error {
			_, err := r.Resolve(t.Context(), fmt.Sprint("unicorns", i))
			return err
		},
		"a mapper's": func(r *discovery.Resolver, i int) error {
			_, err := r.RESTMapper().RESTMapping(schema.GroupKind{Group: "example.com", Kind: fmt.Sprint("Unicorn", i)})
			return err
		},
		"group versions": func(r *discovery.Resolver, i int) error {
			_, err := r.Validate(t.Context(), schema.GroupVersionResource{Group: fmt.Sprint("g", i), Version: "v1", Resource: "unicorns"})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, aggregated, everything()...)
			r := run(t, s, never(), discovery.WithUnknownRate(100, 10))
			s.paths()
			begin := time.Now()
			for i := range 40 {
				if err := ask(r, i); !errors.Is(err, discovery.ErrNotServed) {
					t.Fatalf("error = %v", err)
				}
			}
			// Thirty of them had to wait for their turn.
			if took := time.Since(begin); took < 250*time.Millisecond {
				t.Errorf("40 questions took %v: their rate has no bound", took)
			}
			for range 1000 { // what is known needs no turn
				if _, err := r.Validate(t.Context(), widgets); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func TestResolver_UnknownNamesShareADelayedRequest(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	r := run(t, s, never(), discovery.WithUnknownRate(1, 1))
	if _, err := r.Resolve(t.Context(), "unicorns"); !errors.Is(err, discovery.ErrNotServed) {
		t.Fatal(err)
	}
	s.paths()
	var wg sync.WaitGroup
	for i := range 200 { // they have a second to come
		wg.Go(func() {
			if _, err := r.Resolve(t.Context(), fmt.Sprint("unicorns", i)); !errors.Is(err, discovery.ErrNotServed) {
				t.Errorf("error = %v", err)
			}
		})
	}
	wg.Wait()
	if got := s.documents(); got > 3 {
		t.Errorf("200 questions made %d requests", got)
	}
}

func TestNotServedError_IsSafeForConcurrentUse(t *testing.T) {
	s := newServer(t, aggregated, everything()...)
	r := s.resolver(t)
	_, err := r.Resolve(t.Context(), "widgzts")
	const want = "widgzts: not served by the API server; did you mean widgets.example.com?"
	var wg sync.WaitGroup
	for range 4 { // the race detector looks on
		wg.Go(func() {
			if got := err.Error(); got != want {
				t.Errorf("text = %q, want %q", got, want)
			}
		})
	}
	wg.Wait()
	absent := asType[*discovery.NotServedError](t, err, discovery.ErrNotServed)
	absent.Suggestions()[0] = discovery.Ref{Resource: "mine"}
	if diff := cmp.Diff([]discovery.Ref{{Resource: "widgets", Group: "example.com"}}, absent.Suggestions()); diff != "" {
		t.Errorf("suggestions (-want +got):\n%s", diff)
	}
	_, again := r.Resolve(t.Context(), "widgzts")
	if errors.Is(again, err) || !errors.Is(err, err) { //nolint:gocritic // compared, they don't panic
		t.Error("two errors are one, or one is not itself")
	}
	if got := (&discovery.NotServedError{Ref: discovery.Ref{Resource: "mine"}}).Error(); got != "mine: not served by the API server; is its CustomResourceDefinition installed?" {
		t.Errorf("of a caller's own: %q", got)
	}
}
