package churn

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// View is what a handler or a cache is limited to.
type View struct {
	Name       string // for reports
	Type       string
	Color      string   // the selected color; empty: all
	Version    string   // the requested version; empty: one that is served
	Namespaces []string // nil: all
	// Sets are the namespaces if they change. Nil: they are Namespaces.
	Sets *NamespaceSets
	Form Form
	// Merged means that events may have been merged before the handler got them.
	Merged bool
	// Keeps means that objects of a type that is gone stay in the cache.
	Keeps bool

	had map[types.UID]bool // objects of the cache to which the handler was added
}

// Includes reports whether the view has the objects of a namespace now.
func (v View) Includes(namespace string) bool {
	names := v.Namespaces
	if v.Sets != nil {
		names = v.Sets.Current()
	}
	return names == nil || namespace == "" || slices.Contains(names, namespace)
}

// NamespaceSets has the sets of namespaces to which a subject has been limited, one after the other. It is safe for
// concurrent use.
type NamespaceSets struct {
	mu   sync.Mutex
	sets []namespaceSet
}

type namespaceSet struct {
	names []string
	begun time.Time
}

// Change adds a set, which replaces the one before. It must be called before the subject gets the set.
func (s *NamespaceSets) Change(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sets = append(s.sets, namespaceSet{append([]string{}, names...), time.Now()})
}

// Current returns the last set. It is not nil.
func (s *NamespaceSets) Current() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sets) == 0 {
		return []string{}
	}
	return s.sets[len(s.sets)-1].names
}

// once reports whether one of the sets that were replaced after a time, and began before another one, has the namespace or, if has is false, does not
// have it.
func (s *NamespaceSets) once(has bool, namespace string, after, before time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, set := range s.sets {
		replaced := i+1 < len(s.sets) && !s.sets[i+1].begun.After(after)
		if !replaced && set.begun.Before(before) && (namespace == "" || slices.Contains(set.names, namespace)) == has {
			return true
		}
	}
	return false
}

// Invariant is a rule for histories or states.
type Invariant string

// The invariants. Those of histories hold at any time, those of states at rest.
const (
	Unique             Invariant = "unique: additions and deletions of an object alternate, with one UID"
	Atomic             Invariant = "atomic: each observed state is one that the object had at this version"
	Ordered            Invariant = "ordered: the states of an object are observed in their order"
	Justified          Invariant = "justified: an object is deleted only if it does not exist, or is no longer selected"
	Generations        Invariant = "generations: all objects of a type are deleted before the first of its successor is added"
	OldState           Invariant = "old states: the old object of an update is the object that the handler has"
	InitialList        Invariant = "initial list: it has the first additions, and those of objects that the cache had when the handler was added"
	Selection          Invariant = "selection: only objects that are selected are added or updated"
	CalledAfterRemoval Invariant = "removal: a removed handler is not called"
	Rest               Invariant = "rest: after the end of all faults, the subject comes to rest; the violations before this one are the differences that are left"
	Equal              Invariant = "equal: at rest, the subject has what the server has"
	Status             Invariant = "status: at rest, states and waits are true"
	Resumable          Invariant = "resumable: a watch begins at a version that the client has got in its namespaces"
	Bookmarks          Invariant = "bookmarks: a bookmark is at or after all events before it, and before all events after it"
	NoGap              Invariant = "no gap: a watch sends what was written since the version at which it began, and nothing else"
	Complete           Invariant = "complete: if the subject does not list a type between two times at rest, and the type does not move, handlers get each state that was written in between"
	Changes            Invariant = "changes: under the same conditions, each update of what was written in between has another state, and each deletion a final state"
	Kept               Invariant = "kept: if objects must stay in the cache when their type ends, the end of the type deletes none"
	Released           Invariant = "released: what is released leaves no watch and no goroutine"
)

// Violation is a broken invariant.
type Violation struct {
	Invariant Invariant
	Text      string
}

// String returns the invariant's name and the text.
func (v Violation) String() string {
	name, _, _ := strings.Cut(string(v.Invariant), ":")
	return name + ": " + v.Text
}

// CheckHistory returns the violations of the events that one handler has got, in order.
func CheckHistory(w *World, v View, events []Event) []Violation {
	c := &checker{world: w, view: v, has: map[string]held{}, last: map[types.UID]int{}, had: map[types.UID]bool{}, gone: map[types.UID]int{}, again: map[types.UID]bool{}}
	for i, e := range events {
		c.at, c.events = i, events[:i+1]
		c.event(e)
	}
	return c.found
}

// held is an object that a handler has.
type held struct {
	Observation
	incarnation int
	added       time.Time
}

// checker reads one history.
type checker struct {
	world  *World
	view   View
	has    map[string]held
	last   map[types.UID]int // the index of the last observed state of each object
	had    map[types.UID]bool
	gone   map[types.UID]int  // of each object that was deleted, the index of the state that was the cause
	again  map[types.UID]bool // objects that were deleted when their CRD was learned late; true until they are added again
	at     int
	events []Event // until at
	later  bool    // an addition that is not initial was seen
	found  []Violation
}

func (c *checker) report(i Invariant, e Event, format string, args ...any) {
	var before []string // of the same key
	for _, earlier := range c.events[:c.at] {
		if earlier.New.Key() == e.New.Key() {
			before = append(before, fmt.Sprintf("%s %s %s", earlier.At.Format(clock), earlier.Kind, earlier.New.ResourceVersion))
		}
	}
	c.found = append(c.found, Violation{i, fmt.Sprintf("%s: event %d at %s, %v: %s; before: %s",
		c.view.Name, c.at, e.At.Format(clock), e, fmt.Sprintf(format, args...), strings.Join(before[max(0, len(before)-5):], ", "))})
}

func (c *checker) event(e Event) {
	seen := e.New
	reduced := c.view.Merged && (e.Kind == Deleted || e.Kind == Moved) // the object may have lost its content while it waited
	if seen.Problem != "" && !reduced {
		c.report(Atomic, e, "%s", seen.Problem)
		return
	}
	o, known := c.world.Object(c.view.Type, seen.UID)
	if !known {
		c.report(Atomic, e, "no object has this UID")
		return
	}
	if o.Namespace != seen.Namespace || o.Name != seen.Name {
		c.report(Atomic, e, "the object with this UID is %s", o.Key())
	}
	have, present := c.has[seen.Key()]
	if e.Kind == Added {
		c.added(e, o, have, present)
		return
	}
	if !present || have.UID != seen.UID {
		c.report(Unique, e, "the handler has UID %q", have.UID)
	}
	if e.Kind == Updated {
		c.updated(e, o, have)
	} else {
		c.deleted(e, o, have)
	}
}

func (c *checker) updated(e Event, o Object, have held) {
	old, reduced := e.Old, c.view.Merged && e.Old.Problem != ""
	whole := old.Problem == "" && old.hasContentOf(have.Observation)
	if have.UID == e.New.UID && (old.UID != have.UID || old.ResourceVersion != have.ResourceVersion || !whole && !reduced) {
		c.report(OldState, e, "the handler has %v; %s", have, old.Problem)
	}
	c.state(e, o)
	c.has[e.New.Key()] = held{e.New, o.Incarnation, have.added}
}

func (c *checker) added(e Event, o Object, have held, present bool) {
	if present {
		c.report(Unique, e, "the handler has it already, with UID %s", have.UID)
	}
	c.resurrected(e, o)
	if !e.Initial && c.view.had[o.UID] && !c.had[o.UID] && !c.view.Merged {
		c.report(InitialList, e, "the cache had it when the handler was added")
	}
	c.had[o.UID] = true
	if c.again[o.UID] {
		c.again[o.UID] = false
	}
	c.successor(e, o)
	if e.Initial && c.later && !c.view.Merged {
		c.report(InitialList, e, "an addition before is not initial")
	}
	c.later = c.later || !e.Initial
	c.state(e, o)
	c.has[e.New.Key()] = held{e.New, o.Incarnation, e.At}
}

// resurrected checks an addition of an object that was deleted before: it must have a state after the one that was the cause. An object that
// has left a set of namespaces by a move may come back as it was.
func (c *checker) resurrected(e Event, o Object) {
	end, deleted := c.gone[o.UID]
	if !deleted || o.returned() || c.again[o.UID] {
		return
	}
	switch {
	case c.view.Color == "" && c.view.Sets == nil:
		c.report(Unique, e, "it was deleted before")
	case o.find(e.New, end+1) < 0:
		c.report(Ordered, e, "it was deleted before, at or after state %d: %s", end, o.versions())
	}
}

// successor checks that the handler has no object of another CRD of the type than that of an addition. The objects of each namespace of a set come
// by themselves: those of one may come before those of another one leave, unless the subject knows that they are of two CRDs. It may not know it
// before it has been sent the later one, and if a restore of etcd has brought back one of them. It may keep them for a time if the later one does not
// serve their version.
func (c *checker) successor(e Event, o Object) {
	for key, other := range c.has {
		later := max(o.Incarnation, other.incarnation) // initial additions have no order
		if other.incarnation == o.Incarnation || c.view.Sets != nil && (c.world.onTwoServers(o.Type, o.Incarnation, other.incarnation) ||
			c.world.unknown(o.Type, later, e.At) || c.world.unseen(o.Type, later, e.At) || c.world.returned(o.Type, e.At) ||
			c.world.kept(o.Type, later, c.view.Version, e.At)) {
			continue
		}
		c.report(Generations, e, "it is of type %d, and the handler has %s of type %d; %s", o.Incarnation, key, other.incarnation, c.world.news(o.Type, later))
		return
	}
}

// state checks that the observed state of an addition or update is one of the object, and not
// before the last one.
func (c *checker) state(e Event, o Object) {
	seen := e.New
	switch sets := c.view.Sets; {
	case sets == nil && !c.view.Includes(seen.Namespace):
		c.report(Selection, e, "the namespaces are %v", c.view.Namespaces)
	case sets != nil && !sets.once(true, seen.Namespace, time.Time{}, e.At):
		c.report(Selection, e, "no set had the namespace")
	}
	last, before := c.last[o.UID]
	at := o.find(seen, last)
	if at < 0 {
		at = o.find(seen, 0)
	}
	if at < 0 {
		c.report(Atomic, e, "the object never had this content, color, finalizer and deletionTimestamp at this version: %s", o.versions())
		return
	}
	if c.view.Color != "" && o.States[at].Color != c.view.Color {
		c.report(Selection, e, "the selected color is %s", c.view.Color)
	}
	if before && at < last {
		c.report(Ordered, e, "it was observed at %s before", o.States[last].ResourceVersion)
	}
	c.last[o.UID] = at
}

// find returns the index of the first state that is seen, beginning with index from; -1: there is none. After a restore of etcd,
// an object may have another state with the same version.
func (o *Object) find(seen Observation, from int) int {
	at := slices.IndexFunc(o.States[from:], func(s State) bool {
		return s.ResourceVersion == seen.ResourceVersion && s.isContentOf(seen)
	})
	if at < 0 {
		return -1
	}
	return from + at
}

// returned reports whether the object has been deleted, and has come back by a restore of etcd.
func (o *Object) returned() bool {
	deleted := slices.IndexFunc(o.States, func(s State) bool { return s.Deleted })
	return deleted >= 0 && slices.ContainsFunc(o.States[deleted:], func(s State) bool { return !s.Deleted })
}

// deleted checks that the object of a deletion has a state of the object that is not before the
// last one, and that there is a cause for the deletion.
func (c *checker) deleted(e Event, o Object, have held) {
	seen, last := e.New, c.last[o.UID]
	delete(c.has, seen.Key())
	if !slices.ContainsFunc(o.States[last:], func(s State) bool { return s.isContentOf(seen) }) {
		c.report(Atomic, e, "no state since %s has this content, color, finalizer and deletionTimestamp: %s", o.States[last].ResourceVersion, o.versions())
	}
	if !c.world.rewound(c.view.Type, e.At) && before(seen.ResourceVersion, o.States[last].ResourceVersion) {
		c.report(Ordered, e, "it was observed at %s before", o.States[last].ResourceVersion)
	}
	if e.Kind == Moved {
		delete(c.gone, o.UID)
		if c.view.Sets == nil || !c.view.Sets.once(false, seen.Namespace, time.Time{}, e.At) {
			c.report(Justified, e, "each set had the namespace")
		}
		return
	}
	c.gone[o.UID] = last
	if at := slices.IndexFunc(o.States[last:], c.isCause(e)); at > 0 {
		c.gone[o.UID] = last + at
	}
	if c.view.Keeps && c.world.onlyEnded(o, last, c.view.Color, e.At) {
		c.report(Kept, e, "its type has ended, and no other one exists: %s", o.versions())
	}
	if !c.justified(e, o, last) && !c.world.unserved(o.Type, o.Incarnation, c.view.Version, have.added) {
		c.report(Justified, e, "the object exists and is selected: %s; %s", o.versions(), c.world.news(o.Type, o.Incarnation))
	}
}

// isCause returns a function that reports whether a state of an object is a cause for its deletion.
func (c *checker) isCause(e Event) func(State) bool {
	return func(s State) bool { return !s.Selected(c.view.Color) && !s.At.After(e.At) }
}

// justified reports whether there is a cause for a deletion, after the state with that index. An object of a CRD that the subject learns of late
// may be added once more.
func (c *checker) justified(e Event, o Object, last int) bool {
	returned := c.world.returned(c.view.Type, e.At)
	_, before := c.again[o.UID]
	late := !before && (returned || c.world.replacedLate(o, e.At))
	if late { // also if there is another cause: the subject may not know it yet
		c.again[o.UID] = true
	}
	return late || returned || slices.ContainsFunc(o.States[last:], c.isCause(e))
}

// alwaysIncludes reports whether the view has always had the objects of a namespace between two times. A set of namespaces does not limit a type
// without namespaces.
func (v View) alwaysIncludes(namespace string, from, until time.Time) bool {
	if v.Sets != nil {
		return !v.Sets.once(false, namespace, from, until)
	}
	return v.Includes(namespace)
}

// versions describes the states of an object.
func (o *Object) versions() string {
	var b []string
	for _, s := range o.States {
		if s.Deleted {
			b = append(b, "deleted at "+s.At.Format(clock))
		} else {
			more := ""
			if s.Held {
				more = " with a finalizer"
			}
			if s.Terminating {
				more += " terminating"
			}
			b = append(b, fmt.Sprintf("%s with content %s %s%s from %s", s.ResourceVersion, s.Serial, s.Color, more, s.At.Format(clock)))
		}
	}
	return strings.Join(b, ", ")
}

const clock = "15:04:05.000"

// before reports whether one resourceVersion is smaller than another. Versions of other kinds
// can't be compared.
func before(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX == nil && errY == nil && x < y
}

// Want returns what a view must have at rest: the selected objects of the world, by key. It does not depend on View.Version.
func (w *World) Want(v View) map[string]Observation {
	want := map[string]Observation{}
	for _, o := range w.Objects(v.Type) {
		if s := o.States[0]; s.Selected(v.Color) && v.Includes(o.Namespace) {
			want[o.Key()] = Observation{Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: s.ResourceVersion, Serial: s.Serial, Color: s.Color, Held: s.Held, Terminating: s.Terminating}
		}
	}
	return want
}

// Compare returns the differences between what a view must have and what the subject has: in UIDs, resourceVersions, contents, colors,
// finalizers and deletionTimestamps, and each [Observation] with a Problem. It does not compare versions of the API. The name says where the subject has it. A
// subject whose state is not objects compares it with [World.Objects], and returns violations with [Equal] or with invariants of its own.
func Compare(name string, want, has map[string]Observation) []Violation {
	var found []Violation
	keys := maps.Clone(want)
	maps.Copy(keys, has)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		wanted, exists := want[key]
		got, present := has[key]
		switch {
		case got.Problem != "":
			found = append(found, Violation{Equal, fmt.Sprintf("%s: %s: %s", name, key, got.Problem)})
		case !exists:
			found = append(found, Violation{Equal, fmt.Sprintf("%s has %v, and must not", name, got)})
		case !present:
			found = append(found, Violation{Equal, fmt.Sprintf("%s does not have %v", name, wanted)})
		case got.UID != wanted.UID || got.ResourceVersion != wanted.ResourceVersion || !got.hasContentOf(wanted):
			found = append(found, Violation{Equal, fmt.Sprintf("%s has %v, and the server %v", name, got, wanted)})
		}
	}
	return found
}

// CheckKnown returns a violation for each object in a cache whose state the object never had. It is for
// caches that may be out of date.
func CheckKnown(w *World, v View, has map[string]Observation) []Violation {
	var found []Violation
	for _, got := range has {
		o, known := w.Object(v.Type, got.UID)
		if !known || !slices.ContainsFunc(o.States, func(s State) bool {
			return s.ResourceVersion == got.ResourceVersion && s.isContentOf(got)
		}) {
			found = append(found, Violation{Atomic, fmt.Sprintf("%s has %v, which never existed", v.Name, got)})
		}
	}
	return found
}

// since is a time for reports.
func since(at time.Time) time.Duration { return time.Since(at).Round(time.Millisecond) }
