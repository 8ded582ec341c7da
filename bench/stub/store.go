package stub

import (
	"context"
	"errors"
	"sync"

	"github.com/gvrkit/gvrkit/bench/objects"
)

const (
	// window is how many of the last events can be watched from.
	window = 2048
	// lead is how far changes may run ahead of the slowest watch.
	lead = 512
)

var errExpired = errors.New("the version is too old")

// store holds the present objects and the last events. An object's bytes never
// change: a change puts others in their place. It is safe for concurrent use.
type store struct {
	kind objects.Kind

	// mu guards the fields below. It is never held while writing to a client.
	mu       sync.Mutex
	objects  [][]byte
	version  int64
	next     int      // the object to be changed next
	events   [][]byte // the changed objects, the last of version
	cursors  map[*cursor]struct{}
	progress chan struct{} // closed and replaced when version or a cursor moves
}

// cursor is how far a watch has come.
type cursor struct{ version int64 }

func newStore(corpus *objects.Corpus) *store {
	return &store{
		kind: corpus.Kind, objects: corpus.Objects, version: firstVersion + int64(len(corpus.Objects)) - 1,
		cursors: map[*cursor]struct{}{}, progress: make(chan struct{}),
	}
}

// snapshot returns the present objects and their version. With a cursor, what comes
// after it can be read from there.
func (s *store) snapshot(c *cursor) (present [][]byte, version int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c != nil {
		c.version = s.version
		s.cursors[c] = struct{}{}
		s.movedLocked()
	}
	return append([][]byte(nil), s.objects...), s.version
}

// follow makes c a cursor at version. It fails if the events since are not all kept.
func (s *store) follow(c *cursor, version int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if version < s.version-int64(len(s.events)) {
		return errExpired
	}
	c.version = version
	s.cursors[c] = struct{}{}
	s.movedLocked()
	return nil
}

// forget lets changes go on without c.
func (s *store) forget(c *cursor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.cursors, c)
	s.movedLocked()
}

// after moves c over the next events, at most limit, and returns them. If there are
// none it returns a channel that is closed when there may be.
func (s *store) after(c *cursor, limit int) ([][]byte, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	behind := s.version - c.version
	if behind <= 0 {
		return nil, s.progress
	}
	events := s.events[int64(len(s.events))-behind:]
	events = append([][]byte(nil), events[:min(limit, len(events))]...)
	c.version += int64(len(events))
	s.movedLocked()
	return events, nil
}

// change changes the next n objects, one after the other, as fast as watches follow;
// it waits for the first watch to come. It returns the version of the last change.
func (s *store) change(ctx context.Context, n int) (int64, error) {
	for done := 0; ; {
		changed, version, moved, err := s.changeSome(n - done)
		done += changed
		if err != nil || done == n {
			return version, err
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return version, ctx.Err()
		}
	}
}

// changeSome changes as many objects, up to n, as watches allow.
func (s *store) changeSome(n int) (changed int, version int64, moved <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.objects) == 0 {
		return 0, s.version, nil, errors.New("there are no objects to change")
	}
	n = min(n, s.roomLocked())
	for range n {
		s.version++
		text := updated(s.objects[s.next], s.kind, s.version)
		s.objects[s.next] = text
		s.next = (s.next + 1) % len(s.objects)
		s.events = append(s.events, text)
	}
	s.events = s.events[max(0, len(s.events)-window):]
	if n > 0 {
		s.movedLocked()
	}
	return n, s.version, s.progress, nil
}

// roomLocked returns how many changes may be made before the slowest watch has to
// catch up. The caller holds mu.
func (s *store) roomLocked() int {
	if len(s.cursors) == 0 {
		return 0
	}
	room := int64(lead)
	for c := range s.cursors {
		room = min(room, c.version+lead-s.version)
	}
	return int(max(room, 0))
}

// movedLocked wakes who waits for progress. The caller holds mu.
func (s *store) movedLocked() {
	close(s.progress)
	s.progress = make(chan struct{})
}
