package statuspage

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/status"
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
	Owners  string
}

// newRow returns the row of i, the nth of its name, on the page that answers q.
func newRow(i *status.Informer, n int, q query, at time.Time) row {
	name := i.Name()
	return row{
		Key:     plain(name) + " " + strconv.Itoa(n),
		Class:   classOf(i.State),
		State:   plain(string(i.State)),
		Name:    plain(name),
		Link:    query{resource: name, base: q.base}.link(),
		Notes:   plain(i.Notes()),
		Reason:  plain(string(i.Reason)),
		Message: plain(i.Message()),
		Tried:   i.Retries(at),
		Stuck:   plain(stuck(i, at)),
		Well:    well(i, at),
		Advice:  plain(i.Advice()),
		For:     ago(i.Since, at),
		Objects: number(i.Objects),
		Event:   ago(i.Traffic.LastEvent, at),
		Late:    i.Late(at),
		Calls:   calls(i, at),
		Owners:  plain(owners(i)),
	}
}

// newRows returns those of informers.
func newRows(informers []status.Informer, q query, at time.Time) []row {
	rows, seen := make([]row, len(informers)), map[schema.GroupVersionResource]int{}
	for n := range informers {
		i := &informers[n]
		seen[i.GVR]++
		rows[n] = newRow(i, seen[i.GVR], q, at)
	}
	return rows
}

// classOf returns the class of a state that is known.
func classOf(state status.State) string {
	for _, known := range states {
		if state == known {
			return strings.ToLower(string(known))
		}
	}
	return ""
}

// well says for how long nothing has been wrong.
func well(i *status.Informer, at time.Time) string {
	if i.Reason != "" || i.Since.IsZero() {
		return ""
	}
	return "for " + ago(i.Since, at)
}

// calls says how many handlers there are, how many events wait for them, and how late they are.
func calls(i *status.Informer, at time.Time) string {
	if len(i.Handlers) == 0 {
		return "-"
	}
	text := number(len(i.Handlers) + i.MoreHandlers)
	if waiting := i.Backlog(); waiting > 0 {
		text += ", " + number(waiting) + " waiting"
	}
	var longest, behind time.Time
	for _, h := range i.Handlers {
		longest, behind = earlier(longest, h.RunningSince), earlier(behind, h.BehindSince)
	}
	switch {
	case !longest.IsZero() && at.Sub(longest) >= status.LateAfter:
		text += ", one call running for " + ago(longest, at)
	case !behind.IsZero() && at.Sub(behind) >= status.LateAfter:
		text += ", behind for " + ago(behind, at)
	}
	return text
}

// stuck describes the first handler that is late or in a slow call, and counts the others; "" if
// there is none.
func stuck(i *status.Informer, at time.Time) string {
	text, more := "", 0
	for _, h := range i.Handlers {
		h.Lease = clip(h.Lease, nameAtMost)
		switch delay := h.Delay(at); {
		case delay == "":
		case text == "":
			text = delay
		default:
			more++
		}
	}
	if more > 0 {
		text += ", and " + count(more, "other handler")
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

// A row names so many owners, and has so many bytes of the name of a lease.
const (
	ownersAtMost = 3
	nameAtMost   = 60
)

// owners names the owners of leases.
func owners(i *status.Informer) string {
	var names []string
	if i.Pinned {
		names = append(names, "ForResource")
	}
	for n, o := range i.Owners {
		if n == ownersAtMost {
			names = append(names, "and "+number(len(i.Owners)-n+i.MoreOwners)+" more")
			break
		}
		name := clip(o.Name, nameAtMost)
		if name == "" {
			name = "(no name)"
		}
		if o.Leases > 1 {
			name += " ×" + number(o.Leases)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return "-"
	}
	return strings.Join(names, ", ")
}
