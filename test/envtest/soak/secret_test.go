package soak_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// secret is in each object, in the token of the client, and in bodies of responses that are no objects. Nothing that the library shows may
// have it. It is base64 without padding, which texts may escape.
const secret = "cGxhbnRlZCBzZWNyZXRz"

// leaking are responses that have the secret: errors that are no Status, such as one of a proxy with the request, and a list without a kind.
var leaking = []faultproxy.Fault{
	body(http.StatusInternalServerError, "text/plain", `{"apiVersion":"v1","kind":"Secret","data":{"password":"`+secret+`"}}`),
	body(http.StatusBadGateway, "application/yaml", "kind: Secret\ndata:\n  password: "+secret+"\n"),
	body(http.StatusInternalServerError, "text/plain", `upstream error: {"kind":"Secret","data":{"password":"`+secret+`"}}`),
	body(http.StatusBadGateway, "text/html", `<html><pre>{"kind":"Secret","data":{"password":"`+secret+`"}}</pre></html>`),
	body(http.StatusServiceUnavailable, "text/plain", "data:\n  password: "+secret+"\n"),
	body(http.StatusBadGateway, "text/plain", "denied: password="+secret),
	body(http.StatusBadGateway, "text/plain", "GET / HTTP/1.1\r\nAuthorization: Bearer "+secret+"\r\n"),
	body(http.StatusOK, "application/json", `{"apiVersion":"v1","items":[{"apiVersion":"v1","data":{"password":"`+secret+`"}}]}`),
}

func body(code int, contentType, content string) faultproxy.Fault {
	return faultproxy.Respond(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, content) // the client may have disconnected
	}))
}

// counted is fault, and counts its responses.
func (s *soak) counted(fault faultproxy.Fault) faultproxy.Fault {
	return func(next http.Handler) http.Handler {
		faulty := fault(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.result.leaked.Add(1)
			faulty.ServeHTTP(w, r)
		})
	}
}

// bearer is the transport of the client, whose token is the secret.
type bearer struct{ *http.Transport }

// RoundTrip implements [http.RoundTripper].
func (b bearer) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.Header.Set("Authorization", "Bearer "+secret)
	return b.Transport.RoundTrip(req)
}

// exchange is the transport of the proxy. The server does not know the token of the client.
type exchange struct {
	http.RoundTripper
	secrets atomic.Int64 // tokens of the client
}

// RoundTrip implements [http.RoundTripper].
func (e *exchange) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.HasSuffix(req.Header.Get("Authorization"), secret) {
		e.secrets.Add(1)
	}
	req.Header.Del("Authorization") // the request is the proxy's own
	return e.RoundTripper.RoundTrip(req)
}

// show reports a violation if a text of the program has the secret. Where says what it is.
func (r *result) show(where, format string, values ...any) {
	r.shown.Add(1)
	if text := fmt.Sprintf(format, values...); strings.Contains(text, secret) {
		r.report("%s has the secret: %.2000s", where, text[max(0, strings.Index(text, secret)-200):])
	}
}

// showError shows an error that the program has returned, if there is one.
func (r *result) showError(where string, err error) {
	if err != nil {
		r.errors.Add(1)
		r.show(where, "%v %+[1]v %#[1]v", err)
	}
}

// checkShown shows all that the factory shows. The log is checked line by line.
func (s *soak) checkShown(ctx context.Context) {
	check := s.result.show
	f := s.program.factory
	page := func(query string) {
		w := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(ctx, http.MethodGet, "/?"+query, http.NoBody)
		f.Handler().ServeHTTP(w, request)
		check("the status page "+query, "%s", w.Body)
	}
	families, err := s.registry.Gather()
	if err != nil {
		s.Error(err)
	}
	for _, family := range families {
		check("a metric", "%v", family)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for where, err := range map[string]error{"the error of a wait": f.WaitForSync(ended), "the health check": f.Readyz().Check(nil)} {
		s.result.showError(where, err)
	}
	for _, at := range f.Status() {
		check("the status", "%v %+[1]v %#[1]v", at)
		s.result.showError("the error of the status", at.Err)
	}
	for _, format := range []string{"text", "json", "html"} {
		page("format=" + format)
	}
	for _, l := range s.ledgers {
		check("the explanation", "%v", f.Explain(l.gvr))
		for _, format := range []string{"json", "html"} {
			page(fmt.Sprintf("format=%s&resource=%s.%s.%s", format, l.gvr.Resource, l.gvr.Version, l.gvr.Group))
		}
	}
}
