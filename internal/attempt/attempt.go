// Package attempt lets one who makes a request through client-go see the attempts that
// client-go hides: it tries again by itself, up to ten times, what a server refuses with
// a Retry-After, and what a broken connection ends. It does not know what is asked for.
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

// Observer is told of one request's attempts, in the goroutines that make the request or
// read its answer, which wait. Neither function may be nil.
type Observer struct {
	// Failed is told of each failed attempt that is going to be hidden. The last one is
	// not hidden if all of them fail, and told of nevertheless.
	Failed func(err error)
	// Received is told how many bytes of an answer's body have been read, as they are.
	Received func(bytes int)
}

// Observe returns a context for one request, which o is told of.
func Observe(ctx context.Context, o Observer) context.Context {
	return context.WithValue(ctx, observed{}, &o)
}

// Client returns client with a transport that tells observers.
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
	o, is := req.Context().Value(observed{}).(*Observer)
	if !is {
		return res, err
	}
	if hidden := hidden(req, res, err); hidden != nil {
		o.Failed(hidden)
	}
	if err == nil && res.Body != nil {
		res.Body = &body{res.Body, o}
	}
	return res, err
}

// body is that of an answer that is observed.
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

// WrappedRoundTripper lets client-go find the transport that can close connections.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// CloseIdleConnections is what an http.Client looks for.
func (t *transport) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(t.next) }

// hidden returns what client-go would not let its caller see, or nil.
func hidden(req *http.Request, res *http.Response, err error) error {
	switch {
	case err != nil && req.Context().Err() == nil && (utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err)):
		return err
	case err != nil:
		return nil
	}
	after, wait := retryAfter(res)
	if !wait || res.StatusCode != http.StatusTooManyRequests && res.StatusCode < http.StatusInternalServerError {
		return nil
	}
	status := apierrors.NewGenericServerResponse(res.StatusCode, req.Method, schema.GroupResource{}, "", "", after, true)
	status.ErrStatus.Message = fmt.Sprintf("the server has answered %s, to be tried again after %d s", res.Status, after)
	return status
}

// retryAfter returns the seconds that a response asks to wait, as client-go reads them.
func retryAfter(res *http.Response) (seconds int, asked bool) {
	seconds, err := strconv.Atoi(res.Header.Get("Retry-After"))
	return seconds, err == nil
}
