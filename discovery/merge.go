package discovery

import (
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/version"
)

// errNotInDocument is the error of a group version that has an APIService, and is not in the documents.
var errNotInDocument = errors.New("its APIService exists, but the discovery document does not list its resources yet")

// difference is the difference between the knowledge and the last snapshot.
type difference struct {
	any     bool         // there is a difference
	regroup bool         // the list of groups or their order has changed
	views   []*groupView // of the changed groups
}

// snapshot computes a snapshot from the sources. A resource of last that no source has is doubted: it is
// kept for a while. Unchanged groups are those of last.
func (k *knowledge) snapshot(last *snapshot, now time.Time) *snapshot {
	if k.views == nil {
		k.views, k.all = map[string]*groupView{}, true
	}
	k.all = k.all || last == nil
	d := difference{any: k.all, regroup: k.all || k.regroup}
	for name := range k.outdated(last) {
		k.renew(name, last, now, &d)
	}
	k.dirty, k.all, k.regroup = nil, false, false
	core, named := k.doc.core.err, k.doc.named.err
	switch {
	case d.regroup:
		c := newSnapshot(k.ordered(), core, named)
		c.crdsRule = k.crdsRule
		if last != nil && len(k.deletions) == 0 && last.same(c) {
			return last
		}
		return c
	case !d.any && errorText(last.coreUnknown) == errorText(core) && errorText(last.namedUnknown) == errorText(named) && last.crdsRule == k.crdsRule:
		return last
	}
	c := last.with(d.views, core, named)
	c.crdsRule = k.crdsRule
	return c
}

// outdated returns the names of the groups that may have changed.
func (k *knowledge) outdated(last *snapshot) map[string]bool {
	if !k.all {
		return k.dirty
	}
	names := map[string]bool{}
	add := func(all iter.Seq[string]) {
		for name := range all {
			names[name] = true
		}
	}
	add(maps.Keys(k.docs))
	add(maps.Keys(k.crds))
	add(maps.Keys(k.apis))
	add(maps.Keys(k.views))
	if last != nil {
		for _, view := range last.groups {
			names[view.name] = true
		}
	}
	return names
}

// renew computes the view of one group, and adds its difference to d.
func (k *knowledge) renew(name string, last *snapshot, now time.Time, d *difference) {
	var before *groupView
	if last != nil {
		before = last.group(name)
	}
	view, old := k.view(name, before, now), k.views[name]
	switch {
	case len(view.versions) == 0 && len(view.waiting) == 0 && len(view.decided) == 0:
		d.any = d.any || old != nil || before != nil
		d.regroup = d.regroup || before != nil
		delete(k.views, name)
	case before != nil && before.same(view) && !k.deletedIn(name):
		d.any = d.any || old != before
		d.regroup = d.regroup || old != before
		k.views[name] = before
	default:
		d.any, d.regroup = true, d.regroup || before == nil
		d.views = append(d.views, view)
		k.views[name] = view
	}
}

// deletedIn reports whether a CRD of the group was deleted since the last snapshot: then its type is
// another type, also if it is equal.
func (k *knowledge) deletedIn(group string) bool {
	for gr := range k.deletions {
		if gr.Group == group {
			return true
		}
	}
	return false
}

// ordered returns the groups in the server's order, followed by those that no document lists.
func (k *knowledge) ordered() []*groupView {
	views := make([]*groupView, 0, len(k.views))
	seen := make(map[string]bool, len(k.views))
	for _, group := range k.doc.groups() {
		if view := k.views[group.name]; view != nil && !seen[group.name] {
			seen[group.name] = true
			views = append(views, view)
		}
	}
	if len(views) < len(k.views) {
		for _, name := range slices.Sorted(maps.Keys(k.views)) {
			if _, listed := k.docs[name]; !listed {
				views = append(views, k.views[name])
			}
		}
	}
	return views
}

// view computes the view of one group from the sources. Before is the view in the last snapshot.
func (k *knowledge) view(name string, before *groupView, now time.Time) *groupView {
	group := k.ofDocument(k.docs[name], before)
	group.name = name
	if k.crdsRule {
		k.withCRDs(&group)
	}
	if k.apisRule {
		k.withAPIServices(&group)
	}
	k.withDoubted(&group, before, now)
	group.versions = slices.DeleteFunc(group.versions, func(v versionDoc) bool { return v.name == "" })
	view := newGroupView(group)
	k.withDefinitions(view, now)
	view.foreign = k.foreign(name)
	view.types = k.types(view, before)
	return view
}

// foreign returns the versions of a group that another server may serve.
func (k *knowledge) foreign(group string) (versions []string) {
	for _, version := range slices.Sorted(maps.Keys(k.apis[group])) {
		if gv := (schema.GroupVersion{Group: group, Version: version}); k.backing(gv) == BackingAggregated || k.undecided(gv) {
			versions = append(versions, version)
		}
	}
	return versions
}

// withDefinitions adds the state of the CRDs of a group, and records the CRDs without a served resource.
func (k *knowledge) withDefinitions(view *groupView, now time.Time) {
	name := view.name
	served := map[string]bool{}
	for i := range view.resources {
		served[view.resources[i].GVR.Resource] = true // also if another server serves it
	}
	for _, plural := range slices.Sorted(maps.Keys(k.crds[name])) {
		state, gr := k.crds[name][plural], schema.GroupResource{Group: name, Resource: plural}
		if k.crdsRule && k.crdsCurrent && (state.meta == nil || k.fresh(state)) {
			if view.decided == nil {
				view.decided = map[string]bool{}
			}
			view.decided[plural] = true
		}
		switch {
		case state.meta == nil:
		case served[plural]:
			delete(k.unlisted, gr)
		default:
			if k.unlisted == nil {
				k.unlisted = map[schema.GroupResource]bool{}
			}
			if !k.unlisted[gr] {
				k.unlisted[gr], k.lastReason = true, now
			}
			k.mayRead(crdPath, state.meta.Name)
		}
		if k.crdsRule && k.fresh(state) && !state.definition.isEstablished() {
			view.waiting = append(view.waiting, state.definition)
		}
	}
}

// withDoubted adds the resources of before that no source has any more, unless there is evidence that
// they are removed.
func (k *knowledge) withDoubted(group *groupDoc, before *groupView, now time.Time) {
	listed, believed := group.resources()
	old := k.doubted
	maps.DeleteFunc(k.doubted, func(gvr schema.GroupVersionResource, _ doubt) bool {
		return gvr.Group == group.name && (listed[gvr] || before == nil)
	})
	if before == nil {
		return
	}
	for _, res := range before.resources {
		switch {
		case listed[res.GVR]:
			continue
		case k.contradicted(res, before.typeOf(res.GVR.Resource).uid):
			delete(k.doubted, res.GVR)
			continue
		}
		d, known := old[res.GVR]
		if !known {
			k.lastReason = now
		}
		d = k.dated(d, res.GVR, now)
		if gr := res.GVR.GroupResource(); d.over && (believed[gr] || !k.lists(gr)) {
			delete(k.doubted, res.GVR)
			continue
		}
		if k.doubted == nil {
			k.doubted = map[schema.GroupVersionResource]doubt{}
		}
		k.doubted[res.GVR] = d
		if state := k.crd(res.GVR.GroupResource()); state != nil && state.meta != nil {
			k.mayRead(crdPath, state.meta.Name) // the CRD is conclusive
		}
		group.version(res.GVR.Version).add(res)
	}
}

// dated returns d, the doubt of gvr, with the time of the first evidence if there is some now, and without evidence that has ended.
func (k *knowledge) dated(d doubt, gvr schema.GroupVersionResource, now time.Time) doubt {
	if d.disowned && k.api(gvr.GroupVersion()) != nil {
		d = doubt{}
	}
	if d.since.IsZero() {
		d.disowned = k.disowned(gvr.GroupVersion())
		if d.disowned || !k.failed(gvr.GroupResource()) {
			d.since = now
		}
	}
	return d
}

// resources returns the resources of g, with and without their versions.
func (g *groupDoc) resources() (versioned map[schema.GroupVersionResource]bool, all map[schema.GroupResource]bool) {
	versioned, all = map[schema.GroupVersionResource]bool{}, map[schema.GroupResource]bool{}
	for _, version := range g.versions {
		for i := range version.resources {
			gvr := version.resources[i].GVR
			versioned[gvr], all[gvr.GroupResource()] = true, true
		}
	}
	return versioned, all
}

// contradicted reports whether there is evidence that res, which no source has any more, is removed. The
// last known UID of its CRD is uid.
func (k *knowledge) contradicted(res Resource, uid types.UID) bool {
	state := k.crd(res.GVR.GroupResource())
	switch {
	case k.dismissed(res):
		return true
	case res.Backing == BackingUnknown && k.disowned(res.GVR.GroupVersion()):
		return true // it was added before the APIServices were known
	case res.Backing == BackingAggregated || res.Backing == BackingBuiltIn || !k.crdsRule:
		return false
	case state == nil:
		return k.crdsCurrent && uid != ""
	}
	return state.gone != nil || state.meta == nil || state.meta.UID != uid && uid != "" || k.fresh(state)
}

// dismissed reports whether the APIService of res was deleted, or is one of the API server itself now, which another server had before.
func (k *knowledge) dismissed(res Resource) bool {
	gv := res.GVR.GroupVersion()
	if k.dropped[gv] {
		return true
	}
	backing := k.backing(gv)
	return res.Backing == BackingAggregated && (backing == BackingCRD || backing == BackingBuiltIn)
}

// ofDocument returns the resources of a document's group that are current. Before is the view in the last
// snapshot.
func (k *knowledge) ofDocument(group groupDoc, before *groupView) groupDoc {
	out := groupDoc{name: group.name}
	for _, version := range group.versions {
		gv := schema.GroupVersion{Group: group.name, Version: version.name}
		backing := k.backing(gv)
		kept := versionDoc{name: version.name, err: version.err}
		for _, res := range version.resources {
			if k.believes(res, backing, before) {
				kept.resources = append(kept.resources, k.decorated(res, backing))
			}
		}
		if backing == BackingCRD && k.crdsRule && k.crdsCurrent {
			kept.err = nil // this server serves it, and no other server can fail
			if len(kept.resources) == 0 {
				continue
			}
		}
		out.versions = append(out.versions, kept)
	}
	return out
}

// believes reports whether res, which a document lists, is served. If the server creates APIServices for
// all types that it serves itself, a group version without an APIService has just been removed, or is not
// available yet. If the CRD has changed or was deleted since, the document is out of date.
func (k *knowledge) believes(res Resource, backing Backing, before *groupView) bool {
	if k.disowned(res.GVR.GroupVersion()) {
		return false
	}
	state := k.crd(res.GVR.GroupResource())
	switch {
	case !k.crdsRule:
		return true
	case state != nil && state.gone != nil && state.gone.served:
		return false // the document lists the resource of the deleted CRD
	case backing == BackingAggregated, backing == BackingBuiltIn, k.undecided(res.GVR.GroupVersion()):
		return true
	case state == nil:
		return backing != BackingCRD || !k.crdsCurrent
	case !k.apisRule && !before.typeOf(res.GVR.Resource).byCRD():
		return true // the last known backing is not a CRD
	}
	return state.gone == nil && !k.defines(state)
}

// decorated returns res with its backing, if that is known.
func (k *knowledge) decorated(res Resource, backing Backing) Resource {
	res.Backing = backing
	if backing == BackingAggregated {
		res.Service = k.api(res.GVR.GroupVersion()).service()
	}
	if !k.crdsRule || k.undecided(res.GVR.GroupVersion()) || backing == BackingAggregated || backing == BackingBuiltIn {
		return res
	}
	if state := k.crd(res.GVR.GroupResource()); state != nil && state.meta != nil {
		res.Backing, res.CRDUID, res.Terminating = BackingCRD, state.meta.UID, state.meta.DeletionTimestamp != nil
		return res
	}
	if backing != BackingUnknown || !k.apisRule {
		return res
	}
	if item := k.api(res.GVR.GroupVersion()); item != nil && item.serviceKnown || item == nil && k.wasBuiltIn(res.GVR.GroupResource()) {
		res.Backing = BackingBuiltIn // nothing else can serve it
	}
	return res
}

// wasBuiltIn reports whether gr was listed without a CRD when all CRDs were known for the first time: then
// it is built in. A resource that is listed later may have a CRD that the watch does not have yet.
func (k *knowledge) wasBuiltIn(gr schema.GroupResource) bool {
	if k.builtIn == nil {
		k.builtIn = map[schema.GroupResource]bool{}
		for _, version := range k.doc.versions() {
			for i := range version.resources {
				listed := version.resources[i].GVR.GroupResource()
				k.builtIn[listed] = k.crd(listed) == nil
			}
		}
	}
	return k.builtIn[gr]
}

// withCRDs adds the resources of the CRDs that were read, which the documents may not have yet.
func (k *knowledge) withCRDs(group *groupDoc) {
	for _, plural := range slices.Sorted(maps.Keys(k.crds[group.name])) {
		state := k.crds[group.name][plural]
		if state.gone != nil || !k.defines(state) {
			continue
		}
		for _, res := range state.definition.resources() {
			gv := res.GVR.GroupVersion()
			if backing := k.backing(gv); backing != BackingAggregated && backing != BackingBuiltIn && !k.undecided(gv) {
				group.version(res.GVR.Version).add(res) // otherwise requests go to another server
			}
		}
	}
}

// withAPIServices adds the versions that have an APIService and are not in the documents.
func (k *knowledge) withAPIServices(group *groupDoc) {
	for _, item := range k.apis[group.name] {
		gv := item.groupVersion()
		if _, listed := k.docVersions[gv]; listed || item.backing() != BackingAggregated || gv.Version == "" {
			continue
		}
		if v := group.version(gv.Version); v.err == nil {
			v.err = errNotInDocument
		}
	}
}

// version returns the version of that name. If there is none, it adds the version, in the default order of
// versions.
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
