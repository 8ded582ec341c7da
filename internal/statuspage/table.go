package statuspage

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/gvrkit/gvrkit/status"
)

// rowsAtMost is the maximum number of rows in a table.
const rowsAtMost = 500

// Table is the status of all informers, or of some. Its JSON is as stable as that of
// [status.Informer].
type Table struct {
	At      time.Time `json:"at"`
	Summary Summary   `json:"summary"`
	// Matching is the number of informers that match the request. Informers are those from Offset
	// on, problems first, and NotShown is the number of matches after them.
	Matching  int               `json:"matching"`
	Offset    int               `json:"offset"`
	NotShown  int               `json:"notShown"`
	Informers []status.Informer `json:"informers"`
	// whole are the same informers without bounds.
	whole []*status.Informer
}

// Summary counts all informers.
type Summary struct {
	Informers int                  `json:"informers"`
	States    map[status.State]int `json:"states"`
	// Late is the number of informers with a late handler, and Backlog the number of events that
	// wait for handlers.
	Late    int `json:"late"`
	Backlog int `json:"backlog"`
	Objects int `json:"objects"`
}

// states are the states of informers, problems first. An unknown state is sorted after the first.
var states = []status.State{
	status.StateDegraded, status.StateNotServed, status.StateUnknown, status.StateStarting, status.StateSynced, status.StateStopped,
}

// stateNames returns the states, separated by commas.
func stateNames() string {
	var names []string
	for _, state := range states {
		names = append(names, string(state))
	}
	return strings.Join(names, ", ")
}

// rank orders informers: smaller is worse. An informer with a late handler is between informers that
// fail and informers that wait.
func rank(i *status.Informer, at time.Time) int {
	place := slices.Index(states, i.State)
	switch {
	case place == 0:
		return 0
	case i.Late(at):
		return 1
	}
	return place + 3
}

// newTable returns the table of all informers.
func newTable(all []status.Informer, at time.Time) *Table {
	t := &Table{At: at, Matching: len(all), Summary: Summary{Informers: len(all), States: map[status.State]int{}}}
	type place struct {
		rank, n int
		name    string
	}
	order := make([]place, len(all))
	for n := range all {
		i := &all[n]
		order[n] = place{rank(i, at), n, i.Name()}
		t.Summary.States[i.State]++
		t.Summary.Backlog += i.Backlog()
		t.Summary.Objects += i.Objects
		if i.Late(at) {
			t.Summary.Late++
		}
	}
	slices.SortFunc(order, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), strings.Compare(a.name, b.name), cmp.Compare(a.n, b.n))
	})
	t.Informers = make([]status.Informer, len(all))
	for to, from := range order {
		t.Informers[to] = all[from.n]
	}
	return t
}

// cut returns the part of t that q selects. It does not change t.
func (t *Table) cut(q query) *Table {
	part := &Table{At: t.At, Summary: t.Summary, Offset: q.offset, Informers: []status.Informer{}}
	for n := range t.Informers {
		i := &t.Informers[n]
		if !q.matches(i) {
			continue
		}
		part.Matching++
		if part.Matching > q.offset && len(part.Informers) < rowsAtMost {
			part.Informers = append(part.Informers, bounded(*i, rowBounds, t.At))
			part.whole = append(part.whole, i)
		}
	}
	part.NotShown = max(0, part.Matching-part.Offset-len(part.Informers))
	return part
}
