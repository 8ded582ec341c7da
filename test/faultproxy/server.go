package faultproxy

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// Server returns a fault that sends requests to another API server instead: several servers
// have one address then, as behind a load balancer. Target is its URL, and transport has the
// credentials and certificates; nil is http.DefaultTransport. With Alternate, servers
// alternate by request, and with AlternateConnections by connection. If target is not a URL
// with scheme and host, requests get 500.
func Server(target string, transport http.RoundTripper) Fault {
	to, err := url.Parse(target)
	if err == nil && (to.Scheme == "" || to.Host == "") {
		err = fmt.Errorf("%q has no scheme or no host", target)
	}
	if err != nil {
		return Respond(newStatus(http.StatusInternalServerError, "InternalError", "faultproxy: target: "+err.Error()))
	}
	return Respond(forwarding(to, transport))
}

// forwarding returns a handler that sends requests to a server.
func forwarding(to *url.URL, transport http.RoundTripper) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		Transport: transport,
		ErrorLog:  log.New(io.Discard, "", 0), // clients that disconnect are not logged
	}
}
