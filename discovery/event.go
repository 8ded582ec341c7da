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

// Event is a change of one type, that is, of one group and resource in all its versions.
type Event struct {
	Type EventType
	// Resource is the type in the preferred version. Its Versions are all served versions. If Type
	// is Removed, Resource is the last known state.
	Resource Resource
	// Old is the previous Resource, if Type is Changed.
	Old Resource
	// Changes are the aspects that have changed, if Type is Changed.
	Changes []Change
	// Evidence is the reason for which the type counts as removed, if Type is Removed.
	Evidence Evidence
}

// EventType is the type of an Event.
type EventType string

// The types of events.
const (
	Added   EventType = "Added"
	Changed EventType = "Changed"
	Removed EventType = "Removed"
)

// Change is one aspect of a type.
type Change string

// The aspects of a served type.
const (
	// VersionsChanged: the served versions or the preferred version.
	VersionsChanged Change = "Versions"
	// NamesChanged: the kind, the singular, the short names or the categories; or the first three in another version, where
	// they differ from those of the preferred version.
	NamesChanged Change = "Names"
	// ScopeChanged: the scope, namespaced or cluster.
	ScopeChanged Change = "Scope"
	// VerbsChanged: the verbs of the preferred version, or its subresources.
	VerbsChanged Change = "Verbs"
	// ConversionChanged: the conversion between versions. The documents do not have it: there is an
	// event only if the type's CRD was read before and after the change.
	ConversionChanged Change = "Conversion"
	// BackingChanged: what serves the type. There is no event if the backing becomes known or
	// unknown.
	BackingChanged Change = "Backing"
	// TerminatingChanged: the deletion of the type's CRD has started.
	TerminatingChanged Change = "Terminating"
	// LabelsChanged: the labels of the type's CRD have changed or become known, or the backing has
	// become known. Only subscribers with [WithLabelChanges] get it.
	LabelsChanged Change = "Labels"
)

// Evidence is the reason for which a type counts as removed. Failed requests are not evidence.
type Evidence struct {
	Kind EvidenceKind
	// CRDUID is the UID of the removed CustomResourceDefinition, if there was one.
	CRDUID types.UID
	// At is the time of the observation.
	At time.Time
}

// EvidenceKind is the kind of an Evidence.
type EvidenceKind string

// The kinds of evidence. Only CRDDeleted implies that the objects are deleted, too.
const (
	// CRDDeleted: its CustomResourceDefinition was deleted. CRDUID is empty if that was not known: what
	// serves the type now was created after a document had listed the type.
	CRDDeleted EvidenceKind = "CRDDeleted"
	// NoVersionServed: its CustomResourceDefinition serves no version, or is not established any
	// more. If it is deleted later, subscribers get another Removed event, with CRDDeleted, also
	// subscribers that have begun in between.
	NoVersionServed EvidenceKind = "NoVersionServed"
	// NotListed: two documents that were requested at least 5 s apart do not list the type, or one
	// after its APIService was deleted. If CustomResourceDefinitions were not known then and become known
	// later, subscribers get another Removed event, with CRDDeleted or NoVersionServed, as after
	// NoVersionServed.
	NotListed EvidenceKind = "NotListed"
)

// String returns the event as text, such as "Removed widgets.v1.example.com (CRDDeleted)".
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

// MayMean reports whether the event may change what name means: the type has or had the name, as [Resource.HasName] compares it, or may
// have it in a version that is not the preferred one.
func (e Event) MayMean(name string) bool {
	return e.Resource.HasName(name) || e.Old.HasName(name) || len(e.Resource.Versions) > 1 ||
		slices.Contains(e.Changes, VersionsChanged) || slices.Contains(e.Changes, NamesChanged)
}

// typeState is the state of a type from which events are computed.
type typeState struct {
	resource   Resource  // in the preferred version
	backing    Backing   // the last known one
	uid        types.UID // of the last known CRD; empty if something else serves the type
	service    string    // of the last known aggregated server; empty if something else serves the type
	conversion string
	defined    bool              // a CRD of that name exists
	labels     map[string]string // of the CRD
	// others are the servers of other versions, if something else serves them than the preferred version.
	others map[string]versionServer
	// names are the names in other versions, by version, if they differ from those of the preferred version.
	names string
	// undecided is the date of the document that first listed the type, while its backing is not
	// known. Written is the time of the last write of its APIService, or of the creation of its CRD.
	// Both are times of the server's clock.
	undecided, written time.Time
}

// versionServer is what serves one version of a type, as far as that is known.
type versionServer struct {
	backing Backing
	uid     types.UID
	service string
}

// server returns what serves a version of the type.
func (s typeState) server(version string) versionServer {
	if other, differs := s.others[version]; differs {
		return other
	}
	return versionServer{s.backing, s.uid, s.service}
}

// with returns s with what serves another version, and its names, whose resource is res. Facts that are not known at
// present are taken from old.
func (s typeState) with(res Resource, old typeState) typeState {
	if !res.sameNames(s.resource) {
		s.names += fmt.Sprintf("%s %q %q %q ", res.GVR.Version, res.GVK.Kind, res.Singular, res.ShortNames)
	}
	server := versionServer{res.Backing, res.CRDUID, res.Service}
	if before := old.server(res.GVR.Version); res.Backing == BackingUnknown && old.serves(res.GVR.Version) {
		server = before
	}
	if server == (versionServer{s.backing, s.uid, s.service}) {
		return s
	}
	if s.others == nil {
		s.others = map[string]versionServer{}
	}
	s.others[res.GVR.Version] = server
	return s
}

func (s typeState) serves(version string) bool { return slices.Contains(s.resource.Versions, version) }

// sameServers reports whether the same servers serve the versions that both states have, as far as that is
// known.
func (s typeState) sameServers(now typeState) bool {
	for _, version := range now.resource.Versions {
		a, b := s.server(version), now.server(version)
		if !s.serves(version) || a.backing == BackingUnknown || b.backing == BackingUnknown {
			continue
		}
		if a.backing != b.backing || a.uid != b.uid && a.uid != "" && b.uid != "" || a.service != b.service && a.service != "" && b.service != "" {
			return false
		}
	}
	return true
}

// replaced reports whether the backing that has become known is newer than the document that first
// listed the type: then the document was about another backing.
func (s typeState) replaced(now typeState) bool {
	return !s.undecided.IsZero() && now.undecided.IsZero() && now.written.After(s.undecided)
}

// byCRD reports whether a CRD may serve the type.
func (s typeState) byCRD() bool {
	return s.backing == BackingCRD || s.backing == BackingUnknown
}

// same reports whether s and other are equal, except for the resource, which the caller compares.
func (s typeState) same(other typeState) bool {
	return s.uid == other.uid && s.backing == other.backing && s.service == other.service && s.conversion == other.conversion && s.defined == other.defined &&
		maps.Equal(s.labels, other.labels) && maps.Equal(s.others, other.others) && s.resource.GVR == other.resource.GVR
}

// types returns the types of a group, each once, in order. Facts that are not known at present are
// taken from before.
func (k *knowledge) types(view, before *groupView) []typeState {
	var states []typeState
	seen := map[string]int{}
	for _, res := range view.resources {
		plural := res.GVR.Resource
		old := before.typeOf(plural)
		if at, is := seen[plural]; is {
			states[at] = states[at].with(res, old)
			continue
		}
		seen[plural] = len(states)
		state := typeState{resource: res, backing: cmp.Or(res.Backing, old.backing)}
		if state.backing == BackingAggregated {
			state.service = cmp.Or(res.Service, old.service)
		}
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
		k.date(&state, old)
		states = append(states, state)
	}
	return states
}

// date sets the dates of state.
func (k *knowledge) date(state *typeState, old typeState) {
	switch res := state.resource; {
	case res.Backing == BackingUnknown:
		state.undecided = old.undecided
		if old.undecided.IsZero() && old.resource.GVR.Resource == "" {
			state.undecided = k.doc.named.date
		}
	case res.Backing == BackingAggregated && k.api(res.GVR.GroupVersion()) != nil:
		state.written = k.api(res.GVR.GroupVersion()).Metadata.touched
	case res.CRDUID != "":
		state.written = k.createdAt(res, old.written)
	}
}

// isDeleted reports whether the deletion of that CRD is to be reported. It is reported once, also for a
// type that something else may serve.
func (k *knowledge) isDeleted(gr schema.GroupResource, uid types.UID) bool {
	evidence, deleted := k.deletions[gr]
	return deleted && evidence.CRDUID == uid
}

// createdAt returns the time of the creation of the CRD of res, or otherwise if the CRD is not known.
func (k *knowledge) createdAt(res Resource, otherwise time.Time) time.Time {
	if of := k.crd(res.GVR.GroupResource()); of != nil && of.meta != nil {
		return of.meta.created
	}
	return otherwise
}

// typeOf returns the state of the type with that plural, or the zero value if it is not served.
func (g *groupView) typeOf(plural string) typeState {
	if g == nil {
		return typeState{}
	}
	if at, known := g.index().types[plural]; known {
		return g.types[at]
	}
	return typeState{}
}

// changes returns the aspects in which two states of one type differ.
func (s typeState) changes(now typeState) []Change {
	a, b := s.resource, now.resource
	var changes []Change
	for _, aspect := range []struct {
		change Change
		same   bool
	}{
		{VersionsChanged, slices.Equal(a.Versions, b.Versions)},
		{NamesChanged, a.sameNames(b) && slices.Equal(a.Categories, b.Categories) && s.names == now.names},
		{ScopeChanged, a.Namespaced == b.Namespaced},
		{VerbsChanged, sameSet(a.Verbs, b.Verbs) && sameSet(a.Subresources, b.Subresources)},
		{ConversionChanged, s.conversion == now.conversion || s.conversion == "" || now.conversion == ""},
		{BackingChanged, (s.backing == now.backing || s.backing == BackingUnknown || now.backing == BackingUnknown) && s.sameServers(now)},
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

// events returns the changes between two snapshots, in order for each type, and clears the deletions of
// CRDs since then. A CRD that was created again is another type, also with the same UID: its objects
// were deleted.
func (k *knowledge) events(before, now *snapshot, at time.Time) []Event {
	var removed, events []Event
	for pair := range changedGroups(before, now) {
		old, view := pair[0], pair[1]
		if old != nil {
			for _, state := range old.types {
				if view.typeOf(state.resource.GVR.Resource).resource.GVR.Resource == "" {
					evidence := k.evidence(state, at)
					removed = append(removed, Event{Type: Removed, Resource: state.resource, Evidence: evidence})
					k.remember(state, evidence)
				}
			}
		}
		if view != nil {
			for _, state := range view.types {
				events = append(events, k.eventsOf(old.typeOf(state.resource.GVR.Resource), state, at)...)
			}
		}
	}
	events = append(k.ended(now, at), events...)
	clear(k.deletions)
	return append(removed, events...)
}

// unservedType is a type that was reported as removed while its CRD existed, or may have existed.
type unservedType struct {
	typeState      // the last one
	unknown   bool // the CRDs were not known
}

// remember stores the last state of a type that is reported as removed with evidence, if its CRD exists, or may
// exist because the CRDs are not known.
func (k *knowledge) remember(old typeState, evidence Evidence) {
	if evidence.Kind != NoVersionServed && (k.crdsRule || !old.byCRD()) {
		return
	}
	if k.unserved == nil {
		k.unserved = map[schema.GroupResource]unservedType{}
	}
	k.unserved[old.resource.GVR.GroupResource()] = unservedType{old, !k.crdsRule}
}

// ended returns what has become known of types that were reported as removed before: the deletion of their CRDs, since
// subscribers may have kept their objects, and that CRDs that were not known serve no version.
func (k *knowledge) ended(now *snapshot, at time.Time) (events []Event) {
	for gr, old := range k.unserved {
		var evidence Evidence
		served := now.group(gr.Group).typeOf(gr.Resource).resource.GVR.Resource != ""
		if deletion, deleted := k.deletions[gr]; deleted {
			evidence = deletion.of(old.typeState)
		} else if old.unknown && !served && now.decides(old.resource.GVR) {
			evidence = k.evidence(old.typeState, at)
			k.unserved[gr] = unservedType{typeState: old.typeState}
		}
		if evidence.Kind == CRDDeleted || evidence.Kind == NoVersionServed {
			events = append(events, Event{Type: Removed, Resource: old.resource, Evidence: evidence})
		}
		if evidence.Kind == CRDDeleted || served {
			delete(k.unserved, gr)
		}
	}
	slices.SortFunc(events, func(a, b Event) int {
		return cmp.Compare(a.Resource.GVR.GroupResource().String(), b.Resource.GVR.GroupResource().String())
	})
	return events
}

// eventsOf returns the changes of a served type.
func (k *knowledge) eventsOf(old, state typeState, at time.Time) []Event {
	if old.resource.GVR.Resource == "" {
		return []Event{{Type: Added, Resource: state.resource}}
	}
	evidence, deleted := k.deletions[state.resource.GVR.GroupResource()]
	evidence = evidence.of(old)
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

// changedGroups returns the previous and the present view of each changed group, one of which may be
// nil, in the order of before, and then the new groups.
func changedGroups(before, now *snapshot) iter.Seq[[2]*groupView] {
	// Most groups are the same at the same index. A search by name for each of them would be
	// the greatest part of the cost of an event.
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

// of returns the deletion of the CRD of old, which is the CRD that subscribers know. E may be the deletion of
// a later CRD of that name.
func (e Evidence) of(old typeState) Evidence {
	e.CRDUID = cmp.Or(old.uid, e.CRDUID)
	return e
}

// evidence returns the reason for which a type counts as removed, whose last state is old.
func (k *knowledge) evidence(old typeState, at time.Time) Evidence {
	gr := old.resource.GVR.GroupResource()
	state := k.crd(gr)
	deletion, deleted := k.deletions[gr]
	switch {
	case !k.crdsRule || !old.byCRD() || state == nil && old.uid == "":
		return Evidence{Kind: NotListed, At: at}
	case deleted:
		return deletion.of(old)
	case state != nil && state.meta == nil: // something else has served it since the deletion
		return Evidence{Kind: NotListed, At: at}
	case state == nil || old.uid != "" && old.uid != state.meta.UID: // it was deleted between two runs
		return Evidence{Kind: CRDDeleted, CRDUID: old.uid, At: at}
	}
	return Evidence{Kind: NoVersionServed, CRDUID: state.meta.UID, At: at}
}
