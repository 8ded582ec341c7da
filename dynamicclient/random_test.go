package dynamicclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// response is a response of a scripted transport.
type response struct {
	delay, pause time.Duration // before the headers, and before each piece
	status       int
	header       http.Header
	pieces       []string
	cancels      int   // the piece before which the call is canceled; -1: none
	end          error // of the body
}

// scripted is a transport without sockets, so that time passes in a bubble. The last response is for all later requests.
type scripted struct {
	script []response
	cancel context.CancelFunc

	mu     sync.Mutex
	seen   []stubserver.Arrival
	bodies int // that are open: client-go does not close that of a watch of another content type
}

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	s.seen = append(s.seen, stubserver.Arrival{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, Body: string(body), Header: r.Header.Clone()})
	next := s.script[min(len(s.seen), len(s.script))-1]
	s.mu.Unlock()
	if err := passed(r.Context(), next.delay); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bodies++
	return &http.Response{StatusCode: next.status, Header: next.header.Clone(), Request: r, Body: &piecesBody{s: s, response: next, ctx: r.Context(), pieces: slices.Clone(next.pieces)}}, nil
}

// passed waits.
func passed(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// piecesBody is the body of a response.
type piecesBody struct {
	response
	s      *scripted
	ctx    context.Context //nolint:containedctx // of the request
	pieces []string
	read   int // number of pieces
	begun  bool
	close  sync.Once
}

func (b *piecesBody) Read(p []byte) (int, error) {
	if !b.begun {
		b.begun = true
		if b.read == b.cancels {
			b.s.cancel()
		}
		if err := passed(b.ctx, b.pause); err != nil {
			return 0, err
		}
	}
	if len(b.pieces) == 0 {
		return 0, b.end
	}
	n := copy(p, b.pieces[0])
	if b.pieces[0] = b.pieces[0][n:]; b.pieces[0] == "" {
		b.pieces, b.read, b.begun = b.pieces[1:], b.read+1, false
	}
	return n, nil
}

func (b *piecesBody) Close() error {
	b.close.Do(func() {
		b.s.mu.Lock()
		defer b.s.mu.Unlock()
		b.s.bodies--
	})
	return nil
}

// randomResponse returns a response of one of bodies.
func randomResponse(r *rand.Rand, bodies []string) response {
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	next := response{status: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}}, cancels: -1, end: io.EOF}
	body := bodies[r.IntN(len(bodies))]
	if r.IntN(3) == 0 {
		next.status = []int{201, 204, 206, 302, 307, 400, 404, 410, 429, 500, 503}[r.IntN(11)]
		next.header.Set("Retry-After", one("0", "1", "7", "-1", "x", ""))
		next.header.Set("Location", one("/other?x=y", "", "http://api.example:80/b"))
		body = one(body, expired, stubserver.Failure(next.status, "NotFound"), "busy")
	}
	if r.IntN(8) == 0 {
		next.header.Set("Content-Type", one("", "text/html", "application/json;charset=utf-8", "application/cbor", "x;y"))
		next.header.Add("Warning", one(`299 - "old"`, "garbage"))
	}
	size := []int{1, 50, 3000, 1 << 20}[r.IntN(4)]
	for len(body) > 0 {
		n := min(len(body), max(size, len(body)/200))
		next.pieces, body = append(next.pieces, body[:n]), body[n:]
	}
	if r.IntN(4) == 0 {
		next.end = []error{io.ErrUnexpectedEOF, syscall.ECONNRESET, errors.New("http2: client connection lost")}[r.IntN(3)]
		next.pieces = next.pieces[:r.IntN(len(next.pieces)+1)]
	}
	if r.IntN(6) == 0 {
		next.delay, next.pause = time.Duration(r.IntN(10))*time.Second, time.Duration(r.IntN(3))*time.Second
	}
	if r.IntN(8) == 0 {
		next.cancels = r.IntN(len(next.pieces) + 1)
	}
	return next
}

// With all times and failures of a connection, the outcome is that of client-go's client.
func TestClient_RandomResponsesAsClientGo(t *testing.T) {
	objects := slices.Sorted(maps.Values(badObjects()))
	objects = append(slices.DeleteFunc(objects, func(o string) bool { return len(o) > 5000 }), widgetA, widgetB, scale, success)
	var lists, streams []string
	for _, object := range objects {
		lists = append(lists, stubserver.WidgetList(widgetB, object), stubserver.WidgetList(widgetA, widgetB))
		streams = append(streams, stubserver.Event("ADDED", widgetA)+stubserver.Event("MODIFIED", object)+stubserver.Event("DELETED", widgetB), manyEvents(9))
	}
	for _, event := range badEvents {
		streams = append(streams, manyEvents(3)+event+manyEvents(3))
	}
	slices.Sort(streams)
	all := append(slices.Clone(calls), []struct {
		name string
		call call
	}{
		{"update", updated(fullWidget(), metav1.UpdateOptions{}, "status")},
		{"patch", patched(types.MergePatchType, `{}`)},
		{"apply", applied(fullWidget())},
	}...)
	rounds := uint64(2000)
	if testing.Short() {
		rounds = 200
	}
	for seed := range rounds {
		r := rand.New(rand.NewPCG(seed, 3)) //nolint:gosec // test data
		c, bodies := all[r.IntN(len(all))], objects
		switch c.name {
		case "list":
			bodies = lists
		case "watch":
			bodies = streams
		}
		var script []response
		for range 1 + r.IntN(3) {
			script = append(script, randomResponse(r, bodies))
		}
		timeout := time.Duration(r.IntN(2)) * (time.Duration(r.IntN(20))*time.Second + time.Second/2)
		want := scriptedOutcome(t, script, c.call, timeout, stock)
		for name, newClient := range newClientFuncs {
			if got := scriptedOutcome(t, script, c.call, timeout, newClient); !reflect.DeepEqual(want, got) {
				t.Fatalf("seed %d, %s, %s (-client-go +ours):\n%s", seed, c.name, name, diffOf(want, got))
			}
		}
	}
}

// scriptedOutcome makes a client and a call with a timeout, unless that is 0, in a bubble. A goroutine that is left fails the bubble.
func scriptedOutcome(t *testing.T, script []response, c call, timeout time.Duration, newClient newClientFunc) (o outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if timeout > 0 {
			ctx, cancel = context.WithTimeout(ctx, timeout)
			defer cancel()
		}
		s, warned := &scripted{script: script, cancel: cancel}, &warnings{}
		client, err := newClient(&rest.Config{Host: "http://api.example", QPS: -1, Transport: s, WarningHandler: warned, BearerToken: "t"})
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		value, err := c(ctx, client)
		took := time.Since(begun)
		cancel()
		synctest.Wait()
		o = outcome{Value: value, Err: detailsOf(err), Warnings: append(warned.texts, fmt.Sprintf("%v, %d bodies are open", took, s.bodies)), Arrivals: s.seen}
	})
	return o
}
