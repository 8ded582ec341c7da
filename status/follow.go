package status

import (
	"encoding/json"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
)

// Follow is the state of one call of a factory's Follow at one moment.
type Follow struct {
	// Name is the name of its leases.
	Name string `json:"name"`
	// Names are the names of its selector; empty if it selects types by other criteria.
	Names []string `json:"names,omitempty"`
	// Types is the number of types that have a lease, or for which one is being acquired. Waiting is the number of types
	// that wait: because others are being started, because of the limit of types, or for the next try after a failure.
	Types   int `json:"types"`
	Waiting int `json:"waiting"`
	// Undecided are the served types for which it can't be decided whether to follow them, sorted by name. Nothing
	// changes for them until it can. If a name of the selector means several types, each of them is undecided, and Err
	// is a [*discovery.AmbiguousError].
	Undecided []Undecided `json:"undecided,omitempty"`
}

// Undecided is a served type for which it can't be decided whether to follow it.
type Undecided struct {
	// Resource is the type as it is served at present.
	Resource discovery.Resource `json:"-"`
	// Err is why it can't be decided. Since is when that began.
	Err   error     `json:"-"`
	Since time.Time `json:"since"`
	// Followed reports whether the type counts in Types, because it was selected when that could last be decided.
	Followed bool `json:"followed"`
}

// Name returns the type as a reference, such as ipamblocks.v1.crd.projectcalico.org.
func (u *Undecided) Name() string { return discovery.RefOf(u.Resource.GVR).String() }

// MarshalJSON writes the type as an object with the keys of its fields' tags, name, and error, the text of Err.
func (u Undecided) MarshalJSON() ([]byte, error) {
	type fields Undecided // without MarshalJSON
	return json.Marshal(struct {
		Name  string `json:"name"`
		Error string `json:"error,omitempty"`
		fields
	}{u.Name(), errorText(u.Err), fields(u)})
}
