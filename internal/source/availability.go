package source

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Serving says what is to be thought of a type.
type Serving string

// What can be thought of a type. Only the last says that objects are gone: what
// was listed before stands while a type is held back, however long.
const (
	// Held: no request leaves, for it would fail. A watch that is open goes on.
	Held Serving = "Held"
	// Served: it can be listed and watched.
	Served Serving = "Served"
	// Missing: the server does not mention it any more. If it also answers a request
	// with NotFound, the type is gone.
	Missing Serving = "Missing"
	// Gone: it is certain that it is gone, and its objects with it.
	Gone Serving = "Gone"
)

// Type is what is known of a type at one moment.
type Type struct {
	Serving Serving
	// GVR is where requests go. Another version than before has the same objects.
	GVR schema.GroupVersionResource
	// Kind is that of its objects; empty if it is not known.
	Kind string
	// Namespaced says whether its objects are in namespaces.
	Namespaced bool
	// Aggregated says that another server is behind the one that is asked.
	Aggregated bool
	// Generation counts types that had the same name one after the other. Objects of
	// another generation are other objects, whatever their names are.
	Generation int
	// UID tells the type from others that had the name, for who does not count its
	// generations; empty if it is not known.
	UID string
}

// sameObjects reports whether what is asked for as of t and as of other is the same.
func (t Type) sameObjects(other Type) bool {
	return t.GVR == other.GVR && t.Namespaced == other.Namespaced && t.Generation == other.Generation
}

// follows reports whether a watch of t goes on as one of now.
func (t Type) follows(now Type) bool {
	return t.sameObjects(now) && (now.Serving == Served || now.Serving == Held)
}

// Availability is what is known of a type, from moment to moment. It is safe for
// concurrent use.
type Availability struct {
	mu      sync.Mutex // never held over anything that waits
	now     Type
	changed chan struct{}
}

// NewAvailability returns one that begins with t.
func NewAvailability(t Type) *Availability {
	return &Availability{now: t, changed: make(chan struct{})}
}

// Set makes t what is known. It does not block.
func (a *Availability) Set(t Type) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.setLocked(t)
}

// probed takes the answer of a type that was t and [Missing], if it still is.
func (a *Availability) probed(t Type, gone bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now != t {
		return
	}
	now := t
	now.Serving = Served
	if gone {
		now.Serving = Gone
	}
	a.setLocked(now)
}

func (a *Availability) setLocked(t Type) {
	if t == a.now {
		return
	}
	a.now = t
	close(a.changed)
	a.changed = make(chan struct{})
}

// Current returns what is known, and a channel that closes when that changes. What
// was known in between, nobody is told: a type that went and came back differs in its
// generation.
func (a *Availability) Current() (Type, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now, a.changed
}
