package discovery

import (
	"cmp"
	"errors"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// errCRDsUnknown is why it can't be told what selects by CustomResourceDefinitions.
var errCRDsUnknown = errors.New("its CustomResourceDefinition is not known at present")

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
	known, running := r.knownOf(res)
	if !running {
		return false, inconclusive(RefOf(res.GVR), errBacking)
	}
	if s.CRDLabels != nil || wanted == BackingCRD {
		switch {
		case !known.crdsRule, !known.defined && res.CRDUID != "", known.defined && res.CRDUID != "" && known.uid != res.CRDUID:
			return false, inconclusive(RefOf(res.GVR), errCRDsUnknown)
		case !known.defined, s.CRDLabels != nil && !s.CRDLabels.Matches(known.labels): // which may be anybody's code
			return false, nil
		case wanted == BackingUnknown, wanted == BackingCRD:
			return true, nil
		}
	}
	if known.backing == BackingUnknown {
		return false, inconclusive(RefOf(res.GVR), errBacking)
	}
	return known.backing == wanted, nil
}

// knownType is what a run knows of a type besides its resource.
type knownType struct {
	crdsRule bool // it knows of all CustomResourceDefinitions
	defined  bool // there is one
	uid      types.UID
	labels   labels.Set // of the CustomResourceDefinition; never written to
	backing  Backing
}

// knownOf returns what is known of res's type, and whether anything is.
func (r *Resolver) knownOf(res Resource) (known knownType, running bool) {
	c := r.current.Load()
	if c == nil {
		return known, false
	}
	state := c.group(res.GVR.Group).typeOf(res.GVR.Resource)
	known = knownType{crdsRule: c.crdsRule, defined: state.defined, uid: state.uid, labels: state.labels}
	known.backing = cmp.Or(res.Backing, state.resource.Backing)
	return known, true
}
