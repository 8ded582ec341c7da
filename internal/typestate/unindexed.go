package typestate

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/internal/errtext"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

const (
	// maxNamed is the number of objects whose errors of index functions are stored.
	maxNamed = source.MaxNamed
	// Failed index functions of more than longList objects are compared with the cache at most once in
	// compareEvery: the comparison of a list that grows by one at a time would cost its square.
	longList     = 100
	compareEvery = time.Second
)

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

// compare removes the objects that no longer exist.
func (u *unindexed) compare(has func(key string) bool, now time.Time) {
	if len(u.objects) > longList && now.Sub(u.compared) < compareEvery {
		return
	}
	u.compared = now
	for at := range u.objects {
		if !has(at.key) {
			u.remove(at)
		}
	}
}

// leftOut describes the objects.
func (u *unindexed) leftOut() LeftOut {
	if len(u.objects) == 0 {
		return LeftOut{}
	}
	if _, failing := u.objects[u.last]; !failing {
		u.last, u.lastErr = u.any()
	}
	return LeftOut{Count: len(u.objects), Key: u.last.key, Err: u.lastErr, Reason: status.ReasonIndexFailed, Since: u.since}
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
