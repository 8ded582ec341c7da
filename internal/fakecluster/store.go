package fakecluster

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// store has the objects of one type and their changes. The cluster's mu guards it.
type store struct {
	Type
	objects map[string]*unstructured.Unstructured // by namespace/name
	history []change
	floor   int64 // changes up to this version have expired

	// changed is closed and replaced after each change.
	changed chan struct{}
	// epoch is the number of times that open watches were closed.
	epoch int
	// bookmarks is the number of calls of SendBookmarks.
	bookmarks int
}

// change is a change of one object. before is nil for a creation, and after for a deletion.
// Both are immutable. version is the resource version of the change.
type change struct {
	version       int64
	before, after *unstructured.Unstructured
}

// newStore returns the store of a type that is served from version on.
func newStore(t Type, version int64) *store {
	return &store{Type: t, objects: map[string]*unstructured.Unstructured{}, floor: version, changed: make(chan struct{})}
}

func (s *store) supports(verb string) bool { return slices.Contains(s.Verbs, verb) }

// record adds a change and wakes the watches.
func (s *store) record(ch change) {
	s.history = append(s.history, ch)
	s.wake()
}

func (s *store) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *store) expire(version int64) {
	s.history, s.floor = nil, version
	s.wake()
}

func (s *store) closeWatches() {
	s.epoch++
	s.wake()
}

// since returns the changes after version.
func (s *store) since(version int64) []change {
	i, _ := slices.BinarySearchFunc(s.history, version+1, func(ch change, v int64) int {
		return int(ch.version - v)
	})
	return s.history[i:]
}

// matching returns copies of the objects that sel selects, sorted by key.
func (s *store) matching(sel selection) []*unstructured.Unstructured {
	var keys []string
	for key, obj := range s.objects {
		if sel.matches(obj) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	found := make([]*unstructured.Unstructured, len(keys))
	for i, key := range keys {
		found[i] = s.objects[key].DeepCopy()
	}
	return found
}

// event returns the event of ch for a watch with selection sel. For an object that begins to
// match, the event is ADDED, and for an object that no longer matches, DELETED.
func (ch change) event(sel selection) (watch.Event, bool) {
	was := ch.before != nil && sel.matches(ch.before)
	is := ch.after != nil && sel.matches(ch.after)
	switch {
	case is && was:
		return watch.Event{Type: watch.Modified, Object: ch.after.DeepCopy()}, true
	case is:
		return watch.Event{Type: watch.Added, Object: ch.after.DeepCopy()}, true
	case was:
		gone := ch.before.DeepCopy() // the last state that matched, at the version of the change
		gone.SetResourceVersion(formatVersion(ch.version))
		return watch.Event{Type: watch.Deleted, Object: gone}, true
	}
	return watch.Event{}, false
}
