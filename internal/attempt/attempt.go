// Package attempt lets one who makes a request through client-go see the attempts that
// client-go hides: it tries again by itself, up to ten times, what a server refuses with
// a Retry-After, and what a broken connection ends. It does not know what is asked for.
package attempt

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

type observer struct{}

// Observe returns a context for one request, whose failed attempts that are going to be
// hidden failed is told of: in the goroutine of the request, which waits. The last one is
// not hidden if all of them fail, and told of nevertheless.
func Observe(ctx context.Context, failed func(err error)) context.Context {
	return context.WithValue(ctx, observer{}, failed)
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
	if failed, observed := req.Context().Value(observer{}).(func(error)); observed {
		if hidden := hidden(req, res, err); hidden != nil {
			failed(hidden)
		}
	}
	return res, err
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
