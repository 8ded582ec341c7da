package follow

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/status"
)

// followed is one type: its required and its present state. The follower's lock guards it.
type followed struct {
	gr schema.GroupResource

	want   *discovery.Resource // the type is served and selected; nil: it is not
	unsure *status.Undecided   // the type is served, and its selection can't be decided

	held  bool                // there is a lease, or one is being acquired, and it is not being released
	res   discovery.Resource  // the last known state of the leased type
	lease Lease               // nil while it is being acquired
	end   *discovery.Evidence // why the lease must be released; nil: it must not

	busy    bool          // a goroutine works on it
	queued  bool          // it is in the queue
	changed chan struct{} // has a value if end may have changed while a goroutine works

	failure string // the error of the last attempt to acquire a lease; empty: there was none

	began   time.Time     // the time of the last start
	pause   time.Duration // between the last start and the next
	backoff wait.Backoff  // the pauses after it, while each start is within resetAfter of the previous one
}

func newFollowed(gr schema.GroupResource) *followed {
	return &followed{gr: gr, changed: make(chan struct{}, 1)}
}

// notify wakes the goroutine that works on it.
func (t *followed) notify() {
	select {
	case t.changed <- struct{}{}:
	default: // it will look
	}
}

// selected records that the type is served as res, and selected.
func (t *followed) selected(res discovery.Resource) {
	res = t.there(res)
	t.want = &res
	if t.held && t.end != nil && t.end.Kind != discovery.CRDDeleted {
		t.end = nil // the lease is kept
	}
}

// deselected records that the type is served as res, and not selected.
func (t *followed) deselected(res discovery.Resource) {
	t.there(res)
	t.want = nil
	if t.held && (t.end == nil || t.end.Kind != discovery.CRDDeleted) {
		t.end = &discovery.Evidence{} // it is served: its objects are not deleted
	}
}

// undecided records that the type is served as res, and why its selection can't be decided.
func (t *followed) undecided(res discovery.Resource, err error) {
	since := time.Now()
	if t.unsure != nil {
		since = t.unsure.Since
	}
	t.there(res)
	t.unsure = &status.Undecided{Resource: res, Err: err, Since: since}
}

// there records that the type is served as res, which is its last known state, and returns it with the UID of the CRD if that
// is known. If res has another CRD, the previous one was deleted.
func (t *followed) there(res discovery.Resource) discovery.Resource {
	t.unsure = nil
	switch {
	case !t.held:
	case t.other(res.CRDUID):
		t.want = nil
		t.ends(discovery.Evidence{Kind: discovery.CRDDeleted, CRDUID: t.res.CRDUID, At: time.Now()})
	case t.end == nil || t.end.Kind != discovery.CRDDeleted:
		if res.CRDUID == "" {
			res.CRDUID = t.res.CRDUID // it is not known at the moment
		}
		t.res = res
	}
	return res
}

// gone records that the type is gone.
func (t *followed) gone(evidence discovery.Evidence) {
	t.want, t.unsure = nil, nil
	switch {
	case !t.held:
	case t.other(evidence.CRDUID): // it had replaced the type that is held
		t.ends(discovery.Evidence{Kind: discovery.CRDDeleted, CRDUID: t.res.CRDUID, At: evidence.At})
	default:
		t.ends(evidence)
	}
}

// other reports whether uid is the UID of another CRD than that of the held type.
func (t *followed) other(uid types.UID) bool {
	return uid != "" && t.res.CRDUID != "" && uid != t.res.CRDUID
}

// ends records why the lease must be released. The deletion of a CRD is final.
func (t *followed) ends(evidence discovery.Evidence) {
	if t.end == nil || t.end.Kind != discovery.CRDDeleted {
		t.end = &evidence
	}
}

// If a type is started again within resetAfter of its last start, it waits before the start, from the second
// time on. The wait doubles each time.
const (
	resetAfter   = 10 * time.Second
	firstPause   = 200 * time.Millisecond
	longestPause = 5 * time.Second
)

// due returns when the type may be started.
func (t *followed) due() time.Time {
	if t.pause == 0 {
		return time.Time{}
	}
	return t.began.Add(t.pause)
}

// begins records that the type is started as want.
func (t *followed) begins(now time.Time) {
	if !t.began.IsZero() && now.Sub(t.began) < resetAfter {
		t.pause = t.backoff.Step()
	} else {
		t.pause = 0
		t.backoff = wait.Backoff{Duration: firstPause, Factor: 2, Steps: 10, Cap: longestPause}
	}
	t.held, t.busy, t.began = true, true, now
	t.res, t.end = *t.want, nil
}
