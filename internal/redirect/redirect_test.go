package redirect_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/gvrkit/gvrkit/internal/redirect"
)

// answers is a transport that redirects the first request to location, and records all requests.
type answers struct {
	status   int
	location string
	seen     []string
}

func (a *answers) RoundTrip(r *http.Request) (*http.Response, error) {
	a.seen = append(a.seen, r.URL.String())
	response := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}
	if len(a.seen) == 1 {
		response.StatusCode = a.status
		response.Header.Set("Location", a.location)
	}
	return response, nil
}

func TestRefuse_OnlyTheSameServer(t *testing.T) {
	for _, row := range []struct {
		from, location string
		follows        bool
	}{
		{"https://api:6443/apis", "/apis/", true},
		{"https://api:6443/apis", "https://api:6443/other", true},
		{"https://API.example/apis", "https://api.Example/other", true},
		{"https://api/apis", "https://api:443/apis", true},
		{"http://api/apis", "https://api/apis", true},
		{"http://api:80/apis", "https://api:443/apis", true},
		{"http://api:8001/apis", "https://api:8001/apis", true},
		{"http://api:8001/apis", "https://api:9999/apis", false},
		{"http://api:8001/apis", "https://api/apis", false},
		{"http://api/apis", "https://api:6443/apis", false},
		{"http://api/apis", "https://api.evil/apis", false},
		{"https://api/apis", "http://api/apis", false},
		{"https://api:6443/apis", "https://api:6444/apis", false},
		{"https://api/apis", "https://api.evil/apis", false},
		{"https://api/apis", "//evil/apis", false},
		{"https://api/apis", "https://user:secret@evil/apis?token=secret", false},
		{"https://api/apis", "https://[secret/", false},
	} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			next := &answers{status: status, location: row.location}
			client := redirect.Refuse(redirect.Refuse(&http.Client{Transport: next}))
			got, err := get(t, client, row.from)
			if row.follows {
				if err != nil || got != http.StatusOK || len(next.seen) != 2 {
					t.Errorf("%d from %s to %s: %v, %v", status, row.from, row.location, err, next.seen)
				}
				continue
			}
			if err == nil || len(next.seen) != 1 {
				t.Errorf("%d from %s to %s: %v, %v", status, row.from, row.location, err, next.seen)
			} else if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error has the address: %v", err)
			}
		}
	}
}

// An http.Client accepts a response without a body, as transports of tests return it.
func TestRefuse_AResponseMayHaveNoBody(t *testing.T) {
	client := redirect.Refuse(&http.Client{Transport: withoutBody{&answers{status: http.StatusFound, location: "https://evil/"}}})
	if _, err := get(t, client, "https://api/"); err == nil {
		t.Error("the redirect is followed")
	}
}

// withoutBody is a transport whose responses have no body.
type withoutBody struct{ *answers }

func (w withoutBody) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := w.answers.RoundTrip(r)
	res.Body = nil
	return res, err
}

func TestRefuse_KeepsOtherResponsesAndTheOwnersDecision(t *testing.T) {
	next := &answers{status: http.StatusNotModified, location: "https://evil/"}
	if status, err := get(t, redirect.Refuse(&http.Client{Transport: next}), "https://api/"); err != nil || status != http.StatusNotModified {
		t.Errorf("304: %v", err)
	}
	owners := &http.Client{Transport: next, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if redirect.Refuse(owners) != owners {
		t.Error("a client with its own CheckRedirect is changed")
	}
}

func get(t *testing.T, client *http.Client, address string) (status int, err error) {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do((&http.Request{Method: http.MethodGet, URL: to, Header: http.Header{}}).WithContext(t.Context()))
	if err != nil {
		return 0, err
	}
	return res.StatusCode, res.Body.Close()
}
