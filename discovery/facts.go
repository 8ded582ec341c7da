package discovery

import (
	"context"
	"errors"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/internal/typefacts"
)

func init() {
	typefacts.Of = func(resolver any) typefacts.Facts { return facts{resolver.(*Resolver)} }
}

// facts is the view of a resolver for the informers of this module.
type facts struct{ *Resolver }

// Pending implements typefacts.Facts.
func (r facts) Pending(gr schema.GroupResource) error {
	c := r.current.Load()
	if c == nil {
		return nil
	}
	q := questionOfGVR(gr.WithVersion(""))
	for _, reading := range q.readings() {
		if definition := c.waitingFor(reading); definition != nil {
			return newNotEstablishedError(q, definition)
		}
	}
	return nil
}

// Expect implements typefacts.Facts.
func (r facts) Expect(gr schema.GroupResource) (stop func()) { return r.expect(gr) }

// CRDUID implements typefacts.Facts.
func (r facts) CRDUID(ctx context.Context, gr schema.GroupResource) (types.UID, error) {
	ref := RefOf(gr.WithVersion(""))
	if err := checkParts(ref, false); err != nil {
		return "", err
	}
	rest, ok := r.server.(*restServer)
	if !ok {
		return "", inconclusive(ref, errNoWatch)
	}
	var object struct {
		Metadata slimMeta `json:"metadata"`
	}
	ctx, cancel := context.WithTimeout(ctx, r.options.requestTimeout)
	defer cancel()
	l := r.liveRun()
	had := l.crdOf(gr)
	err := rest.object(ctx, objectRef{crdPath, gr.String()}, metaOnly, &object, &object.Metadata)
	switch {
	case isMissing(err, gr.String()):
		if now := l.crdOf(gr); now != nil && (had == nil || now.UID != had.UID) {
			return now.UID, nil // the watch has shown it since the request
		}
		return "", &NotServedError{Ref: ref}
	case err != nil:
		return "", inconclusive(ref, err)
	}
	l.learn(gr, had, &object.Metadata)
	return object.Metadata.UID, nil
}

// scoped is a type with a scope.
type scoped struct {
	gr         schema.GroupResource
	namespaced bool
}

// ScopeEnded implements typefacts.Facts.
func (r facts) ScopeEnded(gr schema.GroupResource, namespaced bool) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended[scoped{gr, namespaced}]
}

// noteEndsLocked records the ends of types and of scopes. API servers that are behind may still serve them. The caller holds the lock.
func (r *Resolver) noteEndsLocked(events []Event, now time.Time) {
	maps.DeleteFunc(r.ended, func(_ scoped, at time.Time) bool { return now.Sub(at) > staleFor })
	for _, event := range events {
		was := event.Old
		if event.Type == Removed {
			was = event.Resource
		}
		if event.Type == Removed || event.Type == Changed && was.Namespaced != event.Resource.Namespaced {
			if r.ended == nil {
				r.ended = map[scoped]time.Time{}
			}
			r.ended[scoped{was.GVR.GroupResource(), was.Namespaced}] = now
		}
	}
}

// crdOf returns the metadata of the CRD of gr, as far as the run knows it; nil if it does not. L may be nil.
func (l *live) crdOf(gr schema.GroupResource) *slimMeta {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.narrow != nil {
		return l.narrow.crdOf(gr)
	}
	if state := l.knowledge.crd(gr); state != nil {
		return state.meta
	}
	return nil
}

// learn stores item, the metadata of the CRD of gr, if it has another UID than had, which the run knew when it was requested. The watch of CRDs
// is then behind or broken, and the run would go on to report the type of the former CRD. Had is nil if the run knew none.
func (l *live) learn(gr schema.GroupResource, had, item *slimMeta) {
	if had == nil || had.UID == item.UID {
		return
	}
	number := l.resolver.askedSoFar()
	l.updateObjects(func(now time.Time) (differs, ask bool) {
		if l.narrow != nil {
			l.narrow.widenLocked()
			return false, false
		}
		state := l.knowledge.crd(gr)
		if state == nil || state.meta != had { // the watch was faster
			return false, false
		}
		ask = l.knowledge.putCRD(item, number, now)
		state.learned = item.ResourceVersion
		l.publishLocked(now) // the caller asks next, and must not get the former type
		return true, ask
	})
}

// isMissing reports whether err is the response of an API server that does not have the object of that name. The
// response of a server that does not serve the type, for example while it starts, or of a proxy, does not name it.
func isMissing(err error, name string) bool {
	fault, is := errors.AsType[*apierrors.StatusError](err)
	return is && apierrors.IsNotFound(fault) && fault.ErrStatus.Details != nil && fault.ErrStatus.Details.Name == name
}
