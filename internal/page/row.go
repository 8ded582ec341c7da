package page

import (
	"strconv"
	"strings"
	"time"
)

// row is one informer as text and HTML show it: words, with nothing in them that is not
// meant to be seen.
type row struct {
	Key     string // of this row alone
	Class   string // for colour, beside State
	State   string
	Name    string
	Link    string
	Notes   string // what is not as usual about it
	Reason  string
	Message string
	Tried   string // since when, how often, and when again
	Advice  string
	Well    string // since when nothing is wrong
	For     string
	Objects string
	Event   string // how long ago the last one was
	Late    bool
	Calls   string // how its handlers do
	Held    string
}

// newRow returns i's, the nth of its name.
func newRow(i *Informer, n int, at time.Time) row {
	return row{
		Key:     plain(i.Name) + " " + strconv.Itoa(n),
		Class:   classOf(i.State),
		State:   plain(i.State),
		Name:    plain(i.Name),
		Link:    question{resource: i.Name}.link(),
		Notes:   plain(i.notes()),
		Reason:  plain(i.Reason),
		Message: plain(i.Message),
		Tried:   i.tried(at),
		Well:    i.well(at),
		Advice:  plain(i.Advice),
		For:     ago(i.Since, at),
		Objects: number(i.Objects),
		Event:   ago(i.Traffic.LastEvent, at),
		Late:    i.late(at),
		Calls:   i.calls(at),
		Held:    plain(i.held()),
	}
}

// newRows returns those of informers.
func newRows(informers []Informer, at time.Time) []row {
	rows, seen := make([]row, len(informers)), map[string]int{}
	for n := range informers {
		i := &informers[n]
		seen[i.Name]++
		rows[n] = newRow(i, seen[i.Name], at)
	}
	return rows
}

// classOf returns the class of a state that is known.
func classOf(state string) string {
	for _, known := range states {
		if state == known {
			return strings.ToLower(known)
		}
	}
	return ""
}

func (i *Informer) notes() string {
	var notes []string
	if i.Namespace != "" {
		notes = append(notes, "namespace "+i.Namespace)
	}
	if i.VersionPolicy != "" {
		notes = append(notes, i.VersionPolicy)
	}
	if i.Served != nil && i.Served.Name != i.Name {
		notes = append(notes, "as "+i.Served.Name)
	}
	if i.Served != nil && i.Served.Terminating {
		notes = append(notes, "its CRD is being deleted")
	}
	if i.Flushing {
		notes = append(notes, "deletions under way")
	}
	return strings.Join(notes, ", ")
}

// tried tells of attempts: since when, how often, and when again.
func (i *Informer) tried(at time.Time) string {
	var parts []string
	if !i.Since.IsZero() && i.Reason != "" {
		parts = append(parts, "for "+ago(i.Since, at))
	}
	if i.Attempts > 0 {
		parts = append(parts, count(i.Attempts, "attempt"))
	}
	if next := ahead(i.NextRetry, at); next != "" {
		parts = append(parts, "next in "+next)
	}
	if !i.StaleSince.IsZero() {
		parts = append(parts, "cache may be behind")
	}
	return strings.Join(parts, ", ")
}

// well tells since when nothing is wrong.
func (i *Informer) well(at time.Time) string {
	if i.Reason != "" || i.Since.IsZero() {
		return ""
	}
	return "for " + ago(i.Since, at)
}

// calls tells how many handlers there are, what waits for them, and of the longest call.
func (i *Informer) calls(at time.Time) string {
	if len(i.Handlers) == 0 {
		return "-"
	}
	text := number(len(i.Handlers) + i.MoreHandlers)
	if waiting := i.backlog(); waiting > 0 {
		text += ", " + number(waiting) + " waiting"
	}
	var longest, behind time.Time
	for _, h := range i.Handlers {
		longest, behind = earlier(longest, h.RunningSince), earlier(behind, h.BehindSince)
	}
	switch {
	case !longest.IsZero() && at.Sub(longest) >= late:
		text += ", in a call for " + ago(longest, at)
	case !behind.IsZero() && at.Sub(behind) >= late:
		text += ", behind for " + ago(behind, at)
	}
	return text
}

// earlier returns the earlier one of two times, of which either may not be set.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// namesAtMost is how many holders a row names.
const namesAtMost = 3

// held tells who has it.
func (i *Informer) held() string {
	var names []string
	if i.Pinned {
		names = append(names, "ForResource")
	}
	for n, h := range i.Holders {
		if n == namesAtMost {
			names = append(names, "and "+number(len(i.Holders)-n+i.MoreHolders)+" more")
			break
		}
		name := clip(h.Name, 60)
		if name == "" {
			name = "no name"
		}
		if h.Leases > 1 {
			name += " ×" + number(h.Leases)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, ", ")
}
