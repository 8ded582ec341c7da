package discovery

import (
	"cmp"
	"fmt"
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
	// ConversionChanged: objects are converted between versions in another way.
	ConversionChanged Change = "Conversion"
	// BackingChanged: something else serves the type now. That it has become known
	// what does, or is not known any more, is no change.
	BackingChanged Change = "Backing"
	// TerminatingChanged: the type's CRD is being deleted.
	TerminatingChanged Change = "Terminating"
	// LabelsChanged: of the type's CRD. Only who asks is told: see [WithLabelChanges].
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
	// CRDDeleted: its CustomResourceDefinition was deleted.
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
	uid        types.UID // of its CRD, as last known
	conversion string
	defined    bool              // the CRD is known
	labels     map[string]string // its labels
}

// typeStates are the states of all types, and their order.
type typeStates struct {
	states map[schema.GroupResource]typeState
	order  []schema.GroupResource
}

// types returns the types of a catalogue, each once, in order. What is not known of them
// at the moment is as in last.
func (k *knowledge) types(c *catalogue, last typeStates) typeStates {
	var order []schema.GroupResource
	states := make(map[schema.GroupResource]typeState, len(c.groups))
	for at := range c.all() {
		res := *at
		gr := res.GVR.GroupResource()
		if _, seen := states[gr]; seen {
			continue
		}
		state := typeState{resource: res, uid: cmp.Or(res.CRDUID, last.states[gr].uid)}
		if definition := k.crds[gr.String()]; definition != nil {
			state.conversion = definition.Spec.Conversion.Strategy
			state.defined, state.labels = true, definition.Metadata.Labels
		}
		states[gr] = state
		order = append(order, gr)
	}
	return typeStates{states, order}
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
		{BackingChanged, a.Backing == b.Backing || a.Backing == BackingUnknown || b.Backing == BackingUnknown},
		{TerminatingChanged, a.Terminating == b.Terminating},
		{LabelsChanged, !s.defined || !now.defined || maps.Equal(s.labels, now.labels)},
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

// events returns what has happened between two states of all types, each in order. A
// CRD that was created again is another type than before: its objects are gone.
func (k *knowledge) events(before, now typeStates, at time.Time) []Event {
	var events []Event
	for _, gr := range before.order {
		if _, stays := now.states[gr]; !stays {
			old := before.states[gr]
			events = append(events, Event{Type: Removed, Resource: old.resource, Evidence: k.evidence(gr, old.uid, at)})
		}
	}
	for _, gr := range now.order {
		old, known := before.states[gr]
		state := now.states[gr]
		switch {
		case !known:
			events = append(events, Event{Type: Added, Resource: state.resource})
		case old.uid != state.uid && old.uid != "" && state.uid != "":
			events = append(events,
				Event{Type: Removed, Resource: old.resource, Evidence: Evidence{Kind: CRDDeleted, CRDUID: old.uid, At: at}},
				Event{Type: Added, Resource: state.resource})
		default:
			if changes := old.changes(state); changes != nil {
				events = append(events, Event{Type: Changed, Resource: state.resource, Old: old.resource, Changes: changes})
			}
		}
	}
	return events
}

// evidence returns why gr is gone, whose CRD last had uid.
func (k *knowledge) evidence(gr schema.GroupResource, uid types.UID, at time.Time) Evidence {
	if g, deleted := k.gone[gr]; deleted {
		return g.Evidence
	}
	definition := k.crds[gr.String()]
	switch {
	case !k.crdsRule || definition == nil && uid == "":
		return Evidence{Kind: NotListed, At: at}
	case definition == nil || uid != "" && uid != definition.Metadata.UID: // between two runs
		return Evidence{Kind: CRDDeleted, CRDUID: uid, At: at}
	}
	return Evidence{Kind: NoVersionServed, CRDUID: definition.Metadata.UID, At: at}
}
