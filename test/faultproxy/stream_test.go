package faultproxy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// Frames as servers send them, without the newline after each. The last one contains newlines.
const (
	added    = `{"type":"ADDED","object":{"metadata":{"name":"a","annotations":{"k8s.io/initial-events-end":"true"}},"n":1.0e2}}`
	bookmark = `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"7"}}}`
	otherEnd = `{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"false"}}}}`
	end      = `{"type":"BOOKMARK","object":{"metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}}`
	odd      = `{"type":"BOOKMARK","object":{"metadata":{"annotations":7}}}`
	broad    = "{ \"type\": \"MODIFIED\",\n\t\"object\": {\n\t\t\"kind\": \"<&>\\u003c\"\n\t}\n}"
)

func lines(frames ...string) string { return strings.Join(frames, "\n") + "\n" }

// streaming serves stream in small pieces, and ends.
func streaming(stream string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		pieces := iotest.HalfReader(iotest.DataErrReader(strings.NewReader(stream)))
		buf := make([]byte, 13)
		for {
			n, err := pieces.Read(buf)
			if _, failed := w.Write(buf[:n]); failed != nil || err != nil {
				return
			}
		}
	})
}

// through returns the body of the response to a request for url through fault to server.
func through(t *testing.T, fault faultproxy.Fault, server http.Handler, url string) string {
	t.Helper()
	w := httptest.NewRecorder()
	fault(server).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))
	return w.Body.String()
}

func TestStreams_ChangeOnlyTheDocumentedFrames(t *testing.T) {
	whole := lines(added, bookmark, broad, otherEnd, end, odd, added)
	for _, tc := range []struct {
		name  string
		fault faultproxy.Fault
		want  string
	}{
		{"DropBookmarks", faultproxy.DropBookmarks(), lines(added, broad, added)},
		{"NeverInitialEventsEnd", faultproxy.NeverInitialEventsEnd(), lines(added, bookmark, broad, otherEnd, odd, added)},
		{"DelayBookmarks", faultproxy.DelayBookmarks(-1), whole},
		{"GarbleFrame", faultproxy.GarbleFrame(2), lines(added, strings.Repeat("\x00", len(bookmark)), broad, otherEnd, end, odd, added)},
		{"GarbleFrame(0)", faultproxy.GarbleFrame(0), whole},
		{"DuplicateFrame", faultproxy.DuplicateFrame(1), lines(added, added, bookmark, broad, otherEnd, end, odd, added)},
		{"DuplicateFrame(7)", faultproxy.DuplicateFrame(7), lines(added, bookmark, broad, otherEnd, end, odd, added, added)},
	} {
		if diff := cmp.Diff(tc.want, through(t, tc.fault, streaming(whole), blocks+"?watch=1")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestStreams_PassInvalidFrames(t *testing.T) {
	for _, stream := range []string{
		"",
		lines(added) + `{"type":"BOOKM`,
		lines(added) + "<html>\n\n" + lines(bookmark),
		"\x00\x00\x00\x05k8s\x00\n",
		"\n[]\n",
	} {
		want := strings.TrimPrefix(stream, "\n") // white space before a frame may be dropped
		if got := through(t, faultproxy.DropBookmarks(), streaming(stream), blocks+"?watch=1"); got != want {
			t.Errorf("%q became %q", stream, got)
		}
	}
}

func TestStreams_DoNotChangeOtherRequests(t *testing.T) {
	for name, fault := range map[string]faultproxy.Fault{
		"DropBookmarks": faultproxy.DropBookmarks(), "NeverInitialEventsEnd": faultproxy.NeverInitialEventsEnd(),
		"DelayBookmarks": faultproxy.DelayBookmarks(time.Hour), "GoneEvent": faultproxy.GoneEvent(),
	} {
		if got := through(t, fault, streaming(end), blocks); got != end {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestStreams_DoNotChangeErrors(t *testing.T) {
	proxy, client := serveBy(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, bookmark)
	}))
	proxy.Inject(nil, faultproxy.DropBookmarks())
	got := fetch(t, client, proxy.URL()+blocks+"?watch=1")
	if got.code != http.StatusForbidden || got.body != bookmark || got.header.Get("Content-Length") == "" {
		t.Errorf("%+v", got)
	}
}

// net/http adds a Content-Length header to a short response.
func TestStreams_HaveNoContentLength(t *testing.T) {
	proxy, client := serveBy(t, streaming(lines(added, end)))
	proxy.Inject(nil, faultproxy.DropBookmarks())
	if got := fetch(t, client, proxy.URL()+blocks+"?watch=1"); got.err != nil || got.body != lines(added) {
		t.Errorf("%+v", got)
	}
}

func TestStreams_BeginAfterInformationalResponses(t *testing.T) {
	proxy, client := serveBy(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, lines(added, end))
	}))
	proxy.Inject(nil, faultproxy.DropBookmarks())
	if got := fetch(t, client, proxy.URL()+blocks+"?watch=1"); got.code != http.StatusOK || got.body != lines(added) {
		t.Errorf("%+v", got)
	}
}

// A broken stream of the server must not end without an error.
func TestStreams_PassABrokenConnectionOn(t *testing.T) {
	proxy, client := serveBy(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, lines(added)+`{"ty`)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	proxy.Inject(nil, faultproxy.DropBookmarks())
	_, body := open(t, client, proxy.URL()+blocks+"?watch=1")
	if got, err := io.ReadAll(body); !errors.Is(err, io.ErrUnexpectedEOF) || string(got) != lines(added)+`{"ty` {
		t.Errorf("%q, %v", got, err)
	}
}

// Neither the header nor a frame may wait for the next frame.
func TestStreams_PassFramesAtOnce(t *testing.T) {
	frames := make(chan string)
	var asked http.Header
	proxy, client := serveBy(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header
		w.(http.Flusher).Flush()
		for frame := range frames {
			_, _ = io.WriteString(w, frame) // without a newline
			w.(http.Flusher).Flush()
		}
	}))
	proxy.Inject(nil, faultproxy.NeverInitialEventsEnd())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, proxy.URL()+blocks+"?watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/vnd.kubernetes.protobuf, application/json;as=Table,application/json")
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	for _, frame := range []string{added, broad, bookmark} {
		frames <- end
		frames <- frame
		got := make([]byte, len(frame)+1)
		if _, err := io.ReadFull(res.Body, got); err != nil || string(got) != frame+"\n" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	close(frames)
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
	if got := asked.Get("Accept"); got != "application/json;as=Table,application/json" {
		t.Errorf("Accept = %q", got)
	}
	if got := asked.Get("Accept-Encoding"); got != "identity" {
		t.Errorf("Accept-Encoding = %q", got)
	}
}

func TestStreams_IgnoreASecondHeader(t *testing.T) {
	twice := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.WriteHeader(http.StatusOK) // net/http ignores it
		_, _ = io.WriteString(w, lines(added, end, broad))
	})
	if got := through(t, faultproxy.DropBookmarks(), twice, blocks+"?watch=1"); got != lines(added, broad) {
		t.Errorf("%q", got)
	}
}

func TestDelayBookmarks_DelaysTheStreamInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &clocked{start: time.Now()}
		server := streaming(lines(added, bookmark, added, end, added))
		faultproxy.DelayBookmarks(time.Minute)(server).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, blocks+"?watch=1", nil))
		want := []string{"0s ADDED", "1m0s BOOKMARK", "1m0s ADDED", "2m0s BOOKMARK", "2m0s ADDED"}
		if diff := cmp.Diff(want, w.got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// clocked is a ResponseWriter that records the time of each frame.
type clocked struct {
	httptest.ResponseRecorder
	start time.Time
	got   []string
}

func (c *clocked) Write(b []byte) (int, error) {
	var frame struct{ Type string }
	if err := json.Unmarshal(b, &frame); err != nil {
		return 0, err
	}
	c.got = append(c.got, time.Since(c.start).String()+" "+frame.Type)
	return len(b), nil
}

func (c *clocked) Header() http.Header { return http.Header{} }

func TestDelayBookmarks_EndsWhenTheClientDisconnects(t *testing.T) {
	left := make(chan struct{})
	proxy, client := serveBy(t, streaming(lines(added, end, added)))
	proxy.Inject(nil, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer close(left)
			next.ServeHTTP(w, r)
		})
	})
	proxy.Inject(nil, faultproxy.DelayBookmarks(time.Hour))
	_, body := open(t, client, proxy.URL()+blocks+"?watch=1")
	got := make([]byte, len(added)+1)
	if _, err := io.ReadFull(body, got); err != nil || string(got) != lines(added) {
		t.Fatalf("%q, %v", got, err)
	}
	_ = body.Close()
	<-left
}

func TestDelayBookmarks_SendsNoLaterFrameWhenCut(t *testing.T) {
	proxy, client := serveBy(t, streaming(lines(added, end, added)))
	proxy.Inject(nil, faultproxy.DelayBookmarks(time.Hour))
	_, body := open(t, client, proxy.URL()+blocks+"?watch=1")
	got := make([]byte, len(added)+1)
	if _, err := io.ReadFull(body, got); err != nil {
		t.Fatal(err)
	}
	proxy.CutWatches(nil)
	if rest, err := io.ReadAll(body); !errors.Is(err, io.ErrUnexpectedEOF) || len(rest) > 0 {
		t.Errorf("%q, %v", rest, err)
	}
}

func TestGoneEvent_SendsOneErrorAndEnds(t *testing.T) {
	body := through(t, faultproxy.GoneEvent(), streaming(added), blocks+"?watch=1")
	frames := json.NewDecoder(bytes.NewReader([]byte(body)))
	var frame struct {
		Type   string
		Object struct {
			Kind, Reason string
			Code         int
		}
	}
	if err := frames.Decode(&frame); err != nil {
		t.Fatal(err)
	}
	if frame.Type != "ERROR" || frame.Object.Kind != "Status" || frame.Object.Reason != "Expired" || frame.Object.Code != 410 {
		t.Errorf("%s", body)
	}
	if frames.More() {
		t.Errorf("the stream has more events: %s", body)
	}
}

func TestGarbleFrame_CountsEachWatch(t *testing.T) {
	stream := lines(added, bookmark)
	faulty := faultproxy.GarbleFrame(1)(streaming(stream))
	for range 2 {
		w := httptest.NewRecorder()
		faulty.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, blocks+"?watch=1", nil))
		if want := lines(strings.Repeat("\x00", len(added)), bookmark); w.Body.String() != want {
			t.Errorf("got %q", w.Body)
		}
	}
}
