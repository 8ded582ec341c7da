package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/watch"
)

// feedTest is a feed in a bubble, and the server that it asks. The test is the server:
// it takes the requests one by one, and answers them.
type feedTest struct {
	t        *testing.T
	feed     *feed[*crd]
	requests chan *feedRequest
	log      []string // of the callbacks
	cancel   context.CancelFunc
	done     chan struct{} // closed when run has returned
	bodies   int           // not closed
}

func startFeed(t *testing.T) *feedTest {
	t.Helper()
	ft := &feedTest{t: t, requests: make(chan *feedRequest), done: make(chan struct{})}
	base, err := url.Parse("http://cluster.test")
	if err != nil {
		t.Fatal(err)
	}
	ft.feed = &feed[*crd]{
		endpoint: &endpoint{base: base, client: &http.Client{Transport: ft}},
		path:     crdPath,
		list:     func(items []*crd) { ft.note("list" + namesOf(items)) },
		event:    func(kind watch.EventType, item *crd) { ft.note(string(kind) + " " + item.Metadata.Name) },
		state: func(s feedState) {
			line := string(s.phase)
			if s.verb != "" {
				line += fmt.Sprintf(" %s: %v", s.verb, s.err)
			}
			ft.note(line)
		},
	}
	ctx, cancel := context.WithCancel(t.Context())
	ft.cancel = cancel
	go func() {
		defer close(ft.done)
		ft.feed.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ft.done
		synctest.Wait()
		if ft.bodies != 0 {
			t.Errorf("%d bodies were not closed", ft.bodies)
		}
	})
	return ft
}

func namesOf(items []*crd) string {
	var b strings.Builder
	for _, item := range items {
		b.WriteString(" " + item.Metadata.Name)
	}
	return b.String()
}

func (ft *feedTest) note(line string) {
	select {
	case <-ft.done:
		ft.t.Errorf("callback %q after run returned", line)
	default:
		ft.log = append(ft.log, line)
	}
}

// saw compares what was called back since the last time.
func (ft *feedTest) saw(want ...string) {
	ft.t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, ft.log); diff != "" {
		ft.t.Errorf("callbacks (-want +got):\n%s", diff)
	}
	ft.log = nil
}

// sawNothing is saw of a feed that kept quiet.
func (ft *feedTest) sawNothing() {
	ft.t.Helper()
	ft.saw([]string(nil)...)
}

// begin answers the first list, of version 7, and the first watch.
func (ft *feedTest) begin(names ...string) *feedStream {
	ft.t.Helper()
	ft.next("list").list("7", "", names...)
	s := ft.next("watch").stream()
	ft.saw("Connecting", strings.Join(append([]string{"list"}, names...), " "), "Watching")
	return s
}

// RoundTrip is the way from the feed to the test.
func (ft *feedTest) RoundTrip(req *http.Request) (*http.Response, error) {
	r := &feedRequest{Request: req, ft: ft, answer: make(chan *http.Response, 1)}
	select {
	case ft.requests <- r:
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	select {
	case res := <-r.answer:
		if res == nil {
			return nil, io.ErrClosedPipe
		}
		return res, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// next waits for the next request, which must be of that verb.
func (ft *feedTest) next(verb string) *feedRequest {
	ft.t.Helper()
	select {
	case r := <-ft.requests:
		got := "list"
		if r.URL.Query().Get("watch") == "true" {
			got = "watch"
		}
		if got != verb {
			ft.t.Fatalf("the feed asked for %s, want a %s", r.URL, verb)
		}
		return r
	case <-time.After(time.Hour):
		ft.t.Fatalf("the feed did not ask; want a %s", verb)
		return nil
	}
}

// waited returns the next request and how long the feed has waited before it.
func (ft *feedTest) waited(verb string) (*feedRequest, time.Duration) {
	ft.t.Helper()
	began := time.Now()
	r := ft.next(verb)
	return r, time.Since(began)
}

type feedRequest struct {
	*http.Request
	ft     *feedTest
	answer chan *http.Response
}

func (r *feedRequest) param(name string) string { return r.URL.Query().Get(name) }

func (r *feedRequest) reply(code int, body io.Reader, header ...string) {
	r.ft.bodies++
	res := &http.Response{
		StatusCode: code,
		Status:     fmt.Sprint(code, " ", http.StatusText(code)),
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       &feedBody{Reader: body, ft: r.ft},
		Request:    r.Request,
	}
	for name, value := range pairs(header) {
		res.Header.Set(name, value)
	}
	r.answer <- res
}

// refuse has the connection fail.
func (r *feedRequest) refuse() { r.answer <- nil }

// list answers with a page of a list.
func (r *feedRequest) list(version, next string, names ...string) {
	var items []string
	for _, name := range names {
		items = append(items, crdNamed(name, version))
	}
	r.reply(http.StatusOK, strings.NewReader(fmt.Sprintf(
		`{"kind":"CustomResourceDefinitionList","items":[%s],"metadata":{"resourceVersion":%q,"continue":%q}}`,
		strings.Join(items, ","), version, next)))
}

// fail answers with a Status.
func (r *feedRequest) fail(code int, reason string, header ...string) {
	r.reply(code, strings.NewReader(statusOf(code, reason)), header...)
}

// stream answers a watch.
func (r *feedRequest) stream() *feedStream {
	reader, writer := io.Pipe()
	s := &feedStream{t: r.ft.t, PipeWriter: writer}
	ctx := r.Context()
	context.AfterFunc(ctx, func() { writer.CloseWithError(ctx.Err()) })
	r.reply(http.StatusOK, reader)
	return s
}

// feedStream is the body of a watch, as the server has it.
type feedStream struct {
	t *testing.T
	*io.PipeWriter
}

func (s *feedStream) send(kind, object string) {
	s.t.Helper()
	s.write(fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, object))
}

func (s *feedStream) write(data string) {
	s.t.Helper()
	if _, err := io.WriteString(s, data); err != nil {
		s.t.Fatalf("writing to a watch: %v", err)
	}
}

// end ends the watch in order.
func (s *feedStream) end() {
	if err := s.Close(); err != nil {
		s.t.Error(err)
	}
}

// breakOff ends it otherwise.
func (s *feedStream) breakOff() { s.CloseWithError(io.ErrUnexpectedEOF) }

type feedBody struct {
	io.Reader
	ft *feedTest
}

func (b *feedBody) Close() error {
	b.ft.bodies--
	if c, ok := b.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func crdNamed(name, version string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"uid":"uid-of-%s","resourceVersion":%q}}`, name, name, version)
}

func bookmark(version string) string {
	return fmt.Sprintf(`{"kind":"CustomResourceDefinition","metadata":{"resourceVersion":%q}}`, version)
}

func statusOf(code int, reason string) string {
	data, err := json.Marshal(map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": "it is " + reason,
	})
	if err != nil {
		panic(err)
	}
	return string(data)
}

func pairs(flat []string) map[string]string {
	m := map[string]string{}
	for pair := range slices.Chunk(flat, 2) {
		m[pair[0]] = pair[1]
	}
	return m
}

// within fails the test unless low <= got <= high.
func within(t *testing.T, what string, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s = %v, want %v to %v", what, got, low, high)
	}
}
