package source

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// errClosed is returned to a request that comes after its informer has ended.
var errClosed = errors.New("the informer has been stopped")

// ListError is an error of a list, for who tells those from errors of a watch.
type ListError struct{ Err error }

func (e *ListError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *ListError) Unwrap() error { return e.Err }

// failed is called when a request has failed.
func (s *splice) failed(ctx context.Context, t Type, err error) {
	switch {
	case ctx.Err() != nil:
		return // that is why
	case s.changed(t, err): // and so is this
		s.putOff(&s.pace, err)
		return
	case expired(err), apierrors.IsBadRequest(err): // the version is not good
		s.known.expired()
	}
	s.later(ctx, err)
}

// broke is called when a stream has ended with an error. One in what the server sends would
// be sent again: unless it is only in trouble itself, everything is listed.
func (s *splice) broke(ctx context.Context, err error) {
	if !apierrors.IsTooManyRequests(err) {
		s.known.expired()
	}
	s.later(ctx, err)
}

// refused reports whether err, of a watch, is the server's answer to it: a list may be
// answered otherwise. A server that wants to be asked less is not asked for one, nor is one
// that can't be reached.
func refused(err error) bool {
	return !errors.Is(err, errGaveWay) && !apierrors.IsTooManyRequests(err) && !utilnet.IsConnectionRefused(err)
}

// later puts the next try off.
func (s *splice) later(ctx context.Context, err error) {
	s.putOff(&s.pace, err)
	if !expired(err) {
		s.report(ctx, err)
	}
}

// expired reports whether err says that the server does not know the version to go on
// from, any more or yet.
func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.IsTimeout(err) && apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}
