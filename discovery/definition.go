package discovery

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// explained returns refusal, or the reason for it if that is a CRD that is there.
func (r *Resolver) explained(ctx context.Context, q question, refusal error) error {
	rest, ok := r.server.(*restServer)
	name := q.definition()
	if !ok || name == "" {
		return refusal
	}
	definition, _, err := r.definitions.do(ctx, name, nil, func(ctx context.Context) (*crd, error) {
		definition, ref := &crd{}, objectRef{crdPath, name}
		err := rest.object(ctx, ref, acceptLegacy, definition, &definition.Metadata)
		rest.endpoint.pauses.settle(ref.path+"/"+ref.name, err)
		return definition, err
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

// CRDUID asks the server for the UID of the CustomResourceDefinition of gr, whatever is
// known of it. It is one request, for the CRD's metadata. If there is no such CRD the
// error is a [*NotServedError], and if that can't be told an [*InconclusiveError]. A
// resolver that was made with [NewFromDiscovery] can't tell.
func (r *Resolver) CRDUID(ctx context.Context, gr schema.GroupResource) (types.UID, error) {
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
	err := rest.object(ctx, objectRef{crdPath, gr.String()}, metaOnly, &object, &object.Metadata)
	switch {
	case apierrors.IsNotFound(err):
		return "", &NotServedError{Ref: ref}
	case err != nil:
		return "", inconclusive(ref, err)
	}
	return object.Metadata.UID, nil
}

// metaOnly asks for an object's metadata; a server that can't tell them alone sends all.
const metaOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
