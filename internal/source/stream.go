package source

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/errtext"
)

// closeTimeout is how long a watch that has been stopped gets to close its channel.
const closeTimeout = time.Second

// ending is why a stream's run has returned.
type ending int

const (
	// over: the stream has ended, or has sent an error and will.
	over ending = iota
	// altered: something else has happened. The stream goes on.
	altered
	// unwanted: nobody takes its events any more.
	unwanted
)

// stream is one watch of the client's. It passes the events on, in order and unchanged
// but for errors among a watch-list's initial events, which it makes such that a LIST
// follows.
type stream struct {
	in       watch.Interface
	requests *requests
	initial  bool // the initial events have not ended yet
	silence  *silence
	overdue  *deadline
	release  func()
}

// deliver takes an event, and reports whether it wants more. Initial ones come before
// the bookmark that ends a list.
type deliver func(event watch.Event, initial bool) bool

// run passes events to to, until the stream ends, to does not want more, other closes, or
// ctx ends. It can be called again if the stream goes on. The caller closes the stream.
func (s *stream) run(ctx context.Context, to deliver, other <-chan struct{}) ending {
	for {
		select {
		case event, open := <-s.in.ResultChan():
			if !open {
				s.ended(ctx, to)
				return over
			}
			var arrived time.Time
			if s.initial {
				arrived = time.Now()
			}
			event, initial := s.inspect(ctx, event)
			switch {
			case !to(event, initial):
				return unwanted
			case event.Type == watch.Error:
				return over
			}
			if !arrived.IsZero() {
				s.silence.heard(event.Type, s.initial, time.Since(arrived))
			}
		case <-s.silence.elapsed():
			s.stalled(ctx, to)
			return over
		case <-s.overdue.elapsed():
			s.requests.failed(ctx, VerbWatch, errOverdue)
			if s.initial {
				to(errorEvent(errOverdue), true)
			}
			return over
		case <-other:
			return altered
		case <-ctx.Done():
			return unwanted
		}
	}
}

// close stops the client's watch and waits for it to close its channel, which some
// that tests make never do: not for long. By then its goroutine has ended, if it does
// so as watch.Interface asks.
func (s *stream) close() {
	defer s.release()
	s.silence.stop()
	s.overdue.stop()
	s.in.Stop()
	enough := time.NewTimer(closeTimeout)
	defer enough.Stop()
	for {
		select {
		case _, open := <-s.in.ResultChan():
			if !open {
				return
			}
		case <-enough.C:
			return
		}
	}
}

// inspect looks at event on its way and returns what to pass on, and whether it is among
// the initial ones.
func (s *stream) inspect(ctx context.Context, event watch.Event) (watch.Event, bool) {
	initial := s.initial
	switch event.Type {
	case watch.Error:
		return s.broken(ctx, errorOf(event), event)
	case watch.Bookmark:
		if initial && endsInitialEvents(event) {
			s.initial, initial = false, false
			s.requests.observer.Succeeded(VerbList)
			s.requests.observer.Succeeded(VerbWatch)
		}
	default:
		err := checkKind(s.requests.of.Kind, event.Object)
		if _, noObject := meta.Accessor(event.Object); noObject != nil { // the reflector would log it whole
			err = fmt.Errorf("%w: the server sent a %T in a watch event", ErrWrongKind, event.Object)
		}
		if err != nil {
			return s.broken(ctx, err, errorEvent(err))
		}
	}
	return event, initial
}

// broken returns what to pass on for err. Among initial events it is plain, and the end
// that follows is no news.
func (s *stream) broken(ctx context.Context, err error, event watch.Event) (watch.Event, bool) {
	s.requests.failed(ctx, VerbWatch, err)
	if !s.initial {
		return event, false
	}
	s.initial = false
	s.requests.throttled.note(err)
	return errorEvent(err), true
}

// ended is called when the server has closed the stream. A reflector that waits
// for initial events would ask for them again, at once and for as long as that
// happens: the error makes it LIST.
func (s *stream) ended(ctx context.Context, to deliver) {
	if !s.initial {
		return
	}
	err := fmt.Errorf("the watch-list stream ended before its initial events did: %w", ErrBookmarkMissing)
	s.requests.failed(ctx, VerbWatch, err)
	to(errorEvent(err), true)
}

// stalled is called when a watch-list stream has sent no initial event for too long.
func (s *stream) stalled(ctx context.Context, to deliver) {
	s.requests.stalls.stalled(s.requests.of, time.Now())
	err := s.silence.reason()
	s.requests.failed(ctx, VerbWatch, err)
	to(errorEvent(err), true)
}

// errorOf returns the error that an ERROR event stands for, fit to be kept.
func errorOf(event watch.Event) error { return errtext.Clean(apierrors.FromObject(event.Object)) }

func endsInitialEvents(event watch.Event) bool {
	object, err := meta.Accessor(event.Object)
	return err == nil && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}
