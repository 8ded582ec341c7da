package trial

import (
	"cmp"
	"time"

	"github.com/gvrkit/gvrkit/bench/measure"
)

// Job says what is to be measured.
type Job struct {
	Part   Part           `json:"part"`
	System string         `json:"system"`
	Server measure.Server `json:"server"`
	Size   Size           `json:"size"`
}

// Size says how much of it.
type Size struct {
	// Pairs is how many times a lease is acquired and released for one figure.
	Pairs int `json:"pairs"`
	// Armed is how many informers are on types that are not there, Settle how long they
	// get before their requests are counted, and Count how long these are.
	Armed  int           `json:"armed"`
	Settle time.Duration `json:"settleNanos"`
	Count  time.Duration `json:"countNanos"`
	// Parked is how many types go from under their informers, and Objects how many
	// objects a type has that goes.
	Parked  int `json:"parked"`
	Objects int `json:"objects"`
	// Cycles is how many times a type goes and comes back, after one that does not count.
	Cycles int `json:"cycles"`
}

// Figures are what was measured. What was not is nil.
type Figures struct {
	Cost   []Cost  `json:"cost,omitempty"`
	Armed  *Armed  `json:"armed,omitempty"`
	Parked *Parked `json:"parked,omitempty"`
	Back   []Cycle `json:"back,omitempty"`
}

// With returns f and what was measured besides.
func (f Figures) With(other Figures) Figures {
	if f.Cost == nil {
		f.Cost = other.Cost
	}
	if f.Back == nil {
		f.Back = other.Back
	}
	f.Armed, f.Parked = cmp.Or(f.Armed, other.Armed), cmp.Or(f.Parked, other.Parked)
	return f
}

// Cost is acquiring a lease that others have, too, and releasing it, in some goroutines
// at a time.
type Cost struct {
	Goroutines int `json:"goroutines"`
	// Nanos and Allocs are those of one pair: of the time that all take together.
	Nanos  float64 `json:"nanos"`
	Allocs float64 `json:"allocs"`
	// Requests are those of all.
	Requests int64 `json:"requests"`
}

// Memory is what a process has, or has more than before.
type Memory struct {
	// Heap is what is reachable, and Stacks what goroutines have.
	Heap       int64 `json:"heapBytes"`
	Stacks     int64 `json:"stackBytes"`
	Goroutines int   `json:"goroutines"`
}

// Armed is informers on types that are not there.
type Armed struct {
	Informers int `json:"informers"`
	// Bare is what they take, and Handlers what one handler of each takes besides.
	Bare     Memory `json:"bare"`
	Handlers Memory `json:"handlers"`
	// Starting are the requests until they had settled, and Requests those in Time then.
	Starting int64         `json:"startingRequests"`
	Requests int64         `json:"requests"`
	Time     time.Duration `json:"timeNanos"`
}

// Parked is informers with a handler each whose types were listed, and have gone then.
type Parked struct {
	Informers int `json:"informers"`
	// Synced is what they took while the types were there, and Gone what they take since.
	Synced Memory `json:"synced"`
	Gone   Memory `json:"gone"`
}

// Cycle is a type that goes and comes back, as its informer's handler hears of it. Times
// are those after the evidence, which can be late itself: then they are less than zero.
type Cycle struct {
	// Deleted is from the event that the CRD was deleted to the deletion of the last
	// object, and Gone to when the informer knew.
	Deleted time.Duration `json:"deletedNanos"`
	Gone    time.Duration `json:"goneNanos"`
	// Listable is from the event that the CRD was established until the server answers a
	// list, and Synced until the informer has synced.
	Listable time.Duration `json:"listableNanos"`
	Synced   time.Duration `json:"syncedNanos"`
	// Added is from the server's answer that the first object was created, or the list if
	// that is later, to its addition.
	Added time.Duration `json:"addedNanos"`
}
