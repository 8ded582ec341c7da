package soak_test

import (
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ledger has what has been written to the server for one type. Objects have numbers, each of which is used
// once in a soak, and each write of an object has the next revision. It is written before the request is
// sent: no program can know of a revision that the ledger does not have.
type ledger struct {
	gvr  schema.GroupVersionResource
	kind string
	// calm means that no fault is injected into requests for the type: no revision may be left out.
	calm bool

	mu        sync.Mutex
	first     int     // the number of the first object of this round
	revisions []int32 // the last ones of the objects from first on; negative: the object has been deleted
	types     []int   // the number of the first object of each CRD of this round
}

// fact is what a ledger says about an object.
type fact struct {
	revision int
	deleted  bool
	typ      int // the CRD
}

// defined records that another CRD begins.
func (l *ledger) defined() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.types = append(l.types, l.first+len(l.revisions))
}

// created returns the number of a new object, whose revision is 1.
func (l *ledger) created() (number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.revisions = append(l.revisions, 1)
	return l.first + len(l.revisions) - 1
}

// updated returns the next revision of an object.
func (l *ledger) updated(number int) (revision int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.revisions[number-l.first]++
	return int(l.revisions[number-l.first])
}

// deleted records that an object is deleted.
func (l *ledger) deleted(number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.revisions[number-l.first] *= -1
}

// fact returns what is known of an object of this round.
func (l *ledger) fact(number int) (fact, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if number < l.first || number >= l.first+len(l.revisions) {
		return fact{}, false
	}
	later, _ := slices.BinarySearch(l.types, number+1) // CRDs may have had no objects
	f := fact{revision: int(l.revisions[number-l.first]), typ: later - 1}
	if f.revision < 0 {
		f.revision, f.deleted = -f.revision, true
	}
	return f, true
}

// forget begins another round. All objects have been deleted.
func (l *ledger) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.first += len(l.revisions)
	l.revisions, l.types = nil, nil
}

// The content of an object is a function of its number and its revision.

const stateAnnotation = "soak.gvrkit.io/state"

// stateOf is the annotation.
func stateOf(number, revision int) string { return fmt.Sprintf("%d/%d", number, revision) }

const colorLabel = "color"

// colorOf is the label. It changes with every fourth revision.
func colorOf(number, revision int) string {
	if (number+revision/4)%2 == 0 {
		return "red"
	}
	return "blue"
}

// hadAnotherColor reports whether an object has had another color than this one after one revision, up to another one.
func hadAnotherColor(color string, number, after, upTo int) bool {
	for revision := after + 1; revision <= upTo; revision++ {
		if colorOf(number, revision) != color {
			return true
		}
	}
	return false
}
