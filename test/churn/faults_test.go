package churn

import (
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// newFaults returns faults of a proxy whose server finds nothing.
func newFaults(t *testing.T) *Faults {
	t.Helper()
	return newFaultsOf(t, http.NotFoundHandler())
}

// newFaultsOf returns faults of a proxy whose server has a handler.
func newFaultsOf(t *testing.T, handler http.Handler) *Faults {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	proxy, err := faultproxy.Start(server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	return NewFaults(proxy, "example.com", func(string) faultproxy.Match { return nil })
}

// Some kinds of faults change what the model may conclude, until they are healed or replaced.
func TestFaults_KnowWhatIsActive(t *testing.T) {
	f := newFaults(t)
	inject := func(name, kind string) {
		t.Helper()
		if err := f.Inject(t.Context(), NewOp(Fault, []string{name, "t1"}, "kind", kind)); err != nil {
			t.Fatal(err)
		}
	}
	is := func(when string, hide, garble, discovery bool) {
		t.Helper()
		if f.hide() != hide || f.garble() != garble || f.concernDiscovery() != discovery {
			t.Errorf("%s: hide %t, garble %t, concernDiscovery %t", when, f.hide(), f.garble(), f.concernDiscovery())
		}
	}
	is("at first", false, false, false)
	inject("one", "breakdefinitions")
	is("CRDs fail", true, false, true)
	inject("two", "garbleframe")
	is("frames are garbled, too", true, true, true)
	inject("one", "breakdiscovery")
	is("documents fail instead of CRDs", false, true, true)
	f.Heal("two")
	is("frames are whole", false, false, true)
	inject("three", "breakdefinitions")
	f.Heal("")
	is("all is healed", false, false, false)
}

func TestFaults_ABandwidthOfZeroIsNoLimit(t *testing.T) {
	f := newFaults(t)
	op, err := ParseOp("fault f1 t1 kind=bandwidth at=0")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Inject(t.Context(), op); err != nil {
		t.Fatal(err)
	}
	defer f.Heal("")
	response, err := http.Get(f.proxy.URL()) //nolint:noctx // of a test
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusNotFound {
		t.Errorf("status %d, error %v", response.StatusCode, err)
	}
}

// A fault counts only if it has changed a response.
func TestFaults_CountTheirEffects(t *testing.T) {
	f := newFaults(t)
	for name, op := range map[string]Op{
		"one":   NewOp(Fault, []string{"one", "t1"}, "kind", "html", "times", "2"),
		"two":   NewOp(Fault, []string{"two", "t1"}, "kind", "truncate", "at", "100000"),
		"three": NewOp(Fault, []string{"three", "t1"}, "kind", "fail", "code", "503", "share", "0"),
	} {
		if err := f.Inject(t.Context(), op); err != nil {
			t.Fatal(name, err)
		}
	}
	for range 4 {
		response, err := http.Get(f.proxy.URL()) //nolint:noctx // of a test
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
	f.Heal("")
	if got, want := f.Effects(), map[string]int{"html": 2}; !maps.Equal(got, want) {
		t.Errorf("effects %v, want %v", got, want)
	}
}

// A fault of bookmarks counts only for a watch that has one that it concerns.
func TestFaults_CountTheirEffectsOnBookmarks(t *testing.T) {
	const added, bookmark = `{"type":"ADDED","object":{}}`, `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}`
	const initialEnd = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}`
	for _, tc := range []struct {
		name   string
		params []string // of the fault
		events []string // of each of two watches
		want   int
	}{
		{"the end of the initial events is not sent", []string{"kind", "noinitialend"}, []string{added, initialEnd, bookmark}, 2},
		{"there are no initial events", []string{"kind", "noinitialend"}, []string{added, bookmark}, 0},
		{"a bookmark is delayed", []string{"kind", "delaybookmarks", "ms", "1"}, []string{added, initialEnd, bookmark}, 2},
		{"a bookmark of the first watch is delayed", []string{"kind", "delaybookmarks", "ms", "1", "times", "1"}, []string{bookmark}, 1},
		{"there is no bookmark", []string{"kind", "delaybookmarks", "ms", "1"}, []string{added}, 0},
		{"the delay is zero", []string{"kind", "delaybookmarks", "ms", "0"}, []string{bookmark}, 0},
		{"bookmarks are not sent", []string{"kind", "dropbookmarks"}, []string{initialEnd}, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFaultsOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, strings.Join(tc.events, "\n")+"\n")
			}))
			if err := f.Inject(t.Context(), NewOp(Fault, []string{"one", "t1"}, tc.params...)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				response, err := http.Get(f.proxy.URL() + "/apis/example.com/v1/t1s?watch=true") //nolint:noctx // of a test
				if err != nil {
					t.Fatal(err)
				}
				_, err = io.Copy(io.Discard, response.Body)
				if err := errors.Join(err, response.Body.Close()); err != nil {
					t.Fatal(err)
				}
			}
			f.Heal("")
			if got := f.Effects()[tc.params[1]]; got != tc.want {
				t.Errorf("%d effects, want %d", got, tc.want)
			}
		})
	}
}

func TestFaults_ADeadGroupHasNeitherDocumentsNorObjects(t *testing.T) {
	f := newFaults(t)
	f.ofType = func(string) faultproxy.Match { return faultproxy.Group("example.com") }
	if err := f.Inject(t.Context(), NewOp(Fault, []string{"one", everyType}, "kind", "deadgroup")); err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, path := range []string{"/apis/example.com/v1", "/apis/example.com/v1/t1s", "/apis/example.org/v1", "/apis/example.org/v1/t1s"} {
		response, err := http.Get(f.proxy.URL() + path) //nolint:noctx // of a test
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Fatal(err)
		}
		got[path] = response.StatusCode
	}
	f.Heal("")
	if want := map[string]int{"/apis/example.com/v1": 503, "/apis/example.com/v1/t1s": 503, "/apis/example.org/v1": 404, "/apis/example.org/v1/t1s": 404}; !maps.Equal(got, want) {
		t.Errorf("status codes %v, want %v", got, want)
	}
	if effects := f.Effects()["deadgroup"]; effects != 2 {
		t.Errorf("%d effects, want 2", effects)
	}
}
