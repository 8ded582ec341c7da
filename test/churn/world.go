package churn

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// World is what the runner has written to the servers: the truth with which the model compares
// what a subject has shown. It is safe for concurrent use.
type World struct {
	// Group is the API group of the run. Each run has its own.
	Group string

	mu     sync.Mutex
	types  map[string]*typeTruth
	serial int
	backup map[string]saved // by type; nil: there is none
	moved  bool             // to the aggregated server
	down   bool             // the aggregated server
	moves  []time.Time      // between the servers

	// advanced means that the subject was at rest with versions that the server will not have soon after a restore of the backup.
	advanced bool

	namespaces map[string]namespaceTruth // the run's own, by their names on the servers; nil: the servers have no Namespace objects
	selected   map[string]*NamespaceSets // by color

	resting time.Time // the last time at which the subject was at rest

	hidden []span                              // in which requests for CRDs may fail, each until the subject has listed them after that
	shown  map[types.UID]time.Time             // when a response to the subject had a CRD for the first time
	latest map[types.UID]time.Time             // when one had it for the last time
	codes  map[schema.GroupVersionResource]int // of the last responses to lists and watches of the subject
	lags   []lagging                           // how far the second server was behind, in order of time
	second []span                              // in which requests may go to the second server
}

// typeTruth is one type of a script, with all types of this name that have existed.
type typeTruth struct {
	incarnations []*Incarnation // of both servers
	inventory
	other       inventory // of the server that does not serve the type now
	objects     map[types.UID]*Object
	recorded    map[types.UID]time.Time // when the last write of each object had ended
	restores    []restoration           // of etcd
	changed     time.Time               // when the CRD, its versions or its end changed for the last time
	moves       int                     // between the servers
	calm        []calm
	lastRest    atRest
	sent        map[types.UID]time.Time // when a watch of the subject has sent the deletion of an object for the last time
	lists       []time.Time             // when the subject got a list
	unconverted bool                    // the conversion fails
	forbidden   map[permission]bool
}

// inventory is what a server has of a type.
type inventory struct {
	current int                  // the index of the last CRD; -1: there was none
	present map[string]types.UID // objects, by namespace/name
}

func nothing() inventory { return inventory{-1, map[string]types.UID{}} }

// atRest is a time at which a subject had all objects of a type, and the number of states that each object then had. Lists changes when the
// subject lists the type, or gets a part of a list of it.
type atRest struct {
	at          time.Time // zero: there was none, or the subject could not list all objects
	lists       int
	incarnation int
	restores    int // of etcd, so far
	moves       int // between the servers, so far
	states      map[types.UID]int
}

// calm is the time between two times at rest in which the subject has not listed a type, and the type has not moved: the subject has got what was
// written from watches.
type calm struct{ begun, ended atRest }

// restoration is the time from the beginning of a restore of etcd until subjects must have noticed it.
type restoration struct {
	begun, ended time.Time // ended is zero until then
	returned     types.UID // of a CRD that was deleted, and that it has brought back; empty: there is none
	shown        time.Time // when a response to the subject had that CRD for the first time since then
}

// during reports whether, at a time, the subject may not have noticed the restore yet.
func (r restoration) during(at time.Time) bool {
	return !at.Before(r.begun) && (r.ended.IsZero() || !at.After(r.ended))
}

// returning reports whether, at a time, the subject may not have noticed yet that the restore has brought back a CRD. A subject that is at rest
// has the right objects, and may still be about to notice the CRD that it has just been sent.
func (r restoration) returning(at time.Time) bool {
	return r.returned != "" && (r.during(at) || !at.Before(r.begun) && at.Before(r.shown.Add(noticed)))
}

// Incarnation is one CRD of a type.
type Incarnation struct {
	UID        types.UID
	Namespaced bool
	Served     []string  // the versions
	Deleted    time.Time // the beginning of its deletion; zero: it exists
	// Terminating means that its deletion waits for objects with finalizers.
	Terminating bool
	// Webhook means that objects are converted by the run's webhook.
	Webhook    bool
	aggregated bool      // it is on the aggregated server
	first      []string  // the versions that it served at first
	created    time.Time // the beginning of its creation
	known      time.Time // when the subject, which had been shown the CRD, was at rest for the first time; zero until then
}

// Object is one object with all states that it has had.
type Object struct {
	Type        string
	Incarnation int // of the type
	Namespace   string
	Name        string
	UID         types.UID
	States      []State
}

// Key returns namespace/name, or the name.
func (o *Object) Key() string { return key(o.Namespace, o.Name) }

func key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// State is the state of an object after one write.
type State struct {
	ResourceVersion string // empty for a deletion
	Serial          string // of the content
	Color           string // the label
	Held            bool   // by a finalizer
	Terminating     bool   // its deletion waits for the finalizer
	Deleted         bool
	Ended           bool      // it is deleted with its type
	At              time.Time // the beginning of the write
}

// Selected reports whether the state matches a selector by color.
func (s State) Selected(color string) bool { return !s.Deleted && (color == "" || s.Color == color) }

// isContentOf reports whether what was observed is the object in this state, apart from the resourceVersion.
func (s State) isContentOf(seen Observation) bool {
	return !s.Deleted && s.Serial == seen.Serial && s.Color == seen.Color && s.Held == seen.Held && s.Terminating == seen.Terminating
}

func newWorld(group string) *World {
	return &World{Group: group, types: map[string]*typeTruth{}, selected: map[string]*NamespaceSets{}, shown: map[types.UID]time.Time{}, latest: map[types.UID]time.Time{}, codes: map[schema.GroupVersionResource]int{}}
}

// Resource returns the resource of a type of the script in a version.
func (w *World) Resource(typ, version string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: w.Group, Version: version, Resource: typ + "s"}
}

func kindOf(typ string) string { return strings.ToUpper(typ[:1]) + typ[1:] }

func (w *World) typeLocked(typ string) *typeTruth {
	t := w.types[typ]
	if t == nil {
		t = &typeTruth{inventory: nothing(), other: nothing(), objects: map[types.UID]*Object{}, recorded: map[types.UID]time.Time{}, sent: map[types.UID]time.Time{}, forbidden: map[permission]bool{}}
		w.types[typ] = t
	}
	return t
}

// Types returns the names of all types that have existed, sorted.
func (w *World) Types() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.types))
}

// Incarnation returns the present CRD of a type, and its number. The number is -1 if there is none.
func (w *World) Incarnation(typ string) (Incarnation, int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.types[typ]
	if t == nil || t.current < 0 {
		return Incarnation{}, -1
	}
	if i := *t.incarnations[t.current]; i.Deleted.IsZero() {
		i.Served = slices.Clone(i.Served)
		return i, t.current
	}
	return Incarnation{}, -1
}

// permission is the permission for requests with a verb, list or watch, in a namespace; "" is everywhere.
type permission struct{ namespace, verb string }

// Forbidden reports whether the subject may not send requests with a verb, list or watch, for a type in a namespace. The
// namespace "" means requests for all namespaces.
func (w *World) Forbidden(typ, namespace, verb string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.types[typ]
	return t != nil && (t.forbidden[permission{"", verb}] || t.forbidden[permission{namespace, verb}])
}

// Moved reports whether the aggregated server serves the group.
func (w *World) Moved() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.moved
}

// Down reports whether the server that serves the group responds 503 to all requests.
func (w *World) Down() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.down
}

// Objects returns the objects of a type that exist, sorted by key, each with its last state only.
func (w *World) Objects(typ string) []Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.types[typ]
	if t == nil {
		return nil
	}
	var all []Object
	for _, k := range slices.Sorted(maps.Keys(t.present)) {
		o := *t.objects[t.present[k]]
		o.States = slices.Clone(o.States[len(o.States)-1:])
		all = append(all, o)
	}
	return all
}

// onTwoServers reports whether one of two CRDs of a type is on the aggregated server. While the types move, a subject may get
// the objects of one namespace from one server, and those of another namespace from the other: nothing in the responses tells that.
func (w *World) onTwoServers(typ string, one, other int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.types[typ]
	return t.incarnations[one].aggregated != t.incarnations[other].aggregated
}

// unserved reports whether a CRD of a type did not serve a version at first, and the subject had not been at rest with it when it got an object
// of it. If the CRD before served the version, a server that has not noticed the change yet may send the new objects in that version. They are
// then deleted together with the old ones. Each CRD serves the empty version.
func (w *World) unserved(typ string, incarnation int, version string, got time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	crd := w.types[typ].incarnations[incarnation]
	return version != "" && !slices.Contains(crd.first, version) && !w.restedWithLocked(crd, got)
}

// keptFor is how long a subject may keep the objects of a type when it has been sent a CRD that replaces the type and does not serve their version:
// some of them may be of that CRD, and no list shows which.
const keptFor = 10*time.Second + noticed

// kept reports whether, at a time, a subject may keep objects of two CRDs of a type because the later one did not serve a version at first. Each CRD
// serves the empty version.
func (w *World) kept(typ string, incarnation int, version string, at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	crd := w.types[typ].incarnations[incarnation]
	return version != "" && !slices.Contains(crd.first, version) && at.Before(w.shown[crd.UID].Add(keptFor))
}

// restedWithLocked reports whether the subject has been at rest with a CRD before a time. A subject is at rest with what it has got, and may still be
// about to notice a CRD that it has just been sent.
func (w *World) restedWithLocked(crd *Incarnation, at time.Time) bool {
	return !crd.known.IsZero() && !at.Before(crd.known) && !at.Before(w.shown[crd.UID].Add(noticed))
}

// of returns the objects of a type that one of the servers has had, with all their states. It returns none if an earlier state of etcd
// was restored: versions are then used again.
func (w *World) of(typ string, aggregated bool) []Object {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.types[typ]
	if t == nil || len(t.restores) > 0 {
		return nil
	}
	var all []Object
	for _, o := range t.objects {
		if t.incarnations[o.Incarnation].aggregated == aggregated {
			copied := *o
			copied.States = slices.Clone(o.States)
			all = append(all, copied)
		}
	}
	return all
}

// number returns the number of the present incarnation of a type, or of the last one; -1 if there was none.
func (w *World) number(typ string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.types[typ]; t != nil {
		return t.current
	}
	return -1
}

// rescoped reports whether two incarnations of a type have different scopes. A negative number is that of no incarnation.
func (w *World) rescoped(typ string, a, b int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.types[typ]
	return t != nil && a >= 0 && b >= 0 && t.incarnations[a].Namespaced != t.incarnations[b].Namespaced
}

// Object returns the object of a type with this UID, also if it has been deleted.
func (w *World) Object(typ string, uid types.UID) (Object, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.types[typ]
	if t == nil || t.objects[uid] == nil {
		return Object{}, false
	}
	o := *t.objects[uid]
	o.States = slices.Clone(o.States)
	return o, true
}

// The following methods record writes.

func (w *World) defined(typ string, i Incarnation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.typeLocked(typ)
	i.first = i.Served
	t.incarnations = append(t.incarnations, &i)
	t.current, t.changed = len(t.incarnations)-1, time.Now()
}

func (w *World) serves(typ string, versions []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.typeLocked(typ); t.current >= 0 {
		t.incarnations[t.current].Served, t.changed = versions, time.Now()
	}
}

// undefined records the deletion of a CRD and of all its objects.
func (w *World) undefined(typ string, begun time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.typeLocked(typ)
	if t.current < 0 {
		return
	}
	t.incarnations[t.current].Deleted, t.changed = begun, begun
	t.vanishLocked(State{Deleted: true, Ended: true, At: begun})
	clear(t.present)
}

// vanishLocked records that no object is served any more.
func (t *typeTruth) vanishLocked(last State) {
	for _, uid := range t.present {
		t.objects[uid].States = append(t.objects[uid].States, last)
	}
}

// move records that the other server serves the group. For the subject, the objects of the one do not exist any more, and those
// of the other one do again.
func (w *World) move(begun time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.moved, w.down = !w.moved, false
	w.moves = append(w.moves, begun)
	for _, t := range w.types {
		t.vanishLocked(State{Deleted: true, At: begun})
		t.inventory, t.other = t.other, t.inventory
		t.moves++
		for _, uid := range t.present {
			o := t.objects[uid]
			for _, s := range slices.Backward(o.States) {
				if !s.Deleted {
					s.At = begun
					o.States = append(o.States, s)
					break
				}
			}
		}
	}
}

// definedOnOther records the CRD of a type on the server that does not serve it.
func (w *World) definedOnOther(typ string, i Incarnation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.typeLocked(typ)
	i.aggregated, i.first = true, i.Served
	t.incarnations = append(t.incarnations, &i)
	t.other.current = len(t.incarnations) - 1
}

// absentOnOther returns the types that the server that serves the group has, and the other one does not, with their CRDs.
func (w *World) absentOnOther() map[string]Incarnation {
	w.mu.Lock()
	defer w.mu.Unlock()
	absent := map[string]Incarnation{}
	for name, t := range w.types {
		if t.other.current < 0 && t.current >= 0 && t.incarnations[t.current].Deleted.IsZero() {
			crd := *t.incarnations[t.current]
			crd.Terminating, crd.Webhook = false, false
			absent[name] = crd
		}
	}
	return absent
}

// setConversionFails records whether the conversion of a type fails.
func (w *World) setConversionFails(typ string, fails bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.typeLocked(typ).unconverted = fails
}

// ConversionFails reports whether the objects of a type can't be converted to a version: what a subject gets of them depends on what
// the server has converted before. Objects are stored in the first version.
func (w *World) ConversionFails(typ, version string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.types[typ]
	return t != nil && t.unconverted && t.current >= 0 && t.incarnations[t.current].Webhook && version != allVersions[0]
}

// hasTypes reports whether one of the servers has a type. A server without the types of a group does not have the group.
func (w *World) hasTypes() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.types {
		if t.other.current >= 0 || t.current >= 0 && t.incarnations[t.current].Deleted.IsZero() {
			return true
		}
	}
	return false
}

// setDown records whether the aggregated server responds.
func (w *World) setDown(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
}

// saved is a type in a backup.
type saved struct {
	current int
	crd     Incarnation
	present map[string]types.UID
	states  map[types.UID]State
}

// backedUp records that what exists has been backed up.
func (w *World) backedUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.backup, w.advanced = map[string]saved{}, false
	for name, t := range w.types {
		if t.current < 0 {
			continue
		}
		s := saved{t.current, *t.incarnations[t.current], maps.Clone(t.present), map[types.UID]State{}}
		for _, uid := range t.present {
			states := t.objects[uid].States
			s.states[uid] = states[len(states)-1]
		}
		w.backup[name] = s
	}
}

// restored records that what the backup has exists again, and nothing else. The restore began at begun.
func (w *World) restored(begun time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.advanced = false
	for name, t := range w.types {
		s := w.backup[name]
		t.restoredDefinition(s, begun, w.latest)
		for key, uid := range t.present {
			if s.present[key] != uid {
				t.objects[uid].States = append(t.objects[uid].States, State{Deleted: true, At: begun})
			}
		}
		for uid, state := range s.states {
			states := t.objects[uid].States
			if last := states[len(states)-1]; last != state {
				state.At = begun
				t.objects[uid].States = append(states, state)
			}
		}
		clear(t.present)
		maps.Copy(t.present, s.present)
	}
}

// rested records that the subject was at rest: it has noticed all restores of etcd, and all CRDs that it was shown. Of a type that it could not
// list in some version or namespace, it may have earlier objects, and notice a restore later. Lists returns a number that changes when the subject
// lists a resource, or gets a part of a list of it.
func (w *World) rested(at time.Time, lists func(resource string) int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resting = at
	for typ, t := range w.types {
		for _, crd := range t.incarnations {
			if _, shown := w.shown[crd.UID]; shown && crd.known.IsZero() {
				crd.known = at
			}
		}
		t.restedAt(at, lists(typ+"s"), !w.down && t.servedWhole() && !t.unconverted)
		if !t.servedWhole() {
			continue
		}
		for i := range t.restores {
			if t.restores[i].ended.IsZero() {
				t.restores[i].ended = at
			}
		}
	}
}

// restedAt records a time at rest, and whether the time since the last one was calm. Whole reports whether the subject has all objects: at rest, it
// may be without those that it can't list.
func (t *typeTruth) restedAt(at time.Time, lists int, whole bool) {
	last := t.lastRest
	t.lastRest = atRest{}
	if !whole {
		return
	}
	t.lastRest = atRest{at, lists, t.current, len(t.restores), t.moves, map[types.UID]int{}}
	for uid, o := range t.objects {
		if o.Incarnation == t.current {
			t.lastRest.states[uid] = len(o.States)
		}
	}
	now := t.lastRest
	if !last.at.IsZero() && last.lists == now.lists && last.incarnation == now.incarnation && last.restores == now.restores && last.moves == now.moves {
		t.calm = append(t.calm, calm{last, now})
	}
}

// servedWhole reports whether the type exists, and a subject can list it in all versions and namespaces.
func (t *typeTruth) servedWhole() bool {
	if t.current < 0 || len(t.forbidden) > 0 {
		return false
	}
	crd := t.incarnations[t.current]
	return crd.Deleted.IsZero() && crd.servesAll()
}

// servesAll reports whether all versions are served.
func (i *Incarnation) servesAll() bool {
	return !slices.ContainsFunc(allVersions, func(version string) bool { return !slices.Contains(i.Served, version) })
}

// returned reports whether, at a time, the subject may not have noticed yet that a restore of etcd has brought back the CRD of a
// type that was deleted. That is another type with this name: a subject that learns of it late may delete the objects that it has,
// and add them again.
func (w *World) returned(typ string, at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.types[typ]
	return t != nil && slices.ContainsFunc(t.restores, func(r restoration) bool { return r.returning(at) })
}

// span is a time with a beginning and an end.
type span struct {
	begun, ended time.Time // ended is zero until then
}

// meets reports whether a part of the span is between two times.
func (s span) meets(from, to time.Time) bool {
	return !s.begun.After(to) && (s.ended.IsZero() || !s.ended.Before(from))
}

// hide records that requests for CRDs may fail from at on.
func (w *World) hide(at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.hidden); n == 0 || !w.hidden[n-1].ended.IsZero() {
		w.hidden = append(w.hidden, span{begun: at})
	}
}

// show records that a response to the subject had a CRD. Hidden says that lists and watches of CRDs may still fail.
func (w *World) show(crd types.UID, at time.Time, hidden bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, shown := w.shown[crd]; !shown {
		w.shown[crd] = at
	}
	w.latest[crd] = at
	for _, t := range w.types {
		for i := range t.restores {
			if r := &t.restores[i]; r.returned == crd && r.shown.IsZero() {
				r.shown = at
			}
		}
	}
	if n := len(w.hidden); !hidden && n > 0 && w.hidden[n-1].ended.IsZero() {
		w.hidden[n-1].ended = at
	}
}

// A CRD that the subject is shown within prompt of its creation is not late. It has noticed the CRD within noticed of that.
const (
	prompt  = 100 * time.Millisecond
	noticed = time.Second
)

// unknown reports whether, at a time, the subject may not have noticed yet that a CRD of a type has replaced another one: since requests for CRDs
// failed, or a server was behind, no response to it had the CRD until shortly before. Nothing else tells the subject that the objects that it gets are of another
// CRD.
func (w *World) unknown(typ string, incarnation int, at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.types[typ].unknownLocked(w, incarnation, at)
}

func (t *typeTruth) unknownLocked(w *World, incarnation int, at time.Time) bool {
	crd := t.incarnations[incarnation]
	shown, is := w.shown[crd.UID]
	until := at
	if is {
		until = shown
	}
	by := w.behindLocked(crd.created.Add(-longestLag), until)
	late := by > 0 && until.Before(crd.created.Add(learnedWithin+by)) ||
		slices.ContainsFunc(w.hidden, func(s span) bool { return s.meets(crd.created, until) })
	if incarnation == 0 || crd.aggregated || !late {
		return false
	}
	return !is || shown.Sub(crd.created) > prompt && at.Before(shown.Add(noticed))
}

// learnedWithin is how long, at most, a subject whose requests for CRDs do not fail may not have been sent a new CRD by a server that is not behind on
// purpose.
const learnedWithin = 5 * time.Second

// unseen reports whether, at a time, the subject may not have noticed a CRD that was created shortly before. Objects and CRDs come by different
// requests: a subject may get objects of a CRD before the CRD. When it has got the CRD, it requests a document and a list, and both responses may be of a
// server that is behind.
func (w *World) unseen(typ string, incarnation int, at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	crd := w.types[typ].incarnations[incarnation]
	shown, is := w.shown[crd.UID]
	late := 2 * w.behindLocked(crd.created, at)
	return at.Before(crd.created.Add(learnedWithin+late)) && (!is || at.Before(shown.Add(noticed+late)))
}

// news says when a CRD of a type was created, and when the subject was sent it.
func (w *World) news(typ string, incarnation int) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	crd := w.types[typ].incarnations[incarnation]
	sent := "not sent to the subject"
	if at, is := w.shown[crd.UID]; is {
		sent = "sent to the subject at " + at.Format(clock)
	}
	return fmt.Sprintf("its CRD was created at %s and %s", crd.created.Format(clock), sent)
}

// replacedLate reports whether an object existed while its CRD was unknown to the subject, as [World.unknown] has it, and the subject has not
// been at rest with that CRD before a time. When the subject learns of the CRD, it deletes what it has got before, of which it can't know the
// CRD, and adds it again.
func (w *World) replacedLate(o Object, at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.types[o.Type]
	return !w.restedWithLocked(t.incarnations[o.Incarnation], at) && t.unknownLocked(w, o.Incarnation, o.States[0].At)
}

// rewound reports whether, at a time, the subject may not have noticed yet that an earlier state of a type has been restored.
func (w *World) rewound(typ string, at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.types[typ]
	return t != nil && slices.ContainsFunc(t.restores, func(r restoration) bool { return r.during(at) })
}

// gotList records that the subject has got a list of a resource.
func (w *World) gotList(resource string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.typeLocked(typeOf(resource))
	t.lists = append(t.lists, time.Now())
}

// gotDeletion records that the subject has got the deletion of an object from a watch.
func (w *World) gotDeletion(resource string, uid types.UID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.typeLocked(typeOf(resource)).sent[uid] = time.Now()
}

// onlyEnded reports whether, at a time, nothing but the end of its type can have told the subject that an object is gone, which was selected
// by a color in the state with the index last. It is false if the server has sent the deletion, if the subject has got a list since the
// end, or if another CRD of the type exists.
func (w *World) onlyEnded(o Object, last int, color string, at time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.types[o.Type]
	n := slices.IndexFunc(o.States[last:], func(s State) bool { return !s.Selected(color) })
	if n < 0 || len(t.restores) > 0 || len(w.moves) > 0 {
		return false
	}
	end := o.States[last+n]
	replaced := slices.ContainsFunc(t.incarnations[o.Incarnation+1:], func(next *Incarnation) bool { return !next.created.After(at) })
	listed := slices.ContainsFunc(t.lists, func(got time.Time) bool { return !got.Before(end.At) && !got.After(at) })
	return end.Ended && !end.At.After(at) && !replaced && !listed && t.sent[o.UID].Before(end.At)
}

// nextSerial returns the content of the next write.
func (w *World) nextSerial() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.serial++
	return w.serial
}

// wrote records the result of a create or an update that began at begun.
func (w *World) wrote(typ string, obj *unstructured.Unstructured, begun time.Time) {
	seen := observe(obj)
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.typeLocked(typ)
	o := t.objects[seen.UID]
	if o == nil {
		o = &Object{Type: typ, Incarnation: t.current, Namespace: seen.Namespace, Name: seen.Name, UID: seen.UID}
		t.objects[seen.UID] = o
		t.present[o.Key()] = seen.UID
	}
	if n := len(o.States); n > 0 && o.States[n-1].ResourceVersion == seen.ResourceVersion {
		return // the write has changed nothing
	}
	t.recorded[seen.UID] = time.Now()
	o.States = append(o.States, State{ResourceVersion: seen.ResourceVersion, Serial: seen.Serial, Color: seen.Color, Held: seen.Held, Terminating: seen.Terminating, At: begun})
}

// deleted records that an object has been deleted by a request that began at begun.
func (w *World) deleted(typ, key string, begun time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.typeLocked(typ)
	if uid, exists := t.present[key]; exists {
		t.objects[uid].States = append(t.objects[uid].States, State{Deleted: true, At: begun})
		delete(t.present, key)
	}
}

// exists reports whether an object exists.
func (w *World) exists(typ, key string) bool {
	_, exists := w.state(typ, key)
	return exists
}

// state returns the last state of an object that exists.
func (w *World) state(typ, key string) (State, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.types[typ]
	if t == nil {
		return State{}, false
	}
	uid, exists := t.present[key]
	if !exists {
		return State{}, false
	}
	states := t.objects[uid].States
	return states[len(states)-1], true
}

// held returns the objects of a type that have a finalizer.
func (w *World) held(typ string) []Object {
	return slices.DeleteFunc(w.Objects(typ), func(o Object) bool { return !o.States[0].Held })
}

// terminating records that the deletion of a CRD waits for objects.
func (w *World) terminating(typ string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.typeLocked(typ)
	t.incarnations[t.current].Terminating, t.changed = true, time.Now()
}

// forbid records whether a permission is revoked.
func (w *World) forbid(typ string, p permission, forbidden bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.typeLocked(typ); forbidden {
		t.forbidden[p] = true
	} else {
		delete(t.forbidden, p)
	}
}

// content returns the object that a write with this serial sends.
func (w *World) content(typ, version, namespace, name string, serial int, color string) *unstructured.Unstructured {
	text := fmt.Sprint(serial)
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": specOf(text)}}
	obj.SetGroupVersionKind(w.Resource(typ, version).GroupVersion().WithKind(kindOf(typ)))
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetAnnotations(map[string]string{serialAnnotation: text, payloadAnnotation: payloadOf(text)})
	if color != "" {
		obj.SetLabels(map[string]string{ColorLabel: color})
	}
	return obj
}

// ColorLabel is the label that selectors of scripts select by.
const ColorLabel = "color"

const (
	serialAnnotation  = "churn.gvrkit.io/serial"
	payloadAnnotation = "churn.gvrkit.io/payload"
)

func payloadOf(serial string) string { return strings.Repeat(serial+"-", 20) }

// specOf returns the spec of an object whose content has this serial.
func specOf(serial string) map[string]any {
	return map[string]any{
		"serial":  serial,
		"payload": payloadOf(serial),
		"list":    []any{serial, nil, int64(len(serial))},
	}
}
