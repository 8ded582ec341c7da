package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
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
	watches map[*http.Request]Request // open
	answers []answer
}

type answer struct {
	match   Match
	handler http.Handler
}

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
		watches: map[*http.Request]Request{},
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

// serve counts a request and passes it on, or answers it as a test wants.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	handler := p.arrive(r, ParseRequest(r))
	if handler == nil {
		panic(http.ErrAbortHandler) // closed; the connection is too
	}
	defer p.leave(r)
	handler.ServeHTTP(w, r)
}

// arrive counts a request and returns who serves it; nil after Close.
func (p *Proxy) arrive(r *http.Request, req Request) http.Handler {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.active.Add(1)
	p.past = append(p.past, req)
	if req.Verb == "watch" {
		p.watches[r] = req
	}
	answers := p.answers
	p.mu.Unlock()
	for _, a := range answers {
		if a.match(req) {
			return a.handler
		}
	}
	return p.forward
}

func (p *Proxy) leave(r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.watches, r)
	p.active.Done()
}

// Answer lets handler serve the requests that match picks, in place of the
// server. Of several answers that match the one given first counts. They are
// counted like all others.
func (p *Proxy) Answer(match Match, handler http.Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = append(slices.Clip(p.answers), answer{match, handler}) // arrive reads the old one
}

// Heal drops all answers: every request reaches the server again.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers = nil
}

// Requests returns how many requests that match picks have arrived so far.
func (p *Proxy) Requests(match Match) int {
	p.mu.Lock()
	past := slices.Clip(p.past)
	p.mu.Unlock()
	count := 0
	for _, req := range past {
		if match(req) {
			count++
		}
	}
	return count
}

// OpenWatches returns how many watches that match picks are open.
func (p *Proxy) OpenWatches(match Match) int {
	p.mu.Lock()
	open := make([]Request, 0, len(p.watches))
	for _, req := range p.watches {
		open = append(open, req)
	}
	p.mu.Unlock()
	count := 0
	for _, req := range open {
		if match(req) {
			count++
		}
	}
	return count
}

// Status answers with an HTTP status code and a Kubernetes Status that has the
// given reason and message.
func Status(code int, reason, message string) http.Handler {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"code":%d}`+"\n", message, reason, code)
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body) // the client has gone: nobody is left to tell
	})
}
