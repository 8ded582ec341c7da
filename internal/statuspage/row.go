package statuspage

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
	Stuck   string // its handlers that are late
	Well    string // since when nothing is wrong
	For     string
	Objects string
	Event   string // how long ago the last one was
	Late    bool
	Calls   string // how its handlers do
	Held    string
}

// newRow returns the row of i, the nth of its name, on the page that answers q.
func newRow(i *Informer, n int, q question, at time.Time) row {
	return row{
		Key:     plain(i.Name) + " " + strconv.Itoa(n),
		Class:   classOf(i.State),
		State:   plain(i.State),
		Name:    plain(i.Name),
		Link:    question{resource: i.Name, base: q.base}.link(),
		Notes:   plain(i.notes()),
		Reason:  plain(i.Reason),
		Message: plain(i.Message),
		Tried:   i.tried(at),
		Stuck:   plain(i.stuck(at)),
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
func newRows(informers []Informer, q question, at time.Time) []row {
	rows, seen := make([]row, len(informers)), map[string]int{}
	for n := range informers {
		i := &informers[n]
		seen[i.Name]++
		rows[n] = newRow(i, seen[i.Name], q, at)
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
		notes = append(notes, "still has objects of the generation before")
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
		parts = append(parts, "cache may be out of date")
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
		text += ", one call running for " + ago(longest, at)
	case !behind.IsZero() && at.Sub(behind) >= late:
		text += ", behind for " + ago(behind, at)
	}
	return text
}

// stuck names the first handler that is late or in a slow call, and counts the others; "" if
// none is.
func (i *Informer) stuck(at time.Time) string {
	text, more := "", 0
	for n := range i.Handlers {
		h := &i.Handlers[n]
		switch {
		case !h.late(at) && !h.runs(slowCall, at):
		case text == "":
			text = h.lateText(at)
		default:
			more++
		}
	}
	if more > 0 {
		text += ", and " + count(more, "other handler")
	}
	return text
}

// lateText describes a handler that is late or in a slow call.
func (h *Handling) lateText(at time.Time) string {
	text := "handler " + h.Handler[strings.LastIndex(h.Handler, "/")+1:] // without the path of its package
	if h.Lease != "" {
		text += " of " + strconv.Quote(clip(h.Lease, 60))
	}
	switch {
	case h.runs(slowCall, at):
		text += " has been in one call for " + ago(h.RunningSince, at)
	default:
		text += " has been behind for " + ago(h.BehindSince, at)
	}
	if h.Backlog > 0 {
		text += ", " + count(h.Backlog, "event") + " waiting"
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
			name = "(no name)"
		}
		if h.Leases > 1 {
			name += " ×" + number(h.Leases)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, ", ")
}
