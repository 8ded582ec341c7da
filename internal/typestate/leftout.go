package typestate

import (
	"errors"
	"time"

	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

// LeftOut describes the objects that are left out: of the cache, since the source has rejected them, or of an
// index.
type LeftOut struct {
	// Count is the present number of these objects.
	Count int
	// Key is the key of the object that failed last, Err the error, and Reason the reason for it.
	Key    string
	Err    error
	Reason status.Reason
	// Since is the time since when there is at least one.
	Since time.Time
}

// leftOutLocked returns the objects that are left out and still exist. The caller holds mu.
func (s *State) leftOutLocked(now *Snapshot) LeftOut {
	if s.unindexed.objects != nil {
		s.unindexed.compare(s.source.Has, now.At)
		if len(s.unindexed.objects) == 0 {
			s.unindexed = unindexed{}
			s.hasUnindexed.Store(false)
		}
	}
	left := s.unindexed.leftOut()
	if rejected := now.Source.Rejected; rejected.Count > 0 {
		since := rejected.Since
		if left.Count > 0 && left.Since.Before(since) {
			since = left.Since
		}
		reason := reasonOfRejected(errors.Is(rejected.Err, source.ErrDecode))
		left = LeftOut{Count: left.Count + rejected.Count, Key: rejected.Key, Err: rejected.Err, Reason: reason, Since: since}
	}
	return left
}

// reasonOfRejected returns the reason why the source has rejected an object.
func reasonOfRejected(undecodable bool) status.Reason {
	if undecodable {
		return status.ReasonDecodeFailed
	}
	return status.ReasonTransformFailed
}
