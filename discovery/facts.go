package discovery

import (
	"context"
	"errors"

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
	err := rest.object(ctx, objectRef{crdPath, gr.String()}, metaOnly, &object, &object.Metadata)
	switch {
	case isMissing(err, gr.String()):
		return "", &NotServedError{Ref: ref}
	case err != nil:
		return "", inconclusive(ref, err)
	}
	return object.Metadata.UID, nil
}

// isMissing reports whether err is the response of an API server that does not have the object of that name. The
// response of a server that does not serve the type, for example while it starts, or of a proxy, does not name it.
func isMissing(err error, name string) bool {
	fault, is := errors.AsType[*apierrors.StatusError](err)
	return is && apierrors.IsNotFound(fault) && fault.ErrStatus.Details != nil && fault.ErrStatus.Details.Name == name
}
