package discovery

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Event is a change of what the server serves, of one type: one group and resource,
// in whatever versions.
type Event struct {
	Type EventType
	// Resource is the type in the version that the server prefers; its Versions are
	// all that are served. Of a type that is removed, it is the last that was known.
	Resource Resource
	// Old is what Resource was before, if Type is Changed.
	Old Resource
	// Changes are what has changed, if Type is Changed.
	Changes []Change
	// Evidence is why the type is taken to be gone, if Type is Removed.
	Evidence Evidence
}

// EventType says what has happened to a type.
type EventType string

// What can happen to a type.
const (
	Added   EventType = "Added"
	Changed EventType = "Changed"
	Removed EventType = "Removed"
)

// Change is one aspect of a type.
type Change string

// What can change about a type while it is served.
const (
	// VersionsChanged: other versions are served, or another is preferred.
	VersionsChanged Change = "Versions"
	// NamesChanged: of kind, singular, short names or categories.
	NamesChanged Change = "Names"
	// ScopeChanged: objects have moved into namespaces or out of them.
	ScopeChanged Change = "Scope"
	// VerbsChanged: of the preferred version, or its subresources.
	VerbsChanged Change = "Verbs"
	// ConversionChanged: objects are converted between versions in another way. Documents
	// do not say so: there is an event only for types whose CRD was read, before and after.
	ConversionChanged Change = "Conversion"
	// BackingChanged: something else serves the type now. That it has become known
	// what does, or is not known any more, is no change.
	BackingChanged Change = "Backing"
	// TerminatingChanged: the type's CRD is being deleted.
	TerminatingChanged Change = "Terminating"
	// LabelsChanged: the labels of the type's CRD have changed or become known, or what
	// serves the type has become known. Only subscribers with [WithLabelChanges] get it.
	LabelsChanged Change = "Labels"
)

// Evidence is why a type is taken to be gone. That requests for it fail is none.
type Evidence struct {
	Kind EvidenceKind
	// CRDUID is the UID of the CustomResourceDefinition that is gone, if one is.
	CRDUID types.UID
	// At is when it was seen.
	At time.Time
}

// EvidenceKind says from what it is concluded that a type is gone.
type EvidenceKind string

// From what it can be concluded that a type is not served any more. Only the first
// says that its objects are gone, too.
const (
	// CRDDeleted: its CustomResourceDefinition was deleted. Without a UID: what serves the
	// type has become known, and was created after the type was.
	CRDDeleted EvidenceKind = "CRDDeleted"
	// NoVersionServed: its CustomResourceDefinition serves none of its versions, or
	// is not established any more.
	NoVersionServed EvidenceKind = "NoVersionServed"
	// NotListed: the server has left it out of what it serves, in two answers at
	// least 5 s apart, or in one after the type's APIService was deleted.
	NotListed EvidenceKind = "NotListed"
)

func (e Event) String() string {
	text := fmt.Sprintf("%s %s", e.Type, RefOf(e.Resource.GVR))
	switch e.Type {
	case Changed:
		return fmt.Sprintf("%s %v", text, e.Changes)
	case Removed:
		return fmt.Sprintf("%s (%s)", text, e.Evidence.Kind)
	}
	return text
}

// typeState is what events tell of a type.
type typeState struct {
	resource   Resource  // in the preferred version
	backing    Backing   // what serves it, as last known
	uid        types.UID // of its CRD, as last known; empty if something else serves it
	conversion string
	defined    bool              // there is a CRD of that name
	labels     map[string]string // its labels
	// undecided is the date of the document that listed the type when it was not known what
	// serves it, and written when what serves it, if that is known, was written: of a CRD that
	// is its creation. Both are of the server's clock.
	undecided, written time.Time
}

// replaced reports whether what is now known to serve the type was written after the document
// by which the type was made known: that document was about something else.
func (s typeState) replaced(now typeState) bool {
	return !s.undecided.IsZero() && now.undecided.IsZero() && now.written.After(s.undecided)
}

// byCRD reports whether a CRD may be what serves the type.
func (s typeState) byCRD() bool {
	return s.backing == BackingCRD || s.backing == BackingUnknown
}

// same reports whether other says the same of the type.
func (s typeState) same(other typeState) bool {
	return s.uid == other.uid && s.backing == other.backing && s.conversion == other.conversion && s.defined == other.defined &&
		maps.Equal(s.labels, other.labels) && s.resource.GVR == other.resource.GVR
}

// types returns the types of a group, each once, in order. What is not known of them at the
// moment is as before.
func (k *knowledge) types(view, before *groupView) []typeState {
	var states []typeState
	seen := map[string]bool{}
	for _, res := range view.resources {
		plural := res.GVR.Resource
		if seen[plural] {
			continue
		}
		seen[plural] = true
		old := before.typeOf(plural)
		state := typeState{resource: res, backing: cmp.Or(res.Backing, old.backing)}
		if state.byCRD() {
			state.uid = res.CRDUID
			if old.byCRD() && !k.isDeleted(res.GVR.GroupResource(), old.uid) {
				state.uid = cmp.Or(state.uid, old.uid)
			}
		}
		if of := k.crd(res.GVR.GroupResource()); of != nil && of.meta != nil {
			state.defined, state.labels = true, of.meta.Labels
			if of.definition != nil {
				state.conversion = of.definition.Spec.Conversion.Strategy
			} else {
				state.conversion = old.conversion
			}
		}
		switch gv := res.GVR.GroupVersion(); {
		case res.Backing == BackingUnknown:
			state.undecided = old.undecided
			if old.undecided.IsZero() && old.resource.GVR.Resource == "" {
				state.undecided = k.doc.named.date
			}
		case res.Backing == BackingAggregated && k.api(gv) != nil:
			state.written = k.api(gv).Metadata.touched
		case res.CRDUID != "":
			state.written = k.createdAt(res, old.written)
		}
		states = append(states, state)
	}
	return states
}

// isDeleted reports whether the deletion of that CRD is about to be told. It has to be told once,
// also of a type that something else may serve.
func (k *knowledge) isDeleted(gr schema.GroupResource, uid types.UID) bool {
	evidence, deleted := k.deletions[gr]
	return deleted && evidence.CRDUID == uid
}

// createdAt returns when the CRD of res was created, or otherwise if that is not known any more.
func (k *knowledge) createdAt(res Resource, otherwise time.Time) time.Time {
	if of := k.crd(res.GVR.GroupResource()); of != nil && of.meta != nil {
		return of.meta.created
	}
	return otherwise
}

// typeOf returns what is known of the type with that plural; of one that is not served, the
// zero value.
func (g *groupView) typeOf(plural string) typeState {
	if g == nil {
		return typeState{}
	}
	if at, known := g.index().types[plural]; known {
		return g.types[at]
	}
	return typeState{}
}

// changes returns what differs between two states of one type.
func (s typeState) changes(now typeState) []Change {
	a, b := s.resource, now.resource
	var changes []Change
	for _, aspect := range []struct {
		change Change
		same   bool
	}{
		{VersionsChanged, slices.Equal(a.Versions, b.Versions)},
		{NamesChanged, a.GVK.Kind == b.GVK.Kind && a.Singular == b.Singular && slices.Equal(a.ShortNames, b.ShortNames) && slices.Equal(a.Categories, b.Categories)},
		{ScopeChanged, a.Namespaced == b.Namespaced},
		{VerbsChanged, sameSet(a.Verbs, b.Verbs) && sameSet(a.Subresources, b.Subresources)},
		{ConversionChanged, s.conversion == now.conversion || s.conversion == "" || now.conversion == ""},
		{BackingChanged, s.backing == now.backing || s.backing == BackingUnknown || now.backing == BackingUnknown},
		{TerminatingChanged, a.Terminating == b.Terminating},
		{LabelsChanged, s.defined == now.defined && maps.Equal(s.labels, now.labels) && (a.Backing != BackingUnknown || b.Backing == BackingUnknown)},
	} {
		if !aspect.same {
			changes = append(changes, aspect.change)
		}
	}
	return changes
}

func sameSet(a, b []string) bool {
	return slices.Equal(a, b) || slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// events returns what has happened between two snapshots, in order for each type, and
// forgets which CRDs were deleted meanwhile. A CRD that was created again is another type than
// before, also with the UID that it had: its objects are gone.
func (k *knowledge) events(before, now *snapshot, at time.Time) []Event {
	var removed, events []Event
	for pair := range changedGroups(before, now) {
		old, view := pair[0], pair[1]
		if old != nil {
			for _, state := range old.types {
				if view.typeOf(state.resource.GVR.Resource).resource.GVR.Resource == "" {
					removed = append(removed, Event{Type: Removed, Resource: state.resource, Evidence: k.evidence(state, at)})
				}
			}
		}
		if view != nil {
			for _, state := range view.types {
				events = append(events, k.eventsOf(old.typeOf(state.resource.GVR.Resource), state, at)...)
			}
		}
	}
	for gr := range k.deletions {
		if state := k.gone[gr]; state != nil {
			state.gone.told = true
		}
	}
	clear(k.deletions)
	return append(removed, events...)
}

// eventsOf returns what has happened to a type that is served.
func (k *knowledge) eventsOf(old, state typeState, at time.Time) []Event {
	if old.resource.GVR.Resource == "" {
		return []Event{{Type: Added, Resource: state.resource}}
	}
	evidence, deleted := k.deletions[state.resource.GVR.GroupResource()]
	if old.uid == "" && k.undecided(state.resource.GVR.GroupVersion()) {
		deleted = false // that CRD may never have served it
	}
	if !deleted && old.uid != state.uid && old.uid != "" && state.uid != "" {
		evidence, deleted = Evidence{Kind: CRDDeleted, CRDUID: old.uid, At: at}, true
	}
	if !deleted && old.replaced(state) {
		evidence, deleted = Evidence{Kind: CRDDeleted, At: at}, true
	}
	if deleted && old.byCRD() && (state.byCRD() || old.replaced(state)) {
		return []Event{
			{Type: Removed, Resource: old.resource, Evidence: evidence},
			{Type: Added, Resource: state.resource},
		}
	}
	if changes := old.changes(state); changes != nil {
		return []Event{{Type: Changed, Resource: state.resource, Old: old.resource, Changes: changes}}
	}
	return nil
}

// changedGroups returns the views of each group that differs, before and now, one of which may
// be nil: in the order of before, and then of what has come.
func changedGroups(before, now *snapshot) iter.Seq[[2]*groupView] {
	// Most groups are the same in the same place. To look up each of them by name would be
	// most of what an event costs where there are many.
	same := func(i int) bool {
		return before != nil && i < len(before.groups) && i < len(now.groups) && before.groups[i] == now.groups[i]
	}
	return func(yield func([2]*groupView) bool) {
		if before != nil {
			for i, old := range before.groups {
				if same(i) {
					continue
				}
				if view := now.group(old.name); view != old && !yield([2]*groupView{old, view}) {
					return
				}
			}
		}
		for i, view := range now.groups {
			if !same(i) && (before == nil || before.group(view.name) == nil) && !yield([2]*groupView{nil, view}) {
				return
			}
		}
	}
}

// evidence returns why a type is gone, of which old was known.
func (k *knowledge) evidence(old typeState, at time.Time) Evidence {
	state := k.crd(old.resource.GVR.GroupResource())
	switch {
	case !k.crdsRule || !old.byCRD() || state == nil && old.uid == "":
		return Evidence{Kind: NotListed, At: at}
	case state != nil && state.gone != nil && !state.gone.told:
		return state.gone.Evidence
	case state != nil && state.meta == nil: // something else has served it since
		return Evidence{Kind: NotListed, At: at}
	case state == nil || old.uid != "" && old.uid != state.meta.UID: // between two runs
		return Evidence{Kind: CRDDeleted, CRDUID: old.uid, At: at}
	}
	return Evidence{Kind: NoVersionServed, CRDUID: state.meta.UID, At: at}
}
