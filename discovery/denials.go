package discovery

import (
	"errors"
	"time"
)

// denial is a stored refusal.
type denial struct {
	refusal error // nil: the next question computes it
	at      time.Time
}

// maxDenied is the maximum number of stored refusals.
const maxDenied = 4096

// refused returns the stored refusal of q if nothing has changed since it was stored, or nil. Without a watch, a change is noticed late:
// a refusal then counts as long as the shortest interval of requests for documents. Noticed is the number of changes so far, for
// [Resolver.deny].
func (r *Resolver) refused(c *snapshot, q question) (noticed uint64, refusal error) {
	r.mu.Lock()
	noticed = r.noticed
	stored, denied := r.denied[q]
	denied = denied && r.live != nil && r.current.Load() == c && r.live.conclusive()
	if denied && r.live.pollsLocked() {
		denied = time.Since(stored.at) < r.live.pace.of(r.doc, r.live.pace.awaited)
	}
	r.mu.Unlock()
	refusal = stored.refusal
	switch {
	case !denied:
		return noticed, nil
	case refusal == nil: // an event has denied q
		refusal = c.refuse(q)
	}
	if errors.Is(refusal, ErrInconclusive) {
		return noticed, nil
	}
	return noticed, refusal
}

// deny stores refusal, the result of q in c, until the run notices a change. It has no effect if the run has noticed more
// than noticed changes: the server may have responded before the last one.
func (r *Resolver) deny(c *snapshot, q question, noticed uint64, refusal error) {
	if !errors.Is(refusal, ErrNotServed) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current.Load() == c && r.noticed == noticed {
		r.denyLocked(q, refusal)
	}
}

// denyLocked stores the refusal of q until the next change. If refusal is nil, the next question computes
// it. Caller holds r.mu.
func (r *Resolver) denyLocked(q question, refusal error) {
	if r.denied == nil {
		r.denied = map[question]denial{}
	}
	if _, again := r.denied[q]; again || len(r.denied) < maxDenied {
		r.denied[q] = denial{refusal, time.Now()}
	}
}

// forgetDenials removes the stored refusals, which may be out of date.
func (r *Resolver) forgetDenials() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.denied = nil
	r.noticed++
}
