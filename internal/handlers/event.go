package handlers

import (
	"reflect"
	"time"
)

// idleAfter is the minimum time without an event, and without a call for one, after which a handler has no backlog.
const idleAfter = time.Second

// kind is the method of a handler that an event calls.
type kind int

const (
	none kind = iota
	added
	updated
	deleted
)

// event is one call of a handler: its method and arguments.
type event struct {
	kind     kind
	old, obj any    // old is nil, except for an update
	initial  bool   // the addition is part of the initial list
	counts   uint64 // how many events of the informer it is: none for a resync
	reduced  bool   // the state before has only metadata
	moved    bool   // the deletion is delivered as a move: the object has left the informer, or the process must not handle its deletion
	parked   bool   // it has been parked: the handler has counted its events
}

// state returns the whole state of the object before the event: it is not in the cache any more. Nil if there is none.
func (e *event) state() *any {
	switch {
	case e.reduced:
	case e.kind == deleted:
		return &e.obj
	case e.kind == updated && e.counts > 0:
		return &e.old
	}
	return nil
}

func addition(obj any, initial bool) event {
	return event{kind: added, obj: obj, initial: initial, counts: 1}
}

// update returns the event of an update. client-go's resync is one of two equal objects.
func update(old, obj any) event {
	if v := reflect.ValueOf(old); (v.Kind() == reflect.Pointer || v.Comparable()) && old == obj {
		return resynced(obj)
	}
	return event{kind: updated, old: old, obj: obj, counts: 1}
}

// resynced returns the update of a resync. It is not an event of the informer.
func resynced(obj any) event { return event{kind: updated, old: obj, obj: obj, counts: 0} }

func deletion(obj any) event { return event{kind: deleted, obj: obj, counts: 1} }

// MovedHandler is a handler that gets the objects which have left the informer: by configuration, or to another process.
type MovedHandler interface {
	OnMoved(obj any)
}

// moved calls handler, if it is a MovedHandler.
func moved(handler, obj any) {
	if next, is := handler.(MovedHandler); is {
		next.OnMoved(obj)
	}
}

// deletion returns the event of an object that the informer has deleted.
func (s *Set) deletion(obj any) event {
	moved := false
	if s.Moved != nil {
		obj, moved = s.Moved(obj)
	}
	e := deletion(obj)
	e.moved = moved
	return e
}
