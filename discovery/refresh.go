package discovery

import (
	"context"
	"errors"
	"sync"
	"time"
)

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
	return r.documents.do(ctx, which, admit, func(ctx context.Context) (func() *snapshot, error) {
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
