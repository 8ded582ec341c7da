package discovery

import (
	"maps"
	"slices"
	"strings"
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
	// apis are the APIServices, and apisRule says that they are complete and current.
	apis     map[string]*apiService // by name; nil: none have been told
	apisRule bool

	// gone are the CRDs that are deleted, for as long as documents may list their
	// resources. Ghosts says that the last one did.
	gone   map[schema.GroupResource]ghost
	ghosts bool
	// doubted are resources that the last document did not list.
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

type doubt struct {
	res   Resource
	since time.Time
}

// learn takes a document. What an earlier one listed and this one does not is doubted,
// and dropped if it has been for long enough.
func (k *knowledge) learn(doc *document, now time.Time) {
	listed := map[schema.GroupVersionResource]bool{}
	versions := map[schema.GroupVersion]bool{}
	k.ghosts = false
	for gv, version := range doc.versions() {
		versions[gv] = true
		for _, res := range version.resources {
			listed[res.GVR] = true
			if evidence, gone := k.gone[res.GVR.GroupResource()]; gone {
				evidence.listed = now
				k.gone[res.GVR.GroupResource()] = evidence
				k.ghosts = true
			}
		}
	}
	k.doubtMissing(listed, now)
	maps.DeleteFunc(k.doubted, func(gvr schema.GroupVersionResource, d doubt) bool {
		return listed[gvr] || now.Sub(d.since) >= k.doubtFor || k.dropped[gvr.GroupVersion()]
	})
	maps.DeleteFunc(k.dropped, func(gv schema.GroupVersion, _ bool) bool {
		return !versions[gv] || k.apis[apiServiceName(gv)] != nil // gone, or back
	})
	maps.DeleteFunc(k.gone, func(_ schema.GroupResource, g ghost) bool { return now.Sub(g.listed) > ghostFor })
	k.doc = doc
}

// doubtMissing doubts what was listed before and is not now.
func (k *knowledge) doubtMissing(listed map[schema.GroupVersionResource]bool, now time.Time) {
	if k.doc == nil {
		return
	}
	for gv, version := range k.doc.versions() {
		for _, res := range version.resources {
			if _, old := k.doubted[res.GVR]; old || listed[res.GVR] || !k.believes(res, k.backing(gv)) {
				continue
			}
			if k.doubted == nil {
				k.doubted = map[schema.GroupVersionResource]doubt{}
			}
			k.doubted[res.GVR] = doubt{res: res, since: now}
		}
	}
}

// learnCRDs takes a complete list of the CRDs.
func (k *knowledge) learnCRDs(items []*crd, now time.Time) {
	crds := make(map[string]*crd, len(items))
	for _, item := range items {
		crds[item.Metadata.Name] = item
	}
	for name, old := range k.crds {
		if crds[name] == nil {
			k.bury(old, now)
		}
	}
	for _, item := range items {
		delete(k.gone, item.groupResource())
	}
	k.crds = crds
}

// learnCRD takes one CRD and reports whether anything that is served may differ.
func (k *knowledge) learnCRD(item *crd) bool {
	old := k.crds[item.Metadata.Name]
	if k.crds == nil {
		k.crds = map[string]*crd{}
	}
	k.crds[item.Metadata.Name] = item
	delete(k.gone, item.groupResource())
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
	return k.apisRule && k.apis[apiServiceName(coreV1)].isAutomanaged()
}

// coreV1 is what every API server with an aggregator serves.
var coreV1 = schema.GroupVersion{Version: "v1"}

func sortedGVRs[V any](m map[schema.GroupVersionResource]V) []schema.GroupVersionResource {
	return slices.SortedFunc(maps.Keys(m), func(a, b schema.GroupVersionResource) int {
		return strings.Compare(a.String(), b.String())
	})
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
	fresh := map[schema.GroupVersion]bool{}
	for gv, version := range k.doc.versions() {
		fresh[gv] = version.err == nil
	}
	for _, item := range k.apis {
		if k.apisRule && item.backing() == BackingAggregated && item.available() && !fresh[item.groupVersion()] {
			return true
		}
	}
	return false
}
