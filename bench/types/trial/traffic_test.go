package trial

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPurposeOf_TellsDocumentsDefinitionsAndObjects(t *testing.T) {
	for path, want := range map[string]purpose{
		"/api": forDocuments, "/apis": forDocuments, "/api/v1": forDocuments, "/apis/example.com": forDocuments, "/apis/example.com/v1": forDocuments,
		"/apis/apiextensions.k8s.io/v1":                                     forDocuments,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions":           forDefinitions,
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/a.example": forDefinitions,
		"/apis/apiregistration.k8s.io/v1/apiservices":                       forDefinitions,
		"/api/v1/pods": forObjects, "/apis/example.com/v1/widgets": forObjects, "/apis/example.com/v1/namespaces/n/widgets": forObjects,
	} {
		if got := purposeOf(path); got != want {
			t.Errorf("%s is for %d, want %d", path, got, want)
		}
	}
}

// answer answers each request with its path.
type answer struct{}

func (answer) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(req.URL.Path))}, nil
}

func TestTraffic_CountsRequestsAndWhatIsReadOfDiscovery(t *testing.T) {
	counted := &traffic{}
	client := http.Client{Transport: counted.wrap(answer{})}
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
	var got Figures
	counted.into(&got)
	want := Figures{Before: 3, Documents: 3, Definitions: 1, Objects: 2, Bytes: int64(len("/api/apis/apis" + crds))}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestTraffic_RestsWhenNothingWasReadForSoLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counted, begin := &traffic{}, time.Now()
		counted.ask(forDocuments)
		go func() {
			for range 3 {
				<-time.After(time.Second)
				counted.read(forObjects, 1)
			}
		}()
		if err := counted.rest(t.Context(), 2*time.Second); err != nil || time.Since(begin) != 5*time.Second {
			t.Errorf("it rests after %v: %v", time.Since(begin), err)
		}
	})
}
