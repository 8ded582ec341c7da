package discovery

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// catalogue puts together what the sources say.
func (k *knowledge) catalogue() *catalogue {
	var groups []groupDoc
	for _, group := range k.doc.groups() {
		groups = append(groups, k.ofDocument(group))
	}
	for _, gvr := range sortedGVRs(k.doubted) {
		if !hasGroup(groups, gvr.Group) {
			groups = append(groups, k.ofDocument(groupDoc{name: gvr.Group}))
		}
	}
	if k.crdsRule {
		groups = k.withCRDs(groups)
	}
	groups = slices.DeleteFunc(groups, func(g groupDoc) bool { return len(g.versions) == 0 })
	var unknown error
	switch {
	case k.doc.core.err != nil:
		unknown = k.doc.core.err
	case k.doc.named.err != nil:
		unknown = k.doc.named.err
	}
	c := newCatalogue(groups, unknown)
	for _, name := range slices.Sorted(maps.Keys(k.crds)) {
		if definition := k.crds[name]; k.crdsRule && !definition.isEstablished() {
			c.waiting = append(c.waiting, definition)
		}
	}
	return c
}

// ofDocument returns what a document says of a group, as far as it is to be believed.
func (k *knowledge) ofDocument(group groupDoc) groupDoc {
	out := groupDoc{name: group.name}
	for _, version := range group.versions {
		gv := schema.GroupVersion{Group: group.name, Version: version.name}
		backing := k.backing(gv)
		kept := versionDoc{name: version.name, err: version.err}
		for _, res := range version.resources {
			if k.believes(res, backing) {
				kept.resources = append(kept.resources, k.decorated(res, backing))
			}
		}
		if backing == BackingCRD && k.crdsRule {
			kept.err = nil // the CRDs know
			if len(kept.resources) == 0 {
				continue
			}
		}
		out.versions = append(out.versions, kept)
	}
	for _, gvr := range sortedGVRs(k.doubted) {
		if d := k.doubted[gvr]; gvr.Group == group.name && k.believes(d.res, k.backing(gvr.GroupVersion())) {
			out.place(k.decorated(d.res, k.backing(gvr.GroupVersion())))
		}
	}
	return out
}

// believes reports whether res is served, given that a document lists it. Of custom
// resources the CRDs know more. Where the server makes APIServices for all that it
// serves itself, a group version without one has just gone, or is not there yet.
func (k *knowledge) believes(res Resource, backing Backing) bool {
	if backing == BackingUnknown && k.automanages() {
		return false
	}
	if !k.crdsRule || backing == BackingAggregated {
		return true
	}
	gr := res.GVR.GroupResource()
	if _, gone := k.gone[gr]; gone || backing == BackingCRD {
		return false
	}
	definition := k.crds[gr.String()]
	return definition == nil || !definition.isEstablished()
}

// decorated returns res with what is known to serve it.
func (k *knowledge) decorated(res Resource, backing Backing) Resource {
	res.Backing = backing
	if backing == BackingUnknown && k.crdsRule {
		res.Backing = BackingBuiltIn // there is nothing else on a server without APIServices
	}
	return res
}

// withCRDs adds what the CRDs define, which documents may not tell yet.
func (k *knowledge) withCRDs(groups []groupDoc) []groupDoc {
	for _, name := range slices.Sorted(maps.Keys(k.crds)) {
		for _, res := range k.crds[name].resources() {
			if k.backing(res.GVR.GroupVersion()) == BackingAggregated {
				continue // requests go there
			}
			i := slices.IndexFunc(groups, func(g groupDoc) bool { return g.name == res.GVR.Group })
			if i < 0 {
				i = len(groups)
				groups = append(groups, groupDoc{name: res.GVR.Group})
			}
			groups[i].place(res)
		}
	}
	return groups
}

// place adds res to its version of the group, which it adds in the order that the
// server gives to versions unless told otherwise.
func (g *groupDoc) place(res Resource) {
	at := slices.IndexFunc(g.versions, func(v versionDoc) bool { return v.name == res.GVR.Version })
	if at < 0 {
		at = slices.IndexFunc(g.versions, func(v versionDoc) bool {
			return version.CompareKubeAwareVersionStrings(v.name, res.GVR.Version) < 0
		})
		if at < 0 {
			at = len(g.versions)
		}
		g.versions = slices.Insert(g.versions, at, versionDoc{name: res.GVR.Version})
	}
	g.versions[at].add(res)
}
