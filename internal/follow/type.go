package follow

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/discovery"
)

// followed is one type: what is wanted of it, and what is. It is guarded by the follower's lock.
type followed struct {
	gr schema.GroupResource

	want   *discovery.Resource // it is there, and selected; nil: it is not
	unsure *discovery.Resource // it is there, and it can't be told whether it is selected

	held  bool                // there is a lease, or one is being acquired, and it is not being released
	res   discovery.Resource  // what the lease is on, as last known
	lease Lease               // nil while it is being acquired
	end   *discovery.Evidence // why the lease is to be released; nil: it is not

	busy    bool          // a goroutine is at work on it
	queued  bool          // it waits in the queue to be started
	changed chan struct{} // has one if end may have changed while a goroutine is at work

	failure string // of the last attempt to acquire a lease; empty: none, or it has succeeded

	began time.Time // when it was last started
	brief int       // starts in a row, each within calm of the one before
}

func newFollowed(gr schema.GroupResource) *followed {
	return &followed{gr: gr, changed: make(chan struct{}, 1)}
}

// notify wakes the goroutine that is at work on it.
func (t *followed) notify() {
	select {
	case t.changed <- struct{}{}:
	default: // it is about to look
	}
}

// selected notes that the type is there as res, and selected.
func (t *followed) selected(res discovery.Resource) {
	t.there(res)
	t.want = &res
	if t.held && t.end != nil && t.end.Kind != discovery.CRDDeleted {
		t.end = nil // it goes on
	}
	if t.held && t.end == nil {
		if res.CRDUID == "" {
			res.CRDUID = t.res.CRDUID // it is only not known at the moment
		}
		t.res = res
	}
}

// deselected notes that the type is there as res, and not selected.
func (t *followed) deselected(res discovery.Resource) {
	t.there(res)
	t.want = nil
	if t.held && t.end == nil {
		t.end = &discovery.Evidence{}
	}
}

// undecided notes that the type is there as res, and that it can't be told whether it is selected.
func (t *followed) undecided(res discovery.Resource) {
	t.there(res)
	t.unsure = &res
}

// there notes that the type is there as res. If that is of another CRD, the one before was deleted.
func (t *followed) there(res discovery.Resource) {
	t.unsure = nil
	if t.held && t.other(res.CRDUID) {
		t.want = nil
		t.ends(discovery.Evidence{Kind: discovery.CRDDeleted, CRDUID: t.res.CRDUID, At: time.Now()})
	}
}

// gone notes that the type is not there any more.
func (t *followed) gone(evidence discovery.Evidence) {
	t.want, t.unsure = nil, nil
	switch {
	case !t.held:
	case t.other(evidence.CRDUID): // it was in the place of the one that is held
		t.ends(discovery.Evidence{Kind: discovery.CRDDeleted, CRDUID: t.res.CRDUID, At: evidence.At})
	default:
		t.ends(evidence)
	}
}

// other reports whether uid is that of another CRD than the one that is held.
func (t *followed) other(uid types.UID) bool {
	return uid != "" && t.res.CRDUID != "" && uid != t.res.CRDUID
}

// ends notes why the lease is to be released. The deletion of a CRD is final.
func (t *followed) ends(evidence discovery.Evidence) {
	if t.end == nil || t.end.Kind != discovery.CRDDeleted {
		t.end = &evidence
	}
}

// A type that is started again within calm of its last start waits first, from the second time on,
// and twice as long each time.
const (
	calm         = 10 * time.Second
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
)

// due returns when the type may be started.
func (t *followed) due() time.Time {
	if t.brief == 0 {
		return time.Time{}
	}
	pause := min(firstPause<<min(t.brief-1, 10), longestPause)
	return t.began.Add(pause)
}

// begins notes that the type is started as what is wanted.
func (t *followed) begins(now time.Time) {
	if !t.began.IsZero() && now.Sub(t.began) < calm {
		t.brief++
	} else {
		t.brief = 0
	}
	t.held, t.busy, t.began = true, true, now
	t.res, t.end = *t.want, nil
}
