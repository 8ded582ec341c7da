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

// A watch-list (KEP-3157) is a watch that sends the initial list as events. The reflector
// has two problems with it. It waits without end for the bookmark that ends the initial
// events (kubernetes#140890). After 429, refused connections and expired versions, it
// retries and ignores its context. In both cases, this file returns an error after which
// the reflector sends a LIST.
const (
	// stallAfter is the maximum time between initial events of a watch-list. After it, the
	// watch-list has stalled.
	stallAfter = 10 * time.Second
	// answerAfter is the maximum time until the response to a watch-list request. It is
	// longer, since the client may have its own queue.
	answerAfter = time.Minute
	// The maximum duration of a watch-list is streamAfter, and perObject for each object. If a
	// server ignores the request for initial events, the watch is an ordinary watch, and new
	// objects look like initial ones. A watch-list that is slower is also ended, and a LIST
	// follows.
	streamAfter = time.Minute
	perObject   = 50 * time.Millisecond
	// stallMemory is how long watch-lists are not used after a stall.
	stallMemory = time.Hour
)

var (
	// ErrBookmarkMissing is the error of a watch-list that did not send the bookmark
	// that ends its initial events.
	ErrBookmarkMissing = errors.New("the initial-events-end bookmark is missing")

	errNotTried   = errors.New("watch-list is not used: its bookmark was missing less than an hour ago")
	errAggregated = errors.New("watch-list is not used: an aggregated API server serves the type")
	errNotWanted  = errors.New("watch-list is disabled")
	errPolled     = errors.New("watch-list is not used: the type can't be watched")
	errTweaked    = errors.New("watch-list is not used: TweakListOptions removes sendInitialEvents")
	// With a budget for lists, the first page of a LIST shows the size of the list.
	errUnknownSize = errors.New("watch-list is not used: its size is not known in advance")
	errSet         = errors.New("watch-list is not used: each namespace of a set has its own watch")
	errReplaced    = errors.New("the type was removed or changed before the end of its initial events")
)

// plain returns an error with only the text of err, so that the reflector does not
// retry the watch-list internally. It sends a LIST at once. If the LIST fails in the
// same way, the reflector respects its context.
func plain(err error) error { return errors.New(err.Error()) }

// throttled is the pause that a server has requested in its response to a watch-list. The
// LIST that follows must also wait.
type throttled struct{ pace atomic.Pointer[pace] }

// note stores the pause that the server requests with err. It ignores the pause of a server that
// does not have a resourceVersion yet, since a list does not require the version.
func (t *throttled) note(err error) {
	var p pace
	if p.failed(time.Now(), err); p.requested && !apierrors.IsTimeout(err) {
		t.pace.Store(&p)
	}
}

// take returns the pace for the next request.
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

// Stalls records the types whose watch-lists have stalled, for all sources that share it. A type
// that was created again is another type. It is safe for concurrent use. Its zero value is empty.
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

// silence measures the time since the last initial event of a stream, and the duration of all
// initial events. It does not count the time in which the reflector processes events.
type silence struct {
	timer    *time.Timer // nil: there is no measurement
	deadline time.Time   // of the next initial event
	limit    time.Time   // of the last initial event
	live     bool        // the stream has sent an event that is not initial
}

func newSilence(measure bool) *silence {
	if !measure {
		return &silence{}
	}
	now := time.Now()
	return &silence{timer: time.NewTimer(stallAfter), deadline: now.Add(stallAfter), limit: now.Add(streamAfter)}
}

// elapsed returns a channel that receives a value when the time is exceeded. It is nil if there
// is no measurement.
func (s *silence) elapsed() <-chan time.Time {
	if s.timer == nil {
		return nil
	}
	return s.timer.C
}

// received is called for each event that the reflector has received, with the time that this took.
// Initial reports whether the initial events have not ended. Initial events are added objects. After
// another event, only the bookmark can follow the initial events: further events do not extend the
// deadline.
func (s *silence) received(event watch.EventType, initial bool, took time.Duration) {
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

// reason returns the error for the exceeded time.
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
