package statuspage

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Rows of a table.
const rowsAtMost = 500

// Table is what is told of all informers, or some of them. Its JSON is as stable as that
// of [Informer].
type Table struct {
	At      time.Time `json:"at"`
	Summary Summary   `json:"summary"`
	// Matching is how many informers match what was asked for. Informers are those
	// from Offset on, what is wrong first, and NotShown how many there are beside them.
	Matching  int        `json:"matching"`
	Offset    int        `json:"offset"`
	NotShown  int        `json:"notShown"`
	Informers []Informer `json:"informers"`
}

// Summary counts all informers.
type Summary struct {
	Informers int            `json:"informers"`
	States    map[string]int `json:"states"`
	// Late is how many have a handler that has been in one call, or behind, for ten
	// seconds, and Backlog how many events wait for handlers.
	Late    int `json:"late"`
	Backlog int `json:"backlog"`
	Objects int `json:"objects"`
}

// states are those that an informer can be in, what a person has to see to first. One that
// is not among them comes after the first.
var states = []string{"Degraded", "NotServed", "Unknown", "Starting", "Synced", "Stopped"}

// rank orders informers: smaller is worse. A handler that is stuck stands between what
// fails and what only waits.
func (i *Informer) rank(at time.Time) int {
	place := slices.Index(states, i.State)
	switch {
	case place == 0:
		return 0
	case i.late(at):
		return 1
	}
	return place + 3
}

// newTable returns the table of all.
func newTable(all []Informer, at time.Time) *Table {
	t := &Table{At: at, Matching: len(all), Summary: Summary{Informers: len(all), States: map[string]int{}}}
	type place struct{ rank, n int }
	order := make([]place, len(all))
	for n := range all {
		i := &all[n]
		order[n] = place{i.rank(at), n}
		t.Summary.States[i.State]++
		t.Summary.Backlog += i.backlog()
		t.Summary.Objects += i.Objects
		if i.late(at) {
			t.Summary.Late++
		}
	}
	slices.SortFunc(order, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(all[a.n].Name, all[b.n].Name), cmp.Compare(a.n, b.n))
	})
	t.Informers = make([]Informer, len(all))
	for to, from := range order {
		t.Informers[to] = all[from.n]
	}
	return t
}

// cut returns the part of t that q asks for, and leaves t as it is.
func (t *Table) cut(q question) *Table {
	part := &Table{At: t.At, Summary: t.Summary, Offset: q.offset, Informers: []Informer{}}
	for n := range t.Informers {
		i := &t.Informers[n]
		if !q.matches(i) {
			continue
		}
		part.Matching++
		if part.Matching > q.offset && len(part.Informers) < rowsAtMost {
			part.Informers = append(part.Informers, bounded(*i, rowBounds))
		}
	}
	part.NotShown = part.Matching - len(part.Informers)
	return part
}
