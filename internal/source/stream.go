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
	"github.com/gvrkit/gvrkit/internal/undecodable"
)

// closeTimeout is the maximum wait for a stopped watch to close its channel.
const closeTimeout = time.Second

// ending is the cause of the return of a stream's run.
type ending int

const (
	// over: the stream has ended, or has sent an error and will end.
	over ending = iota
	// altered: other has closed. The stream continues.
	altered
	// unwanted: the receiver wants no more events.
	unwanted
	// unchecked: it is time to compare versions. The stream continues.
	unchecked
	// reviewed: the view of the shard has changed, or a list of gained slots is complete. The stream continues.
	reviewed
	// completed: the initial events are complete. The stream continues.
	completed
)

// continues reports whether the stream does.
func (e ending) continues() bool { return e == altered || e == unchecked || e == reviewed }

// stream is one watch of the client. It passes the events on in order.
type stream struct {
	in       watch.Interface
	requests *requests
	opened   time.Time
	lists    bool  // it is a watch-list
	initial  bool  // its initial events have not ended yet
	failure  error // why they are not complete; nil: they are, or have not ended yet
	silence  *silence
	overdue  *deadline
	release  func()
	// interrupted says that the server could not be reached in an attempt that the client hides.
	interrupted bool
	// elsewhere says that the watch did not begin at the version of the source, since the tweak has changed it: its events may be of
	// earlier versions.
	elsewhere  bool
	hung       bool          // the server has not ended the watch after its timeout
	timeout    time.Duration // after which the server ends the watch; zero: it chooses
	isMerged   bool          // it merges the watches of a set of namespaces
	comparison *comparison
	splice     *splice // follows the view of a shard; nil: there is none
}

// deliver receives an event, and reports whether it wants more.
type deliver func(event watch.Event) bool

// run passes events to pass, until the stream or its initial events end, pass returns false, other closes, or ctx ends. It
// can be called again if the stream continues. The caller closes the stream.
func (s *stream) run(ctx context.Context, pass deliver, other <-chan struct{}) ending {
	for {
		select {
		case event, open := <-s.in.ResultChan():
			if !open {
				s.ended(ctx)
				return over
			}
			if ending := s.receive(ctx, event, pass); ending != altered {
				return ending
			}
		case <-s.silence.elapsed():
			if s.silence.exceeded() {
				s.stalled(ctx)
				return over
			}
		case <-s.overdue.elapsed():
			s.hung = true
			s.fail(ctx, errOverdue)
			return over
		case <-s.comparison.elapsed():
			return unchecked
		case <-s.viewed():
			return reviewed
		case <-s.splice.listed():
			return reviewed
		case <-other:
			return altered
		case <-ctx.Done():
			return unwanted
		}
	}
}

// receive passes event to pass. It returns altered if the stream continues.
func (s *stream) receive(ctx context.Context, event watch.Event, pass deliver) ending {
	var arrived time.Time
	if s.initial {
		arrived = time.Now()
	}
	event = s.inspect(ctx, event)
	switch {
	case s.failure != nil:
		return over
	case !pass(s.own(event)):
		return unwanted
	case event.Type == watch.Error:
		return over
	case arrived.IsZero():
		return altered
	case !s.initial:
		s.silence.stop()
		return completed
	}
	s.silence.received(event.Type, arrived)
	return altered
}

// close stops the client's watch and waits for a limited time until its channel is closed, since
// some watches in tests never close it. If the watch follows the contract of watch.Interface, its
// goroutine has then ended.
func (s *stream) close() {
	defer s.release()
	s.silence.stop()
	s.overdue.stop()
	s.in.Stop()
	timeout := time.NewTimer(closeTimeout)
	defer timeout.Stop()
	for {
		select {
		case _, open := <-s.in.ResultChan():
			if !open {
				return
			}
		case <-timeout.C:
			return
		}
	}
}

// inspect checks event and returns the event to pass on.
func (s *stream) inspect(ctx context.Context, event watch.Event) watch.Event {
	switch event.Type {
	case watch.Error:
		s.fail(ctx, errorOf(event))
	case watch.Bookmark:
		if bad, is := event.Object.(*undecodable.Object); is {
			return s.broken(ctx, fmt.Errorf("%w: %w", ErrDecode, bad.Err))
		}
		if _, isPart := event.Object.(*part); !isPart && !endsInitialEvents(event) {
			s.requests.gate.bookmarks.Store(true)
		}
		if endsInitialEvents(event) {
			s.initial = false
		}
	default:
		err := s.requests.check(event.Object)
		if _, noObject := meta.Accessor(event.Object); noObject != nil { // the reflector would log the whole object
			err = fmt.Errorf("%w: the server sent a %T in a watch event", ErrWrongKind, event.Object)
		}
		if bad, is := event.Object.(*undecodable.Object); is && s.requests.gate.cfg.Strict {
			err = fmt.Errorf("%w: %w", ErrDecode, bad.Err)
		}
		if err != nil {
			return s.broken(ctx, err)
		}
	}
	return event
}

// fail reports err. It is why the initial events are not complete, if they have not ended yet.
func (s *stream) fail(ctx context.Context, err error) {
	s.requests.failed(ctx, VerbWatch, err)
	if s.initial {
		s.failure = err
	}
}

// broken fails with err, and returns the event to pass on.
func (s *stream) broken(ctx context.Context, err error) watch.Event {
	s.fail(ctx, err)
	return errorEvent(err)
}

// ended is called when the server has closed the stream.
func (s *stream) ended(ctx context.Context) {
	if s.initial {
		s.fail(ctx, fmt.Errorf("the watch-list stream ended before its initial events did: %w", ErrBookmarkMissing))
	}
}

// stalled is called when a watch-list stream has not sent an initial event in time.
func (s *stream) stalled(ctx context.Context) {
	s.requests.gate.cfg.Stalls.stalled(s.requests.of, time.Now())
	s.fail(ctx, s.silence.reason())
}

// isDoubtful reports whether a watch that has lasted for that time, and has sent no error, was not ended by its timeout, but ended early or hung:
// the server may have been replaced. Client-go's decoder hides that a connection was lost, unless [IsLost] is true. Client-go's fakes know no timeout.
func (s *stream) isDoubtful(lasted time.Duration) bool {
	return (s.hung || lasted+brief < s.timeout) && !s.requests.gate.cfg.Client.IsWatchListSemanticsUnSupported()
}

// errorOf returns the error of an ERROR event, without response bodies.
func errorOf(event watch.Event) error { return errtext.Clean(apierrors.FromObject(event.Object)) }

func endsInitialEvents(event watch.Event) bool {
	object, err := meta.Accessor(event.Object)
	return err == nil && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}
