package dynamicinformer

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/internal/bell"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/typestate"
)

// trouble keeps what goes wrong with one resource's requests until it goes right:
// the last error, since when, and how often. It is the source's observer, and
// the informer's watch error handler.
type trouble struct {
	gvr     schema.GroupVersionResource
	changed *bell.Bell

	wish    string      // the namespace that requests are to go to
	whole   func() bool // reports whether the source has been given all that there is
	journal journal

	mu        sync.Mutex
	namespace string    // that they go to
	begun     time.Time // when the informer was started
	verb      string    // of the failed request; empty if discovery refused
	err       error     // nil: nothing is wrong
	reason    Reason    // that err stands for
	since     time.Time
	attempts  int
	expiry    time.Time
	well      time.Time // since when nothing is wrong, and the source has all; zero: that is not so
}

// observer is a trouble that also asks discovery when a type is not found, and counts.
type observer struct {
	*trouble
	life    *life
	traffic *traffic
	state   func() source.State
}

var _ source.Observer = (*observer)(nil)

// Failed implements source.Observer.
func (o *observer) Failed(verb string, err error) {
	if isExpired(err) && o.expired(time.Now()) {
		return
	}
	reason := typestate.Classify(err)
	o.traffic.failed(reason)
	o.record(verb, err, reason)
	if apierrors.IsNotFound(err) {
		o.life.notFound()
	}
}

// Succeeded implements source.Observer.
func (o *observer) Succeeded(verb string) {
	o.traffic.succeeded(verb)
	o.trouble.Succeeded(verb)
}

// Completed implements source.Observer.
func (o *observer) Completed() {
	o.completed()
	o.journal.completed(o.state())
	if now, _ := o.life.available.Current(); now.Serving == source.Gone {
		o.journal.vanished(ReasonNotFound, o.life.evidenceOfEnd())
	}
}

// Received implements source.Observer.
func (o *observer) Received(bytes int) { o.traffic.bytes.Add(uint64(bytes)) } //nolint:gosec // not negative

func newTrouble(gvr schema.GroupVersionResource, namespace string, changed *bell.Bell) *trouble {
	return &trouble{
		gvr: gvr, changed: changed, wish: namespace, namespace: namespace, journal: journal{gvr: gvr},
		whole: func() bool { return false }, // there is no source yet
	}
}

// begin is called when the informer is started on ctx.
func (t *trouble) begin(ctx context.Context) {
	t.journal.begin(ctx)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = time.Now()
}

// begins is called when the type has come to be served: that it was not found is over.
func (t *trouble) begins() {
	t.mu.Lock()
	t.well = time.Time{}
	healed := t.reason == ReasonNotFound && t.clearLocked(false)
	t.mu.Unlock()
	if healed {
		t.journal.healed()
	}
}

// admitted is called when discovery has said yes.
func (t *trouble) admitted(namespaced bool) {
	whole := t.whole()
	t.mu.Lock()
	t.namespace = metav1.NamespaceAll
	if namespaced {
		t.namespace = t.wish
	}
	healed := t.verb == "" && t.clearLocked(whole)
	t.changed.Ring()
	t.mu.Unlock()
	if healed {
		t.journal.healed()
	}
}

// refused is called when it has said no.
func (t *trouble) refused(err error) {
	reason := typestate.Classify(err)
	t.record("", err, reason)
	t.journal.waiting(reason, err)
}

// Succeeded implements source.Observer. What has worked clears what has not, of
// the same verb; a list, also what discovery has said.
func (t *trouble) Succeeded(verb string) {
	whole := t.whole()
	t.mu.Lock()
	healed := (t.verb == verb || verb == source.VerbList && t.verb == "") && t.clearLocked(whole)
	t.mu.Unlock()
	if healed {
		t.journal.healed()
	}
}

// clearLocked says that nothing is wrong, and reports whether that is new. Whole says that the
// source has all. The caller holds mu.
func (t *trouble) clearLocked(whole bool) bool {
	healed := t.err != nil
	if healed {
		t.changed.Ring()
	}
	t.verb, t.err, t.attempts = "", nil, 0
	t.mendLocked(whole)
	return healed
}

// mendLocked notes since when all is well, if it is. The caller holds mu.
func (t *trouble) mendLocked(whole bool) {
	if whole && t.err == nil && t.well.IsZero() {
		t.well = time.Now()
	}
}

// completed is called when the state of the source has changed.
func (t *trouble) completed() {
	whole := t.whole()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mendLocked(whole)
	t.changed.Ring()
}

// record notes that err is wrong. Its reason has been found out before: the error, which is
// asked for that, may be anybody's, and is not to be asked under a lock.
func (t *trouble) record(verb string, err error, reason Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.since = time.Now()
	}
	t.verb, t.err, t.reason, t.well = verb, err, reason, time.Time{}
	t.attempts++
	t.changed.Ring()
}

// expiryEvery is how often a server may forget the version to watch from without that
// being a trouble: servers keep some minutes of changes, and fewer if there are many.
const expiryEvery = time.Minute

// expired is told that the server has, and reports whether that is in the nature of things:
// what is missing is listed.
func (t *trouble) expired(now time.Time) (ordinary bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ordinary = now.Sub(t.expiry) > expiryEvery
	t.expiry = now
	return ordinary
}

func isExpired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// log is the usual watch error handler.
func (t *trouble) log(ctx context.Context, err error) {
	if isExpired(err) || errors.Is(err, io.EOF) {
		t.journal.closed(ctx, err)
		return
	}
	t.journal.failed(ctx, typestate.Classify(err), err)
}

// notSynced describes the trouble as of now; Syncing if there is none.
func (t *trouble) notSynced() *NotSyncedError {
	e, _ := t.asOf(time.Now())
	return &e
}

// asOf returns that, and since when all is well; zero if it is not.
func (t *trouble) asOf(now time.Time) (e NotSyncedError, well time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e = NotSyncedError{
		GVR: t.gvr, Namespace: t.namespace, Verb: t.verb, Reason: ReasonSyncing,
		Since: t.since, Attempts: t.attempts, Err: t.err, At: now,
	}
	if t.err == nil {
		e.Since = t.begun
	} else {
		e.Reason = t.reason
	}
	return e, t.well
}
