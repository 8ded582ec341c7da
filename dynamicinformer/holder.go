package dynamicinformer

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Holder is who has leases on an informer.
type Holder struct {
	// Name is that of the leases, by [WithLeaseName]; empty for those without.
	Name string
	// Leases is how many there are of that name, and Since when the first of those in a
	// row was acquired.
	Leases int
	Since  time.Time
}

// holdLocked notes that l is a lease on e. The caller holds the factory's mu.
func (e *entry) holdLocked(l *Lease) {
	e.leases[l] = struct{}{}
	h, there := e.holders[l.holder]
	if !there {
		h = Holder{Name: l.holder, Since: time.Now()}
	}
	h.Leases++
	if e.holders == nil {
		e.holders = map[string]Holder{}
	}
	e.holders[l.holder] = h
}

// letGoLocked notes that it is not any more. The caller holds the factory's mu.
func (e *entry) letGoLocked(l *Lease) {
	delete(e.leases, l)
	h := e.holders[l.holder]
	h.Leases--
	if h.Leases == 0 {
		delete(e.holders, l.holder)
		return
	}
	e.holders[l.holder] = h
}

// heldByLocked returns who has leases on e, in any order. The caller holds the factory's mu.
func (e *entry) heldByLocked() []Holder {
	if len(e.holders) == 0 {
		return nil
	}
	return slices.AppendSeq(make([]Holder, 0, len(e.holders)), maps.Values(e.holders))
}

// sortHolders sorts by name.
func sortHolders(holders []Holder) {
	slices.SortFunc(holders, func(a, b Holder) int { return strings.Compare(a.Name, b.Name) })
}
