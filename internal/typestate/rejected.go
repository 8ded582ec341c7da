package typestate

import (
	"time"

	"github.com/gvrkit/gvrkit/status"
)

// maxUnindexed is how many objects are known that an index function fails for. Those beyond are
// not counted.
const maxUnindexed = 1000

// Rejected says which objects the informer's own functions fail for: they are left out of the
// cache or of an index.
type Rejected struct {
	// Count is how many there are at present; zero if all is well.
	Count int
	// Key is that of the last one that failed, Err why, and Reason what that stands for.
	Key    string
	Err    error
	Reason status.Reason
	// Since is since when there has been at least one.
	Since time.Time
}

// unindexed are the objects that index functions fail for.
type unindexed struct {
	objects map[indexed]error
	last    indexed
	since   time.Time
}

// indexed is one object in one index.
type indexed struct{ key, index string }

// HasUnindexed reports whether an index function fails for some object: only then does Unindexed
// have to be called for one that it does not fail for.
func (s *State) HasUnindexed() bool { return s.hasUnindexed.Load() }

// Unindexed says that an index function fails for the object under key; a nil err, that it does
// not. It is called with the store locked, and does not block.
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

// rejectedLocked returns which objects are rejected, of those that are still there. The caller
// holds mu.
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
		r = Rejected{Count: r.Count + given.Count, Key: given.Key, Err: given.Err, Reason: status.ReasonTransformFailed, Since: since}
	}
	return r
}
