package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// answer returns the resource of q, from memory if possible, and otherwise from the server.
func (r *Resolver) answer(ctx context.Context, q question) (Resource, error) {
	if ctx == nil {
		return Resource{}, inconclusive(q.ref, errNilContext)
	}
	for {
		c := r.known(ctx)
		if c == nil {
			return r.answerFromServer(ctx, q)
		}
		noticed, refusal := r.refused(c, q)
		if refusal != nil {
			return Resource{}, refusal
		}
		res, err := c.answer(q)
		if err == nil || errors.Is(err, ErrAmbiguous) || r.isFinal(c, q, err) {
			return res, err
		}
		if !r.readChanged(ctx, q, c) {
			return r.confirm(ctx, q, c, noticed, err)
		} // the run has noticed a change, which the server's documents may not have yet
	}
}

// known returns the snapshot of the run, or nil if the resolver does not run. It waits for the first
// snapshot of a new run, for at most pace.questions.
func (r *Resolver) known(ctx context.Context) *snapshot {
	if c := r.current.Load(); c != nil || ctx == nil {
		return c
	}
	timer := time.NewTimer(r.options.pace.questions)
	defer timer.Stop()
	for {
		r.mu.Lock()
		l, changed := r.live, r.changed
		begins := l != nil && !l.begun
		r.mu.Unlock()
		if !begins {
			return r.current.Load()
		}
		if ctx.Err() == nil {
			l.widen()
		}
		select {
		case <-changed:
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// isFinal reports whether refusal, the result of q in c, is conclusive without a request: the CRDs are
// the reason, and documents may be older than the CRDs.
func (r *Resolver) isFinal(c *snapshot, q question, refusal error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live == nil || r.current.Load() != c || !errors.Is(refusal, ErrNotServed) {
		return false
	}
	gvr, full := q.gvr()
	return errors.Is(refusal, ErrNotEstablished) && r.live.conclusive() || full && c.decides(gvr)
}

// confirm asks the server whether refusal, the result of q in c, is right. C is the snapshot of a run.
// If the server denies q, the refusal is stored until the run notices a change. So far, it has noticed the given number of changes.
func (r *Resolver) confirm(ctx context.Context, q question, c *snapshot, noticed uint64, refusal error) (Resource, error) {
	gvr, full := q.gvr()
	if !full {
		fresh, err := r.snapshotFor(ctx, q)
		if err != nil {
			return Resource{}, inconclusive(q.ref, err)
		}
		res, err := fresh.answer(q)
		r.deny(fresh, q, noticed, err)
		return res, err
	}
	version, err := r.requestVersion(ctx, gvr)
	res, listed := listedAs(version, gvr)
	switch {
	case listed && r.isOutdated(res, c):
		return Resource{}, inconclusive(q.ref, errDeletedCRD, gvr.GroupVersion())
	case listed: // also beside invalid entries
		return res, nil
	case err != nil && !apierrors.IsNotFound(err):
		return Resource{}, inconclusive(q.ref, err, gvr.GroupVersion())
	case err == nil && errors.Is(refusal, ErrInconclusive): // the group version has responded
		refusal = &NotServedError{Ref: q.ref, GroupServed: true, suggested: c.suggestions(q.ref)}
	}
	r.deny(c, q, noticed, refusal)
	return Resource{}, refusal
}

// errDeletedCRD is the error for a group version whose document is older than the deletion of a CRD.
var errDeletedCRD = errors.New("the group version still lists the resource of a CustomResourceDefinition that was deleted; try again")

// isOutdated reports whether res, which a document lists, is of a CRD whose deletion the run has noticed. C is the last snapshot.
func (r *Resolver) isOutdated(res Resource, c *snapshot) bool {
	l := r.liveRun()
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	state := l.knowledge.crd(res.GVR.GroupResource())
	return state != nil && state.gone != nil && !l.knowledge.believes(res, l.knowledge.backing(res.GVR.GroupVersion()), c.group(res.GVR.Group))
}

// answerFromServer returns the resource of q without a run: with requests only.
func (r *Resolver) answerFromServer(ctx context.Context, q question) (Resource, error) {
	gvr, full := q.gvr()
	if full {
		return r.answerGVR(ctx, q, gvr)
	}
	c, err := r.snapshotFor(ctx, q)
	if err != nil {
		return Resource{}, inconclusive(q.ref, err)
	}
	res, refusal := c.answer(q)
	if errors.Is(refusal, ErrNotServed) {
		refusal = r.explained(ctx, q, refusal)
	}
	return res, refusal
}

// answerGVR returns the resource gvr without a run. It requests the group version of gvr, and all
// documents only if that does not list gvr.
func (r *Resolver) answerGVR(ctx context.Context, q question, gvr schema.GroupVersionResource) (Resource, error) {
	gv := gvr.GroupVersion()
	version, err := r.requestVersion(ctx, gvr)
	res, listed := listedAs(version, gvr)
	switch {
	case listed: // also beside invalid entries
		return res, nil
	case err != nil && !apierrors.IsNotFound(err):
		return Resource{}, inconclusive(q.ref, err, gv)
	}
	answered := err == nil && len(version.resources) > 0 // it is conclusive
	c, err := r.snapshotFor(ctx, q)
	switch {
	case err != nil && answered:
		return Resource{}, &NotServedError{Ref: q.ref, GroupServed: true} // without suggestions
	case err != nil:
		return Resource{}, inconclusive(q.ref, err, gv)
	}
	_, refusal := c.answer(q)
	switch {
	case refusal == nil:
		return Resource{}, inconclusive(q.ref, errDisagree, gv)
	case answered && errors.Is(refusal, ErrInconclusive):
		return Resource{}, &NotServedError{Ref: q.ref, GroupServed: true, suggested: c.suggestions(q.ref)}
	case errors.Is(refusal, ErrNotServed):
		refusal = r.explained(ctx, q, refusal)
	}
	return Resource{}, refusal
}

// requestVersion requests the group version of gvr. If the result does not list gvr, it is not older than
// the call.
func (r *Resolver) requestVersion(ctx context.Context, gvr schema.GroupVersionResource) (versionDoc, error) {
	version, joined, err := r.groupVersion(ctx, gvr.GroupVersion())
	if _, listed := listedAs(version, gvr); joined && !listed && (err == nil || apierrors.IsNotFound(err)) {
		version, _, err = r.groupVersion(ctx, gvr.GroupVersion())
	}
	return version, err
}

// requestSnapshot requests the documents that can answer q. If try refuses q with the result, the
// result is not older than the call.
func (r *Resolver) requestSnapshot(ctx context.Context, q question, try func(*snapshot) error) (*snapshot, error) {
	which := r.scope(q)
	result, joined, err := r.requestDocuments(ctx, which, r.admit())
	if err == nil && joined && errors.Is(try(result()), ErrNotServed) {
		result, _, err = r.requestDocuments(ctx, which, r.admit())
	}
	if err != nil {
		return nil, err
	}
	return result(), nil
}

// admit returns the function that limits the rate of requests about unknown resources. It returns nil if
// the resolver does not run, since then all resources are unknown.
func (r *Resolver) admit() func(context.Context) error {
	if r.current.Load() == nil {
		return nil
	}
	return func(ctx context.Context) error {
		if err := r.unknown.Wait(ctx); err != nil {
			return fmt.Errorf("%w: %w", errTooMany, err)
		}
		return nil
	}
}

// errTooMany is the error for a question whose request was not sent because of the rate limit.
var errTooMany = fmt.Errorf("no request was sent: more than %d questions per second about unknown resources", unknownRate)

// snapshotFor calls requestSnapshot for one of the resolver's own questions.
func (r *Resolver) snapshotFor(ctx context.Context, q question) (*snapshot, error) {
	return r.requestSnapshot(ctx, q, func(c *snapshot) error {
		_, err := c.answer(q)
		return err
	})
}

// listedAs returns the resource gvr of version, if it lists gvr.
func listedAs(version versionDoc, gvr schema.GroupVersionResource) (Resource, bool) {
	i := slices.IndexFunc(version.resources, func(res Resource) bool { return res.GVR == gvr })
	if i < 0 {
		return Resource{}, false
	}
	return version.resources[i], true
}

// groupVersion requests one group version.
func (r *Resolver) groupVersion(ctx context.Context, gv schema.GroupVersion) (version versionDoc, joined bool, err error) {
	version, joined, err = r.versions.Do(ctx, gv, r.admit(), func(ctx context.Context) (versionDoc, error) {
		return r.server.groupVersion(ctx, gv)
	})
	if err == nil && version.err != nil {
		err = version.err
	}
	return version, joined, err
}

// requestAll requests all documents, and returns the snapshot after that. The result is not older than the call.
func (r *Resolver) requestAll(ctx context.Context) (*snapshot, error) {
	result, joined, err := r.requestDocuments(ctx, allGroups, nil)
	if err == nil && joined {
		result, _, err = r.requestDocuments(ctx, allGroups, nil)
	}
	if err != nil {
		return nil, err
	}
	return result(), nil
}

// scope selects the groups of a request for documents.
type scope string

const (
	allGroups   scope = "all"
	namedGroups scope = "named" // all but the core group
)

// scope returns the documents that can answer q. The resources of the core group do not change while a
// server runs.
func (r *Resolver) scope(q question) scope {
	core := q.inGroup && q.ref.Group == "" || !q.inGroup && q.ref.Version != "" && q.ref.Group == ""
	if r.current.Load() == nil || core {
		return allGroups
	}
	return namedGroups
}

// requestDocuments requests documents, and stores them. The function result computes the snapshot after that.
func (r *Resolver) requestDocuments(ctx context.Context, which scope, admit func(context.Context) error) (result func() *snapshot, joined bool, err error) {
	return r.documents.Do(ctx, which, admit, func(ctx context.Context) (func() *snapshot, error) {
		r.mu.Lock()
		r.asked++
		asked, previous := request{r.asked, time.Now()}, r.doc
		r.mu.Unlock()
		get := r.server.everything
		if which == namedGroups {
			get = r.server.named
		}
		doc, err := get(ctx, previous)
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, context.Cause(ctx) // the callers have left, and the documents are incomplete
		}
		return r.keep(asked, doc, err)
	})
}

// request is a request for documents.
type request struct {
	number uint64 // it is the number-th one
	at     time.Time
}

// keep stores the response to a request, and returns a function that computes the snapshot after that.
func (r *Resolver) keep(asked request, doc *document, err error) (func() *snapshot, error) {
	l, why := r.keepDocument(asked.number, doc, err)
	if why != nil {
		l.logger.Info("Discovery documents can't be read; the last known types stay", "err", why)
	}
	if err != nil {
		return nil, err
	}
	if l != nil {
		l.addDocument(doc, asked)
	}
	if c := r.current.Load(); c != nil {
		return func() *snapshot { return c }, nil
	}
	return sync.OnceValue(func() *snapshot { return r.plain(doc, time.Now()) }), nil
}

// plain returns the snapshot of doc without a run. It is stored for the same document.
func (r *Resolver) plain(doc *document, now time.Time) *snapshot {
	r.mu.Lock()
	c, of := r.plainSnapshot, r.plainDoc
	r.mu.Unlock()
	if of == doc {
		return c
	}
	known := knowledge{}
	known.addDocument(doc, request{1, now}, now)
	c = known.snapshot(nil, now)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live == nil {
		r.plainSnapshot, r.plainDoc = c, doc
	}
	return c
}

// keepDocument stores the response, unless a later request has a response already. It returns the run, or
// nil, and the error if it is to be logged.
func (r *Resolver) keepDocument(number uint64, doc *document, err error) (l *live, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l = r.live
	if l != nil && l.noteDocumentsLocked(doc, err, time.Now()) {
		why = l.docs.Err
	}
	if err == nil && number > r.docAt {
		r.doc, r.docAt = doc, number
	}
	return l, why
}

// addDocument stores a document, unless a later one has been stored.
func (l *live) addDocument(doc *document, asked request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if asked.number <= l.knowledge.docAt || l.narrow != nil { // a narrow run would not notice that it is out of date
		return
	}
	now := time.Now()
	l.knowledge.addDocument(doc, asked, now)
	l.refuteAbsencesLocked(now)
	l.publishLocked(now)
	signal(l.reads)
}
