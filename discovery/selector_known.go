package discovery

import (
	"cmp"
	"errors"

	"k8s.io/apimachinery/pkg/labels"
)

// errCRDsUnknown is why it can't be told what selects by CustomResourceDefinitions.
var errCRDsUnknown = errors.New("the CustomResourceDefinition is not known, or not any more")

// Selects reports whether s selects res, of which [Resolver.Subscribe] has told: what a
// Resource does not say of its type is what the run knows at the moment. It asks nobody. If
// it can't be told the error is an [*InconclusiveError]: nothing runs, or may list the
// CustomResourceDefinitions or APIServices, or the type's CRD has gone or been created again,
// of which the subscriber is about to be told.
func (r *Resolver) Selects(s Selector, res Resource) (bool, error) {
	wanted := s.Backing
	s.Backing = BackingUnknown
	if !s.Matches(res) {
		return false, nil
	}
	if s.CRDLabels == nil && wanted == BackingUnknown {
		return true, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live == nil {
		return false, inconclusive(RefOf(res.GVR), errBacking)
	}
	if s.CRDLabels != nil || wanted == BackingCRD {
		definition := r.live.known.crds[res.GVR.GroupResource().String()]
		switch {
		case !r.live.known.crdsRule, definition == nil && res.CRDUID != "", definition != nil && res.CRDUID != "" && definition.Metadata.UID != res.CRDUID:
			return false, inconclusive(RefOf(res.GVR), errCRDsUnknown)
		case definition == nil, s.CRDLabels != nil && !s.CRDLabels.Matches(labels.Set(definition.Metadata.Labels)):
			return false, nil
		case wanted == BackingUnknown, wanted == BackingCRD:
			return true, nil
		}
	}
	backing := cmp.Or(res.Backing, r.types.states[res.GVR.GroupResource()].resource.Backing)
	if backing == BackingUnknown {
		return false, inconclusive(RefOf(res.GVR), errBacking)
	}
	return backing == wanted, nil
}
