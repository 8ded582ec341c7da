package discovery

import (
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// errDisagree is the state of a moment: of several API servers, or of the caches in
// one, not all know of a type that has just come (kubernetes#115241).
var errDisagree = errors.New("the server lists the resource, and says of its group version that there is no such resource")

// catalogue is one answer of the server to "what do you serve?". It is not
// changed once made.
type catalogue struct {
	// resources are sorted by group in the server's order, and within a group
	// by version, preferred first.
	resources []Resource
	// failed are the group versions that exist but could not be asked.
	failed map[schema.GroupVersion]error
}

func newCatalogue(groups []metav1.APIGroup, lists map[schema.GroupVersion]*metav1.APIResourceList, failed map[schema.GroupVersion]error) *catalogue {
	c := &catalogue{failed: failed}
	for i := range groups {
		for _, version := range preferredFirst(&groups[i]) {
			gv := schema.GroupVersion{Group: groups[i].Name, Version: version}
			c.add(gv, lists[gv])
		}
	}
	return c
}

// preferredFirst returns the group's versions, the preferred one moved to the front.
func preferredFirst(group *metav1.APIGroup) []string {
	versions := make([]string, 0, len(group.Versions))
	for _, v := range group.Versions {
		if v.Version == group.PreferredVersion.Version {
			versions = slices.Insert(versions, 0, v.Version)
		} else {
			versions = append(versions, v.Version)
		}
	}
	return versions
}

func (c *catalogue) add(gv schema.GroupVersion, list *metav1.APIResourceList) {
	if list == nil {
		return
	}
	for i := range list.APIResources {
		if in := &list.APIResources[i]; in.Name != "" && !strings.Contains(in.Name, "/") { // subresources
			c.resources = append(c.resources, newResource(gv, in))
		}
	}
}

// resolve returns the one resource that ref means in any of its readings.
func (c *catalogue) resolve(ref Ref) (Resource, error) {
	readings := ref.readings()
	for _, reading := range readings {
		switch found := c.onePerGroup(reading); len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return Resource{}, &AmbiguousError{Ref: ref, Candidates: found}
		}
	}
	for _, reading := range readings {
		if err := c.inconclusive(ref, reading); err != nil {
			return Resource{}, err
		}
	}
	return Resource{}, &NotServedError{
		Ref:      ref,
		Versions: c.versions(schema.GroupResource{Group: ref.Group, Resource: ref.Resource}),
		Near:     c.near(ref),
	}
}

// refuse returns the error for gvr, which its group version does not list: that it
// is not served, unless the catalogue says otherwise or can't say.
func (c *catalogue) refuse(gvr schema.GroupVersionResource) error {
	if err, failed := c.failed[gvr.GroupVersion()]; failed {
		return inconclusive(gvr, err)
	}
	for _, res := range c.resources {
		if res.GVR == gvr {
			return inconclusive(gvr, errDisagree)
		}
	}
	ref := RefOf(gvr)
	return &NotServedError{Ref: ref, Versions: c.versions(gvr.GroupResource()), Near: c.near(ref)}
}

// onePerGroup returns what ref matches, in the preferred version of each group.
func (c *catalogue) onePerGroup(ref Ref) []Resource {
	var found []Resource
	for _, res := range c.resources {
		last := len(found) - 1
		if ref.matches(res) && (last < 0 || found[last].GVR.Group != res.GVR.Group) {
			found = append(found, res)
		}
	}
	return found
}

// inconclusive returns an error if a group version that ref might mean failed:
// what was not found may be there.
func (c *catalogue) inconclusive(ref, reading Ref) error {
	var gvs []schema.GroupVersion
	for gv := range c.failed {
		probe := Resource{GVR: gv.WithResource(reading.Resource)}
		if reading.matches(probe) {
			gvs = append(gvs, gv)
		}
	}
	if gvs == nil {
		return nil
	}
	slices.SortFunc(gvs, func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) })
	causes := make([]error, len(gvs))
	for i, gv := range gvs {
		causes[i] = c.failed[gv]
	}
	return &InconclusiveError{Ref: ref, Failed: gvs, Err: errors.Join(causes...)}
}

// versions returns the versions that serve gr, preferred first.
func (c *catalogue) versions(gr schema.GroupResource) []string {
	var versions []string
	for _, res := range c.resources {
		if res.GVR.GroupResource() == gr {
			versions = append(versions, res.GVR.Version)
		}
	}
	return versions
}
