package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
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
