package churn

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// listed is how long an object must have existed, at the least, so that each list has it: the cache of a server may be behind, also if no
// [ServerLag] makes it so.
const listed = 3 * time.Second

// Expected are the objects of a view that a cache must have if it is filled after the call of [World.Expect], which returns them. A cache need no
// longer have an object after a write to it.
type Expected struct {
	view        View
	at          time.Time
	incarnation int
	restores    int               // of etcd, so far
	states      map[types.UID]int // the index of the last state
}

// Expect returns the objects that a cache of the view must have if it is filled from now on, and says then that it is synced. Objects that were
// written a short time ago are not among them, and there are none if the type, or what serves it, has changed a short time ago.
func (w *World) Expect(v View) Expected {
	w.mu.Lock()
	defer w.mu.Unlock()
	e := Expected{view: v, at: time.Now(), states: map[types.UID]int{}}
	t := w.types[v.Type]
	if t == nil || t.current < 0 || !t.settled(w, e.at) {
		return e
	}
	e.incarnation, e.restores = t.current, len(t.restores)
	before := w.longAgo(listed, e.at)
	for _, uid := range t.present {
		o := t.objects[uid]
		last := len(o.States) - 1
		if s := o.States[last]; s.Selected(v.Color) && v.alwaysIncludes(o.Namespace, time.Time{}, e.at) && s.At.Before(before) && t.recorded[uid].Before(before) {
			e.states[uid] = last
		}
	}
	return e
}

// Written returns the last written object of a view, and its version. A cache that has the version must have the object. It returns no
// version if there is no object, if the type or what serves it has changed a short time ago, or if the types have moved, the type has got another
// scope, or etcd was restored, since the subject was at rest: it may have versions of what it had before, or of a server that has not noticed the
// other scope, and lists no objects with its newest version.
func (w *World) Written(v View) (version string, e Expected) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e = Expected{view: v, at: time.Now(), states: map[types.UID]int{}}
	t := w.types[v.Type]
	if t == nil || t.current < 0 || !t.settled(w, e.at) || w.movedBetween(w.resting, e.at) || t.rescopedSince(w.resting) {
		return "", e
	}
	e.incarnation, e.restores = t.current, len(t.restores)
	var of *Object
	for _, uid := range t.present {
		if o := t.objects[uid]; of == nil || t.recorded[of.UID].Before(t.recorded[uid]) {
			of = o
		}
	}
	if of == nil || !of.States[len(of.States)-1].Selected(v.Color) || !v.alwaysIncludes(of.Namespace, time.Time{}, e.at) {
		return "", e
	}
	last := len(of.States) - 1
	e.states[of.UID] = last
	return of.States[last].ResourceVersion, e
}

// Replaced reports whether etcd was restored, or the types were moved, since the expected objects existed, or the CRD has been deleted. A version may
// then be that of another server, or of another type.
func (w *World) Replaced(e Expected) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.types[e.view.Type]
	return t == nil || !t.stayed(w, e, time.Now())
}

// Exists reports whether the CRD of a type has this UID, and is not being deleted. It is false if the types have moved, or etcd was restored, since
// the subject was at rest: it may have noticed the end of the CRD late.
func (w *World) Exists(typ string, crd types.UID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	t, now := w.types[typ], time.Now()
	if t == nil || t.current < 0 || w.movedBetween(w.resting, now) {
		return false
	}
	i := t.incarnations[t.current]
	rewound := slices.ContainsFunc(t.restores, func(r restoration) bool { return r.during(now) || r.returning(now) })
	return i.UID == crd && i.Deleted.IsZero() && !i.Terminating && !rewound
}

// settled reports whether, at a time, each server knows the CRD of a type, the subject knows it or has no other one, and no restore or move
// has changed the type a short time ago.
func (t *typeTruth) settled(w *World, at time.Time) bool {
	crd, recently := t.incarnations[t.current], w.longAgo(learnedWithin, at)
	if !crd.Deleted.IsZero() || w.down || crd.created.After(recently) || t.unknownLocked(w, t.current, at) || w.movedBetween(recently, at) {
		return false
	}
	return !slices.ContainsFunc(t.restores, func(r restoration) bool { return r.begun.After(recently) || r.during(at) || r.returning(at) })
}

// longAgo returns the time at which a server was, at the least, that may be d behind at a time without a [ServerLag]. The caller holds w.mu.
func (w *World) longAgo(d time.Duration, at time.Time) time.Time {
	return at.Add(-d - w.behindLocked(at.Add(-d-longestLag), at))
}

// Missing returns the expected objects that a cache does not have, or has in an earlier state. Has is what the cache had at a time at which it
// reported that it was synced, and without are the namespaces for which it did not report that. Objects that have changed before that time are not
// missing. Call it from [Subject.AtRest] and [Subject.Stop]: at another time, the world may not have a write yet.
func (w *World) Missing(e Expected, at time.Time, has map[string]Observation, without ...string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.types[e.view.Type]
	if t == nil || len(e.states) == 0 || !t.stayed(w, e, at) {
		return nil
	}
	var missing []string
	for uid, last := range e.states {
		o := t.objects[uid]
		changed := slices.ContainsFunc(o.States[last+1:], func(s State) bool { return !s.At.After(at) })
		if changed || slices.Contains(without, o.Namespace) || !e.view.alwaysIncludes(o.Namespace, time.Time{}, at) {
			continue
		}
		if seen, is := has[o.Key()]; !is || seen.UID != uid || o.find(seen, last) < 0 {
			missing = append(missing, fmt.Sprintf("%s at %s with UID %s, written at %s", o.Key(), o.States[last].ResourceVersion, uid, o.States[last].At.Format(clock)))
		}
	}
	slices.Sort(missing)
	return missing
}

// stayed reports whether the type was the same one until a time.
func (t *typeTruth) stayed(w *World, e Expected, at time.Time) bool {
	crd := t.incarnations[e.incarnation]
	restored := slices.ContainsFunc(t.restores[e.restores:], func(r restoration) bool { return !r.begun.After(at) })
	return !restored && !w.movedBetween(e.at, at) && (crd.Deleted.IsZero() || crd.Deleted.After(at))
}

// rescopedSince reports whether the type has got another scope since a time.
func (t *typeTruth) rescopedSince(at time.Time) bool {
	crds := t.incarnations[:t.current+1]
	for i := len(crds) - 1; i > 0 && !crds[i].created.Before(at); i-- {
		if crds[i].Namespaced != crds[i-1].Namespaced {
			return true
		}
	}
	return false
}

// movedBetween reports whether the types have moved to another server between two times. The caller holds w.mu.
func (w *World) movedBetween(from, to time.Time) bool {
	return slices.ContainsFunc(w.moves, func(at time.Time) bool { return !at.Before(from) && !at.After(to) })
}
