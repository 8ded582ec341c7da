package dynamicinformer_test

import (
	"compress/gzip"
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

// reply is how an API server answers a request.
type reply func(w http.ResponseWriter, r *http.Request)

// arrival is a request as the server got it.
type arrival struct {
	Proto, Method, Path, Query, Body string
	Header                           http.Header
}

// apiServer records what it is asked and answers from a script.
type apiServer struct {
	*httptest.Server

	mu     sync.Mutex
	script []reply // the last one answers all that comes after
	seen   []arrival
}

// serve returns a server that ends with t, and fails t if a goroutine is left then.
func serve(t *testing.T) *apiServer {
	t.Helper()
	s := newAPIServer(t)
	s.Start()
	return s
}

// serveTLS is serve with HTTP/2 over TLS.
func serveTLS(t *testing.T) *apiServer {
	t.Helper()
	s := newAPIServer(t)
	s.EnableHTTP2 = true
	s.StartTLS()
	return s
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	s := &apiServer{}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(func() {
		s.closeIdle(t)
		s.Close()
	})
	return s
}

// closeIdle closes the connections that client-go keeps for this server.
func (s *apiServer) closeIdle(t *testing.T) {
	t.Helper()
	for _, plain := range []bool{false, true} {
		cfg := s.config()
		cfg.DisableCompression = plain
		client, err := rest.HTTPClientFor(cfg)
		if err != nil {
			t.Error(err)
			return
		}
		utilnet.CloseIdleConnectionsFor(client.Transport)
	}
}

// config returns a configuration for the server without a rate limit.
func (s *apiServer) config() *rest.Config {
	cfg := &rest.Config{Host: s.URL, QPS: -1}
	if cert := s.Certificate(); cert != nil {
		cfg.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
	}
	return cfg
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		body = []byte(err.Error())
	}
	s.record(arrival{
		Proto: r.Proto, Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery,
		Body: string(body), Header: r.Header.Clone(),
	})(w, r)
}

// record keeps a and returns the reply to it.
func (s *apiServer) record(a arrival) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, a)
	return s.script[min(len(s.seen), len(s.script))-1]
}

// prepare sets what the next requests are answered with.
func (s *apiServer) prepare(script ...reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script, s.seen = script, nil
}

// arrivals returns the requests since prepare.
func (s *apiServer) arrivals() []arrival {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

// respond answers with one body. A contentType of "" is sent as none.
func respond(status int, contentType, body string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		setContentType(w, contentType)
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

func setContentType(w http.ResponseWriter, contentType string) {
	w.Header()["Content-Type"] = nil // net/http would guess
	if contentType != "" {
		w.Header().Set("Content-Type", contentType)
	}
}

// asJSON answers as API servers do.
func asJSON(body string) reply { return respond(http.StatusOK, "application/json", body) }

// stream sends each chunk by itself and ends.
func stream(chunks ...string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		setContentType(w, "application/json")
		for _, chunk := range chunks {
			_, _ = io.WriteString(w, chunk) // may be long; whoever hung up, knows
			w.(http.Flusher).Flush()
		}
	}
}

// hang sends body and then nothing more, not even the headers if body is empty.
func hang(body string) reply {
	return func(w http.ResponseWriter, r *http.Request) {
		setContentType(w, "application/json")
		if body != "" {
			fmt.Fprint(w, body)
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}
}

// broken sends body and then breaks the connection.
func broken(body string) reply {
	return func(w http.ResponseWriter, _ *http.Request) {
		setContentType(w, "application/json")
		fmt.Fprint(w, body)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// withHeader adds a header to what next answers.
func withHeader(key, value string, next reply) reply {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add(key, value)
		next(w, r)
	}
}

// zipped compresses the chunks if the client accepts that, and leaves out the last
// cut bytes of the result.
func zipped(cut int, chunks ...string) reply {
	return func(w http.ResponseWriter, r *http.Request) {
		setContentType(w, "application/json")
		if r.Header.Get("Accept-Encoding") != "gzip" {
			stream(chunks...)(w, r)
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

// holdBack never writes the last count bytes.
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
