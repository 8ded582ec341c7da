package typestate

import (
	"errors"
	"time"

	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

// maxUnindexed is the maximum number of recorded objects for which an index function fails. Further
// objects are not counted.
const maxUnindexed = 1000

// Rejected describes the objects for which a function of the informer fails: they are left out of the
// cache or of an index.
type Rejected struct {
	// Count is the present number of these objects.
	Count int
	// Key is the key of the object that failed last, Err the error, and Reason the reason for it.
	Key    string
	Err    error
	Reason status.Reason
	// Since is the time since when there is at least one.
	Since time.Time
}

// unindexed has the objects for which index functions fail.
type unindexed struct {
	objects map[indexed]error
	last    indexed
	since   time.Time
}

// indexed is one object in one index.
type indexed struct{ key, index string }

// HasUnindexed reports whether an index function fails for any object. If not, Unindexed need not be
// called with a nil error.
func (s *State) HasUnindexed() bool { return s.hasUnindexed.Load() }

// Unindexed records that an index function fails for the object under key or, if err is nil, that it
// does not fail. It is called with the store locked, and does not block.
func (s *State) Unindexed(key, index string, err error) {
	at := indexed{key, index}
	s.mu.Lock()
	defer s.mu.Unlock()
	u := &s.unindexed
	if _, known := u.objects[at]; err == nil && !known {
		return
	}
	s.changeLocked(func(next *Snapshot) {
		if err == nil {
			delete(u.objects, at)
			return
		}
		if u.objects == nil {
			u.objects, u.since = map[indexed]error{}, next.At
		}
		if _, known := u.objects[at]; known || len(u.objects) < maxUnindexed {
			u.objects[at], u.last = err, at
		}
		s.hasUnindexed.Store(true)
	})
}

// rejectedLocked returns the rejected objects that still exist. The caller holds mu.
func (s *State) rejectedLocked(now *Snapshot) Rejected {
	if s.unindexed.objects != nil {
		for at := range s.unindexed.objects {
			if !s.has(at.key) {
				delete(s.unindexed.objects, at)
			}
		}
		if len(s.unindexed.objects) == 0 {
			s.unindexed = unindexed{}
			s.hasUnindexed.Store(false)
		}
	}
	var r Rejected
	if u := &s.unindexed; len(u.objects) > 0 {
		if _, failing := u.objects[u.last]; !failing {
			for at := range u.objects {
				u.last = at
				break
			}
		}
		r = Rejected{Count: len(u.objects), Key: u.last.key, Err: u.objects[u.last], Reason: status.ReasonIndexFailed, Since: u.since}
	}
	if given := now.Given.Rejected; given.Count > 0 {
		since := given.Since
		if r.Count > 0 && r.Since.Before(since) {
			since = r.Since
		}
		reason := status.ReasonTransformFailed
		if errors.Is(given.Err, source.ErrDecode) {
			reason = status.ReasonDecodeFailed
		}
		r = Rejected{Count: r.Count + given.Count, Key: given.Key, Err: given.Err, Reason: reason, Since: since}
	}
	return r
}
