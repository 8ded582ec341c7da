package source

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Serving says whether a type is served.
type Serving string

// The values of Serving. Only Gone removes objects from the cache: while a type is Held,
// the cache is kept for any time.
const (
	// Held: no request is sent, since it would fail. An open watch continues.
	Held Serving = "Held"
	// Served: the type can be listed and watched.
	Served Serving = "Served"
	// Missing: discovery no longer lists the type. If a list of the type is also NotFound,
	// the type is gone.
	Missing Serving = "Missing"
	// Gone: there is evidence that the type and its objects are gone.
	Gone Serving = "Gone"
)

// Type is the state of a type at one moment.
type Type struct {
	Serving Serving
	// GVR is the resource of requests. Different versions have the same objects.
	GVR schema.GroupVersionResource
	// Kind is the kind of its objects; empty if it is not known.
	Kind string
	// Namespaced says whether its objects are in namespaces.
	Namespaced bool
	// Unwatchable says that the type does not support watches. If it is false, that may be unknown.
	Unwatchable bool
	// Aggregated says that an aggregated API server serves the type.
	Aggregated bool
	// Generation is the number of earlier types with the same name. Objects of different
	// generations are different objects, also if they have the same names.
	Generation int
	// Unsettled says that another server has begun to serve the type a short time ago, or that its scope has changed: the first list may
	// still be of the earlier server, or of a server that does not have the new scope yet and lists no objects. When the type is settled, it is
	// listed again.
	Unsettled bool
	// Since is when discovery began to list the type; zero if that is not known.
	Since time.Time
	// UID distinguishes the type from other types with the same name, independent of
	// Generation; empty if it is not known.
	UID string
}

// kind returns the GroupVersionKind of the objects.
func (t Type) kind() schema.GroupVersionKind { return t.GVR.GroupVersion().WithKind(t.Kind) }

// sameObjects reports whether requests for t and other return the same objects.
func (t Type) sameObjects(other Type) bool {
	return t.GVR == other.GVR && t.Namespaced == other.Namespaced && t.Generation == other.Generation && t.Unsettled == other.Unsettled
}

// absent reports whether no request of t can succeed.
func (t Type) absent() bool { return t.Serving == Held || t.Serving == Gone }

// follows reports whether a watch of t continues if the type becomes now.
func (t Type) follows(now Type) bool {
	return t.sameObjects(now) && (now.Serving == Served || now.Serving == Held)
}

// isStill reports whether now is t, whose UID may have become known: requests for t go on.
func (t Type) isStill(now Type) bool {
	if t.UID == "" {
		t.UID = now.UID
	}
	return t == now
}

// Availability is the present state of a type. It is safe for concurrent use.
type Availability struct {
	mu      sync.Mutex // never held during a wait
	now     Type
	changed chan struct{}
}

// NewAvailability returns an Availability whose first state is t.
func NewAvailability(t Type) *Availability {
	return &Availability{now: t, changed: make(chan struct{})}
}

// Set sets the state to t. It does not block.
func (a *Availability) Set(t Type) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.setLocked(t)
}

// probed handles the result of a list of t, which was [Missing], if the state is still t.
func (a *Availability) probed(t Type, gone bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !t.isStill(a.now) {
		return
	}
	now := a.now
	now.Serving = Served
	if gone {
		now.Serving = Gone
	}
	a.setLocked(now)
}

func (a *Availability) setLocked(t Type) {
	before := a.now
	a.now = t
	if before.isStill(t) {
		return
	}
	close(a.changed)
	a.changed = make(chan struct{})
}

// Current returns the state, and a channel that closes when the state changes, except if only its UID becomes known. Callers
// may miss states in between: a type that was gone in between has another generation.
func (a *Availability) Current() (Type, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now, a.changed
}
