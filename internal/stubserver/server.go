// Package stubserver is an HTTP server for tests, which responds with a script and records requests.
// Of Kubernetes, it has only a rest.Config for the server.
package stubserver

import (
	"compress/gzip"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"go.uber.org/goleak"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
)

// Reply responds to a request.
type Reply func(w http.ResponseWriter, r *http.Request)

// Arrival is a request that the server has received.
type Arrival struct {
	Proto, Method, Path, Query, Body string
	Header                           http.Header
}

// Server records requests and responds with a script.
type Server struct {
	*httptest.Server

	mu     sync.Mutex
	script []Reply // the last reply is for all later requests
	seen   []Arrival
}

// New returns a server that runs until the end of t. It fails t if a goroutine is left then.
func New(t *testing.T) *Server {
	t.Helper()
	s := newServer(t)
	s.Start()
	return s
}

// NewTLS is New with HTTP/2 over TLS.
func NewTLS(t *testing.T) *Server {
	t.Helper()
	s := newServer(t)
	s.EnableHTTP2 = true
	s.StartTLS()
	return s
}

// NewMutualTLS is NewTLS for clients that have a certificate. The handshake of TLS 1.2 tells others why it fails; after that of TLS 1.3, a client
// may find the connection closed before it reads why.
func NewMutualTLS(t *testing.T) *Server {
	t.Helper()
	s := newServer(t)
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12}
	s.StartTLS()
	return s
}

func newServer(t *testing.T) *Server {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	s := &Server{}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(func() {
		s.closeIdle(t)
		s.Close()
	})
	return s
}

// closeIdle closes client-go's idle connections to this server.
func (s *Server) closeIdle(t *testing.T) {
	t.Helper()
	for _, plain := range []bool{false, true} {
		cfg := s.RESTConfig()
		cfg.DisableCompression = plain
		client, err := rest.HTTPClientFor(cfg)
		if err != nil {
			t.Error(err)
			return
		}
		utilnet.CloseIdleConnectionsFor(client.Transport)
	}
}

// RESTConfig returns a configuration for the server without a rate limit.
func (s *Server) RESTConfig() *rest.Config {
	cfg := &rest.Config{Host: s.URL, QPS: -1}
	if cert := s.Certificate(); cert != nil {
		cfg.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
	}
	return cfg
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		body = []byte(err.Error())
	}
	s.record(Arrival{
		Proto: r.Proto, Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery,
		Body: string(body), Header: r.Header.Clone(),
	})(w, r)
}

// record records a and returns the reply to it.
func (s *Server) record(a Arrival) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, a)
	return s.script[min(len(s.seen), len(s.script))-1]
}

// Prepare sets the replies to the next requests.
func (s *Server) Prepare(script ...Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script, s.seen = script, nil
}

// Arrivals returns the requests since Prepare.
func (s *Server) Arrivals() []Arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// Respond responds with body. If contentType is empty, the response has no content type.
func Respond(status int, contentType, body string) Reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		SetContentType(w, contentType)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// SetContentType sets the content type of a response; "" means none.
func SetContentType(w http.ResponseWriter, contentType string) {
	w.Header()["Content-Type"] = nil // net/http would guess
	if contentType != "" {
		w.Header().Set("Content-Type", contentType)
	}
}

// JSON responds with a JSON body, as API servers do.
func JSON(body string) Reply { return Respond(http.StatusOK, "application/json", body) }

// Stream sends and flushes each chunk, and ends.
func Stream(chunks ...string) Reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		SetContentType(w, "application/json")
		for _, chunk := range chunks {
			_, _ = io.WriteString(w, chunk) // it fails after the client has disconnected
			w.(http.Flusher).Flush()
		}
	}
}

// Hang sends body, and does not end the response. If body is empty, it does not send headers.
func Hang(body string) Reply {
	return func(w http.ResponseWriter, r *http.Request) {
		SetContentType(w, "application/json")
		if body != "" {
			fmt.Fprint(w, body)
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}
}

// Break sends body and then breaks the connection.
func Break(body string) Reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		SetContentType(w, "application/json")
		fmt.Fprint(w, body)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// WithHeader adds a header to the response of next.
func WithHeader(key, value string, next Reply) Reply {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add(key, value)
		next(w, r)
	}
}

// Gzip compresses the chunks if the client accepts that, and omits the last cut bytes of the
// result.
func Gzip(cut int, chunks ...string) Reply {
	return func(w http.ResponseWriter, r *http.Request) {
		SetContentType(w, "application/json")
		if r.Header.Get("Accept-Encoding") != "gzip" {
			Stream(chunks...)(w, r)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		held := &holdBack{Writer: w, count: cut}
		zip := gzip.NewWriter(held)
		for _, chunk := range chunks {
			fmt.Fprint(zip, chunk)
			if err := zip.Flush(); err != nil {
				panic(err)
			}
			w.(http.Flusher).Flush()
		}
		if err := zip.Close(); err != nil {
			panic(err)
		}
	}
}

// holdBack is a writer that does not pass the last count bytes on.
type holdBack struct {
	io.Writer
	count int
	held  []byte
}

func (h *holdBack) Write(p []byte) (int, error) {
	h.held = append(h.held, p...)
	ready := max(0, len(h.held)-h.count)
	if _, err := h.Writer.Write(h.held[:ready]); err != nil {
		return 0, err
	}
	h.held = h.held[ready:]
	return len(p), nil
}
