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

// errUntold is of a group version whose APIService is there, and of which the documents
// do not tell.
var errUntold = errors.New("its APIService exists, but the discovery document does not list its resources yet")

// difference is how what is known now differs from the last snapshot.
type difference struct {
	any     bool         // in anything
	regroup bool         // groups have come or gone, or are in another order
	views   []*groupView // of the groups that say something else
}

// snapshot puts together what the sources say. What was served, as last says, and is
// not mentioned by them is doubted, and kept for a while. Groups of which nothing has changed
// are those of last.
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

// outdated returns the names of the groups of which something may have changed.
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

// renew puts one group together again, and notes in d how it differs.
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

// deletedIn reports whether a CRD of a group was deleted since the last snapshot was made: its
// type is another then, even if it is as it was.
func (k *knowledge) deletedIn(group string) bool {
	for gr := range k.deletions {
		if gr.Group == group {
			return true
		}
	}
	return false
}

// ordered returns the groups in the server's order, and those that no document lists after
// them.
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

// view puts together what the sources say of one group, of which before was published last.
func (k *knowledge) view(name string, before *groupView, now time.Time) *groupView {
	group := k.ofDocument(k.docs[name], before)
	group.name = name
	if k.crdsRule {
		k.withCRDs(&group)
	}
	if k.apisRule {
		k.withUntold(&group)
	}
	k.withDoubted(&group, before, now)
	group.versions = slices.DeleteFunc(group.versions, func(v versionDoc) bool { return v.name == "" })
	view := newGroupView(group)
	k.withDefinitions(view, now)
	view.types = k.types(view, before)
	return view
}

// withDefinitions adds what the CRDs of a group say of themselves, and notes which of them
// nothing is served of.
func (k *knowledge) withDefinitions(view *groupView, now time.Time) {
	name := view.name
	served := map[string]bool{}
	for i := range view.resources {
		served[view.resources[i].GVR.Resource] = view.resources[i].Backing != BackingAggregated
	}
	for _, plural := range slices.Sorted(maps.Keys(k.crds[name])) {
		state, gr := k.crds[name][plural], schema.GroupResource{Group: name, Resource: plural}
		if k.crdsRule && k.crdsCurrent && (state.gone != nil || k.fresh(state)) {
			if view.decided == nil {
				view.decided = map[string]bool{}
			}
			view.decided[plural] = true
		}
		_, other := served[plural]
		switch {
		case state.meta == nil:
		case served[plural], other: // also what another server serves
			state.unlisted = time.Time{}
			delete(k.unlisted, gr)
		default:
			if k.unlisted == nil {
				k.unlisted = map[schema.GroupResource]*crdState{}
			}
			if state.unlisted.IsZero() {
				state.unlisted, k.stirred = now, now
			}
			k.unlisted[gr] = state
			k.mayRead(crdPath, state.meta.Name)
		}
		if k.crdsRule && k.fresh(state) && !state.definition.isEstablished() {
			view.waiting = append(view.waiting, state.definition)
		}
	}
}

// withDoubted adds what was served before and is not mentioned any more, unless there is
// evidence that it is gone.
func (k *knowledge) withDoubted(group *groupDoc, before *groupView, now time.Time) {
	listed := map[schema.GroupVersionResource]bool{}
	for _, version := range group.versions {
		for i := range version.resources {
			listed[version.resources[i].GVR] = true
		}
	}
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
			d.since, k.stirred = now, now
		}
		if d.over {
			delete(k.doubted, res.GVR)
			continue
		}
		if k.doubted == nil {
			k.doubted = map[schema.GroupVersionResource]doubt{}
		}
		k.doubted[res.GVR] = d
		if state := k.crd(res.GVR.GroupResource()); state != nil && state.meta != nil {
			k.mayRead(crdPath, state.meta.Name) // it knows
		}
		group.version(res.GVR.Version).add(res)
	}
}

// contradicted reports whether there is evidence that res is gone, whose CRD last had uid
// and that nothing mentions any more.
func (k *knowledge) contradicted(res Resource, uid types.UID) bool {
	gr := res.GVR.GroupResource()
	state := k.crd(gr)
	switch {
	case k.dropped[res.GVR.GroupVersion()]:
		return true
	case res.Backing == BackingUnknown && k.automanages() && k.api(res.GVR.GroupVersion()) == nil:
		return true // it was believed before the APIServices were known
	case res.Backing == BackingAggregated || res.Backing == BackingBuiltIn || !k.crdsRule:
		return false
	case state == nil:
		return k.crdsCurrent && uid != ""
	}
	return state.gone != nil || state.meta == nil || k.fresh(state)
}

// ofDocument returns what a document says of a group, of which before was published last, as far
// as it is to be believed.
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
			kept.err = nil // what is local is not behind another server
			if len(kept.resources) == 0 {
				continue
			}
		}
		out.versions = append(out.versions, kept)
	}
	return out
}

// believes reports whether res is served, given that a document lists it. Where the server
// makes APIServices for all that it serves itself, a group version without one has just
// gone, or is not there yet. Of a CRD that has changed or was deleted since, documents are
// behind.
func (k *knowledge) believes(res Resource, backing Backing, before *groupView) bool {
	if _, there := k.apis[res.GVR.Group][res.GVR.Version]; !there && backing == BackingUnknown && k.automanages() {
		return false
	}
	state := k.crd(res.GVR.GroupResource())
	switch {
	case !k.crdsRule:
		return true
	case state != nil && state.gone != nil && state.gone.known:
		return false // it means the CRD that served the type, whatever may serve it now
	case backing == BackingAggregated, backing == BackingBuiltIn, k.undecided(res.GVR.GroupVersion()):
		return true
	case state == nil:
		return backing != BackingCRD || !k.crdsCurrent
	case !k.apisRule && !before.typeOf(res.GVR.Resource).byCRD():
		return true // as when APIServices were last known
	}
	return state.gone == nil && !k.defines(state)
}

// decorated returns res with what is known to serve it.
func (k *knowledge) decorated(res Resource, backing Backing) Resource {
	res.Backing = backing
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
	if item := k.api(res.GVR.GroupVersion()); item != nil && item.known || item == nil && k.wasBuiltIn(res.GVR.GroupResource()) {
		res.Backing = BackingBuiltIn // there is nothing else that could serve it
	}
	return res
}

// wasBuiltIn reports whether gr has been listed without a CRD since all CRDs are known: then
// the server has it itself. What is listed later may have a CRD that was not heard of yet.
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

// withCRDs adds what the CRDs define that were read, which documents may not tell yet.
func (k *knowledge) withCRDs(group *groupDoc) {
	for _, plural := range slices.Sorted(maps.Keys(k.crds[group.name])) {
		state := k.crds[group.name][plural]
		if state.gone != nil || !k.defines(state) {
			continue
		}
		for _, res := range state.definition.resources() {
			gv := res.GVR.GroupVersion()
			if backing := k.backing(gv); backing != BackingAggregated && backing != BackingBuiltIn && !k.undecided(gv) {
				group.version(res.GVR.Version).add(res) // otherwise requests do not reach it
			}
		}
	}
}

// withUntold adds the versions of which documents should tell, and do not.
func (k *knowledge) withUntold(group *groupDoc) {
	for _, item := range k.apis[group.name] {
		gv := item.groupVersion()
		if _, listed := k.docTold[gv]; listed || item.backing() != BackingAggregated || gv.Version == "" {
			continue
		}
		if v := group.version(gv.Version); v.err == nil {
			v.err = errUntold
		}
	}
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
