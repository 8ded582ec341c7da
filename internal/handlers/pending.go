package handlers

import "k8s.io/client-go/tools/cache"

// pending is the events that a handler has not got yet, merged by object: the events of one object are
// at most a deletion and an addition after it. Objects are in the order of their first event; an addition
// after a deletion counts as another object, so that all objects of a type that was replaced are deleted
// before the first one of the new type is added. The zero value is empty.
type pending struct {
	byName      map[cache.ObjectName]*object
	first, last *object
	most        int // the number of objects that byName has had room for

	// limit is the maximum of states, which is the number of events with a state that is not in the cache. Zero or
	// less: the number of objects. Reduce reduces the state of an event to its metadata.
	limit, states int
	reduce        func(*event)
}

// object is the pending events of one object. They have at most one event, except that an addition may
// follow the deletion of an earlier object with the same name.
type object struct {
	name            cache.ObjectName
	deletion, event event // event is not a deletion
	before, after   *object
	earlier         *object // with the same name, and a pending deletion; nil if there is none
	removed         bool    // it has no events any more
}

// shrinkAbove is the number of objects above which the memory of pending is released when it is empty.
const shrinkAbove = 1000

// add adds e. Merged is the number of the informer's events for which the handler gets no call of their
// own, and dropped the number of additions of the initial list among them.
func (p *pending) add(e event) (merged uint64, dropped int) {
	name, err := cache.DeletionHandlingObjectToName(e.obj)
	o := p.byName[name]
	if err != nil {
		o = nil
	}
	if o == nil || o.isDeleted() && e.kind == added {
		o = &object{name: name, before: p.last, earlier: o}
		p.append(o, err == nil)
	}
	counts, initial := o.counts()+e.counts, o.initial()+asInt(e.initial)
	p.states -= o.states() + o.earlier.states()
	o.merge(e)
	if o.earlier != nil {
		p.keep(&o.earlier.deletion)
	}
	p.keep(&o.deletion)
	p.keep(&o.event)
	if o.deletion.kind == none && o.event.kind == none {
		p.remove(o)
	}
	return counts - o.counts(), initial - o.initial()
}

// keep counts the state of e, or reduces it if there are too many.
func (p *pending) keep(e *event) {
	switch {
	case e.state() == nil:
	case p.limit <= 0 || p.states < p.limit:
		p.states++
	default:
		p.reduce(e)
	}
}

// merge adds e to the events of o. An informer's events of one object are additions, updates and
// deletions in a possible order. In another order, the last state of the object is kept.
func (o *object) merge(e event) {
	switch {
	case e.kind == deleted && o.event.kind == added:
		o.event = event{}
		before := &o.deletion
		if o.earlier != nil {
			before = &o.earlier.deletion
		}
		before.endAgain(e)
	case e.kind == deleted:
		o.deletion, o.event = e, event{}
	case o.event.kind != none:
		o.event.obj = e.obj
		o.event.counts = max(o.event.counts, e.counts)
		o.event.initial = o.event.initial || e.initial
	default:
		o.event = e
		if o.deletion.kind != none {
			o.event.kind, o.event.old = added, nil
		}
	}
}

// endAgain merges e, if it is a deletion, with a later one of an object with the same name, whose addition was merged with its deletion.
func (e *event) endAgain(later event) {
	switch {
	case e.kind == none:
	case uidOf(e.obj) == uidOf(later.obj):
		*e = later
	case e.moved && !later.moved: // another object has taken its name: it is deleted too
		e.moved = false
		e.makeUnknown()
	}
}

// next removes the next event and returns it. It reports false if there is none.
func (p *pending) next() (event, bool) {
	if p.first == nil {
		return event{}, false
	}
	return p.take(p.first), true
}

// take removes the first event of o and returns it.
func (p *pending) take(o *object) event {
	head := o.head()
	e := *head
	*head = event{}
	if o.event.kind == none {
		p.remove(o)
	}
	if e.state() != nil {
		p.states--
	}
	return e
}

// head returns the first event of o.
func (o *object) head() *event {
	if o.deletion.kind != none {
		return &o.deletion
	}
	return &o.event
}

func (p *pending) append(o *object, named bool) {
	if p.last == nil {
		p.first = o
	} else {
		p.last.after = o
	}
	p.last = o
	if !named {
		return // its events are not merged
	}
	if p.byName == nil {
		p.byName = map[cache.ObjectName]*object{}
	}
	p.byName[o.name] = o
	p.most = max(p.most, len(p.byName))
}

func (p *pending) remove(o *object) {
	if o.before == nil {
		p.first = o.after
	} else {
		o.before.after = o.after
	}
	if o.after == nil {
		p.last = o.before
	} else {
		o.after.before = o.before
	}
	o.removed = true
	switch last := p.byName[o.name]; {
	case last == o && o.earlier != nil:
		p.byName[o.name] = o.earlier
	case last == o:
		delete(p.byName, o.name)
	case last != nil && last.earlier == o:
		last.earlier = nil
	}
	if len(p.byName) == 0 && p.most > shrinkAbove {
		p.byName, p.most = nil, 0 // a map does not shrink
	}
}

// isDeleted reports whether the only event of o is a deletion.
func (o *object) isDeleted() bool { return o.deletion.kind != none && o.event.kind == none }

// states returns the number of events with a state that is not in the cache.
func (o *object) states() int {
	if o == nil {
		return 0
	}
	return asInt(o.deletion.state() != nil) + asInt(o.event.state() != nil)
}

func (o *object) counts() uint64 { return o.deletion.counts + o.event.counts }

func (o *object) initial() int { return asInt(o.event.initial) }

func asInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
