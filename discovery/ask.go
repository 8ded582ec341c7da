package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// answer returns what q means, from what is known if that says so, and otherwise from
// the server.
func (r *Resolver) answer(ctx context.Context, q question) (Resource, error) {
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
	return r.askOne(ctx, q, c, err)
}

// known returns what a run knows, or nil if none does. One that has just begun is waited
// for, for a while: it asks for what everybody wants to know.
func (r *Resolver) known(ctx context.Context) *catalogue {
	if c := r.current.Load(); c != nil {
		return c
	}
	patience := time.NewTimer(beginning)
	defer patience.Stop()
	for {
		r.mu.Lock()
		begins, changed := r.live != nil && !r.live.tried, r.changed
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
func (r *Resolver) refused(c *catalogue, q question) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live == nil || r.current.Load() != c || !r.live.certain() {
		return nil
	}
	return r.denied[q]
}

// certain reports whether refusal, which c gave to q, needs no request to bear it out:
// the CRDs say it, of which other answers of the server may be behind.
func (r *Resolver) certain(c *catalogue, q question, refusal error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live == nil || r.current.Load() != c || !errors.Is(refusal, ErrNotServed) {
		return false
	}
	gvr, full := q.gvr()
	return errors.Is(refusal, ErrNotEstablished) && r.live.certain() || full && r.live.known.decides(gvr.GroupResource())
}

// askOne asks the server about q alone, which c, what a run knows, refuses. What it
// denies stays denied until the run learns of another change.
func (r *Resolver) askOne(ctx context.Context, q question, c *catalogue, refusal error) (Resource, error) {
	gvr, full := q.gvr()
	if !full {
		fresh, err := r.fresh(ctx, q)
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
		refusal = &NotServedError{Ref: q.ref, GroupServed: true, Near: c.near(q.ref)}
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
	c, err := r.fresh(ctx, q)
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
	c, err := r.fresh(ctx, q)
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
		return Resource{}, &NotServedError{Ref: q.ref, GroupServed: true, Near: c.near(q.ref)}
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

// fresh asks for everything. What is returned is not older than the call if it refuses
// q; if it does not, that does not matter.
func (r *Resolver) fresh(ctx context.Context, q question) (*catalogue, error) {
	which := r.scope(q)
	c, joined, err := r.ask(ctx, which)
	if err != nil || !joined {
		return c, err
	}
	if _, refusal := c.answer(q); errors.Is(refusal, ErrNotServed) {
		c, _, err = r.ask(ctx, which)
	}
	return c, err
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
	version, joined, err = r.versions.do(ctx, gv, func(ctx context.Context) (versionDoc, error) {
		return r.server.groupVersion(ctx, gv)
	})
	if err == nil && version.err != nil {
		err = version.err
	}
	return version, joined, err
}

// refresh asks for everything and returns what is known then.
func (r *Resolver) refresh(ctx context.Context) (*catalogue, error) {
	c, _, err := r.ask(ctx, allGroups)
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
func (r *Resolver) ask(ctx context.Context, which scope) (c *catalogue, joined bool, err error) {
	return r.documents.do(ctx, which, func(ctx context.Context) (*catalogue, error) {
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
		if l != nil {
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
	known := knowledge{doc: doc}
	return known.catalogue(nil, now), nil
}

// explained returns refusal, or the reason for it if that is a CRD that is there.
func (r *Resolver) explained(ctx context.Context, q question, refusal error) error {
	rest, ok := r.server.(*restServer)
	name := q.definition()
	if !ok || name == "" {
		return refusal
	}
	definition, _, err := r.definitions.do(ctx, name, func(ctx context.Context) (*crd, error) {
		return rest.definition(ctx, name)
	})
	switch {
	case err != nil: // not there, or not to be told
		return refusal
	case !definition.isEstablished():
		return newNotEstablishedError(q, definition)
	}
	for _, res := range definition.resources() {
		if q.ref.Version == "" || res.GVR.Version == q.ref.Version {
			return inconclusive(q.ref, errDisagree, res.GVR.GroupVersion())
		}
	}
	return refusal
}

// definition returns the name of the CRD that q would be of, or "".
func (q question) definition() string {
	if q.form == kind || q.ref.Group == "" || q.ref.Resource != strings.ToLower(q.ref.Resource) {
		return ""
	}
	gr := schema.GroupResource{Group: q.ref.Group, Resource: q.ref.Resource}
	return gr.String()
}

func (s *restServer) definition(ctx context.Context, name string) (*crd, error) {
	res, err := s.endpoint.get(ctx, crdPath+"/"+name, nil, http.Header{"Accept": {acceptLegacy}})
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // read only
	body, err := read(res)
	if err != nil {
		return nil, err
	}
	definition := &crd{}
	if err := json.Unmarshal(body, definition); err != nil || definition.Metadata.Name != name {
		return nil, errors.Join(errNoAnswer, err)
	}
	return definition, nil
}

// deny remembers refusal, which c gave to q, until a run learns of another change.
func (r *Resolver) deny(c *catalogue, q question, refusal error) {
	if !errors.Is(refusal, ErrNotServed) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.current.Load() == c {
		r.denyLocked(q, refusal)
	}
}

// inconclusive returns the error of a question about ref that could not be put.
func inconclusive(ref Ref, err error, failed ...schema.GroupVersion) *InconclusiveError {
	out := &InconclusiveError{Ref: ref, Failed: failed, Asked: time.Now(), Err: err}
	if asked, known := errors.AsType[*askedError](err); known {
		out.Asked = asked.at
	}
	if paused, is := errors.AsType[*pauseError](err); is {
		out.Again = paused.until
	} else if after, wait := apierrors.SuggestsClientDelay(err); wait {
		out.Again = out.Asked.Add(time.Duration(after) * time.Second)
	}
	return out
}
