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
	"k8s.io/klog/v2"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/bell"
	"github.com/gvrkit/gvrkit/internal/source"
)

// trouble keeps what goes wrong with one resource's requests until it goes right:
// the last error, since when, and how often. It is the source's observer, and
// the informer's watch error handler.
type trouble struct {
	gvr     schema.GroupVersionResource
	changed *bell.Bell

	wish string // the namespace that requests are to go to

	mu        sync.Mutex
	namespace string    // that they go to
	begun     time.Time // when the informer was started
	verb      string    // of the failed request; empty if discovery refused
	err       error     // nil: nothing is wrong
	since     time.Time
	attempts  int
	logged    Reason // the last one that a line was written for
	expiry    time.Time
}

// observer is a trouble that also asks discovery when a type is not found, and counts.
type observer struct {
	*trouble
	life    *life
	traffic *traffic
}

var _ source.Observer = (*observer)(nil)

// Failed implements source.Observer.
func (o *observer) Failed(verb string, err error) {
	if isExpired(err) && o.trouble.expired(time.Now()) {
		return
	}
	o.traffic.failed(classify(err))
	o.trouble.Failed(verb, err)
	if apierrors.IsNotFound(err) {
		o.life.notFound()
	}
}

// Succeeded implements source.Observer.
func (o *observer) Succeeded(verb string) {
	o.traffic.succeeded(verb)
	o.trouble.Succeeded(verb)
}

// Received implements source.Observer.
func (o *observer) Received(bytes int) { o.traffic.bytes.Add(uint64(bytes)) } //nolint:gosec // not negative

func newTrouble(gvr schema.GroupVersionResource, namespace string, changed *bell.Bell) *trouble {
	return &trouble{gvr: gvr, changed: changed, wish: namespace, namespace: namespace}
}

// begin is called when the informer is started.
func (t *trouble) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = time.Now()
}

// admitted is called when discovery has said yes.
func (t *trouble) admitted(namespaced bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.namespace = metav1.NamespaceAll
	if namespaced {
		t.namespace = t.wish
	}
	if t.verb == "" {
		t.clearLocked()
	}
	t.changed.Ring()
}

// refused is called when it has said no.
func (t *trouble) refused(err error) {
	t.record("", err)
	if reason := classify(err); t.news(reason) {
		klog.Background().Info("Waiting for the resource before listing it", "resource", discovery.RefOf(t.gvr), "reason", reason, "err", err)
	}
}

// Failed implements source.Observer.
func (t *trouble) Failed(verb string, err error) { t.record(verb, err) }

// Succeeded implements source.Observer. What has worked clears what has not, of
// the same verb; a list, also what discovery has said.
func (t *trouble) Succeeded(verb string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.verb == verb || verb == source.VerbList && t.verb == "" {
		t.clearLocked()
	}
}

func (t *trouble) clearLocked() {
	if t.err != nil {
		t.changed.Ring()
	}
	t.verb, t.err, t.attempts, t.logged = "", nil, 0, ""
}

// Completed implements source.Observer.
func (t *trouble) Completed() { t.changed.Ring() }

func (t *trouble) record(verb string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.since = time.Now()
	}
	t.verb, t.err = verb, err
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

// news reports whether reason is another than that of the last log line.
func (t *trouble) news(reason Reason) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := t.logged != reason
	t.logged = reason
	return changed
}

// log is the usual watch error handler: one line when the reason changes,
// where client-go's own writes one for each retry.
func (t *trouble) log(ctx context.Context, err error) {
	logger := klog.FromContext(ctx).WithValues("resource", discovery.RefOf(t.gvr))
	reason := classify(err)
	switch {
	case isExpired(err), errors.Is(err, io.EOF):
		logger.V(4).Info("Watch closed", "err", err) // the ordinary end of a watch
	case t.news(reason):
		// Not utilruntime.HandleError: it makes callers of all resources wait for
		// one another, to keep a storm of lines down that is not made here.
		logger.Error(err, "Failed to list or watch, retrying", "reason", reason)
	default:
		logger.V(4).Info("Failed to list or watch, retrying", "reason", reason, "err", err)
	}
}

// notSynced describes the trouble as of now; Syncing if there is none.
func (t *trouble) notSynced() *NotSyncedError {
	t.mu.Lock()
	e := &NotSyncedError{
		GVR: t.gvr, Namespace: t.namespace, Verb: t.verb, Reason: ReasonSyncing,
		Since: t.since, Attempts: t.attempts, Err: t.err, at: time.Now(),
	}
	if t.err == nil {
		e.Since = t.begun
	}
	t.mu.Unlock()
	if e.Err != nil {
		e.Reason = classify(e.Err) // asks the error, which may be anybody's: not under mu
	}
	return e
}
