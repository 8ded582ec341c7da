package source

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Watch-list (KEP-3157) is a watch that begins with the list. The reflector has
// two weaknesses with it, which this file works around by answering in a way that
// makes it LIST instead: it waits without end for the bookmark that ends the
// initial events (kubernetes#140890), and on 429, refused connections and expired
// versions it retries without looking at its context.
const (
	// stallAfter is how long a watch-list stream may send no initial event,
	// counted from the last one, before the bookmark is given up.
	stallAfter = 10 * time.Second
	// answerAfter is how long a watch-list request may be without any answer: longer,
	// since the client may have a queue of its own.
	answerAfter = time.Minute
	// A watch-list may also take no longer than streamAfter, and perObject for each object.
	// A server that ignores the request for initial events opens an ordinary watch: objects
	// that are created while it lasts can't be told from initial ones. A watch-list whose
	// objects come more slowly is given up, too, and its objects are listed.
	streamAfter = time.Minute
	perObject   = 50 * time.Millisecond
	// stallMemory is how long watch-list is not tried again after a stall.
	stallMemory = time.Hour
)

var (
	// ErrBookmarkMissing says that a watch-list stream did not send the bookmark
	// that ends its initial events.
	ErrBookmarkMissing = errors.New("the initial-events-end bookmark is missing")

	errNotTried   = errors.New("watch-list is not tried: its bookmark was missing less than an hour ago")
	errAggregated = errors.New("watch-list is not tried: another server is behind the API server")
	errNotWanted  = errors.New("watch-list is not wanted")
	errTweaked    = errors.New("watch-list is not tried: TweakListOptions removes sendInitialEvents")
	errReplaced   = errors.New("the type has gone or changed before its initial events had ended")
)

// plain returns err's text as an error that the reflector takes for none of
// those it retries by itself: a LIST follows at once, and meets the same fault
// on a path that honours its context.
func plain(err error) error { return errors.New(err.Error()) }

// throttled is the pace of a watch-list that the server has refused, as long as it wants
// to be left alone: the LIST that follows has to wait, too.
type throttled struct{ pace atomic.Pointer[pace] }

// note keeps what the server asks for with err. One that has not come to a version yet asks
// for a pause in which it may; a list does not need the version.
func (t *throttled) note(err error) {
	var p pace
	if p.failed(time.Now(), err); p.firm && !apierrors.IsTimeout(err) {
		t.pace.Store(&p)
	}
}

// take returns the pace at which to begin.
func (t *throttled) take() pace {
	if p := t.pace.Swap(nil); p != nil {
		return *p
	}
	return pace{}
}

// errorEvent returns an ERROR event that has the same effect as plain.
func errorEvent(err error) watch.Event {
	return watch.Event{Type: watch.Error, Object: &metav1.Status{
		Status:  metav1.StatusFailure,
		Reason:  metav1.StatusReasonUnknown,
		Message: err.Error(),
	}}
}

// Stalls remembers which types' watch-lists have stalled, for all sources that are given
// it: a type created again is another. It is safe for concurrent use; its zero value
// remembers nothing.
type Stalls struct {
	mu    sync.Mutex
	until map[stalled]time.Time
}

type stalled struct {
	gvr        schema.GroupVersionResource
	uid        string
	generation int // if there is no uid
}

func stalledOf(t Type) stalled {
	if t.UID != "" {
		return stalled{gvr: t.GVR, uid: t.UID}
	}
	return stalled{gvr: t.GVR, generation: t.Generation}
}

func (s *Stalls) stalled(t Type, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until = map[stalled]time.Time{}
	}
	maps.DeleteFunc(s.until, func(_ stalled, until time.Time) bool { return !now.Before(until) })
	s.until[stalledOf(t)] = now.Add(stallMemory)
}

func (s *Stalls) stalledLately(t Type, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.until[stalledOf(t)])
}

// silence measures how long a stream has sent no initial event, until the initial
// events have ended, and how long those take in all. The time that the reflector takes is
// not the stream's.
type silence struct {
	timer    *time.Timer // nil: nothing is measured
	deadline time.Time   // of the next initial event
	limit    time.Time   // of the last one
	live     bool        // an event of another kind than initial ones has been sent
}

func newSilence(measure bool) *silence {
	if !measure {
		return &silence{}
	}
	now := time.Now()
	return &silence{timer: time.NewTimer(stallAfter), deadline: now.Add(stallAfter), limit: now.Add(streamAfter)}
}

// elapsed returns a channel that delivers once the silence was too long. It is
// nil, and never delivers, if nothing is measured.
func (s *silence) elapsed() <-chan time.Time {
	if s.timer == nil {
		return nil
	}
	return s.timer.C
}

// heard is told of each event that the reflector has taken, whether the initial ones
// still go on, and how long it took. Initial events are added objects. A stream that
// has sent anything else is past them, and its bookmark is due: what a lively type
// goes on to send is no sign of it.
func (s *silence) heard(event watch.EventType, initial bool, took time.Duration) {
	if s.timer == nil {
		return
	}
	if !initial {
		s.stop()
		return
	}
	s.deadline = s.deadline.Add(took)
	s.limit = s.limit.Add(took + perObject)
	if !s.live {
		s.live = event != watch.Added
		s.deadline = time.Now().Add(stallAfter)
	}
	s.timer.Reset(min(time.Until(s.deadline), time.Until(s.limit)))
}

// reason returns why the silence was too long, or what there was instead of it.
func (s *silence) reason() error {
	if s.limit.Before(s.deadline) {
		return fmt.Errorf("the initial events have not ended after %v and %v for each: %w", streamAfter, perObject, ErrBookmarkMissing)
	}
	return fmt.Errorf("no initial event for %v: %w", stallAfter, ErrBookmarkMissing)
}

func (s *silence) stop() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}
