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
	apis     map[string]*apiService // by name; nil: none have been told

	// gone are the CRDs that are deleted, for as long as a document lists their
	// resources, and until the event is out.
	gone map[schema.GroupResource]Evidence
	// doubted are resources that the last document did not list.
	doubted map[schema.GroupVersionResource]doubt
	// dropped are group versions whose APIService is deleted: the next document that
	// does not list their resources needs no second one.
	dropped map[schema.GroupVersion]bool
}

type doubt struct {
	res   Resource
	since time.Time
}

// learn takes a document. What an earlier one listed and this one does not is doubted,
// and dropped if it has been for long enough.
func (k *knowledge) learn(doc *document, now time.Time) {
	listed := map[schema.GroupVersionResource]bool{}
	named := map[schema.GroupResource]bool{}
	versions := map[schema.GroupVersion]bool{}
	for _, group := range doc.groups() {
		for _, version := range group.versions {
			versions[schema.GroupVersion{Group: group.name, Version: version.name}] = true
			for _, res := range version.resources {
				listed[res.GVR] = true
				named[res.GVR.GroupResource()] = true
			}
		}
	}
	if k.doubted == nil {
		k.doubted = map[schema.GroupVersionResource]doubt{}
	}
	if k.doc != nil {
		for _, group := range k.doc.groups() {
			for _, version := range group.versions {
				for _, res := range version.resources {
					_, old := k.doubted[res.GVR]
					if !listed[res.GVR] && !old && k.believes(res, k.backing(res.GVR.GroupVersion())) {
						k.doubted[res.GVR] = doubt{res: res, since: now}
					}
				}
			}
		}
	}
	maps.DeleteFunc(k.doubted, func(gvr schema.GroupVersionResource, d doubt) bool {
		return listed[gvr] || now.Sub(d.since) >= k.doubtFor || k.dropped[gvr.GroupVersion()]
	})
	maps.DeleteFunc(k.dropped, func(gv schema.GroupVersion, _ bool) bool {
		return !versions[gv] || k.apis[gv.Version+"."+gv.Group] != nil // gone, or back
	})
	maps.DeleteFunc(k.gone, func(gr schema.GroupResource, _ Evidence) bool { return !named[gr] })
	k.doc = doc
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
	k.crds, k.crdsRule = crds, true
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
		k.gone = map[schema.GroupResource]Evidence{}
	}
	k.gone[old.groupResource()] = Evidence{Kind: CRDDeleted, CRDUID: old.Metadata.UID, At: now}
}

// learnAPIs takes a complete list of the APIServices and reports whether the documents
// may now tell other things.
func (k *knowledge) learnAPIs(items []*apiService) (ask bool) {
	was := k.apis
	k.apis = make(map[string]*apiService, len(items))
	for _, item := range items {
		k.apis[item.Metadata.Name] = was[item.Metadata.Name]
		_, asks := k.learnAPI(item)
		ask = ask || asks
		delete(was, item.Metadata.Name)
	}
	return ask || len(was) > 0
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
	name := gv.Version + "." + gv.Group // as the server requires
	if item := k.apis[name]; item != nil {
		return item.backing()
	}
	if k.dropped[gv] {
		return BackingAggregated // until the documents agree
	}
	return BackingUnknown
}

func sortedGVRs[V any](m map[schema.GroupVersionResource]V) []schema.GroupVersionResource {
	return slices.SortedFunc(maps.Keys(m), func(a, b schema.GroupVersionResource) int {
		return strings.Compare(a.String(), b.String())
	})
}

// unsettled reports whether the documents are expected to change by themselves soon.
func (k *knowledge) unsettled() bool {
	return len(k.doubted) > 0 || len(k.gone) > 0 || len(k.dropped) > 0
}

// partial reports whether a part of the last document could not be told.
func (k *knowledge) partial() bool {
	if k.doc == nil || k.doc.core.err != nil || k.doc.named.err != nil {
		return true
	}
	for _, group := range k.doc.groups() {
		if slices.ContainsFunc(group.versions, func(v versionDoc) bool { return v.err != nil }) {
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
	for _, group := range k.doc.groups() {
		for _, version := range group.versions {
			fresh[schema.GroupVersion{Group: group.name, Version: version.name}] = version.err == nil
		}
	}
	for _, item := range k.apis {
		if item.backing() == BackingAggregated && item.available() && !fresh[item.groupVersion()] {
			return true
		}
	}
	return false
}
