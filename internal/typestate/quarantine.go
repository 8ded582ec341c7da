package typestate

import (
	"cmp"
	"slices"
	"time"

	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

// Report returns the present state, and the objects that are left out and the namespaces of the source at the
// same moment.
func (s *State) Report() (Snapshot, Quarantined, []source.Namespace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := s.source.Report()
	now := s.readLocked(from.State)
	q := Quarantined{rejected: from.Names, all: from.Rejected, unindexed: len(s.unindexed.objects), since: now.LeftOut.Since}
	for at, err := range s.unindexed.named {
		failed := s.unindexed.objects[at]
		q.named = append(q.named, status.QuarantinedObject{
			Key: at.key, UID: failed.uid, Reason: status.ReasonIndexFailed, Index: at.index, Err: err, Since: failed.since,
		})
	}
	return now, q, from.Namespaces
}

// Quarantined has the objects that are left out at one moment.
type Quarantined struct {
	rejected  []source.RejectedObject    // left out of the cache; shared and read-only
	all       source.Rejected            // the same, also those without a known error
	named     []status.QuarantinedObject // left out of indexes, with a known error
	unindexed int                        // the number of all that are left out of indexes
	since     time.Time                  // since when there is at least one
}

// Status returns the objects as part of a status.
func (q *Quarantined) Status() status.Quarantine {
	if q.all.Count+q.unindexed == 0 {
		return status.Quarantine{}
	}
	objects := make([]status.QuarantinedObject, 0, len(q.rejected)+len(q.named))
	for _, object := range q.rejected {
		objects = append(objects, status.QuarantinedObject{
			Key: object.Key, UID: object.UID, Reason: reasonOfRejected(object.Undecodable), Err: object.Err, Since: object.Since,
		})
	}
	if len(q.named) > 0 { // the others are sorted
		objects = append(objects, q.named...)
		slices.SortFunc(objects, func(a, b status.QuarantinedObject) int {
			return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Index, b.Index))
		})
	}
	in := status.Quarantine{Objects: objects[:min(len(objects), source.MaxNamed)], Counts: map[status.Reason]uint64{}, Since: q.since}
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
