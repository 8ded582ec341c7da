package source

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// errClosed is returned to a request after the informer has ended.
var errClosed = errors.New("the informer has been stopped")

// ErrShortWatches is the failure of a server that ends one watch after another soon after it has begun.
var ErrShortWatches = fmt.Errorf("the server ends watches within %v, and sends no error", brief)

// endedSoon is called after a short watch, when the pause before the next one is set. It reports a failure if the pause is longer than a short
// watch: otherwise the source would seem to be up to date meanwhile. Err is ErrShortWatches, or wraps it, for Config.Report.
func (r *requests) endedSoon(ctx context.Context, pace *pace, err error) {
	if pace.last > brief && ctx.Err() == nil {
		r.failed(ctx, VerbWatch, ErrShortWatches)
		r.gate.report(ctx, &StreamError{err})
	}
}

// NamesError is an error of a request for the Namespace objects whose names are those of a set.
type NamesError struct{ Err error }

func (e *NamesError) Error() string { return "the namespaces of the set: " + e.Err.Error() }

// Unwrap returns the error.
func (e *NamesError) Unwrap() error { return e.Err }

// named is called with the result of each request for the Namespace objects of set.
func (g *gate) named(ctx context.Context, set *Namespaces, err error) {
	unknown, changed := set.named(err)
	switch {
	case err == nil && changed:
		g.cfg.Observer.Completed()
	case err == nil || ctx.Err() != nil:
		return
	case unknown:
		g.cfg.Observer.Failed(VerbList, err) // the list that waits for the names ends this failure
	}
	if err != nil && !expired(err) {
		g.report(ctx, &NamesError{err})
	}
}

// ListError is an error of a list, and not of a watch.
type ListError struct{ Err error }

func (e *ListError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *ListError) Unwrap() error { return e.Err }

// StreamError is the error of a watch that has been open.
type StreamError struct{ Err error }

func (e *StreamError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *StreamError) Unwrap() error { return e.Err }

// isOfList reports whether err is the error of a list.
func isOfList(err error) bool {
	_, is := errors.AsType[*ListError](err)
	return is
}

// failed is called when a request has failed.
func (s *resumableWatch) failed(ctx context.Context, t Type, err error) {
	switch {
	case ctx.Err() != nil:
		return // the end of ctx is the cause
	case s.cfg.Polling > 0 && !isOfList(err) && s.polling.refused(t, err): // lists follow
		return
	case s.changed(t, err): // the change of the type is the cause
		s.putOff(&s.pace, err)
		return
	case expired(err), apierrors.IsBadRequest(err): // the resourceVersion is not usable
		s.known.expired()
	}
	s.comparison.doubtful = s.comparison.doubtful || unreachable(err)
	s.later(ctx, err)
}

// broke is called when a stream has ended with an error. If the error is in the data that the server
// sends, another watch would get it again: then everything is listed. An error of the connection, or of the server's own
// state, leads to another watch.
func (s *resumableWatch) broke(ctx context.Context, err error) {
	lost := IsLost(err)
	s.comparison.doubtful = s.comparison.doubtful || lost
	if !lost && !apierrors.IsTooManyRequests(err) {
		s.known.expired()
	}
	s.later(ctx, &StreamError{err})
	s.listNext = lost && s.pace.slow()
}

// IsLost reports whether err is that of a watch whose connection, or HTTP/2 stream, was lost amid the events. client-go reports it as an event
// that can't be decoded, of which only the text says what it is. The loss of a connection of HTTP/1.1 is the end of the watch, without an error.
func IsLost(err error) bool {
	failed, is := errors.AsType[*apierrors.StatusError](err)
	if !is || failed.ErrStatus.Details == nil {
		return false
	}
	for _, cause := range failed.ErrStatus.Details.Causes {
		text, found := strings.CutPrefix(cause.Message, "unable to decode an event from the watch stream: ")
		if found && slices.ContainsFunc(lostWords, func(words string) bool { return strings.HasPrefix(text, words) }) {
			return true
		}
	}
	return false
}

// lostWords are how the errors of reads begin: those of HTTP/2, of its streams and connections, of TCP and of TLS.
var lostWords = []string{"http2: ", "stream error: ", "connection error: ", "read tcp ", "remote error: tls: ", "local error: tls: "}

// refused reports whether the server has rejected a watch with err, so that a list may succeed. It
// reports false for a server that throttles requests, and for one that can't be reached.
func refused(err error) bool {
	return !errors.Is(err, errGaveWay) && !apierrors.IsTooManyRequests(err) && !utilnet.IsConnectionRefused(err)
}

// later delays the next attempt.
func (s *resumableWatch) later(ctx context.Context, err error) {
	if !s.putOff(&s.pace, err) {
		s.report(ctx, err)
	}
}

// expired reports whether err says that the server no longer has the resourceVersion to continue
// from, or does not have it yet.
func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.IsTimeout(err) && apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}
