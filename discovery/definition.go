package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
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
	meta, err := rest.definitionMeta(ctx, gr.String())
	switch {
	case apierrors.IsNotFound(err):
		return "", &NotServedError{Ref: ref}
	case err != nil:
		return "", inconclusive(ref, err)
	}
	return meta.UID, nil
}

// metaOnly asks for an object's metadata; a server that can't tell them alone sends all.
const metaOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

func (s *restServer) definitionMeta(ctx context.Context, name string) (*slimMeta, error) {
	res, err := s.endpoint.get(ctx, crdPath+"/"+name, nil, http.Header{"Accept": {metaOnly}})
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // read only
	body, err := read(res)
	if err != nil {
		return nil, err
	}
	var object struct {
		Metadata slimMeta `json:"metadata"`
	}
	if err := json.Unmarshal(body, &object); err != nil || object.Metadata.Name != name {
		return nil, errors.Join(errNoAnswer, err)
	}
	return &object.Metadata, nil
}

func (s *restServer) definition(ctx context.Context, name string) (*crd, error) {
	path := crdPath + "/" + name
	body, err := s.document(ctx, path)
	s.endpoint.pauses.settle(path, err)
	if err != nil {
		return nil, err
	}
	definition := &crd{}
	if err := json.Unmarshal(body, definition); err != nil || definition.Metadata.Name != name {
		return nil, errors.Join(errNoAnswer, err)
	}
	return definition, nil
}
