package churn

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// newFaults returns faults of a proxy whose server finds nothing.
func newFaults(t *testing.T) *Faults {
	t.Helper()
	server := httptest.NewServer(http.NotFoundHandler())
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
