package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"sync"
)

// Proxy is a running proxy. Its methods are safe for concurrent use.
type Proxy struct {
	server  *http.Server
	cut     context.CancelFunc // ends the context of every request
	address string
	forward *httputil.ReverseProxy
	done    chan struct{} // the accept loop has ended
	active  sync.WaitGroup

	mu      sync.Mutex // never held while a request is served
	closed  bool       // no request is added to active any more
	past    []Request
	watches map[*http.Request]watch // the open watches
	faults  []*injection            // replaced, never changed: requests read it without mu
	last    int                     // the id of the last injection
}

type watch struct {
	request Request
	cut     func()
}

// errCut is the cause of the end of a watch that CutWatches has ended.
var errCut = errors.New("faultproxy: watch cut")

// Start starts a proxy to target, the URL of an API server. The proxy sends requests
// through transport, which has the credentials and certificates. A nil transport is
// http.DefaultTransport. Close ends the proxy.
func Start(target string, transport http.RoundTripper) (*Proxy, error) {
	to, err := url.Parse(target)
	if err != nil || to.Scheme == "" || to.Host == "" {
		return nil, fmt.Errorf("faultproxy: target %q is not a URL with scheme and host, such as https://127.0.0.1:6443", target)
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	p := &Proxy{
		address: "http://" + listener.Addr().String(),
		done:    make(chan struct{}),
		watches: map[*http.Request]watch{},
		forward: forwarding(to, transport),
	}
	serving, cut := context.WithCancel(context.Background()) //nolint:forbidigo // of all requests, until Close
	p.cut = cut
	p.server = &http.Server{
		Handler:     http.HandlerFunc(p.serve),
		BaseContext: func(net.Listener) context.Context { return serving },
	}
	go func() {
		defer close(p.done)
		_ = p.server.Serve(listener) // until Close
	}()
	return p, nil
}

// URL returns the URL of the proxy.
func (p *Proxy) URL() string { return p.address }

// Close closes all connections of clients and waits until all goroutines of the proxy have
// ended. The owner of the transport must close its idle connections.
func (p *Proxy) Close() error {
	err := p.server.Close()
	p.cut() // also ends handlers that have not read their request, which net/http does not end
	<-p.done
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.active.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// serve counts a request and passes it through the faults to the server.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	ctx, cut := context.WithCancelCause(r.Context())
	defer cut(nil)
	if !p.arrive(r, watch{ParseRequest(r), func() { cut(errCut) }}) {
		panic(http.ErrAbortHandler) // the proxy is closed
	}
	defer p.leave(r)
	wasCut := func() bool { return errors.Is(context.Cause(ctx), errCut) }
	p.following(nil).ServeHTTP(&response{w, wasCut}, r.WithContext(ctx))
	if wasCut() {
		panic(http.ErrAbortHandler) // a return of the handler must not end the response without an error
	}
}

// response is the ResponseWriter of a request. It writes nothing after the cut of a watch.
type response struct {
	http.ResponseWriter
	wasCut func() bool
}

// Write implements [http.ResponseWriter].
func (r *response) Write(b []byte) (int, error) {
	if r.wasCut() {
		return 0, errCut
	}
	return r.ResponseWriter.Write(b)
}

// Flush implements [http.Flusher].
func (r *response) Flush() { flush(r.ResponseWriter) }

// Unwrap implements the interface that http.ResponseController uses.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// arrive counts a request. It reports false after Close.
func (p *Proxy) arrive(r *http.Request, w watch) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.active.Add(1)
	p.past = append(p.past, w.request)
	if w.request.Verb == "watch" {
		p.watches[r] = w
	}
	return true
}

func (p *Proxy) leave(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watches, r)
	p.active.Done()
}

// Requests returns the number of requests so far that match selects.
func (p *Proxy) Requests(match Match) int { return len(p.Past(match)) }

// Past returns the requests so far that match selects, as the client sent them, in the
// order of their arrival.
func (p *Proxy) Past(match Match) []Request {
	p.mu.Lock()
	past := slices.Clip(p.past)
	p.mu.Unlock()
	var picked []Request
	for _, req := range past {
		if match.picks(req) {
			picked = append(picked, req)
		}
	}
	return picked
}

// Forget removes the records of all requests so far. Without it, the proxy keeps a record
// of each request until it is closed. OpenWatches still counts open watches.
func (p *Proxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past = nil
}

// OpenWatches returns the number of open watches that match selects. A watch whose
// response comes from a fault is open until that response ends.
func (p *Proxy) OpenWatches(match Match) int { return len(p.open(match)) }

// CutWatches breaks the connections of the open watches that match selects and returns
// their number. They no longer count as open, and what the server sends after CutWatches has returned does not reach the
// clients. These get an unexpected EOF, and may watch again at once.
func (p *Proxy) CutWatches(match Match) int {
	picked := p.open(match)
	p.mu.Lock()
	maps.DeleteFunc(picked, func(r *http.Request, _ watch) bool {
		_, still := p.watches[r]
		delete(p.watches, r)
		return !still
	})
	p.mu.Unlock()
	for _, w := range picked {
		w.cut()
	}
	return len(picked)
}

// open returns the open watches that match selects.
func (p *Proxy) open(match Match) map[*http.Request]watch {
	p.mu.Lock()
	open := maps.Clone(p.watches)
	p.mu.Unlock()
	maps.DeleteFunc(open, func(_ *http.Request, w watch) bool { return !match.picks(w.request) })
	return open
}
