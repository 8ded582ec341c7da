package discovery

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
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

// metaOnly asks for an object's metadata; a server that can't tell them alone sends all.
const metaOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
