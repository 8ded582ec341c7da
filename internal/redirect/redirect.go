// Package redirect refuses redirects to another server. client-go's transports add the credentials of a rest.Config to
// each request, also to one that follows a redirect: a server that redirects, or a program that answers in its place,
// could send the token to another host. The package does not know Kubernetes.
package redirect

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Refuse returns a copy of client whose requests fail if the response redirects them to another host or port, or from
// HTTPS to HTTP. It follows a redirect from HTTP to HTTPS on the same host, if the port stays or changes from 80 to 443. If client
// has a CheckRedirect of its own, Refuse returns client: its owner has decided.
func Refuse(client *http.Client) *http.Client {
	if client.CheckRedirect != nil {
		return client
	}
	if _, is := client.Transport.(*transport); is {
		return client
	}
	refusing, next := *client, client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	refusing.Transport = &transport{next}
	return &refusing
}

type transport struct{ next http.RoundTripper }

var _ utilnet.RoundTripperWrapper = (*transport)(nil)

// WrappedRoundTripper implements utilnet.RoundTripperWrapper.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip implements http.RoundTripper. The error names only the host: the rest of the address comes from the server.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	if err != nil || !Is(res) {
		return res, err
	}
	to, err := req.URL.Parse(res.Header.Get("Location"))
	if err == nil && sameServer(req.URL, to) {
		return res, nil
	}
	if res.Body != nil { // a transport of the program may return none
		_ = res.Body.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("the server redirects the request to an invalid address (%d)", res.StatusCode)
	}
	return nil, fmt.Errorf("the server redirects the request to %s://%.100s, which would get the credentials (%d)", to.Scheme, to.Host, res.StatusCode)
}

// Is reports whether res is a redirect, which an http.Client follows.
func Is(res *http.Response) bool {
	switch res.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return res.Header.Get("Location") != ""
	}
	return false
}

// sameServer reports whether to is the server of from, or the same one with HTTPS instead of HTTP.
func sameServer(from, to *url.URL) bool {
	toHTTPS := from.Scheme == "http" && to.Scheme == "https"
	old, next := portOf(from), portOf(to)
	return strings.EqualFold(from.Hostname(), to.Hostname()) && (from.Scheme == to.Scheme || toHTTPS) && (old == next || toHTTPS && old == "80" && next == "443")
}

// portOf returns the port of u, which may be the default one.
func portOf(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}
