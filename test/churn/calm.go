package churn

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// missed returns the violations of [Complete] and [Changes] in the events of a handler that was added and removed at these times; until is
// zero if it was not removed.
func (w *World) missed(v View, since, until time.Time, events []Event) (found []Violation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.types[v.Type]
	if t == nil || v.Merged {
		return nil
	}
	got := t.got(v, events)
	for n, c := range t.calm {
		if since.After(c.begun.at) || !until.IsZero() && until.Before(c.ended.at) {
			continue
		}
		found = append(found, t.repeated(v, c, events)...)
		unlisted := t.calmUntil(n)
		for uid, end := range c.ended.states {
			o := t.objects[uid]
			for i := c.begun.states[uid]; i < end; i++ {
				if v.alwaysIncludes(o.Namespace, c.begun.at, c.ended.at) && v.shows(o, i) && got.lacks(v, o, i, unlisted) {
					found = append(found, Violation{Complete, fmt.Sprintf("%s: it has not got state %d of %s: %s", v.Name, i, o.Key(), o.versions())})
				}
			}
		}
	}
	return found
}

// calmUntil returns the end of the last of the calm times that follow one another, beginning with the one with index n. What a handler still waits
// for then, a list may leave out.
func (t *typeTruth) calmUntil(n int) time.Time {
	for n+1 < len(t.calm) && t.calm[n+1].begun.at.Equal(t.calm[n].ended.at) {
		n++
	}
	return t.calm[n].ended.at
}

// got is what a handler has got of a type.
type got struct {
	states  map[types.UID]map[int]bool // by index
	deleted map[types.UID]bool
	writes  []gotWrite
}

// gotWrite is a state that a handler has got.
type gotWrite struct {
	watch       string // as View.watch has it
	written, at time.Time
}

func (t *typeTruth) got(v View, events []Event) got {
	g, last := got{states: map[types.UID]map[int]bool{}, deleted: map[types.UID]bool{}}, map[types.UID]int{}
	for _, e := range events {
		o := t.objects[e.New.UID]
		if o == nil {
			continue
		}
		from := 0
		if e.Kind == Deleted {
			from = last[o.UID]
		}
		at := o.stateOf(v, e, from)
		if e.Kind == Deleted && (at < 0 || o.States[at].Deleted) {
			g.deleted[o.UID] = true
		}
		if at < 0 {
			continue
		}
		last[o.UID] = at
		if g.states[o.UID] == nil {
			g.states[o.UID] = map[int]bool{}
		}
		g.states[o.UID][at] = true
		g.writes = append(g.writes, gotWrite{v.watch(o.Namespace), o.States[at].At, e.At})
	}
	return g
}

// lacks reports whether the state of an object with that index was written before another one that the handler has got by a time from the same
// watch, and the handler has not got it. At rest, a handler may still wait for events that leave the objects as they are.
func (g got) lacks(v View, o *Object, i int, by time.Time) bool {
	s, watch := o.States[i], v.watch(o.Namespace)
	has := g.states[o.UID][i] || s.Deleted && g.deleted[o.UID] && o.repeats()
	return !has && slices.ContainsFunc(g.writes, func(w gotWrite) bool {
		return w.watch == watch && w.written.After(s.At) && !w.at.After(by)
	})
}

// watch returns the name of the watch that sends the objects of a namespace: that of the namespace if the view may have one for each.
func (v View) watch(namespace string) string {
	if v.Sets == nil && len(v.Namespaces) < 2 {
		return ""
	}
	return namespace
}

// repeats reports whether a state of the object has come back, by a restore of etcd or a move of its type: it is not known which of several deletions
// a handler has got then.
func (o *Object) repeats() bool {
	had := map[string]bool{}
	return slices.ContainsFunc(o.States, func(s State) bool {
		again := !s.Deleted && had[s.ResourceVersion]
		had[s.ResourceVersion] = true
		return again
	})
}

// repeated returns the violations of [Changes] in the events of a handler: updates without another state, and deletions without a final one, which
// watches do not send. At rest, a handler may still wait for events of a list before, which leave the objects as they are. The first event
// of what was written in the calm time follows them, if it is of the same watch.
func (t *typeTruth) repeated(v View, c calm, events []Event) (found []Violation) {
	last, after := map[types.UID]int{}, map[string]bool{} // by View.watch
	for _, e := range events {
		o := t.objects[e.New.UID]
		if o == nil || e.At.After(c.ended.at) {
			continue
		}
		before, had := last[o.UID]
		at := o.stateOf(v, e, before)
		switch {
		case !after[v.watch(o.Namespace)]:
		case e.Kind == Updated && had && at == before:
			found = append(found, Violation{Changes, fmt.Sprintf("%s: it has got state %d of %s twice: %v at %s", v.Name, at, o.Key(), e, e.At.Format(clock))})
		case e.Kind == Deleted && e.New.Unknown:
			found = append(found, Violation{Changes, fmt.Sprintf("%s: the deletion of %s has no final state: %v at %s", v.Name, o.Key(), e, e.At.Format(clock))})
		}
		if at >= 0 && e.Kind != Deleted {
			last[o.UID] = at
		}
		if c.wrote(o, at) {
			after[v.watch(o.Namespace)] = true
		}
	}
	return found
}

// stateOf returns the index of the first state that an event of a handler has, beginning with from. That of a deletion is not selected: the object
// is deleted, or has left the selection. A result of -1 means that there is none that was written before the event.
func (o *Object) stateOf(v View, e Event, from int) int {
	if e.Kind != Deleted {
		return o.find(e.New, from)
	}
	at := slices.IndexFunc(o.States[from:], func(s State) bool { return !s.Selected(v.Color) })
	if at < 0 || o.States[from+at].At.After(e.At) {
		return -1
	}
	return from + at
}

// wrote reports whether the state of an object with that index was written in the calm time.
func (c calm) wrote(o *Object, at int) bool {
	end, is := c.ended.states[o.UID]
	return is && at >= c.begun.states[o.UID] && at < end
}

// shows reports whether a watch sends the state of an object with that index, as that of an object that is selected or no longer is.
func (v View) shows(o *Object, i int) bool {
	s := o.States[i]
	return s.Selected(v.Color) || i > 0 && o.States[i-1].Selected(v.Color) && (s.Deleted || !o.repeats())
}
