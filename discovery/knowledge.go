package discovery

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// doubtFor is how long a resource that a document no longer lists is still taken to be
// served: of several API servers, the one that answers may be behind. Another document
// must then say the same. What the server's own objects say needs no second answer.
const doubtFor = 5 * time.Second

// knowledge is what a running resolver knows from its sources. It is guarded by its
// owner's lock, and does no I/O.
type knowledge struct {
	doubtFor time.Duration
	doc      *document // nil: none has come yet

	crds map[string]*crd // by name; nil: none have been told
	// crdsRule says that crds are complete and current. Then they decide about
	// custom resources, of which documents are behind by seconds.
	crdsRule bool
	// crdsCurrent says that they are followed at this moment: what they do not know is
	// not there, whatever documents say.
	crdsCurrent bool
	// apis are the APIServices, and apisRule says that they are complete and current.
	apis        map[string]*apiService // by name; nil: none have been told
	apisRule    bool
	apisCurrent bool

	// gone are the CRDs that are deleted, for as long as documents may list their
	// resources. Ghosts says that the last one did.
	gone   map[schema.GroupResource]ghost
	ghosts bool
	// doubted are resources that nobody mentions any more.
	doubted map[schema.GroupVersionResource]doubt
	// dropped are group versions whose APIService is deleted: the next document that
	// does not list their resources needs no second one.
	dropped map[schema.GroupVersion]bool
}

// ghostFor is how long after the last document that listed the resource of a deleted
// CRD there may be another one, of an API server that is behind.
const ghostFor = time.Minute

// ghost is a CRD that is deleted.
type ghost struct {
	Evidence
	listed time.Time // when a document last listed its resource, or when it was deleted
}

// doubt is a resource that was served and is not mentioned any more, without evidence
// that it is gone. It is taken to be served until it is over.
type doubt struct {
	since time.Time
	over  bool // documents have left it out for long enough
}

// learn takes a document.
func (k *knowledge) learn(doc *document, now time.Time) {
	if k.doc != nil { // what the last one left out has been dealt with
		told := versionsOf(k.doc)
		maps.DeleteFunc(k.dropped, func(gv schema.GroupVersion, _ bool) bool { _, listed := told[gv]; return !listed })
	}
	k.doc = doc
	told := versionsOf(doc)
	for gvr, d := range k.doubted {
		gv := gvr.GroupVersion()
		_, fresh := told[gv]
		awaited := k.backing(gv) == BackingAggregated && !k.dropped[gv] && !fresh
		d.over = now.Sub(d.since) >= k.doubtFor && !awaited
		k.doubted[gvr] = d
	}
	k.ghosts = false
	for _, version := range doc.versions() {
		for _, res := range version.resources {
			if g, gone := k.gone[res.GVR.GroupResource()]; gone {
				g.listed = now
				k.gone[res.GVR.GroupResource()] = g
				k.ghosts = true
			}
		}
	}
	maps.DeleteFunc(k.gone, func(_ schema.GroupResource, g ghost) bool { return now.Sub(g.listed) > ghostFor })
}

// versionsOf returns the group versions of doc, and whether what it says of each is fresh.
func versionsOf(doc *document) map[schema.GroupVersion]bool {
	versions := map[schema.GroupVersion]bool{}
	for gv, version := range doc.versions() {
		versions[gv] = version.err == nil
	}
	return versions
}

// learnCRDs takes a complete list of the CRDs.
func (k *knowledge) learnCRDs(items []*crd, now time.Time) {
	crds := make(map[string]*crd, len(items))
	for _, item := range items {
		crds[item.Metadata.Name] = item
	}
	for name, old := range k.crds {
		if item := crds[name]; item == nil || item.Metadata.UID != old.Metadata.UID {
			k.bury(old, now)
		}
	}
	for _, item := range items {
		k.unbury(item)
	}
	k.crds = crds
}

// learnCRD takes one CRD and reports whether anything that is served may differ.
func (k *knowledge) learnCRD(item *crd, now time.Time) bool {
	old := k.crds[item.Metadata.Name]
	if k.crds == nil {
		k.crds = map[string]*crd{}
	}
	k.crds[item.Metadata.Name] = item
	if old != nil && old.Metadata.UID != item.Metadata.UID {
		k.bury(old, now)
	}
	k.unbury(item)
	return old == nil || !old.sameType(item)
}

// forgetCRD takes the end of a CRD. Of one that has been created again since, it is
// no news.
func (k *knowledge) forgetCRD(item *crd, now time.Time) bool {
	old := k.crds[item.Metadata.Name]
	if old == nil || old.Metadata.UID != item.Metadata.UID {
		return false
	}
	delete(k.crds, item.Metadata.Name)
	k.bury(old, now)
	return true
}

func (k *knowledge) bury(old *crd, now time.Time) {
	if k.gone == nil {
		k.gone = map[schema.GroupResource]ghost{}
	}
	k.gone[old.groupResource()] = ghost{Evidence: Evidence{Kind: CRDDeleted, CRDUID: old.Metadata.UID, At: now}, listed: now}
	k.ghosts = true // until a document says otherwise
}

// unbury ends the mourning once a new CRD has taken the place of the old one. Until the
// server has established it, documents mean the old one.
func (k *knowledge) unbury(item *crd) {
	if item.isEstablished() {
		delete(k.gone, item.groupResource())
	}
}

// learnAPIs takes a complete list of the APIServices and reports whether the documents
// may now tell other things.
func (k *knowledge) learnAPIs(items []*apiService) (ask bool) {
	was := k.apis
	k.apis = make(map[string]*apiService, len(items))
	for _, item := range items {
		if old := was[item.Metadata.Name]; old != nil {
			k.apis[item.Metadata.Name] = old
			delete(was, item.Metadata.Name)
		}
		_, asks := k.learnAPI(item)
		ask = ask || asks
	}
	for _, old := range was {
		asks := k.forgetAPI(old)
		ask = ask || asks
	}
	return ask
}

// learnAPI takes an APIService and reports whether anything that is known differs by
// it, and whether the documents may now tell other things.
func (k *knowledge) learnAPI(item *apiService) (differs, ask bool) {
	old := k.apis[item.Metadata.Name]
	if k.apis == nil {
		k.apis = map[string]*apiService{}
	}
	k.apis[item.Metadata.Name] = item
	delete(k.dropped, item.groupVersion())
	differs = old == nil || old.backing() != item.backing()
	if item.backing() == BackingCRD && k.crdsRule {
		return differs, false
	}
	return differs, differs || old.available() != item.available()
}

// forgetAPI takes the end of an APIService: what it served needs no second answer.
func (k *knowledge) forgetAPI(item *apiService) (ask bool) {
	delete(k.apis, item.Metadata.Name)
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
	if item := k.apis[apiServiceName(gv)]; item != nil {
		return item.backing()
	}
	if k.dropped[gv] {
		return BackingAggregated // until the documents agree
	}
	return BackingUnknown
}

// automanages reports whether the server makes APIServices for what it serves itself.
func (k *knowledge) automanages() bool {
	return k.apisRule && k.apisCurrent && k.apis[apiServiceName(coreV1)].isAutomanaged()
}

// coreV1 is what every API server with an aggregator serves.
var coreV1 = schema.GroupVersion{Version: "v1"}

// decides reports whether the CRDs know of gr: that it is gone, or in which versions it
// is served.
func (k *knowledge) decides(gr schema.GroupResource) bool {
	_, gone := k.gone[gr]
	_, defined := k.crds[gr.String()]
	return k.crdsRule && k.crdsCurrent && (gone || defined)
}

// unsettled reports whether the documents are expected to change by themselves soon.
func (k *knowledge) unsettled() bool {
	return len(k.doubted) > 0 || k.ghosts || len(k.dropped) > 0
}

// partial reports whether a part of the last document could not be told.
func (k *knowledge) partial() bool {
	if k.doc == nil || k.doc.core.err != nil || k.doc.named.err != nil {
		return true
	}
	for _, version := range k.doc.versions() {
		if version.err != nil {
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
	fresh := versionsOf(k.doc)
	for _, item := range k.apis {
		if k.apisRule && item.backing() == BackingAggregated && item.available() && !fresh[item.groupVersion()] {
			return true
		}
	}
	return false
}
