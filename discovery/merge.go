package discovery

import (
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// errUntold is of a group version whose APIService is there, and of which the documents
// do not tell.
var errUntold = errors.New("its APIService exists, but the discovery document does not list its resources yet")

// catalogue puts together what the sources say. What was served, as last says, and is
// not mentioned by them is doubted, and kept for a while.
func (k *knowledge) catalogue(last *catalogue, now time.Time) *catalogue {
	groups := k.groups()
	listed := map[schema.GroupVersionResource]bool{}
	for _, group := range groups {
		for _, version := range group.versions {
			for i := range version.resources {
				listed[version.resources[i].GVR] = true
			}
		}
	}
	doubted := map[schema.GroupVersionResource]doubt{}
	if last != nil {
		for at := range last.all() {
			res := *at
			if listed[res.GVR] || k.contradicted(res) {
				continue
			}
			d, old := k.doubted[res.GVR]
			if !old {
				d.since = now
			}
			if !d.over {
				doubted[res.GVR] = d
				groups = placed(groups, res)
			}
		}
	}
	k.doubted = doubted
	views := make([]*groupView, len(groups))
	byName := make(map[string]*groupView, len(groups))
	for i, group := range groups {
		views[i] = newGroupView(group)
		byName[group.name] = views[i]
	}
	for _, name := range slices.Sorted(maps.Keys(k.crds)) {
		if definition := k.crds[name]; k.crdsRule && !definition.isEstablished() {
			group := byName[definition.Spec.Group]
			if group == nil {
				group = newGroupView(groupDoc{name: definition.Spec.Group})
				byName[group.name] = group
				views = append(views, group)
			}
			group.waiting = append(group.waiting, definition)
		}
	}
	return newCatalogue(views, k.doc.core.err, k.doc.named.err)
}

// groups returns what the sources mention, in the server's order.
func (k *knowledge) groups() []groupDoc {
	var groups []groupDoc
	for _, group := range k.doc.groups() {
		groups = append(groups, k.ofDocument(group))
	}
	if k.crdsRule {
		groups = k.withCRDs(groups)
	}
	if k.apisRule {
		groups = k.withUntold(groups)
	}
	return slices.DeleteFunc(groups, func(g groupDoc) bool { return len(g.versions) == 0 })
}

// contradicted reports whether there is evidence that res is gone, which nobody
// mentions: then nothing is left to doubt.
func (k *knowledge) contradicted(res Resource) bool {
	gr := res.GVR.GroupResource()
	if _, gone := k.gone[gr]; gone || k.dropped[res.GVR.GroupVersion()] {
		return true
	}
	return k.decides(gr) || k.crdsRule && k.crdsCurrent && res.CRDUID != ""
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
		if backing == BackingCRD && k.crdsRule && k.crdsCurrent {
			kept.err = nil // the CRDs know
			if len(kept.resources) == 0 {
				continue
			}
		}
		out.versions = append(out.versions, kept)
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
	if _, gone := k.gone[gr]; gone {
		return false
	}
	if definition := k.crds[gr.String()]; definition != nil && definition.isEstablished() {
		return false
	}
	return backing != BackingCRD || !k.crdsCurrent
}

// decorated returns res with what is known to serve it.
func (k *knowledge) decorated(res Resource, backing Backing) Resource {
	res.Backing = backing
	if backing == BackingUnknown && k.crdsRule && k.apisRule {
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
			groups = placed(groups, res)
		}
	}
	return groups
}

// withUntold adds the group versions of which documents should tell, and do not.
func (k *knowledge) withUntold(groups []groupDoc) []groupDoc {
	told := versionsOf(k.doc)
	for _, name := range slices.Sorted(maps.Keys(k.apis)) {
		item := k.apis[name]
		gv := item.groupVersion()
		if _, listed := told[gv]; listed || item.backing() != BackingAggregated || gv.Version == "" {
			continue
		}
		var group *groupDoc
		if groups, group = groupOf(groups, gv.Group); group.version(gv.Version).err == nil {
			group.version(gv.Version).err = errUntold
		}
	}
	return groups
}

// placed returns groups with res in its place.
func placed(groups []groupDoc, res Resource) []groupDoc {
	groups, group := groupOf(groups, res.GVR.Group)
	group.version(res.GVR.Version).add(res)
	return groups
}

// groupOf returns the group of that name, which is added if it is not there.
func groupOf(groups []groupDoc, name string) ([]groupDoc, *groupDoc) {
	i := slices.IndexFunc(groups, func(g groupDoc) bool { return g.name == name })
	if i < 0 {
		i = len(groups)
		groups = append(groups, groupDoc{name: name})
	}
	return groups, &groups[i]
}

// version returns the version of that name, which is added, in the order that the server
// gives to versions unless told otherwise, if it is not there.
func (g *groupDoc) version(name string) *versionDoc {
	at := slices.IndexFunc(g.versions, func(v versionDoc) bool { return v.name == name })
	if at < 0 {
		at = slices.IndexFunc(g.versions, func(v versionDoc) bool {
			return version.CompareKubeAwareVersionStrings(v.name, name) < 0
		})
		if at < 0 {
			at = len(g.versions)
		}
		g.versions = slices.Insert(g.versions, at, versionDoc{name: name})
	}
	return &g.versions[at]
}
