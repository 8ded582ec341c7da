package source

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// closeTimeout is how long a watch that has been stopped gets to close its channel.
const closeTimeout = time.Second

// stream passes the events of one watch on to the reflector, in order and
// unchanged but for errors among a watch-list's initial events, which it makes
// such that a LIST follows. It is the reflector's watch.Interface.
type stream struct {
	in      watch.Interface
	out     chan watch.Event
	stopped chan struct{}
	stop    sync.Once

	requests *requests
	initial  bool // the initial events have not ended yet; owned by run
}

func newStream(in watch.Interface, initial bool, r *requests) *stream {
	return &stream{
		in:       in,
		out:      make(chan watch.Event),
		stopped:  make(chan struct{}),
		initial:  initial,
		requests: r,
	}
}

// ResultChan returns the channel of events. It is closed at the end.
func (s *stream) ResultChan() <-chan watch.Event { return s.out }

// Stop ends the stream. It does not wait.
func (s *stream) Stop() { s.stop.Do(func() { close(s.stopped) }) }

// run ends when the watch does, when the reflector stops the stream, or with ctx;
// by then the client's watch has been stopped, and its goroutine has ended if it
// does so as watch.Interface asks.
func (s *stream) run(ctx context.Context) {
	defer close(s.out)
	defer s.end()
	silence := newSilence(s.initial)
	defer silence.stop()
	for {
		select {
		case event, open := <-s.in.ResultChan():
			if !open {
				s.ended(ctx)
				return
			}
			arrived := time.Now()
			if !s.send(ctx, s.inspect(ctx, event)) {
				return
			}
			silence.heard(event.Type, s.initial, time.Since(arrived))
		case <-silence.elapsed():
			s.stalled(ctx)
			return
		case <-s.stopped:
			return
		case <-ctx.Done():
			return
		}
	}
}

// end stops the client's watch and waits for it to close its channel, which some
// that tests make never do: not for long.
func (s *stream) end() {
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

// send hands event to the reflector and reports whether it took it.
func (s *stream) send(ctx context.Context, event watch.Event) bool {
	select {
	case s.out <- event:
		return true
	case <-s.stopped:
	case <-ctx.Done():
	}
	return false
}

// inspect looks at event on its way and returns what to pass on.
func (s *stream) inspect(ctx context.Context, event watch.Event) watch.Event {
	switch event.Type {
	case watch.Error:
		err := apierrors.FromObject(event.Object)
		s.requests.failed(ctx, VerbWatch, err)
		if s.initial {
			s.initial = false // it ends with this; the close that follows is no news
			return errorEvent(err)
		}
	case watch.Bookmark:
		if s.initial && endsInitialEvents(event) {
			s.initial = false
			s.requests.observer.Succeeded(VerbList)
			s.requests.observer.Succeeded(VerbWatch)
		}
	}
	return event
}

// ended is called when the server has closed the stream. A reflector that waits
// for initial events would ask for them again, at once and for as long as that
// happens: the error makes it LIST.
func (s *stream) ended(ctx context.Context) {
	if !s.initial {
		return
	}
	err := fmt.Errorf("the watch-list stream ended before its initial events did: %w", ErrBookmarkMissing)
	s.requests.failed(ctx, VerbWatch, err)
	s.send(ctx, errorEvent(err))
}

// stalled is called when a watch-list stream has sent no initial event for too long.
func (s *stream) stalled(ctx context.Context) {
	s.requests.watchList.stalled(time.Now())
	err := fmt.Errorf("no initial event for %v: %w", stallAfter, ErrBookmarkMissing)
	s.requests.failed(ctx, VerbWatch, err)
	s.send(ctx, errorEvent(err))
}

func endsInitialEvents(event watch.Event) bool {
	object, err := meta.Accessor(event.Object)
	return err == nil && object.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}
