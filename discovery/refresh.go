package discovery

import (
	"context"
	"errors"
	"time"
)

// refresh asks for everything and returns what is known then.
func (r *Resolver) refresh(ctx context.Context) (*catalogue, error) {
	c, _, err := r.ask(ctx, allGroups, nil)
	return c, err
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

// ask asks for documents, and keeps them.
func (r *Resolver) ask(ctx context.Context, which scope, admit func(context.Context) error) (c *catalogue, joined bool, err error) {
	return r.documents.do(ctx, which, admit, func(ctx context.Context) (*catalogue, error) {
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
func (r *Resolver) keep(number uint64, doc *document, err error) (*catalogue, error) {
	r.mu.Lock()
	now := time.Now()
	l := r.live
	failing := l != nil && l.noteDocumentsLocked(doc, err, now)
	if err == nil && number > r.docAt { // and not overtaken by a later one
		r.doc, r.docAt = doc, number
		if l != nil && (doc != l.known.doc || l.known.unsettled()) { // an unchanged one says nothing new
			settled := !l.known.unsettled()
			l.known.learn(doc, now)
			l.publishLocked(now)
			if settled && l.known.unsettled() {
				l.ask() // again soon, whoever has asked now
			}
		}
	}
	var why error
	if failing {
		why = l.docs.Err
	}
	r.mu.Unlock()
	if failing {
		l.logger.Info("Discovery documents can't be had; what was known stands", "err", why)
	}
	if err != nil {
		return nil, err
	}
	if c := r.current.Load(); c != nil {
		return c, nil
	}
	return r.plain(doc, now), nil
}

// plain returns what doc alone says. An unchanged document says the same.
func (r *Resolver) plain(doc *document, now time.Time) *catalogue {
	r.mu.Lock()
	c, of := r.said, r.saidBy
	r.mu.Unlock()
	if of == doc {
		return c
	}
	known := knowledge{doc: doc}
	c = known.catalogue(nil, now)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live == nil {
		r.said, r.saidBy = c, doc
	}
	return c
}
