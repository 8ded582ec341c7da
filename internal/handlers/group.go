package handlers

import (
	"sync"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/inflight"
)

// Group is the handlers of one owner, on one or more informers. It is safe for concurrent use,
// also from the handlers, and no method blocks.
type Group struct {
	name    string
	options Options
	calls   inflight.Counter

	mu     sync.Mutex
	added  map[*registration]struct{} // handlers that have not been removed
	closed bool
}

// Options are the options of a group's handlers.
type Options struct {
	// Coalescing merges the events of an object that a handler has not got yet.
	Coalescing bool
	// States is the maximum number of earlier states of objects that wait for a handler with Coalescing, and of those
	// that are parked for a handler; zero or less: the number of objects. Beyond it, they have only their metadata.
	States int
	// Recovery recovers the panics of handlers, and records them in their status.
	Recovery bool
}

// NewGroup returns a group without handlers. Name is the name of its owner.
func NewGroup(name string, opts Options) *Group {
	return &Group{name: name, options: opts, added: map[*registration]struct{}{}}
}

// Name returns the owner's name.
func (g *Group) Name() string { return g.name }

// Done returns a channel that closes when the group is closed and all calls of its handlers have
// returned. No call begins after that.
func (g *Group) Done() <-chan struct{} { return g.calls.Done() }

// Close prevents further calls of the group's handlers. It may be called again. It returns the registrations that have not been
// removed, which the caller may remove from their informers.
func (g *Group) Close() []cache.ResourceEventHandlerRegistration {
	g.calls.Close()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	var all []cache.ResourceEventHandlerRegistration
	for r := range g.added {
		all = append(all, r)
	}
	return all
}

// Has reports whether a handler was added for the group, whether or not it has been removed.
func (g *Group) Has(handle cache.ResourceEventHandlerRegistration) bool {
	own, is := handle.(*registration)
	return is && own != nil && own.handler.group == g
}

// keep stores a registration. It reports false if the group has been closed.
func (g *Group) keep(r *registration) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.added[r] = struct{}{}
	return true
}

func (g *Group) forget(r *registration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.added, r)
}
