package discovery

import (
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// doubtFor is how long a resource that a document does not list any more counts as served: one of several
// API servers may be behind. After that time, another document must not list the resource either. If a
// CRD or an APIService is the evidence, one document is enough.
const doubtFor = 5 * time.Second

// knowledge has the data of a running resolver's sources: the documents, which list the served resources;
// the metadata of CRDs and APIServices, which has creations, changes and deletions; and the CRDs and
// APIServices that were read. Its owner's lock guards it. It does no I/O.
//
// The data are stored by group. A change marks its group as dirty, and only dirty groups are computed
// again.
type knowledge struct {
	doubtFor    time.Duration
	doc         *document                    // nil: there is none yet
	docAt       uint64                       // the number of its request
	namedAt     uint64                       // the number of the last request whose response has the named groups
	docVersions map[schema.GroupVersion]bool // the group versions of doc; true: not stale
	docs        map[string]groupDoc
	listed      map[string]map[string][]*Resource // by group and plural, computed on demand

	// crdsResponded and apisResponded report whether the first list of CRDs and APIServices has succeeded or
	// failed.
	crdsResponded, apisResponded bool

	crds map[string]map[string]*crdState // by group and plural
	// crdsRule reports whether the list of CRDs is complete, and crdsCurrent whether the watch is open: a
	// CRD that is not in the list does not exist, also if documents list its resource.
	crdsRule    bool
	crdsCurrent bool
	apis        map[string]map[string]*apiService // by group and version
	apisRule    bool
	apisCurrent bool
	// crdsAbsent and apisAbsent report whether the server has responded that it does not have CRDs, or APIServices.
	crdsAbsent, apisAbsent bool

	// gone are the deleted CRDs, while documents may list their resources.
	gone map[schema.GroupResource]*crdState
	// builtIn are the types without a CRD at the first complete list of CRDs.
	builtIn map[schema.GroupResource]bool
	// deletions are the CRDs that were deleted since the last snapshot.
	deletions map[schema.GroupResource]Evidence
	// unserved are the types that were reported as removed while their CRD existed, or may have existed.
	unserved map[schema.GroupResource]unservedType
	// doubted are the resources that no source has any more.
	doubted map[schema.GroupVersionResource]doubt
	// dropped are the group versions whose APIService is deleted: one document that does not list their
	// resources is enough.
	dropped map[schema.GroupVersion]bool
	// unlisted are the existing CRDs without a served resource.
	unlisted map[schema.GroupResource]bool
	// changed is the time of the last change of a CRD that may change the documents.
	changed time.Time
	// lastReason is the time of the last event because of which the documents are expected to change.
	lastReason time.Time
	// defined are the CRDs that were read.
	defined map[schema.GroupResource]*crdState
	// before are the CRDs that the run knew when it was narrow, until the first list of all CRDs succeeds.
	before []narrowObject
	// unread are the objects that may have to be read.
	unread map[objectRef]*lookup

	dirty map[string]bool // groups
	all   bool            // all groups are dirty
	// regroup reports whether the list of groups or their order has changed.
	regroup bool
	views   map[string]*groupView // the last computed ones
}

// crdState is the state of a CRD.
type crdState struct {
	meta *slimMeta // nil: the CRD is deleted
	gone *deletion // of the CRD before it, while documents may list the resource of that CRD
	// definition is the CRD as it was read; nil: it was not. It may be out of date.
	definition *crd
	readFor    *slimMeta // the meta for which a question has read the CRD
	// changedAt is the number of requests for documents before the last change of the type. Later
	// documents have the change.
	changedAt uint64
	changed   time.Time // the time of that change; zero: the first document has it
	firstSeen time.Time
	// learned is the resourceVersion of meta if the CRD was read before the watch had it, at the time changed. Earlier events of the watch, about
	// CRDs before it, and a list that was on its way then have no effect. Empty: the watch or a list has it.
	learned string
	// differs is since when documents after the last change differ from the definition; zero: they do
	// not. Refuted reports whether they have differed for a long time: something else also serves the
	// type, or CRDs can't be watched, and the CRD has changed since it was read.
	differs time.Time
	refuted bool
}

// staleFor is how long documents of an API server that is behind may list the resource of a deleted CRD.
const staleFor = time.Minute

// deletion is the state of a deleted CRD.
type deletion struct {
	Evidence
	askedAt uint64    // the number of requests for documents before the deletion
	listed  time.Time // the time of the last document with its resource, or of the deletion
	leftOut bool      // a later document does not list its resource
	served  bool      // it served the type, and there is no document after the deletion
}

// doubt is a resource that was served and that no source has any more, without evidence of its removal. It
// counts as served until the doubt is over.
type doubt struct {
	since time.Time // the time of the first evidence: a complete document that does not list it, or the deletion of its APIService; zero: there is none
	// disowned says that the evidence is the deletion of its APIService. It ends if the APIService is created again.
	disowned bool
	over     bool // a later document does not list it: the second one, or the first one after the deletion of its APIService
}

// isComplete reports whether the first lists of both sources have succeeded or failed, and all APIServices that
// must be read were read.
func (k *knowledge) isComplete() bool {
	for ref, state := range k.unread {
		if ref.path == apiServicePath && state.failures == 0 {
			return false
		}
	}
	return k.crdsResponded && k.apisResponded
}

// touch marks a group as dirty.
func (k *knowledge) touch(group string) {
	if k.dirty == nil {
		k.dirty = map[string]bool{}
	}
	k.dirty[group] = true
}

// addDocument stores a document, the response to a request.
func (k *knowledge) addDocument(doc *document, asked request, now time.Time) {
	number := asked.number
	for gv := range k.dropped { // the last document did not list it
		if _, listed := k.docVersions[gv]; !listed && k.doc != nil {
			delete(k.dropped, gv)
			k.touch(gv.Group)
		}
	}
	k.docAt = number
	if doc.named.err == nil {
		k.namedAt = number
	}
	if doc != k.doc {
		k.addGroups(doc, now)
	}
	k.endDoubts(asked.at, now)
	k.endDeletions(asked, now)
	for gr, state := range k.defined {
		if k.namedAt == number && number > state.changedAt {
			k.compare(gr, state, asked.at, now)
		}
		if !k.defines(state) { // the documents decide from now on
			k.touch(gr.Group)
		}
	}
}

// endDoubts ends the doubts that documents confirm. The last document was requested at the time asked: it may have been
// long on its way.
func (k *knowledge) endDoubts(asked, now time.Time) {
	for gvr, d := range k.doubted {
		gv := gvr.GroupVersion()
		_, listed := k.docVersions[gv] // also if it is stale
		awaited := k.backing(gv) == BackingAggregated && !k.dropped[gv] && !listed
		switch {
		case k.failed(gvr.GroupResource()):
			continue // the document has the last known resources
		case d.since.IsZero():
			d.since = now
			k.doubted[gvr] = d
		}
		if over := asked.Sub(d.since) >= k.doubtFor && !awaited; over != d.over {
			d.over = over
			k.doubted[gvr] = d
			k.touch(gvr.Group)
		}
	}
}

// failed reports whether the last document can't show that gr is not served: it lacks the response of the
// group's root, or the resources of a version of the group.
func (k *knowledge) failed(gr schema.GroupResource) bool {
	root := k.doc.named
	if gr.Group == "" {
		root = k.doc.core
	}
	return root.err != nil || k.illegible(gr)
}

// illegible reports whether gr may be in a version of its group that could not be read.
func (k *knowledge) illegible(gr schema.GroupResource) bool {
	return !k.lists(gr) && slices.ContainsFunc(k.docs[gr.Group].versions, func(v versionDoc) bool { return v.err != nil })
}

// endDeletions removes the deleted CRDs whose resources documents can't list any more. The last document
// is the response to the request asked.
func (k *knowledge) endDeletions(asked request, now time.Time) {
	number := asked.number
	for gr, state := range k.gone {
		listed := k.lists(gr)
		if state.gone.served && number == k.namedAt && number > state.gone.askedAt {
			state.gone.served = false
			k.touch(gr.Group)
		}
		switch {
		case number > k.namedAt: // the document has the last known resources
		case listed && k.outlived(gr, state, asked.at):
			k.endDeletion(gr, state)
		case listed:
			state.gone.listed = now
		case number > state.gone.askedAt && state.meta != nil:
			k.endDeletion(gr, state)
		case number > state.gone.askedAt:
			state.gone.leftOut = true
		}
		if state.gone != nil && now.Sub(state.gone.listed) > staleFor {
			k.endDeletion(gr, state)
		}
	}
}

// outlived reports whether documents list gr because of something else than the deleted CRD: a new CRD that
// can't be read and is old enough, or something else that serves the type. The last document was requested at the time asked:
// it may be older than what was seen since.
func (k *knowledge) outlived(gr schema.GroupResource, state *crdState, asked time.Time) bool {
	if !state.gone.leftOut && state.meta != nil && k.unreadable(crdPath, state.meta.Name) && asked.Sub(state.firstSeen) >= k.doubtFor {
		return true
	}
	return asked.Sub(state.gone.At) > staleFor && k.unbacked(gr)
}

// addGroups stores the groups of a document. Groups that are equal to those of the last one are not
// computed again.
func (k *knowledge) addGroups(doc *document, now time.Time) {
	before, groups := k.docs, doc.groups()
	k.regroup = k.regroup || k.doc == nil || !slices.EqualFunc(k.doc.groups(), groups, func(a, b groupDoc) bool { return a.name == b.name })
	old := k.docVersions
	k.doc, k.docVersions = doc, versionsOf(doc)
	for gv, fresh := range k.docVersions {
		if before, listed := old[gv]; !fresh && (before || !listed) {
			k.lastReason = now
		}
	}
	k.docs, k.listed = make(map[string]groupDoc, len(before)), nil
	for _, group := range groups {
		k.docs[group.name] = group
		if !group.is(before[group.name]) {
			k.touch(group.name)
		}
	}
	for name := range before {
		if _, listed := k.docs[name]; !listed {
			k.touch(name)
		}
	}
}

// compare compares the last document, which was requested at the time asked, with a CRD that was read.
func (k *knowledge) compare(gr schema.GroupResource, state *crdState, asked, now time.Time) {
	listed, definition := k.listing(gr), state.definition.resources()
	defined := make([]*Resource, len(definition))
	for i := range definition {
		defined[i] = &definition[i]
	}
	lacks := func(among []*Resource) func(*Resource) bool {
		return func(res *Resource) bool {
			return k.backing(res.GVR.GroupVersion()) != BackingAggregated && !slices.ContainsFunc(among, func(other *Resource) bool {
				return other.GVR == res.GVR && other.GVK == res.GVK && other.Namespaced == res.Namespaced
			})
		}
	}
	differs := k.fresh(state) && (slices.ContainsFunc(defined, lacks(listed)) || slices.ContainsFunc(listed, lacks(defined)))
	switch {
	case !differs:
		state.differs = time.Time{}
	case state.differs.IsZero():
		state.differs, k.lastReason = now, now
	}
	behind := staleFor
	if !k.crdsCurrent { // nothing says that the CRD is still the one that was read
		behind = k.doubtFor
	}
	if refuted := !state.differs.IsZero() && asked.Sub(state.differs) > behind; refuted != state.refuted {
		state.refuted = refuted
		k.touch(gr.Group)
	}
}

// endDeletion removes the deletion: documents describe the existing CRD, or none.
func (k *knowledge) endDeletion(gr schema.GroupResource, state *crdState) {
	state.gone = nil
	delete(k.gone, gr)
	k.touch(gr.Group)
	if state.meta == nil {
		delete(k.crds[gr.Group], gr.Resource)
		if len(k.crds[gr.Group]) == 0 {
			delete(k.crds, gr.Group)
		}
	}
}

// lists reports whether the last document lists gr in any version.
func (k *knowledge) lists(gr schema.GroupResource) bool { return len(k.listing(gr)) > 0 }

// listing returns the resources of gr in the last document, in each version.
func (k *knowledge) listing(gr schema.GroupResource) []*Resource {
	listed, known := k.listed[gr.Group]
	if !known {
		listed = map[string][]*Resource{}
		for _, version := range k.docs[gr.Group].versions {
			for i := range version.resources {
				res := &version.resources[i]
				listed[res.GVR.Resource] = append(listed[res.GVR.Resource], res)
			}
		}
		if k.listed == nil {
			k.listed = map[string]map[string][]*Resource{}
		}
		k.listed[gr.Group] = listed
	}
	return listed[gr.Resource]
}

// unbacked reports whether the last document lists gr in a version whose backing is not known.
func (k *knowledge) unbacked(gr schema.GroupResource) bool {
	return slices.ContainsFunc(k.listing(gr), func(res *Resource) bool {
		return k.backing(res.GVR.GroupVersion()) == BackingUnknown
	})
}

// versionsOf returns the group versions of doc. The value is false for those that are stale or failed.
func versionsOf(doc *document) map[schema.GroupVersion]bool {
	versions := map[schema.GroupVersion]bool{}
	for gv, version := range doc.versions() {
		versions[gv] = version.err == nil
	}
	return versions
}

// groupResourceOf returns the resource of the CRD of that name, which the server's validation guarantees.
func groupResourceOf(name string) schema.GroupResource { return schema.ParseGroupResource(name) }

// crd returns the state of the CRD of gr, or nil.
func (k *knowledge) crd(gr schema.GroupResource) *crdState { return k.crds[gr.Group][gr.Resource] }

// replaceCRDs stores a complete list of the CRDs, after number requests for documents. It reports whether the
// documents may have changed.
func (k *knowledge) replaceCRDs(list metaList, number uint64, now time.Time) (ask bool) {
	first := len(k.crds) == 0
	for _, object := range k.before {
		k.recall(object, number, now)
	}
	k.before = nil
	ask = k.deleteMissing(list, number, now)
	since := k.changed
	for _, item := range list.items {
		state := k.crd(groupResourceOf(item.Name))
		if state != nil && state.overtook(list) {
			continue
		}
		recalled := state != nil
		changed := k.putCRD(item, number, now)
		if !first || recalled || now.Sub(item.touched) <= recently {
			ask = ask || changed
			continue
		}
		state = k.crd(groupResourceOf(item.Name))
		state.changedAt, state.changed = 0, time.Time{} // the first document has it
	}
	if first && !ask {
		k.changed = since
	}
	return ask
}

// deleteMissing records the deletion of the CRDs that list does not have. It reports whether there are any.
func (k *knowledge) deleteMissing(list metaList, number uint64, now time.Time) (missing bool) {
	there := make(map[string]bool, len(list.items))
	for _, item := range list.items {
		there[item.Name] = true
	}
	for group, states := range k.crds {
		for plural, state := range states {
			if state.meta != nil && !there[state.meta.Name] && !state.overtook(list) {
				k.noteDeleted(schema.GroupResource{Group: group, Resource: plural}, state, number, now)
				missing = true
			}
		}
	}
	return missing
}

// recently is the age of an object's last write after which all documents have it.
const recently = 10 * time.Second

// putCRD stores the metadata of a CRD, and reports whether the documents may have changed. Most writes
// change only the status.
func (k *knowledge) putCRD(item *slimMeta, number uint64, now time.Time) (ask bool) {
	gr := groupResourceOf(item.Name)
	state := k.crd(gr)
	if state == nil {
		if k.crds == nil {
			k.crds = map[string]map[string]*crdState{}
		}
		if k.crds[gr.Group] == nil {
			k.crds[gr.Group] = map[string]*crdState{}
		}
		state = &crdState{}
		k.crds[gr.Group][gr.Resource] = state
	}
	old := state.meta
	if old != nil && old.UID != item.UID {
		k.noteDeleted(gr, state, number, now)
		old = nil
	}
	state.meta, state.learned = item, ""
	if old != nil && item.Generation < old.Generation { // etcd was restored
		state.definition = nil
		delete(k.defined, gr)
	}
	k.toRead(crdPath, item.Name)
	k.settle(gr, state)
	switch {
	case old == nil:
		state.firstSeen = now
	case old.Generation == item.Generation && (old.DeletionTimestamp == nil) == (item.DeletionTimestamp == nil):
		if !maps.Equal(old.Labels, item.Labels) {
			k.touch(gr.Group)
		}
		return old.ResourceVersion != item.ResourceVersion && k.unlisted[gr]
	}
	state.changedAt, state.changed, k.changed = number, now, now
	state.differs, state.refuted = time.Time{}, false
	k.touch(gr.Group)
	return true
}

// isRecreated reports whether the CRD of gr was created again, and it is not known yet whether the new one is served.
func (k *knowledge) isRecreated(gr schema.GroupResource) bool {
	state := k.crd(gr)
	return state != nil && state.gone != nil && state.meta != nil
}

// isBehind reports whether item, of an event, is a CRD before the one that was read.
func (k *knowledge) isBehind(item *slimMeta) bool {
	state := k.crd(groupResourceOf(item.Name))
	if state == nil || state.meta == nil || state.meta.UID == item.UID || state.learned == "" {
		return false
	}
	return item.isBefore(state.learned)
}

// overtook reports whether the CRD was read after list was requested, which is older.
func (s *crdState) overtook(list metaList) bool {
	return s.learned != "" && list.asked.Before(s.changed) && isBefore(list.version, s.learned)
}

// forgetCRD records the deletion of a CRD. It reports false if the CRD is not known, or has been created
// again.
func (k *knowledge) forgetCRD(item *slimMeta, number uint64, now time.Time) bool {
	gr := groupResourceOf(item.Name)
	state := k.crd(gr)
	if state == nil || state.meta == nil || state.meta.UID != item.UID {
		return false
	}
	k.noteDeleted(gr, state, number, now)
	return true
}

// noteDeleted records that the CRD of gr, whose state is state, is deleted.
func (k *knowledge) noteDeleted(gr schema.GroupResource, state *crdState, number uint64, now time.Time) {
	evidence := Evidence{Kind: CRDDeleted, CRDUID: state.meta.UID, At: now}
	if k.gone == nil {
		k.gone, k.deletions = map[schema.GroupResource]*crdState{}, map[schema.GroupResource]Evidence{}
	}
	served := k.views[gr.Group].typeOf(gr.Resource).uid != ""
	state.gone = &deletion{Evidence: evidence, askedAt: number, listed: now, served: served}
	state.meta, state.definition = nil, nil
	k.gone[gr] = state
	if _, deleted := k.deletions[gr]; !deleted { // the subscribers know the first CRD
		k.deletions[gr] = evidence
	}
	delete(k.unlisted, gr)
	delete(k.defined, gr)
	k.changed = now
	k.touch(gr.Group)
}

// read stores a CRD that was read, and reports whether it is valid.
func (k *knowledge) read(definition *crd) bool {
	gr := groupResourceOf(definition.Metadata.Name)
	state := k.crd(gr)
	if state == nil || state.meta == nil || state.meta.UID != definition.Metadata.UID {
		return false
	}
	if definition.Metadata.Generation > state.meta.Generation && definition.Metadata.isBefore(state.meta.ResourceVersion) {
		return false // etcd was restored since it was read
	}
	if definition.Spec.Group != gr.Group || definition.names().Plural != gr.Resource || gr.Resource == "" {
		return false // no API server accepts such a CRD
	}
	if k.defined == nil {
		k.defined = map[schema.GroupResource]*crdState{}
	}
	state.definition, k.defined[gr] = definition, state
	k.touch(gr.Group)
	k.settle(gr, state)
	return true
}

// settle removes the deletion of the CRD before if the existing one is known to be served.
func (k *knowledge) settle(gr schema.GroupResource, state *crdState) {
	if state.gone != nil && (state.gone.leftOut || k.fresh(state) && state.definition.isEstablished()) {
		k.endDeletion(gr, state)
	}
}

// fresh reports whether the CRD was read after its last change.
func (k *knowledge) fresh(state *crdState) bool {
	d, meta := state.definition, state.meta
	if d == nil || meta == nil || d.Metadata.UID != meta.UID || d.Metadata.Generation < meta.Generation {
		return false
	}
	return d.Metadata.Generation > meta.Generation || // the watch is behind
		(d.Metadata.DeletionTimestamp == nil) == (meta.DeletionTimestamp == nil) &&
			(d.isSettled() || d.Metadata.ResourceVersion == meta.ResourceVersion)
}

// defines reports whether the CRD that was read decides about its resources, and not the last document: it
// is fresh, or the document does not describe its last change.
func (k *knowledge) defines(state *crdState) bool {
	return state.definition != nil && state.meta != nil && !state.refuted && state.definition.isEstablished() &&
		state.definition.Metadata.UID == state.meta.UID && (k.fresh(state) || !k.describes(state))
}

// describes reports whether the last document may describe the CRD after its last change. It was requested later, and the versions that list
// the resource are not stale: stale ones have the last known resources, which may be those of a CRD before.
func (k *knowledge) describes(state *crdState) bool {
	return k.namedAt > state.changedAt && (state.changedAt == 0 || !k.listsStale(groupResourceOf(state.meta.Name)))
}

// listsStale reports whether a version of the last document that is stale or has failed lists gr.
func (k *knowledge) listsStale(gr schema.GroupResource) bool {
	return slices.ContainsFunc(k.docs[gr.Group].versions, func(v versionDoc) bool {
		return v.err != nil && !errors.Is(v.err, errMalformed) &&
			slices.ContainsFunc(v.resources, func(res Resource) bool { return res.GVR.Resource == gr.Resource })
	})
}

// api returns the APIService of gv, or nil.
func (k *knowledge) api(gv schema.GroupVersion) *apiService { return k.apis[gv.Group][gv.Version] }

func (k *knowledge) setAPI(item *apiService) {
	if k.apis == nil {
		k.apis = map[string]map[string]*apiService{}
	}
	gv := item.groupVersion()
	if k.apis[gv.Group] == nil {
		k.apis[gv.Group] = map[string]*apiService{}
	}
	k.apis[gv.Group][gv.Version] = item
}

// replaceAPIs stores a complete list of the APIServices, and reports whether the documents may have changed.
func (k *knowledge) replaceAPIs(items []*slimMeta) (ask bool) {
	there := make(map[string]bool, len(items))
	first := len(k.apis) == 0
	for _, item := range items {
		there[item.Name] = true
		ask = k.putAPI(item) && !first || ask
	}
	for _, versions := range k.apis {
		for _, old := range versions {
			if !there[old.Metadata.Name] {
				ask = k.forgetAPI(&old.Metadata) || ask
			}
		}
	}
	k.all = true
	return ask
}

// putAPI stores the metadata of an APIService, and reports whether the documents may have changed. The
// metadata has the backing only if the server has created the APIService.
func (k *knowledge) putAPI(meta *slimMeta) (ask bool) {
	item := apiServiceOf(meta)
	old := k.api(item.groupVersion())
	if old != nil && !item.isAutomanaged() && !old.isAutomanaged() && old.Metadata.UID == meta.UID {
		item.Spec, item.Status, item.serviceKnown = old.Spec, old.Status, old.serviceKnown // until it is read again
	}
	k.setAPI(item)
	delete(k.dropped, item.groupVersion())
	k.touch(item.Spec.Group)
	if !item.isAutomanaged() {
		k.toRead(apiServicePath, meta.Name)
	}
	if old != nil && old.backing() == item.backing() || item.backing() == BackingCRD && k.crdsRule {
		return false
	}
	return item.serviceKnown
}

// readAPI stores an APIService that was read, and reports whether the documents may have changed.
func (k *knowledge) readAPI(item *apiService) (ask bool) {
	old := k.api(apiServiceOf(&item.Metadata).groupVersion())
	if old == nil || old.Metadata.UID != item.Metadata.UID || item.Metadata.isBefore(old.Metadata.ResourceVersion) {
		return false
	}
	item.serviceKnown = true
	k.setAPI(item)
	k.touch(item.Spec.Group)
	return !old.serviceKnown || old.backing() != item.backing() || old.service() != item.service() || old.available() != item.available()
}

// forgetAPI records the deletion of an APIService: one document is enough for the removal of its types.
func (k *knowledge) forgetAPI(meta *slimMeta) (ask bool) {
	item := k.api(apiServiceOf(meta).groupVersion())
	if item == nil {
		return false
	}
	delete(k.apis[item.Spec.Group], item.Spec.Version)
	k.touch(item.Spec.Group)
	if item.backing() == BackingAggregated {
		if k.dropped == nil {
			k.dropped = map[schema.GroupVersion]bool{}
		}
		k.dropped[item.groupVersion()] = true
	}
	return item.backing() != BackingCRD || !k.crdsRule
}

// backing returns what serves gv, according to the APIServices.
func (k *knowledge) backing(gv schema.GroupVersion) Backing {
	if !k.apisRule {
		return BackingUnknown
	}
	if item := k.api(gv); item != nil {
		return item.backing()
	}
	if k.dropped[gv] {
		return BackingAggregated // until a document does not list it
	}
	return BackingUnknown
}

// undecided reports whether gv has an APIService that is still to be read: another server may serve it, also
// if there is a CRD.
func (k *knowledge) undecided(gv schema.GroupVersion) bool {
	item := k.api(gv)
	return k.apisRule && item != nil && !item.serviceKnown
}

// automanages reports whether the server creates APIServices for the group versions that it serves itself.
func (k *knowledge) automanages() bool {
	return k.apisRule && k.apisCurrent && k.api(coreV1).isAutomanaged()
}

// coreV1 is a group version of every API server with an aggregator.
var coreV1 = schema.GroupVersion{Version: "v1"}

// disowned reports whether gv has no APIService, though the server creates one for each group version that it serves itself. A document
// that lists gv is then out of date.
func (k *knowledge) disowned(gv schema.GroupVersion) bool {
	return k.api(gv) == nil && !k.dropped[gv] && k.automanages()
}

// unsettled reports whether the documents are expected to change soon.
func (k *knowledge) unsettled(now time.Time) bool {
	for _, state := range k.gone {
		if !state.gone.leftOut {
			return true
		}
	}
	for _, state := range k.defined {
		if !state.differs.IsZero() && !state.refuted {
			return true
		}
	}
	return len(k.doubted) > 0 || len(k.dropped) > 0 || len(k.unlisted) > 0 || now.Sub(k.changed) < k.doubtFor
}

// partial reports whether the request for the last document, or for one of its roots, has failed.
func (k *knowledge) partial() bool {
	return k.doc == nil || k.doc.core.err != nil || k.doc.named.err != nil
}

// stale reports whether a group version of the last document is stale or has failed.
func (k *knowledge) stale() bool {
	for _, fresh := range k.docVersions {
		if !fresh {
			return true
		}
	}
	return false
}

// awaited reports whether an APIService is available whose resources no document has: discovery is behind
// the APIServices by up to a minute.
func (k *knowledge) awaited() bool {
	if k.doc == nil {
		return true
	}
	for _, versions := range k.apis {
		for _, item := range versions {
			if k.apisRule && item.backing() == BackingAggregated && item.available() && !k.docVersions[item.groupVersion()] {
				return true
			}
		}
	}
	return false
}

// metas returns the metadata of the CRDs, by name.
func (k *knowledge) metas() map[string]*slimMeta {
	metas := map[string]*slimMeta{}
	for _, states := range k.crds {
		for _, state := range states {
			if state.meta != nil {
				metas[state.meta.Name] = state.meta
			}
		}
	}
	return metas
}
