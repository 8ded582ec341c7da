package typestate

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/internal/errtext"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

const (
	// maxNamed is the maximum number of objects that a quarantine names, and of objects whose errors of index
	// functions are stored.
	maxNamed = 1000
	// compareEvery is how often a long list of failed index functions is compared with the cache.
	compareEvery = time.Second
)

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
	objects  map[indexed]failure
	named    map[indexed]error // the errors of at most maxNamed of them
	last     indexed
	lastErr  error
	since    time.Time
	compared time.Time // when the objects were last compared with the cache
}

// indexed is one object in one index.
type indexed struct{ key, index string }

// failure is the failure of an index function for an object.
type failure struct {
	uid   types.UID
	since time.Time
}

// HasUnindexed reports whether an index function fails for any object. If not, Unindexed need not be
// called with a nil error.
func (s *State) HasUnindexed() bool { return s.hasUnindexed.Load() }

// Unindexed records that an index function fails for the object under key or, if err is nil, that it
// does not fail. It is called with the store locked, and does not block.
func (s *State) Unindexed(key string, uid types.UID, index string, err error) {
	at := indexed{key, index}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.unindexed.objects[at]; err == nil && !known {
		return
	}
	s.changeLocked(func(next *Snapshot) {
		if err == nil {
			s.unindexed.remove(at)
			return
		}
		s.unindexed.add(at, uid, errtext.Clean(err), next.At)
		s.hasUnindexed.Store(true)
	})
}

func (u *unindexed) add(at indexed, uid types.UID, err error, now time.Time) {
	if u.objects == nil {
		u.objects, u.named, u.since = map[indexed]failure{}, map[indexed]error{}, now
	}
	made := failure{uid, now}
	if known, again := u.objects[at]; again && known.uid == uid {
		made.since = known.since
	}
	if _, named := u.named[at]; named || len(u.named) < maxNamed {
		u.named[at] = err
	}
	u.objects[at], u.last, u.lastErr = made, at, err
}

func (u *unindexed) remove(at indexed) {
	delete(u.objects, at)
	delete(u.named, at)
}

// compare removes the objects that no longer exist. A long list is compared at most once in compareEvery.
func (u *unindexed) compare(has func(key string) bool, now time.Time) {
	if len(u.objects) > maxNamed && now.Sub(u.compared) < compareEvery {
		return
	}
	u.compared = now
	for at := range u.objects {
		if !has(at.key) {
			u.remove(at)
		}
	}
}

// rejected describes the objects.
func (u *unindexed) rejected() Rejected {
	if len(u.objects) == 0 {
		return Rejected{}
	}
	if _, failing := u.objects[u.last]; !failing {
		u.last, u.lastErr = u.any()
	}
	return Rejected{Count: len(u.objects), Key: u.last.key, Err: u.lastErr, Reason: status.ReasonIndexFailed, Since: u.since}
}

// any returns one of the objects, if possible one with a known error.
func (u *unindexed) any() (at indexed, err error) {
	for at, err := range u.named {
		return at, err
	}
	for at := range u.objects {
		return at, errIndex
	}
	return at, nil
}

// errIndex stands for an error that is not stored.
var errIndex = errors.New("an index function fails for it")

// rejectedLocked returns the rejected objects that still exist. The caller holds mu.
func (s *State) rejectedLocked(now *Snapshot) Rejected {
	if s.unindexed.objects != nil {
		s.unindexed.compare(s.source.Has, now.At)
		if len(s.unindexed.objects) == 0 {
			s.unindexed = unindexed{}
			s.hasUnindexed.Store(false)
		}
	}
	r := s.unindexed.rejected()
	if rejected := now.Source.Rejected; rejected.Count > 0 {
		since := rejected.Since
		if r.Count > 0 && r.Since.Before(since) {
			since = r.Since
		}
		reason := status.ReasonTransformFailed
		if errors.Is(rejected.Err, source.ErrDecode) {
			reason = status.ReasonDecodeFailed
		}
		r = Rejected{Count: r.Count + rejected.Count, Key: rejected.Key, Err: rejected.Err, Reason: reason, Since: since}
	}
	return r
}

// Report returns the present state, and the objects that are left out at the same moment.
func (s *State) Report() (Snapshot, Quarantined) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, rejected := s.source.Report()
	now := s.readLocked(from)
	q := Quarantined{rejected: rejected, all: from.Rejected, unindexed: len(s.unindexed.objects)}
	for at, err := range s.unindexed.named {
		failed := s.unindexed.objects[at]
		q.named = append(q.named, status.QuarantinedObject{
			Key: at.key, UID: failed.uid, Reason: status.ReasonIndexFailed, Index: at.index, Err: err, Since: failed.since,
		})
	}
	return now, q
}

// Quarantined has the objects that are left out at one moment.
type Quarantined struct {
	rejected  []source.RejectedObject    // left out of the cache; shared and read-only
	all       source.Rejected            // the same, also those without a known error
	named     []status.QuarantinedObject // left out of indexes, with a known error
	unindexed int                        // the number of all that are left out of indexes
}

// Status returns the objects as part of a status.
func (q *Quarantined) Status() status.Quarantine {
	if q.all.Count+q.unindexed == 0 {
		return status.Quarantine{}
	}
	objects := make([]status.QuarantinedObject, 0, len(q.rejected)+len(q.named))
	for _, object := range q.rejected {
		reason := status.ReasonTransformFailed
		if object.Undecodable {
			reason = status.ReasonDecodeFailed
		}
		objects = append(objects, status.QuarantinedObject{Key: object.Key, UID: object.UID, Reason: reason, Err: object.Err, Since: object.Since})
	}
	if len(q.named) > 0 { // the others are sorted
		objects = append(objects, q.named...)
		slices.SortFunc(objects, func(a, b status.QuarantinedObject) int {
			return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Index, b.Index))
		})
	}
	in := status.Quarantine{Objects: objects[:min(len(objects), maxNamed)], Counts: map[status.Reason]uint64{}}
	for reason, count := range map[status.Reason]int{
		status.ReasonDecodeFailed:    q.all.Undecodable,
		status.ReasonTransformFailed: q.all.Count - q.all.Undecodable,
		status.ReasonIndexFailed:     q.unindexed,
	} {
		if count > 0 {
			in.Counts[reason] = uint64(count)
		}
	}
	return in
}
