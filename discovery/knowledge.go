package discovery

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// doubtFor is how long a resource that a document no longer lists is still taken to be
// served: of several API servers, the one that answers may be behind. Another document
// must then say the same. What the server's own objects say needs no second answer.
const doubtFor = 5 * time.Second

// knowledge is what a running resolver knows from its sources: documents, which say what is
// served; the metadata of CRDs and APIServices, which say what is there, what has changed and
// what is deleted; and those CRDs and APIServices that were read one by one. It is guarded by
// its owner's lock, and does no I/O.
//
// What is known is kept by group. A change marks its group as dirty, and only dirty groups
// are put together anew.
type knowledge struct {
	doubtFor time.Duration
	doc      *document // nil: none has come yet
	docAt    uint64    // the number of the request that it answers
	toldAt   uint64    // of the last one that told of the named groups; others repeat what was known
	docTold  map[schema.GroupVersion]bool
	docs     map[string]groupDoc
	listed   map[string]map[string][]*Resource // by group and plural, once asked for

	// crdsHeard and apisHeard say that the CRDs and the APIServices have been listed, or can't
	// be at the moment.
	crdsHeard, apisHeard bool

	crds map[string]map[string]*crdState // by group and plural
	// crdsRule says that the list of CRDs was complete, and crdsCurrent that it is followed
	// at this moment: what is not in it is not there, whatever documents say.
	crdsRule    bool
	crdsCurrent bool
	apis        map[string]map[string]*apiService // by group and version
	apisRule    bool
	apisCurrent bool

	// gone are CRDs that are deleted, for as long as documents may list their resources.
	gone map[schema.GroupResource]*crdState
	// builtIn are the types that had no CRD when all CRDs were known first.
	builtIn map[schema.GroupResource]bool
	// deletions are the CRDs that were deleted since the last snapshot was made.
	deletions map[schema.GroupResource]Evidence
	// doubted are resources that nothing lists any more.
	doubted map[schema.GroupVersionResource]doubt
	// dropped are group versions whose APIService is deleted: the next document that does
	// not list their resources needs no second one.
	dropped map[schema.GroupVersion]bool
	// unlisted are CRDs that are there and of which nothing is served.
	unlisted map[schema.GroupResource]*crdState
	// changed is when a CRD has last changed so that documents may tell other things.
	changed time.Time
	// stirred is when there was last a new reason for documents to change.
	stirred time.Time
	// defined are the CRDs of which a definition was read.
	defined map[schema.GroupResource]*crdState
	// unread are the objects that may have to be read one by one.
	unread map[objectRef]*lookup

	dirty map[string]bool // groups
	all   bool            // all groups are dirty
	// regroup says that a document has other groups, or in another order.
	regroup bool
	views   map[string]*groupView // as last put together
}

// crdState is what is known of a CRD.
type crdState struct {
	meta *slimMeta // nil: it is deleted
	gone *deletion // the CRD before it, while documents may mean that one
	// definition is what was read of it; nil: nothing was. It may be out of date.
	definition *crd
	// changedAt is the number of requests for documents that had begun when its type may
	// have changed. Later ones tell of that.
	changedAt uint64
	came      time.Time
	unlisted  time.Time // since when nothing is served of it; zero: something is
	// differs is since when documents, which should tell of the definition, say something else;
	// zero: they don't. Refuted says that this has lasted: something else serves the type, too.
	differs time.Time
	refuted bool
}

// staleFor is how long after the last document that listed the resource of a deleted
// CRD there may be another one, of an API server that is behind.
const staleFor = time.Minute

// deletion is what is known of a CRD that is deleted.
type deletion struct {
	Evidence
	askedAt uint64    // the number of requests for documents that had begun then
	listed  time.Time // when a document last listed its resource, or when it was deleted
	left    bool      // a later document has not listed it
	known   bool      // it was known to serve the type, and documents are older than its end
	told    bool      // to subscribers, where it makes a difference
}

// doubt is a resource that was served and is not mentioned any more, without evidence
// that it is gone. It is taken to be served until it is over.
type doubt struct {
	since time.Time
	over  bool // documents have left it out for long enough
}

// heard reports whether both lists have come, or can't, and what they leave open has been
// read.
func (k *knowledge) heard() bool {
	for ref, state := range k.unread {
		if ref.path == apiServicePath && state.failures == 0 {
			return false
		}
	}
	return k.crdsHeard && k.apisHeard
}

// touch marks a group as dirty.
func (k *knowledge) touch(group string) {
	if k.dirty == nil {
		k.dirty = map[string]bool{}
	}
	k.dirty[group] = true
}

// learn takes a document, which answers request number.
func (k *knowledge) learn(doc *document, number uint64, now time.Time) {
	for gv := range k.dropped { // what the last one left out has been dealt with
		if _, listed := k.docTold[gv]; !listed && k.doc != nil {
			delete(k.dropped, gv)
			k.touch(gv.Group)
		}
	}
	k.docAt = number
	if doc.named.err == nil {
		k.toldAt = number
	}
	if doc != k.doc {
		k.learnGroups(doc, now)
	}
	k.endDoubts(now)
	k.endDeletions(number, now)
	for gr, state := range k.defined {
		if k.toldAt == number && number > state.changedAt {
			k.compare(gr, state, now)
		}
		if !k.defines(state) { // from now on the documents do
			k.touch(gr.Group)
		}
	}
}

// endDoubts ends doubts that documents have borne out.
func (k *knowledge) endDoubts(now time.Time) {
	for gvr, d := range k.doubted {
		gv := gvr.GroupVersion()
		_, fresh := k.docTold[gv]
		awaited := k.backing(gv) == BackingAggregated && !k.dropped[gv] && !fresh
		if gvr.Group == "" && k.doc.core.err != nil || gvr.Group != "" && k.doc.named.err != nil {
			continue // it repeats what was known
		}
		if over := now.Sub(d.since) >= k.doubtFor && !awaited; over != d.over {
			d.over = over
			k.doubted[gvr] = d
			k.touch(gvr.Group)
		}
	}
}

// endDeletions ends what is known of deleted CRDs that documents, of which the last answers request
// number, can't mean any more.
func (k *knowledge) endDeletions(number uint64, now time.Time) {
	for gr, state := range k.gone {
		listed := k.lists(gr)
		if state.gone.known && number == k.toldAt && number > state.gone.askedAt {
			state.gone.known = false
			k.touch(gr.Group)
		}
		switch {
		case number > k.toldAt: // it repeats what was known
		case listed && k.outlived(gr, state, now):
			k.endDeletion(gr, state)
		case listed:
			state.gone.listed = now
		case number > state.gone.askedAt && state.meta != nil:
			k.endDeletion(gr, state)
		case number > state.gone.askedAt:
			state.gone.left = true
		}
		if state.gone != nil && now.Sub(state.gone.listed) > staleFor {
			k.endDeletion(gr, state)
		}
	}
}

// outlived reports whether documents that list gr mean another than the CRD that is gone: one
// that can't be read, and of which they have had the time to tell, or what something else serves.
func (k *knowledge) outlived(gr schema.GroupResource, state *crdState, now time.Time) bool {
	if !state.gone.left && state.meta != nil && k.unreadable(crdPath, state.meta.Name) && now.Sub(state.came) >= k.doubtFor {
		return true
	}
	return now.Sub(state.gone.At) > staleFor && k.unbacked(gr)
}

// learnGroups takes the groups of a document. Those that are as in the last one are not put
// together again.
func (k *knowledge) learnGroups(doc *document, now time.Time) {
	before, groups := k.docs, doc.groups()
	k.regroup = k.regroup || k.doc == nil || !slices.EqualFunc(k.doc.groups(), groups, func(a, b groupDoc) bool { return a.name == b.name })
	told := k.docTold
	k.doc, k.docTold = doc, versionsOf(doc)
	for gv, fresh := range k.docTold {
		if before, listed := told[gv]; !fresh && (before || !listed) {
			k.stirred = now
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

// compare takes what the last document lists of a CRD that was read.
func (k *knowledge) compare(gr schema.GroupResource, state *crdState, now time.Time) {
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
		state.differs, k.stirred = now, now
	}
	if refuted := !state.differs.IsZero() && now.Sub(state.differs) > staleFor; refuted != state.refuted {
		state.refuted = refuted
		k.touch(gr.Group)
	}
}

// endDeletion forgets the CRD before. The caller sees to it that documents mean the
// one that is there, or none.
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

// listing returns what the last document lists of gr, in each version.
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

// unbacked reports whether the last document lists gr in a version of which APIServices do not
// say what is behind it.
func (k *knowledge) unbacked(gr schema.GroupResource) bool {
	return slices.ContainsFunc(k.listing(gr), func(res *Resource) bool {
		return k.backing(res.GVR.GroupVersion()) == BackingUnknown
	})
}

// versionsOf returns the group versions of doc, and whether what it says of each is fresh.
func versionsOf(doc *document) map[schema.GroupVersion]bool {
	versions := map[schema.GroupVersion]bool{}
	for gv, version := range doc.versions() {
		versions[gv] = version.err == nil
	}
	return versions
}

// groupResourceOf returns what the CRD of that name defines: the server sees to it that the
// name says so.
func groupResourceOf(name string) schema.GroupResource { return schema.ParseGroupResource(name) }

// crd returns what is known of the CRD of gr, or nil.
func (k *knowledge) crd(gr schema.GroupResource) *crdState { return k.crds[gr.Group][gr.Resource] }

// learnCRDs takes a complete list of the CRDs, of which number requests for documents had
// begun, and reports whether the documents may now tell other things.
func (k *knowledge) learnCRDs(items []*slimMeta, number uint64, now time.Time) (ask bool) {
	first := len(k.crds) == 0
	there := make(map[string]bool, len(items))
	for _, item := range items {
		there[item.Name] = true
	}
	for group, states := range k.crds {
		for plural, state := range states {
			if state.meta != nil && !there[state.meta.Name] {
				k.noteDeleted(schema.GroupResource{Group: group, Resource: plural}, state, number, now)
				ask = true
			}
		}
	}
	since := k.changed
	for _, item := range items {
		if changed := k.learnCRD(item, number, now); !first || now.Sub(item.touched) <= recently {
			ask = ask || changed
			continue
		}
		k.crd(groupResourceOf(item.Name)).changedAt = 0 // the first document tells of it
	}
	if first && !ask {
		k.changed = since
	}
	return ask
}

// recently is how long ago an object must have been written for a document of the same
// moment to tell of it for certain.
const recently = 10 * time.Second

// learnCRD takes the metadata of a CRD and reports whether the documents may now tell other
// things. Most writes change a status, and nothing of the type.
func (k *knowledge) learnCRD(item *slimMeta, number uint64, now time.Time) (ask bool) {
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
	state.meta = item
	k.toRead(crdPath, item.Name)
	k.settle(gr, state)
	switch {
	case old == nil:
		state.came = now
	case old.Generation == item.Generation && (old.DeletionTimestamp == nil) == (item.DeletionTimestamp == nil):
		if !maps.Equal(old.Labels, item.Labels) {
			k.touch(gr.Group)
		}
		return old.ResourceVersion != item.ResourceVersion && !state.unlisted.IsZero()
	}
	state.changedAt, k.changed = number, now
	state.differs, state.refuted = time.Time{}, false
	k.touch(gr.Group)
	return true
}

// forgetCRD takes the end of a CRD and reports whether it is news: of one that has been
// created again since, it is none.
func (k *knowledge) forgetCRD(item *slimMeta, number uint64, now time.Time) bool {
	gr := groupResourceOf(item.Name)
	state := k.crd(gr)
	if state == nil || state.meta == nil || state.meta.UID != item.UID {
		return false
	}
	k.noteDeleted(gr, state, number, now)
	return true
}

// noteDeleted notes that the CRD of gr is deleted, of which state is what is known.
func (k *knowledge) noteDeleted(gr schema.GroupResource, state *crdState, number uint64, now time.Time) {
	evidence := Evidence{Kind: CRDDeleted, CRDUID: state.meta.UID, At: now}
	if k.gone == nil {
		k.gone, k.deletions = map[schema.GroupResource]*crdState{}, map[schema.GroupResource]Evidence{}
	}
	known := k.views[gr.Group].typeOf(gr.Resource).uid != ""
	state.gone = &deletion{Evidence: evidence, askedAt: number, listed: now, known: known}
	state.meta, state.definition, state.unlisted = nil, nil, time.Time{}
	k.gone[gr] = state
	if _, deleted := k.deletions[gr]; !deleted { // the first is of the CRD that was told
		k.deletions[gr] = evidence
	}
	delete(k.unlisted, gr)
	delete(k.defined, gr)
	k.changed = now
	k.touch(gr.Group)
}

// read takes a CRD that was read, and reports whether it is of use.
func (k *knowledge) read(definition *crd) bool {
	gr := groupResourceOf(definition.Metadata.Name)
	state := k.crd(gr)
	if state == nil || state.meta == nil || state.meta.UID != definition.Metadata.UID {
		return false
	}
	if definition.Spec.Group != gr.Group || definition.names().Plural != gr.Resource || gr.Resource == "" {
		return false // no API server says so
	}
	if k.defined == nil {
		k.defined = map[schema.GroupResource]*crdState{}
	}
	state.definition, k.defined[gr] = definition, state
	k.touch(gr.Group)
	k.settle(gr, state)
	return true
}

// settle ends what is known of the CRD before if the one that is there is known to be served.
func (k *knowledge) settle(gr schema.GroupResource, state *crdState) {
	if state.gone != nil && (state.gone.left || k.fresh(state) && state.definition.isEstablished()) {
		k.endDeletion(gr, state)
	}
}

// fresh reports whether what was read of a CRD is what is there now.
func (k *knowledge) fresh(state *crdState) bool {
	d, meta := state.definition, state.meta
	if d == nil || meta == nil || d.Metadata.UID != meta.UID || d.Metadata.Generation < meta.Generation {
		return false
	}
	return d.Metadata.Generation > meta.Generation || // the watch is behind
		(d.Metadata.DeletionTimestamp == nil) == (meta.DeletionTimestamp == nil) &&
			(d.isSettled() || d.Metadata.ResourceVersion == meta.ResourceVersion)
}

// defines reports whether what was read of a CRD says what is served, rather than the last
// document: it is as new as the CRD, or the document is older than its last change.
func (k *knowledge) defines(state *crdState) bool {
	return state.definition != nil && state.meta != nil && !state.refuted && state.definition.isEstablished() &&
		state.definition.Metadata.UID == state.meta.UID && (k.fresh(state) || k.toldAt <= state.changedAt)
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

// learnAPIs takes a complete list of the APIServices and reports whether the documents
// may now tell other things.
func (k *knowledge) learnAPIs(items []*slimMeta) (ask bool) {
	there := make(map[string]bool, len(items))
	first := len(k.apis) == 0
	for _, item := range items {
		there[item.Name] = true
		ask = k.learnAPI(item) && !first || ask
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

// learnAPI takes the metadata of an APIService and reports whether the documents may now tell
// other things. What is behind it is in the metadata only if the server has made it itself.
func (k *knowledge) learnAPI(meta *slimMeta) (ask bool) {
	item := apiServiceOf(meta)
	old := k.api(item.groupVersion())
	if old != nil && !item.isAutomanaged() && !old.isAutomanaged() && old.Metadata.UID == meta.UID {
		item.Spec, item.Status, item.known = old.Spec, old.Status, old.known // until it is read again
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
	return item.known
}

// readAPI takes an APIService that was read, and reports whether the documents may now tell
// other things.
func (k *knowledge) readAPI(item *apiService) (ask bool) {
	old := k.api(apiServiceOf(&item.Metadata).groupVersion())
	if old == nil || old.Metadata.UID != item.Metadata.UID {
		return false
	}
	item.known = true
	k.setAPI(item)
	k.touch(item.Spec.Group)
	return !old.known || old.backing() != item.backing() || old.available() != item.available()
}

// forgetAPI takes the end of an APIService: what it served needs no second answer.
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

// backing says what serves gv, as far as APIServices tell.
func (k *knowledge) backing(gv schema.GroupVersion) Backing {
	if !k.apisRule {
		return BackingUnknown
	}
	if item := k.api(gv); item != nil {
		return item.backing()
	}
	if k.dropped[gv] {
		return BackingAggregated // until the documents agree
	}
	return BackingUnknown
}

// undecided reports whether gv has an APIService that is still to be read: it may be of another
// server, whatever CRDs there are.
func (k *knowledge) undecided(gv schema.GroupVersion) bool {
	item := k.api(gv)
	return k.apisRule && item != nil && !item.known
}

// automanages reports whether the server makes APIServices for what it serves itself.
func (k *knowledge) automanages() bool {
	return k.apisRule && k.apisCurrent && k.api(coreV1).isAutomanaged()
}

// coreV1 is what every API server with an aggregator serves.
var coreV1 = schema.GroupVersion{Version: "v1"}

// unsettled reports whether the documents are expected to change by themselves soon.
func (k *knowledge) unsettled(now time.Time) bool {
	for _, state := range k.gone {
		if !state.gone.left {
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

// partial reports whether the last document, or half of it, could not be had.
func (k *knowledge) partial() bool {
	return k.doc == nil || k.doc.core.err != nil || k.doc.named.err != nil
}

// stale reports whether the last document could not tell of a group version that it lists.
func (k *knowledge) stale() bool {
	for _, fresh := range k.docTold {
		if !fresh {
			return true
		}
	}
	return false
}

// awaited reports whether an APIService is available of whose resources no document
// has told: discovery is behind the APIServices by up to a minute.
func (k *knowledge) awaited() bool {
	if k.doc == nil {
		return true
	}
	for _, versions := range k.apis {
		for _, item := range versions {
			if k.apisRule && item.backing() == BackingAggregated && item.available() && !k.docTold[item.groupVersion()] {
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
