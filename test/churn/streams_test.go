package churn

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// askedHeader is a response that counts the calls of Header.
type askedHeader struct {
	http.ResponseWriter
	asked int
}

func (a *askedHeader) Header() http.Header {
	a.asked++
	return a.ResponseWriter.Header()
}

// A fault may write from a goroutine of its own, while the proxy calls Header.
func TestBodyReader_WritesWithoutTheHeader(t *testing.T) {
	response := &askedHeader{ResponseWriter: httptest.NewRecorder()}
	response.Header().Set("Content-Type", "application/json")
	frames := 0
	b := &bodyReader{ResponseWriter: response, frame: func([]byte) { frames++ }}
	b.WriteHeader(http.StatusOK)
	before := response.asked
	b.WriteHeader(http.StatusOK) // of a fault that flushes what it has written
	_, _ = b.Write([]byte("one\ntwo\n"))
	if frames != 2 || response.asked != before {
		t.Errorf("%d frames, want 2; Header was called %d times after WriteHeader", frames, response.asked-before)
	}
}

func TestStreams_KnowWhatIsThrottled(t *testing.T) {
	code := 0
	s := newStreams()
	s.world = newWorld("example.com")
	handler := s.record(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
	for _, tc := range []struct {
		version string
		code    int
		want    bool // of v1
	}{{"v1beta1", 429, false}, {"v1", 429, true}, {"v1beta1", 500, true}, {"v1", 500, false}} {
		code = tc.code
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/apis/example.com/"+tc.version+"/t1s", nil))
		if got := s.world.Throttled(s.world.Resource("t1", "v1")); got != tc.want {
			t.Errorf("after %d of %s: %t, want %t", tc.code, tc.version, got, tc.want)
		}
	}
}

// The world of the watches is a sample: x1 has the versions 1, 2 and 3 in namespace a, y1 has 4 in namespace b.
func TestStreams_ReportWhatAWatchSends(t *testing.T) {
	event := func(kind, uid string, version int) string {
		return fmt.Sprintf("{\"type\":%q,\"object\":{\"metadata\":{\"uid\":%q,\"resourceVersion\":\"%d\"}}}\n", kind, uid, version)
	}
	x := func(version int) string { return event("MODIFIED", "x1", version) }
	bookmark := func(version int) string { return event("BOOKMARK", "", version) }
	for _, tc := range []struct {
		name, query, body string
		garbles           bool
		want              []Invariant
	}{
		{"all states", "watch=1&resourceVersion=1", x(2) + x(3) + bookmark(3), false, nil},
		{"a deletion at its bookmark", "watch=1&resourceVersion=2", x(3) + bookmark(4) + event("DELETED", "x1", 4), false, []Invariant{Bookmarks}},
		{"states with a label", "watch=1&resourceVersion=1&labelSelector=color%3Dred", event("DELETED", "x1", 2) + event("ADDED", "x1", 3), false, nil},
		{"a state with another label", "watch=1&resourceVersion=2&labelSelector=color%3Dblue", event("ADDED", "x1", 3), false, []Invariant{NoGap, NoGap}},
		{"an object loses a label, and the deletion is missing", "watch=1&resourceVersion=1&labelSelector=color%3Dred", event("ADDED", "x1", 3), false, []Invariant{NoGap}},
		{"an object has lost a label before", "watch=1&resourceVersion=2&labelSelector=color%3Dred", event("ADDED", "x1", 3), false, nil},
		{"an object loses a label later", "watch=1&resourceVersion=1&labelSelector=color%3Dred", bookmark(1), false, nil},
		{"an object without a label changes", "watch=1&resourceVersion=1&labelSelector=color%3Dgreen", bookmark(3), false, nil},
		{"a state comes twice", "watch=1&resourceVersion=1", x(2) + x(2) + x(3), false, []Invariant{NoGap}},
		{"a deletion comes twice", "watch=1&resourceVersion=3", event("DELETED", "x1", 4) + event("DELETED", "x1", 4), false, []Invariant{NoGap}},
		{"a deletion of what never existed", "watch=1&resourceVersion=3", event("DELETED", "none", 4), false, []Invariant{NoGap}},
		{"a deletion in another namespace", "watch=1&resourceVersion=3", event("DELETED", "y1", 4), false, []Invariant{NoGap}},
		{"a deletion of what never had the label", "watch=1&resourceVersion=3&labelSelector=color%3Dgreen", event("DELETED", "x1", 4), false, []Invariant{NoGap}},
		{"a deletion", "watch=1&resourceVersion=3&labelSelector=color%3Dred", event("DELETED", "x1", 4), false, nil},
		{"the objects, in no order", "watch=1&sendInitialEvents=true&resourceVersion=", event("ADDED", "x1", 3) + event("ADDED", "x2", 1) + bookmark(5), false, nil},
		{"a deletion after a bookmark", "watch=1&resourceVersion=2", x(3) + bookmark(3) + event("DELETED", "x1", 4), false, nil},
		{"a state is missing", "watch=1&resourceVersion=1", x(3), false, []Invariant{NoGap}},
		{"a state is missing before a bookmark", "watch=1&resourceVersion=2", bookmark(3), false, []Invariant{NoGap}},
		{"a state was never written", "watch=1&resourceVersion=3", x(4), false, []Invariant{NoGap}},
		{"a bookmark goes back", "watch=1&resourceVersion=1", x(2) + x(3) + bookmark(2), false, []Invariant{Bookmarks}},
		{"an event before its bookmark", "watch=1&resourceVersion=1", x(2) + bookmark(3) + x(3), false, []Invariant{Bookmarks}},
		{"an event before the beginning", "watch=1&resourceVersion=3", x(3), false, []Invariant{Bookmarks}},
		{"a proxy that sends an event twice", "watch=1&resourceVersion=1", x(2) + bookmark(2) + x(2) + x(3), true, nil},
		{"a failure", "watch=1&resourceVersion=1", "{\"kind\":\"Status\",\"code\":410}\n", false, nil},
		{"a frame that is no JSON", "watch=1&resourceVersion=1", "{\n" + x(3), false, nil},
	} {
		for contentType, body := range map[string]string{"application/json": tc.body, "application/vnd.kubernetes.protobuf;stream=watch": inProtobuf(t, tc.body)} {
			t.Run(tc.name+" in "+contentType, func(t *testing.T) {
				s := newStreams()
				s.garbles = func() bool { return tc.garbles }
				handler := s.record(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", contentType)
					half := len(body) / 2 // a frame may come in parts
					_, _ = w.Write([]byte(body[:half]))
					_, _ = w.Write([]byte(body[half:]))
				}))
				handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/apis/example.com/v1/namespaces/a/t1s?"+tc.query, nil))
				var got []Invariant
				for _, v := range s.check(newSample().World) {
					got = append(got, v.Invariant)
				}
				if !slices.Equal(got, tc.want) {
					t.Errorf("violations %v, want %v", s.check(newSample().World), tc.want)
				}
			})
		}
	}
}

// A fault changes the requests that begin while it is active.
func TestStreams_AFaultEndsBeforeItsFrameIsRead(t *testing.T) {
	s, active := newStreams(), true
	s.garbles = func() bool { return active }
	frame := s.watch(faultproxy.Request{Verb: "watch", Resource: "t1s", Namespace: "a", Query: "watch=1&resourceVersion=2"}, http.Header{})
	active = false
	for range 2 {
		frame([]byte(`{"type":"MODIFIED","object":{"metadata":{"uid":"x1","resourceVersion":"3"}}}`))
	}
	if found := s.check(newSample().World); len(found) > 0 {
		t.Errorf("got %v", found)
	}
}

// Z was written when the type had its second CRD.
func TestStreams_AWatchOutlivesItsCRD(t *testing.T) {
	for _, tc := range []struct {
		name     string
		began    int  // the number of the CRD then
		rescoped bool // the first CRD had another scope
		want     int  // violations
	}{
		{"which had another scope", 0, true, 0},
		{"which had the scope", 0, false, 1},
		{"and began later", 1, true, 1},
		{"that is not known", -1, true, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, sample := newStreams(), newSample()
			s.world, s.garbles = sample.World, func() bool { return false }
			of := sample.types["t1"]
			of.incarnations[0].Namespaced = !tc.rescoped
			of.current = tc.began
			frame := s.watch(faultproxy.Request{Verb: "watch", Resource: "t1s", Namespace: "a", Query: "watch=1&resourceVersion=5"}, http.Header{})
			of.current = 1
			frame([]byte("{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"9\"}}}\n"))
			if got := s.check(sample.World); len(got) != tc.want {
				t.Errorf("violations: %v, want %d", got, tc.want)
			}
		})
	}
}

// inProtobuf returns the events of a watch as the servers send metadata. A line that is no JSON is a message that is no event.
func inProtobuf(t *testing.T, lines string) string {
	t.Helper()
	var b strings.Builder
	frames := protobuf.LengthDelimitedFramer.NewFrameWriter(&b)
	for line := range strings.Lines(lines) {
		var event metav1.WatchEvent
		var object metav1.PartialObjectMetadata
		message := []byte{0xff}
		if json.Unmarshal([]byte(line), &event) == nil && json.Unmarshal([]byte(cmp.Or(string(event.Object.Raw), "{}")), &object) == nil {
			var err error
			event.Object = runtime.RawExtension{Raw: encoded(t, "PartialObjectMetadata", &object)}
			if message, err = event.Marshal(); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := frames.Write(message); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// encoded returns the protobuf of an object of a kind of meta.k8s.io/v1.
func encoded(t *testing.T, kind string, object runtime.Object) []byte {
	t.Helper()
	object.GetObjectKind().SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind(kind))
	var b bytes.Buffer
	if err := protobuf.NewSerializer(nil, nil).Encode(object, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A list that is in progress at rest may have what is written after that.
func TestStreams_TheTimeAfterAListInProgressIsNotCalm(t *testing.T) {
	const (
		initial = "watch=1&sendInitialEvents=true&resourceVersion="
		x       = `{"type":"ADDED","object":{"metadata":{"uid":"x1","resourceVersion":"1"}}}` + "\n"
		y       = `{"type":"ADDED","object":{"metadata":{"uid":"y1","resourceVersion":"4"}}}` + "\n"
		end     = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}}}` + "\n"
		list    = `{"metadata":{"resourceVersion":"7"},"items":[]}`
	)
	for _, tc := range []struct {
		name, query   string
		before, after string // what the server sends before and after the time at rest
		calm          bool
	}{
		{"a list without a response", "", "", list, false},
		{"a list", "", list[:20], list[20:], false},
		{"a list for the version", "limit=1", "", list, true},
		{"initial events", initial, x, y, false},
		{"the end of initial events", initial, x, end, false},
		{"events after the initial ones", initial, x + end, y, true},
		{"initial events without an end", "watch=1&resourceVersion=0", x, y, false},
		{"a watch", "watch=1&resourceVersion=1", x, y, true},
	} {
		for contentType, encode := range map[string]func(t *testing.T, lines string) string{
			"application/json": func(_ *testing.T, lines string) string { return lines },
			"application/vnd.kubernetes.protobuf;stream=watch": inProtobuf,
		} {
			t.Run(tc.name+" in "+contentType, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s, atRest := newStreams(), make(chan struct{})
					s.world, s.garbles = newWorld("example.com"), func() bool { return false }
					s.world.defined("t1", Incarnation{UID: "first", Namespaced: true, Served: allVersions})
					handler := s.record(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
						w.Header().Set("Content-Type", contentType)
						_, _ = w.Write([]byte(encode(t, tc.before)))
						<-atRest
						_, _ = w.Write([]byte(encode(t, tc.after)))
					}))
					go handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/apis/example.com/v1/t1s?"+tc.query, nil))
					synctest.Wait()
					s.world.rested(time.Now(), s.lists)
					close(atRest)
					synctest.Wait()
					s.world.rested(time.Now(), s.lists)
					if calm := len(s.world.types["t1"].calm) > 0; calm != tc.calm {
						t.Errorf("the time is calm: %v, want %v", calm, tc.calm)
					}
				})
			})
		}
	}
}

// writtenResponse is a response that calls a function after each write.
type writtenResponse struct {
	http.ResponseWriter
	written func()
}

func (w *writtenResponse) Write(p []byte) (int, error) {
	defer w.written()
	return w.ResponseWriter.Write(p)
}

// The subject may delete what a list does not have as soon as it has the list.
func TestStreams_TheWorldHasAListBeforeTheSubject(t *testing.T) {
	for _, tc := range []struct {
		name  string
		parts []string
		want  []int // lists after each part
	}{
		{"a list in two parts", []string{`{"metadata":{"resourceVersion":"7"},`, `"items":[]}`}, []int{0, 1}},
		{"a page", []string{`{"metadata":{"resourceVersion":"7","continue":"more"},"items":[]}`}, []int{0}},
		{"a failure", []string{`{"kind":"Status","metadata":{},"code":403}`}, []int{0}},
		{"metadata", []string{string(encoded(t, "PartialObjectMetadataList", &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}))}, []int{1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, got := newStreams(), []int(nil)
			s.world = newWorld("example.com")
			handler := s.record(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for _, part := range tc.parts {
					_, _ = w.Write([]byte(part))
				}
			}))
			client := &writtenResponse{httptest.NewRecorder(), func() { got = append(got, len(s.world.typeLocked("t1").lists)) }}
			handler.ServeHTTP(client, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/apis/example.com/v1/t1s", nil))
			if got = append(got, len(s.world.typeLocked("t1").lists)); !slices.Equal(got, append(tc.want, tc.want[len(tc.want)-1])) {
				t.Errorf("lists after each part, and at the end: %v, want %v", got, tc.want)
			}
		})
	}
}

func TestStreams_AWatchBeginsWhereTheClientIs(t *testing.T) {
	s := newStreams()
	s.garbles = func() bool { return false }
	send := func(path, body string) {
		s.record(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })).
			ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	}
	const all, a = "/apis/example.com/v1/t1s", "/apis/example.com/v1/namespaces/a/t1s"
	send(a, `{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"resourceVersion":"5"}}]}`)
	send(a+"?limit=1", `{"metadata":{"resourceVersion":"8","continue":"more"},"items":[]}`)
	send(a+"?watch=1&resourceVersion=7", `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}`+"\n")
	send(all, string(encoded(t, "PartialObjectMetadataList", &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "20"}})))
	send(all, string(encoded(t, "PartialObjectMetadataList", &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "21", Continue: "more"}})))
	for path, want := range map[string]bool{
		a + "?watch=1&resourceVersion=7":                           true,
		a + "?watch=1&resourceVersion=9":                           true,
		a + "?watch=1&resourceVersion=20":                          true, // a list of all namespaces has this one
		a + "?watch=1&resourceVersion=5":                           false,
		a + "?watch=1&resourceVersion=8":                           false,
		all + "?watch=1&resourceVersion=7":                         false,
		all + "?watch=1&resourceVersion=20":                        true,
		all + "?watch=1&resourceVersion=21":                        false,
		"/apis/example.com/v1/namespaces/b/t1s?resourceVersion=9":  false,
		a + "?watch=1&resourceVersion=7&labelSelector=color%3Dred": false,
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		if found := s.resumes([]faultproxy.Request{faultproxy.ParseRequest(r)}); (len(found) == 0) != want {
			t.Errorf("%s: %v", path, found)
		}
	}
}

// The world knows which CRDs the responses to the subject had: of lists, single objects and watches.
func TestRecordDefinitions(t *testing.T) {
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	for _, tc := range []struct {
		name, url, body string
		want            []types.UID
	}{
		{"a list of one CRD", path + "?fieldSelector=metadata.name%3Dt1s.example.com", `{"items":[{"metadata":{"uid":"one"}}]}`, []types.UID{"one"}},
		{"a list", path, `{"items":[{"metadata":{"uid":"one"}},{"metadata":{"uid": "two"}}]}`, []types.UID{"one", "two"}},
		{"one CRD", path + "/t1s.example.com", `{"metadata":{"name":"t1s.example.com","uid":"one"}}`, []types.UID{"one"}},
		{"a watch", path + "?watch=1", `{"type":"ADDED","object":{"metadata":{"uid":"one"}}}` + "\n" + `{"type":"DELETED","object":{"metadata":{"uid":"two"}}}` + "\n", []types.UID{"one", "two"}},
		{"a watch that is cut", path + "?watch=1", `{"type":"ADDED","object":{"metadata":{"uid":"one"}}`, nil},
		{"a list that is cut", path, `{"items":[{"metadata":{"uid":"one"}},{"metadata":{"uid": "two"}}`, nil},
		{"a watch that is garbled", path + "?watch=1", `{"type":"ADDED","object":{"metadata":{"uid":"one"}}` + "\xff\n", nil},
		{"a failure", path, `{"kind":"Status","code":403}`, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			world, begun := newWorld("example.com"), time.Now()
			hides := true
			world.hide(begun)
			handler := recordDefinitions(world, func() bool { return hides })(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("Accept-Encoding"); got != "identity" {
					t.Errorf("Accept-Encoding is %q", got)
				}
				half := len(tc.body) / 2
				_, _ = w.Write([]byte(tc.body[:half]))
				_, _ = w.Write([]byte(tc.body[half:]))
			}))
			response := httptest.NewRecorder()
			handler.ServeHTTP(response, httptest.NewRequestWithContext(t.Context(), http.MethodGet, tc.url, nil))
			if got := response.Body.String(); got != tc.body {
				t.Errorf("the body is %s", got)
			}
			if got := slices.Sorted(maps.Keys(world.shown)); !slices.Equal(got, tc.want) {
				t.Errorf("the CRDs are %v, want %v", got, tc.want)
			}
			if !world.hidden[0].ended.IsZero() {
				t.Error("CRDs are not hidden while a fault is active")
			}
			hides = false
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, tc.url, nil))
			if all := tc.name == "a list" || tc.name == "a watch"; world.hidden[0].ended.IsZero() == all {
				t.Errorf("CRDs are hidden until %v", world.hidden[0].ended)
			}
			world.show("one", begun.Add(time.Hour), false)
			if at := world.shown["one"]; len(tc.want) > 0 && at.After(time.Now()) {
				t.Errorf("a later response counts: %v", at)
			}
		})
	}
}
