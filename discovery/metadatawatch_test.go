package discovery_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/discovery"
)

// intercepted is a transport to a memoryServer, for which a function may answer instead.
type intercepted struct {
	*memoryServer
	instead atomic.Pointer[func(*http.Request) *http.Response] // it returns nil if the server answers
}

func (i *intercepted) RoundTrip(req *http.Request) (*http.Response, error) {
	if instead := i.instead.Load(); instead != nil {
		if res := (*instead)(req); res != nil {
			return res, nil
		}
	}
	return i.memoryServer.RoundTrip(req)
}

// with answers lists of CRDs with the result of page, which gets the continue token.
func (i *intercepted) with(page func(token string) map[string]any) {
	i.answerCRDs(func(req *http.Request) *http.Response {
		body, err := json.Marshal(page(req.URL.Query().Get("continue")))
		if err != nil {
			panic(err)
		}
		return answer(req, http.StatusOK, "application/json", body)
	})
}

// answerCRDs answers lists of CRDs with the result of answer.
func (i *intercepted) answerCRDs(answer func(*http.Request) *http.Response) {
	answers := func(req *http.Request) *http.Response {
		if classOf(req) != "crds.list" {
			return nil
		}
		return answer(req)
	}
	i.instead.Store(&answers)
}

// pageOf returns a page of a list of metadata.
func pageOf(version, next string, objects ...map[string]any) map[string]any {
	items := []any{}
	for _, meta := range objects {
		items = append(items, map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": meta})
	}
	return map[string]any{
		"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
		"metadata": map[string]any{"resourceVersion": version, "continue": next}, "items": items,
	}
}

// intercepting runs test in a bubble, with a resolver on a server that serves gadgets.
func intercepting(t *testing.T, test func(t *testing.T, i *intercepted, r *discovery.Resolver)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		i := &intercepted{memoryServer: newMemoryServer(1)}
		i.update(func() {
			c := gadget("v1")
			c.uid = i.uid()
			i.setCRD(c)
		})
		r, err := discovery.NewForConfig(&rest.Config{Host: "http://server", Transport: i})
		if err != nil {
			t.Fatal(err)
		}
		test(t, i, r)
	})
}

// A list that is not valid fails, and removes no type.
func TestRun_InvalidListsOfCRDsFail(t *testing.T) {
	for name, row := range map[string]struct {
		page func(token string) map[string]any
		want string
	}{
		"a page refers to itself": {
			func(string) map[string]any { return pageOf("7", "again") }, "the list does not end",
		},
		"an object has no name": {
			func(string) map[string]any { return pageOf("7", "", map[string]any{"uid": "u"}) }, "without name or UID",
		},
		"an object has no UID": {
			func(string) map[string]any { return pageOf("7", "", map[string]any{"name": "a.example.org"}) }, "without name or UID",
		},
		"it has no resourceVersion": {
			func(string) map[string]any { return pageOf("", "") }, "not metadata",
		},
	} {
		t.Run(name, func(t *testing.T) {
			intercepting(t, func(t *testing.T, i *intercepted, r *discovery.Resolver) {
				t.Helper()
				i.with(row.page)
				runFor(t, r)
				sleep(time.Minute)
				source := r.Status().CRDs
				if source.State != discovery.SourceFailing || source.Verb != "list" || source.Err == nil || !strings.Contains(source.Err.Error(), row.want) {
					t.Errorf("%s %s: %v, want a failed list: %s", source.State, source.Verb, source.Err, row.want)
				}
				if _, err := r.Resolve(t.Context(), "gadgets"); err != nil {
					t.Error(err)
				}
				i.instead.Store(nil)
				sleep(time.Minute)
				if source := r.Status().CRDs; source.State != discovery.SourceCurrent {
					t.Errorf("with valid lists: %s: %v", source.State, source.Err)
				}
			})
		})
	}
}

// broken is a body that breaks off.
type broken struct{ err error }

func (b broken) Read(p []byte) (int, error) { return copy(p, `{"kind":"Parti`), b.err }
func (broken) Close() error                 { return nil }

// The client would repeat such a request ten times before it returns the error.
func TestRun_AListOfCRDsThatBreaksOffFailsAtOnce(t *testing.T) {
	for _, cause := range []error{io.ErrUnexpectedEOF, errors.New("http2: client connection lost")} {
		intercepting(t, func(t *testing.T, i *intercepted, r *discovery.Resolver) {
			t.Helper()
			i.answerCRDs(func(req *http.Request) *http.Response {
				res := answer(req, http.StatusOK, "application/json", nil)
				res.Body = broken{cause}
				return res
			})
			runFor(t, r)
			sleep(time.Second)
			source := r.Status().CRDs
			if source.State != discovery.SourceFailing || !errors.Is(source.Err, cause) || !strings.Contains(source.Err.Error(), "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions: ") {
				t.Errorf("%s %s: %v", source.State, source.Verb, source.Err)
			}
		})
	}
}

func TestResolve_TheErrorOfADocumentThatBreaksOffNamesTheRequest(t *testing.T) {
	intercepting(t, func(t *testing.T, i *intercepted, r *discovery.Resolver) {
		t.Helper()
		breaks := func(req *http.Request) *http.Response {
			res := answer(req, http.StatusOK, "application/json", nil)
			res.Body = broken{io.ErrUnexpectedEOF}
			return res
		}
		i.instead.Store(&breaks)
		_, byName := r.Resolve(t.Context(), "gadgets")
		_, byGVR := r.ResolveGVR(t.Context(), schema.GroupVersionResource{Group: "example.org", Version: "v1", Resource: "gadgets"})
		for path, err := range map[string]error{"/api": byName, "/apis": byName, "/apis/example.org/v1": byGVR} {
			if want := "GET " + path + ": unexpected EOF"; !errors.Is(err, discovery.ErrInconclusive) || !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}
	})
}

// A proxy responds with text or HTML.
func TestRun_TheErrorOfAListOfCRDsNamesRequestAndResponse(t *testing.T) {
	for _, row := range []struct {
		code       int
		body, want string
		state      discovery.SourceState
	}{
		{http.StatusBadGateway, "<html>nginx</html>", "502 Bad Gateway", discovery.SourceFailing},
		{http.StatusServiceUnavailable, "no healthy upstream", "503 no healthy upstream", discovery.SourceFailing},
		{http.StatusForbidden, "<html>blocked</html>", "403 Forbidden", discovery.SourceForbidden},
	} {
		intercepting(t, func(t *testing.T, i *intercepted, r *discovery.Resolver) {
			t.Helper()
			i.answerCRDs(func(req *http.Request) *http.Response { return answer(req, row.code, "text/html", []byte(row.body)) })
			runFor(t, r)
			sleep(time.Second)
			source, want := r.Status().CRDs, "GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions: "+row.want
			if source.State != row.state || source.Err == nil || source.Err.Error() != want {
				t.Errorf("%s %s: %v, want %s: %s", source.State, source.Verb, source.Err, row.state, want)
			}
		})
	}
}

// The reflector would skip an event that is not valid, and the resolver would never learn of it.
func TestRun_AfterAnInvalidEventOfACRDAListFollows(t *testing.T) {
	const name = "sprockets.example.org"
	for title, row := range map[string]struct {
		change func(i *intercepted, c *crdObject) // sends an event without a UID
		want   string                             // the UID afterwards
	}{
		"added": {func(i *intercepted, c *crdObject) {
			i.dropCRD(name)
			again := *c
			again.uid = ""
			i.setCRD(again)
			i.crds.objs[name].(*crdObject).uid = "new"
		}, "new"},
		"modified": {func(i *intercepted, c *crdObject) {
			c.uid = ""
			i.put(i.crds, name, c)
			c.uid = "new"
		}, "new"},
		"deleted": {func(i *intercepted, c *crdObject) {
			c.uid = ""
			i.dropCRD(name)
		}, ""},
	} {
		t.Run(title, func(t *testing.T) {
			intercepting(t, func(t *testing.T, i *intercepted, r *discovery.Resolver) {
				t.Helper()
				i.update(func() {
					i.setCRD(crdObject{name: name, uid: "old", group: "example.org", plural: "sprockets", kind: "Sprocket", versions: []string{"v1"}, established: true})
				})
				runFor(t, r)
				sleep(time.Minute)
				if res, err := r.Resolve(t.Context(), "sprockets"); err != nil || res.CRDUID != "old" {
					t.Fatalf("before: UID %q, %v", res.CRDUID, err)
				}
				i.update(func() { row.change(i, i.crds.objs[name].(*crdObject)) })
				synctest.Wait()
				source := r.Status().CRDs
				if source.State != discovery.SourceFailing || source.Verb != "watch" || source.Err == nil || !strings.Contains(source.Err.Error(), "without name or UID") {
					t.Errorf("%s %s: %v, want a failed watch", source.State, source.Verb, source.Err)
				}
				sleep(10 * time.Second)
				if source := r.Status().CRDs; source.State != discovery.SourceCurrent {
					t.Errorf("after the list: %s: %v", source.State, source.Err)
				}
				if res, err := r.Resolve(t.Context(), "sprockets"); (err == nil) != (row.want != "") || string(res.CRDUID) != row.want {
					t.Errorf("UID %q, want %q; %v", res.CRDUID, row.want, err)
				}
			})
		})
	}
}

// The types of all pages are known before documents list them.
func TestRun_ReadsAllPagesOfTheListOfCRDs(t *testing.T) {
	intercepting(t, func(t *testing.T, i *intercepted, r *discovery.Resolver) {
		t.Helper()
		var tokens []string
		i.with(func(token string) map[string]any {
			i.update(func() { tokens = append(tokens, token) })
			if token == "" {
				return pageOf("7", "next", map[string]any{"name": "first.example.org", "uid": "f"})
			}
			var meta map[string]any
			i.update(func() {
				meta = i.render(i.crds, "gadgets.example.org", i.crds.objs["gadgets.example.org"], false)["metadata"].(map[string]any)
			})
			return pageOf("7", "", meta)
		})
		runFor(t, r)
		sleep(time.Minute)
		i.update(func() {
			if want := []string{"", "next"}; !slices.Equal(tokens, want) {
				t.Errorf("pages = %q, want %q", tokens, want)
			}
		})
		if res, err := r.Resolve(t.Context(), "gadgets"); err != nil || res.CRDUID == "" {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

// Without its own timeouts, a request on a connection that hangs would last for ever.
func TestRun_RequestsForCRDsThatHangEnd(t *testing.T) {
	for class, verb := range map[string]string{"crds.list": "list", "crds.watch": "watch"} {
		t.Run(class, func(t *testing.T) {
			intercepting(t, func(t *testing.T, i *intercepted, r *discovery.Resolver) {
				t.Helper()
				i.update(func() { i.fault[class] = "hang" })
				runFor(t, r)
				sleep(95 * time.Second)
				if source := r.Status().CRDs; source.State != discovery.SourceFailing || source.Verb != verb {
					t.Errorf("%s %s: %v, want a failed %s", source.State, source.Verb, source.Err, verb)
				}
				i.update(func() { clear(i.fault) })
				sleep(2 * time.Minute)
				if source := r.Status().CRDs; source.State != discovery.SourceCurrent {
					t.Errorf("when the server responds: %s: %v", source.State, source.Err)
				}
			})
		})
	}
}

// The server does not end its watches at their timeouts of 5 to 10 minutes.
func TestRun_AWatchOfCRDsThatTheServerDoesNotEndEnds(t *testing.T) {
	intercepting(t, func(t *testing.T, i *intercepted, r *discovery.Resolver) {
		t.Helper()
		runFor(t, r)
		sleep(time.Minute)
		i.update(func() { clear(i.counts) })
		sleep(11 * time.Minute)
		i.update(func() {
			if got := i.counts["crds.watch"]; got < 1 || got > 2 {
				t.Errorf("%d later watches in eleven minutes, want 1 or 2", got)
			}
			if got := len(i.crds.streams); got != 1 {
				t.Errorf("%d watches are open, want 1", got)
			}
		})
		if source := r.Status().CRDs; source.State != discovery.SourceCurrent {
			t.Errorf("%s: %v", source.State, source.Err)
		}
	})
}

// The usual back-off would send a request after a fraction of a second.
func TestRun_RequestsForCRDsObeyRetryAfter(t *testing.T) {
	for class, verb := range map[string]string{"crds.list": "list", "crds.watch": "watch"} {
		t.Run(class, func(t *testing.T) {
			intercepting(t, func(t *testing.T, i *intercepted, r *discovery.Resolver) {
				t.Helper()
				throttle := func(req *http.Request) *http.Response {
					if classOf(req) != class {
						return nil
					}
					i.update(func() { i.counts["throttled"]++ })
					res := statusAnswer(req, http.StatusTooManyRequests, "TooManyRequests")
					res.Header.Set("Retry-After", "60")
					return res
				}
				i.instead.Store(&throttle)
				runFor(t, r)
				sleep(55 * time.Second)
				i.update(func() {
					if got := i.counts["throttled"]; got != 1 {
						t.Errorf("%d requests in 55 s, want 1", got)
					}
				})
				if source := r.Status().CRDs; source.State != discovery.SourceFailing || source.Verb != verb {
					t.Errorf("%s %s: %v", source.State, source.Verb, source.Err)
				}
				i.instead.Store(nil)
				sleep(time.Minute)
				if source := r.Status().CRDs; source.State != discovery.SourceCurrent {
					t.Errorf("after the pause: %s: %v", source.State, source.Err)
				}
			})
		})
	}
}
