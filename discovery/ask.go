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

// answer returns what q means, from what is known if that says so, and otherwise from
// the server.
func (r *Resolver) answer(ctx context.Context, q question) (Resource, error) {
	for {
		c := r.known(ctx)
		if c == nil {
			return r.askAll(ctx, q)
		}
		if refusal := r.refused(c, q); refusal != nil {
			return Resource{}, refusal
		}
		res, err := c.answer(q)
		if err == nil || errors.Is(err, ErrAmbiguous) || r.certain(c, q, err) {
			return res, err
		}
		if now := r.current.Load(); now == c || ctx.Err() != nil {
			return r.askOne(ctx, q, c, err)
		} // what is known has changed meanwhile, and may know better than the server tells
	}
}

// known returns what a run knows, or nil if none does. One that has just begun is waited
// for, for a while: it asks for what everybody wants to know.
func (r *Resolver) known(ctx context.Context) *snapshot {
	if c := r.current.Load(); c != nil {
		return c
	}
	patience := time.NewTimer(beginning)
	defer patience.Stop()
	for {
		r.mu.Lock()
		begins, changed := r.live != nil && !r.live.begun, r.changed
		r.mu.Unlock()
		if !begins {
			return r.current.Load()
		}
		select {
		case <-changed:
		case <-patience.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// beginning is how long a run may take until questions are put to the server by
// themselves.
const beginning = 2 * time.Second

// refused returns the refusal of q that needs no request to bear it out, as nothing has
// changed since it was given, or nil.
func (r *Resolver) refused(c *snapshot, q question) error {
	r.mu.Lock()
	refusal, denied := r.denied[q]
	denied = denied && r.live != nil && r.current.Load() == c && r.live.certain()
	r.mu.Unlock()
	switch {
	case !denied:
		return nil
	case refusal == nil: // an event has said so
		refusal = c.refuse(q)
	}
	if errors.Is(refusal, ErrInconclusive) {
		return nil
	}
	return refusal
}

// certain reports whether refusal, which c gave to q, needs no request to bear it out:
// the CRDs say it, of which other answers of the server may be behind.
func (r *Resolver) certain(c *snapshot, q question, refusal error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live == nil || r.current.Load() != c || !errors.Is(refusal, ErrNotServed) {
		return false
	}
	gvr, full := q.gvr()
	return errors.Is(refusal, ErrNotEstablished) && r.live.certain() || full && c.decides(gvr.GroupResource())
}

// askOne asks the server about q alone, which c, what a run knows, refuses. What it
// denies stays denied until the run learns of another change.
func (r *Resolver) askOne(ctx context.Context, q question, c *snapshot, refusal error) (Resource, error) {
	gvr, full := q.gvr()
	if !full {
		fresh, err := r.freshFor(ctx, q)
		if err != nil {
			return Resource{}, inconclusive(q.ref, err)
		}
		res, err := fresh.answer(q)
		r.deny(fresh, q, err)
		return res, err
	}
	version, err := r.freshVersion(ctx, gvr)
	res, listed := listedAs(version, gvr)
	switch {
	case err == nil && listed:
		return res, nil
	case err != nil && !apierrors.IsNotFound(err):
		return Resource{}, inconclusive(q.ref, err, gvr.GroupVersion())
	case err == nil && errors.Is(refusal, ErrInconclusive): // it has answered itself
		refusal = &NotServedError{Ref: q.ref, GroupServed: true, suggested: c.suggestions(q.ref)}
	}
	r.deny(c, q, refusal)
	return Resource{}, refusal
}

// askAll asks the server as if nothing were known.
func (r *Resolver) askAll(ctx context.Context, q question) (Resource, error) {
	gvr, full := q.gvr()
	if full {
		return r.askInFull(ctx, q, gvr)
	}
	c, err := r.freshFor(ctx, q)
	if err != nil {
		return Resource{}, inconclusive(q.ref, err)
	}
	res, refusal := c.answer(q)
	if errors.Is(refusal, ErrNotServed) {
		refusal = r.explained(ctx, q, refusal)
	}
	return res, refusal
}

// askInFull asks the group version itself, and everybody else only if it refuses.
func (r *Resolver) askInFull(ctx context.Context, q question, gvr schema.GroupVersionResource) (Resource, error) {
	gv := gvr.GroupVersion()
	version, err := r.freshVersion(ctx, gvr)
	res, listed := listedAs(version, gvr)
	switch {
	case err == nil && listed:
		return res, nil
	case err != nil && !apierrors.IsNotFound(err):
		return Resource{}, inconclusive(q.ref, err, gv)
	}
	answered := err == nil && len(version.resources) > 0 // so that it is no
	c, err := r.freshFor(ctx, q)
	switch {
	case err != nil && answered:
		return Resource{}, &NotServedError{Ref: q.ref, GroupServed: true} // there are only no suggestions
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

// freshVersion asks gvr's group version. What is returned is not older than the call if
// it does not list gvr.
func (r *Resolver) freshVersion(ctx context.Context, gvr schema.GroupVersionResource) (versionDoc, error) {
	version, joined, err := r.groupVersion(ctx, gvr.GroupVersion())
	if _, listed := listedAs(version, gvr); err == nil && !listed && joined {
		version, _, err = r.groupVersion(ctx, gvr.GroupVersion())
	}
	return version, err
}

// fresh asks for everything. What is returned is not older than the call if try finds it
// to refuse q; if it does not, that does not matter.
func (r *Resolver) fresh(ctx context.Context, q question, try func(*snapshot) error) (*snapshot, error) {
	which := r.scope(q)
	said, joined, err := r.ask(ctx, which, r.admit())
	if err == nil && joined && errors.Is(try(said()), ErrNotServed) {
		said, _, err = r.ask(ctx, which, r.admit())
	}
	if err != nil {
		return nil, err
	}
	return said(), nil
}

// admit returns what keeps the requests about unknown names below their bound. A resolver
// that does not run has none: what it is asked for is not known to be unknown.
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

// errTooMany is why a question was not put to the server.
var errTooMany = fmt.Errorf("the server was not asked: more than %d questions a second about what is not known to be served", unknownRate)

// freshFor is fresh for one of the resolver's own questions.
func (r *Resolver) freshFor(ctx context.Context, q question) (*snapshot, error) {
	return r.fresh(ctx, q, func(c *snapshot) error {
		_, err := c.answer(q)
		return err
	})
}

func listedAs(version versionDoc, gvr schema.GroupVersionResource) (Resource, bool) {
	i := slices.IndexFunc(version.resources, func(res Resource) bool { return res.GVR == gvr })
	if i < 0 {
		return Resource{}, false
	}
	return version.resources[i], true
}

// groupVersion asks about one group version.
func (r *Resolver) groupVersion(ctx context.Context, gv schema.GroupVersion) (version versionDoc, joined bool, err error) {
	version, joined, err = r.versions.Do(ctx, gv, r.admit(), func(ctx context.Context) (versionDoc, error) {
		return r.server.groupVersion(ctx, gv)
	})
	if err == nil && version.err != nil {
		err = version.err
	}
	return version, joined, err
}

// deny remembers refusal, which c gave to q, until a run learns of another change.
func (r *Resolver) deny(c *snapshot, q question, refusal error) {
	if !errors.Is(refusal, ErrNotServed) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current.Load() == c {
		r.denyLocked(q, refusal)
	}
}

// refresh asks for everything and returns what is known then.
func (r *Resolver) refresh(ctx context.Context) (*snapshot, error) {
	said, _, err := r.ask(ctx, allGroups, nil)
	if err != nil {
		return nil, err
	}
	return said(), nil
}

// scope is which groups documents are asked for.
type scope string

const (
	allGroups   scope = "all"
	namedGroups scope = "named" // all but the core group
)

// scope returns which documents can tell what q means. What the core group has does not
// change while a server runs.
func (r *Resolver) scope(q question) scope {
	core := q.inGroup && q.ref.Group == "" || !q.inGroup && q.ref.Version != "" && q.ref.Group == ""
	if r.current.Load() == nil || core {
		return allGroups
	}
	return namedGroups
}

// ask asks for documents, and keeps them. It returns what is known by them, which is put
// together when it is called for.
func (r *Resolver) ask(ctx context.Context, which scope, admit func(context.Context) error) (said func() *snapshot, joined bool, err error) {
	return r.documents.Do(ctx, which, admit, func(ctx context.Context) (func() *snapshot, error) {
		r.mu.Lock()
		r.asked++
		number, previous := r.asked, r.doc
		r.mu.Unlock()
		ask := r.server.everything
		if which == namedGroups {
			ask = r.server.named
		}
		doc, err := ask(ctx, previous)
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, context.Cause(ctx) // nobody waits; half an answer is none
		}
		return r.keep(number, doc, err)
	})
}

// keep takes the answer to request number, and returns what is known by it.
func (r *Resolver) keep(number uint64, doc *document, err error) (func() *snapshot, error) {
	l, why := r.keepDocument(number, doc, err)
	if why != nil {
		l.logger.Info("Discovery documents can't be had; what was known stands", "err", why)
	}
	if err != nil {
		return nil, err
	}
	if l != nil {
		l.learn(doc, number)
	}
	if c := r.current.Load(); c != nil {
		return func() *snapshot { return c }, nil
	}
	return sync.OnceValue(func() *snapshot { return r.plain(doc, time.Now()) }), nil
}

// plain returns what doc alone says. An unchanged document says the same.
func (r *Resolver) plain(doc *document, now time.Time) *snapshot {
	r.mu.Lock()
	c, of := r.said, r.saidBy
	r.mu.Unlock()
	if of == doc {
		return c
	}
	known := knowledge{}
	known.learn(doc, 1, now)
	c = known.snapshot(nil, now)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live == nil {
		r.said, r.saidBy = c, doc
	}
	return c
}

// keepDocument keeps the answer unless a later one has overtaken it. It returns the run that
// goes on, or nil, and the error if that is worth a line.
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

// learn takes a document, unless a later one has overtaken it.
func (l *live) learn(doc *document, number uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if number <= l.known.docAt {
		return
	}
	now := time.Now()
	l.known.learn(doc, number, now)
	l.publishLocked(now)
	signal(l.reads)
}
