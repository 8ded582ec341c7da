package types

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/stub"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// do measures a contestant on a server whose CRDs have two objects each.
func do(t *testing.T, contestant string, types, objects int) (harness.Figures, error) {
	t.Helper()
	s, err := stub.New(t.Context(), stub.Config{CRDs: 6, SchemaBytes: 2000, Objects: 2})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	defer server.Close()
	params, err := json.Marshal(Params{Server: cluster.Connection{Host: server.URL}, Types: types, Objects: objects, Rest: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return measure(t.Context(), harness.Job{Contestant: contestant, Params: params})
}

func TestMeasure_EverySystem(t *testing.T) {
	for _, types := range []int{1, 6} {
		for _, s := range systems() {
			f, err := do(t, s.Name, types, 2)
			if err != nil {
				t.Fatalf("%s, %d types: %v", s.Name, types, err)
			}
			if len(f) != len(metrics(types)) || f[returned] <= 0 || f[synced] <= 0 || f[returnedCPU] <= 0 || f[restCPU] < f[returnedCPU] || f[lists] < float64(types) {
				t.Errorf("%s, %d types: %v", s.Name, types, f)
			}
			switch s.Target {
			case true: // it has discovery
				if f[documents] == 0 || f[definitions] == 0 || f[bytesRead] == 0 {
					t.Errorf("%s has no discovery: %v", s.Name, f)
				}
			case false:
				if f[documents]+f[definitions]+f[beforeList]+f[bytesRead] != 0 {
					t.Errorf("%s has discovery: %v", s.Name, f)
				}
			}
		}
	}
}

func TestMeasure_FailsIfAnObjectIsMissing(t *testing.T) {
	if _, err := do(t, "client-go", 1, 3); err == nil || !strings.Contains(err.Error(), "has 2 objects, want 3") {
		t.Errorf("error: %v", err)
	}
}

func TestPurposeOf_TellsDocumentsDefinitionsAndObjects(t *testing.T) {
	for path, want := range map[string]string{
		"/api": documents, "/apis": documents, "/api/v1": documents, "/apis/example.com": documents, "/apis/example.com/v1": documents,
		"/apis/apiextensions.k8s.io/v1":                                     documents,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions":           definitions,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a.example": definitions,
		"/apis/apiregistration.k8s.io/v1/apiservices":                       definitions,
		"/api/v1/pods": lists, "/apis/example.com/v1/widgets": lists, "/apis/example.com/v1/namespaces/n/widgets": lists,
	} {
		if got := purposeOf(path); got != want {
			t.Errorf("%s is for %s, want %s", path, got, want)
		}
	}
}

// echo answers each request with its path.
type echo struct{}

func (echo) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(req.URL.Path))}, nil
}

func TestTraffic_CountsRequestsAndTheBytesOfDiscovery(t *testing.T) {
	counted := &traffic{}
	client := http.Client{Transport: &transport{counted, echo{}}}
	const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	for _, path := range []string{"/api", "/apis", crds, "/apis/g/v1/as", "/apis", "/apis/g/v1/bs"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server"+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, res.Body)
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	got := harness.Figures{}
	counted.into(got)
	want := harness.Figures{beforeList: 3, documents: 3, definitions: 1, lists: 2, bytesRead: float64(len("/api/apis/apis"+crds)) / 1e3}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTraffic_RestsWhenNothingWasReadForSoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counted, begin := &traffic{}, time.Now()
		counted.ask(documents)
		go func() {
			for range 3 {
				<-time.After(time.Second)
				counted.read(lists, 1)
			}
		}()
		if err := counted.rest(t.Context(), 2*time.Second); err != nil || time.Since(begin) != 5*time.Second {
			t.Errorf("it rests after %v: %v", time.Since(begin), err)
		}
	})
}
