package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
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
	closed  bool       // nothing is added to active any more
	past    []Request
	watches map[*http.Request]watch // open
	faults  []*injection            // replaced, never changed: serving reads it without mu
	last    int                     // id of the newest injection
}

type watch struct {
	request Request
	cut     func()
}

// errCut is why a watch that CutWatches ended has ended.
var errCut = errors.New("faultproxy: watch cut")

// Start starts a proxy to target, the URL of an API server, that sends requests
// through transport, which has the credentials and certificates. Nil means
// http.DefaultTransport. Close ends it.
func Start(target string, transport http.RoundTripper) (*Proxy, error) {
	to, err := url.Parse(target)
	if err != nil {
		return nil, fmt.Errorf("faultproxy: target: %w", err)
	}
	if to.Scheme == "" || to.Host == "" {
		return nil, fmt.Errorf("faultproxy: target %q is not a URL with scheme and host", target)
	}
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	quiet := log.New(io.Discard, "", 0) // clients that go away are not news
	p := &Proxy{
		address: "http://" + listener.Addr().String(),
		done:    make(chan struct{}),
		watches: map[*http.Request]watch{},
		forward: &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
			Transport: transport,
			ErrorLog:  quiet,
		},
	}
	serving, cut := context.WithCancel(context.Background()) //nolint:forbidigo // of all requests, until Close
	p.cut = cut
	p.server = &http.Server{
		Handler:     http.HandlerFunc(p.serve),
		BaseContext: func(net.Listener) context.Context { return serving },
		ErrorLog:    quiet,
	}
	go func() {
		defer close(p.done)
		_ = p.server.Serve(listener) // until Close
	}()
	return p, nil
}

// URL is where the proxy listens.
func (p *Proxy) URL() string { return p.address }

// Close cuts all connections and waits until nothing of the proxy runs any more. The
// idle connections of the transport to the server are its owner's.
func (p *Proxy) Close() error {
	err := p.server.Close()
	p.cut() // also for handlers that have not read their request: net/http leaves them theirs
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

// serve counts a request and passes it to the faults, and by them to the server.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	ctx, cut := context.WithCancelCause(r.Context())
	defer cut(nil)
	if !p.arrive(r, watch{ParseRequest(r), func() { cut(errCut) }}) {
		panic(http.ErrAbortHandler) // closed; the connection is too
	}
	defer p.leave(r)
	p.following(nil).ServeHTTP(w, r.WithContext(ctx))
	if errors.Is(context.Cause(ctx), errCut) {
		panic(http.ErrAbortHandler) // a handler that returned in good order must not make it a clean end
	}
}

// arrive counts a request; it says no after Close.
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

// Requests returns how many requests that match picks have arrived so far.
func (p *Proxy) Requests(match Match) int { return len(p.Past(match)) }

// Past returns the requests that match picks in the order in which they have
// arrived, as the client made them.
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

// Forget forgets the requests that have arrived so far, which are kept otherwise as long as
// the proxy is: a test that makes many of them need not keep them all. Watches that are open
// are still counted as such.
func (p *Proxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.past = nil
}

// OpenWatches returns how many watches that match picks are open. A watch that
// a fault answers is open until that answer ends.
func (p *Proxy) OpenWatches(match Match) int { return len(p.open(match)) }

// CutWatches breaks the connections of the open watches that match picks and
// returns how many. From then on they do not count as open. The clients see a
// stream that breaks off, not one that ends; they may watch again at once.
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

// open returns the open watches that match picks.
func (p *Proxy) open(match Match) map[*http.Request]watch {
	p.mu.Lock()
	open := maps.Clone(p.watches)
	p.mu.Unlock()
	maps.DeleteFunc(open, func(_ *http.Request, w watch) bool { return !match.picks(w.request) })
	return open
}
