package inprocess

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// requestGrace is the time for requests in progress after the server has begun to stop.
	// It does not apply to watches, which do not end by themselves.
	requestGrace = time.Second
	// connectionGrace is the time for clients to read the end of their responses and to
	// close their connections.
	connectionGrace = 100 * time.Millisecond
	// endPoll is the interval between two checks of the remaining requests or connections.
	endPoll = 2 * time.Millisecond
)

// clients records the requests and connections of a server, so that they can be ended.
// Without it, the API server would wait a minute for watches, and a second for each idle
// HTTP/2 connection. It is safe for concurrent use.
type clients struct {
	mu       sync.Mutex
	requests map[*request]struct{}
	conns    map[*conn]struct{}
	stopping bool // no request may begin
	closing  bool // no connection may be opened
}

// request is a request that is being served.
type request struct {
	cancel      context.CancelFunc
	longRunning bool
}

func newClients() *clients {
	return &clients{requests: map[*request]struct{}{}, conns: map[*conn]struct{}{}}
}

// handler returns a handler that calls next, and records the requests in c. A request that
// arrives after end gets 503.
func (c *clients) handler(next http.Handler, longRunning func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithCancel(req.Context())
		defer cancel()
		r := &request{cancel: cancel, longRunning: longRunning(req)}
		if !c.begin(r) {
			w.Header().Set("Retry-After", "1")
			http.Error(w, "the API server is stopping", http.StatusServiceUnavailable)
			return
		}
		defer c.done(r)
		next.ServeHTTP(w, req.WithContext(ctx))
	})
}

func (c *clients) begin(r *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stopping {
		c.requests[r] = struct{}{}
	}
	return !c.stopping
}

func (c *clients) done(r *request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.requests, r)
}

// listener returns a listener that records the connections of inner in c.
func (c *clients) listener(inner net.Listener) net.Listener {
	return &listener{Listener: inner, clients: c}
}

// end ends watches at once and other requests after a grace period, and then closes all
// connections. It returns when all connections are closed; the handler of a cancelled
// request may still run.
func (c *clients) end() {
	c.mu.Lock()
	c.stopping = true
	c.mu.Unlock()
	c.cancel(func(r *request) bool { return r.longRunning })
	if !waitUntil(requestGrace, c.noRequests) {
		c.cancel(func(*request) bool { return true })
	}
	waitUntil(connectionGrace, c.noConns)
	c.closeConns()
}

// cancel cancels the requests that match.
func (c *clients) cancel(match func(*request) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.requests {
		if match(r) {
			r.cancel()
		}
	}
}

func (c *clients) noRequests() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.requests) == 0
}

func (c *clients) noConns() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.conns) == 0
}

// closeConns closes all connections, also those that are accepted later.
func (c *clients) closeConns() {
	c.mu.Lock()
	c.closing = true
	left := make([]*conn, 0, len(c.conns))
	for open := range c.conns {
		left = append(left, open)
	}
	c.mu.Unlock()
	for _, open := range left {
		_ = open.Close() // its client may have closed it
	}
}

// waitUntil waits until done returns true, but at most for limit. It reports whether done
// returned true.
func waitUntil(limit time.Duration, done func() bool) bool {
	tick := time.NewTicker(endPoll)
	defer tick.Stop()
	for deadline := time.Now().Add(limit); !done(); <-tick.C {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

type listener struct {
	net.Listener
	clients *clients
}

func (l *listener) Accept() (net.Conn, error) {
	inner, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, clients: l.clients}
	if !l.clients.opened(c) {
		_ = inner.Close() // the server gets an error when it reads
	}
	return c, nil
}

// opened records a connection. It returns false after closeConns.
func (c *clients) opened(open *conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closing {
		c.conns[open] = struct{}{}
	}
	return !c.closing
}

func (c *clients) closed(open *conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.conns, open)
}

// conn is a connection that removes itself from clients when it is closed.
type conn struct {
	net.Conn
	clients *clients
}

func (c *conn) Close() error {
	c.clients.closed(c)
	return c.Conn.Close()
}
