// Package attempt reports attempts of requests that client-go hides. client-go retries a request
// up to ten times if the response has a Retry-After header, the connection breaks, or a watch times out, and
// returns only the last result. Of a request, the package only knows whether it is a watch.
package attempt

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

type observed struct{}

// Observer gets the attempts of one request. The goroutines that send the request or read its
// response call the functions and wait for them. Neither function may be nil.
type Observer struct {
	// Failed is called for each failed attempt that client-go may hide. If all attempts fail, client-go
	// returns the last error or, for a watch, a watch without events. Failed is also called for the last attempt.
	Failed func(err error)
	// Received is called with the number of bytes that were read from a response body.
	Received func(bytes int)
}

// observation is an observer, and the end of the context of the caller. The context of an attempt also ends with the timeout of the
// HTTP client, which is a failure.
type observation struct {
	Observer
	ended func() error
}

// Observe returns a context for one request that reports to o, until ctx ends.
func Observe(ctx context.Context, o Observer) context.Context {
	return context.WithValue(ctx, observed{}, &observation{o, ctx.Err})
}

// Client returns a copy of client with a transport that reports to observers.
func Client(client *http.Client) *http.Client {
	observed := *client
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	observed.Transport = &transport{next}
	return &observed
}

type transport struct{ next http.RoundTripper }

var _ utilnet.RoundTripperWrapper = (*transport)(nil)

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := t.next.RoundTrip(req)
	o, is := req.Context().Value(observed{}).(*observation)
	if !is {
		return res, err
	}
	if hidden := hidden(req, res, err); hidden != nil && o.ended() == nil {
		o.Failed(hidden)
	}
	if err == nil && res.Body != nil {
		res.Body = &body{res.Body, &o.Observer}
	}
	return res, err
}

// body is the body of a response to an observed request.
type body struct {
	io.ReadCloser
	observer *Observer
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.observer.Received(n)
	}
	return n, err
}

// WrappedRoundTripper returns the next transport: client-go uses it to close connections.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// CloseIdleConnections is called by http.Client.
func (t *transport) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.next) }

// hidden returns the error of an attempt that client-go would hide, or nil.
func hidden(req *http.Request, res *http.Response, err error) error {
	switch {
	case err == nil:
	case !hides(req, err):
		return nil
	case timedOut(req):
		return context.DeadlineExceeded
	default:
		return err
	}
	after, wait := retryAfter(res)
	if !wait || res.StatusCode != http.StatusTooManyRequests && res.StatusCode < http.StatusInternalServerError {
		return nil
	}
	status := apierrors.NewGenericServerResponse(res.StatusCode, req.Method, schema.GroupResource{}, "", "", after, true)
	status.ErrStatus.Message = fmt.Sprintf("the server has responded with %s and Retry-After: %d s", res.Status, after)
	return status
}

// hides reports whether client-go retries req after err.
func hides(req *http.Request, err error) bool {
	if req.URL.Query().Get("watch") != "" {
		return utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err) || timedOut(req)
	}
	return utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// timedOut reports whether the timeout of the HTTP client has ended req. The error of an http.Transport may then be that the
// request was canceled, which the HTTP client replaces.
func timedOut(req *http.Request) bool {
	select {
	case <-req.Cancel: //nolint:staticcheck // http.Client closes it
		return true
	default:
		return false
	}
}

// retryAfter returns the seconds of a response's Retry-After header, as client-go reads them.
func retryAfter(res *http.Response) (seconds int, asked bool) {
	seconds, err := strconv.Atoi(res.Header.Get("Retry-After"))
	return seconds, err == nil
}
