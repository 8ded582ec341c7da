package discovery

import (
	"cmp"
	"errors"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// errCRDsUnknown is the error for selection by a CustomResourceDefinition that is not known.
var errCRDsUnknown = errors.New("its CustomResourceDefinition is not known at present")

// Selects reports whether s selects res, the resource of an event of [Resolver.Subscribe]. It takes the facts
// that a Resource does not have, such as the labels of its CRD, from the run. It sends no request. The error
// is an [*InconclusiveError] if the resolver does not run, if it may not list CustomResourceDefinitions or
// APIServices, or if the type's CRD was deleted or created again since the event: then the subscriber gets
// another event.
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
		case !known.defined, s.CRDLabels != nil && !s.CRDLabels.Matches(known.labels): // Matches may be a user's code
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

// knownType has the facts of a type that its resource does not have.
type knownType struct {
	crdsRule bool // all CustomResourceDefinitions are known
	defined  bool // the type has one
	uid      types.UID
	labels   labels.Set // of the CustomResourceDefinition; never written to
	backing  Backing
}

// knownOf returns the facts of the type of res, and reports whether the resolver runs.
func (r *Resolver) knownOf(res Resource) (known knownType, running bool) {
	c := r.current.Load()
	if c == nil {
		r.widen()
		return known, false
	}
	state := c.group(res.GVR.Group).typeOf(res.GVR.Resource)
	known = knownType{crdsRule: c.crdsRule, defined: state.defined, uid: state.uid, labels: state.labels}
	known.backing = cmp.Or(res.Backing, state.resource.Backing)
	return known, true
}
