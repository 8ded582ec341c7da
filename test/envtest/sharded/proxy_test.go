package sharded_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"

	"k8s.io/client-go/rest"
)

// upstream is the API server behind proxies.
type upstream struct {
	url       *url.URL
	transport http.RoundTripper
}

func newUpstream(cfg *rest.Config) (*upstream, error) {
	to, err := url.Parse(cfg.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(cfg)
	return &upstream{to, transport}, err
}

// proxy is between one member and the API server. It counts requests, and the bytes of their responses, which are not compressed.
type proxy struct {
	server *httptest.Server

	mu     sync.Mutex
	counts traffic
}

// traffic is what a proxy has counted for IPAMBlocks, and for Leases.
type traffic struct{ lists, watches, bytes, leases, leaseBytes int }

func (t traffic) minus(other traffic) traffic {
	return traffic{t.lists - other.lists, t.watches - other.watches, t.bytes - other.bytes, t.leases - other.leases, t.leaseBytes - other.leaseBytes}
}

func (t traffic) String() string {
	return fmt.Sprintf("%d lists, %d watches, %d bytes; %d requests for Leases, %d bytes", t.lists, t.watches, t.bytes, t.leases, t.leaseBytes)
}

func startProxy(to *upstream) *proxy {
	p := &proxy{}
	reverse := &httputil.ReverseProxy{Transport: to.transport, FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to.url)
		r.Out.Header.Set("Accept-Encoding", "identity") // compressed bytes depend on what the objects have in common
	}}
	reverse.ModifyResponse = p.count
	reverse.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) } // closes the connection
	p.server = httptest.NewServer(reverse)
	return p
}

func (p *proxy) url() string { return p.server.URL }

func (p *proxy) close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// traffic returns what has been counted.
func (p *proxy) traffic() traffic {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

func (p *proxy) add(change func(*traffic)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.counts)
}

// count counts a response.
func (p *proxy) count(response *http.Response) error {
	path, query := response.Request.URL.Path, response.Request.URL.Query()
	switch {
	case strings.Contains(path, "/leases"):
		p.add(func(t *traffic) { t.leases++ })
		response.Body = &countedBody{response.Body, func(n int) { p.add(func(t *traffic) { t.leaseBytes += n }) }}
	case strings.HasSuffix(path, "/"+blocks.Resource):
		if query.Get("watch") == "true" && query.Get("sendInitialEvents") != "true" {
			p.add(func(t *traffic) { t.watches++ })
		} else {
			p.add(func(t *traffic) { t.lists++ })
		}
		response.Body = &countedBody{response.Body, func(n int) { p.add(func(t *traffic) { t.bytes += n }) }}
	}
	return nil
}

type countedBody struct {
	io.ReadCloser
	count func(n int)
}

// Read implements io.Reader.
func (b *countedBody) Read(content []byte) (int, error) {
	n, err := b.ReadCloser.Read(content)
	b.count(n)
	return n, err
}
