package statuspage

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/status"
)

// row is one informer in text and HTML. Its strings are escaped.
type row struct {
	Key     string // unique in the page
	Class   string // selects the colour
	State   string
	Name    string
	Link    string
	Notes   string // differences from the defaults
	Reason  string
	Message string
	Tried   string // duration, attempts, and the next attempt
	Advice  string
	Stuck   string // the handlers that are late or have panicked
	Well    string // the time without problems
	For     string
	Objects string
	Event   string // the time since the last event
	Late    bool
	Calls   string // the state of the handlers
	Owners  string
}

// newRow returns the row of i, the nth informer with its name, on the page for q. Whole is i without bounds: the row counts all handlers.
func newRow(i, whole *status.Informer, n int, q query, at time.Time) row {
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
		Stuck:   plain(stuck(whole, at)),
		Well:    well(i, at),
		Advice:  plain(i.Advice()),
		For:     ago(i.Since, at),
		Objects: number(i.Objects),
		Event:   ago(i.Traffic.LastEvent, at),
		Late:    whole.Late(at),
		Calls:   calls(whole, at),
		Owners:  plain(owners(i)),
	}
}

// newRows returns the rows of informers, which whole has without bounds. Nil: as they are.
func newRows(informers []status.Informer, whole []*status.Informer, q query, at time.Time) []row {
	rows, seen := make([]row, len(informers)), map[schema.GroupVersionResource]int{}
	for n := range informers {
		i := &informers[n]
		seen[i.GVR]++
		of := i
		if whole != nil {
			of = whole[n]
		}
		rows[n] = newRow(i, of, seen[i.GVR], q, at)
	}
	return rows
}

// classOf returns the class of a known state.
func classOf(state status.State) string {
	for _, known := range states {
		if state == known {
			return strings.ToLower(string(known))
		}
	}
	return ""
}

// well describes how long there has been no problem.
func well(i *status.Informer, at time.Time) string {
	if i.Reason != "" || i.Since.IsZero() {
		return ""
	}
	return "for " + ago(i.Since, at)
}

// calls describes the number of handlers, the waiting events, and delays.
func calls(i *status.Informer, at time.Time) string {
	if len(i.Handlers) == 0 {
		return "-"
	}
	text := number(len(i.Handlers))
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

// stuck describes the first handler that is late, is in a slow call or has panicked, and counts the
// others. It returns "" if there is none.
func stuck(i *status.Informer, at time.Time) string {
	text, more := "", 0
	for _, h := range i.Handlers {
		h.Lease = clip(h.Lease, nameAtMost)
		switch wrong := problem(h, at); {
		case wrong == "":
		case text == "":
			text = wrong
		default:
			more++
		}
	}
	if more > 0 {
		text += ", and " + count(more, "other handler")
	}
	return text
}

// problem describes that h is late, is in a slow call or has panicked. It returns "" if there is no problem.
func problem(h status.Handler, at time.Time) string { return cmp.Or(h.Delay(at), h.Failure()) }

// earlier returns the earlier of two times. Either may be zero.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// The maximum number of owners in a row, and of bytes of the name of a lease.
const (
	ownersAtMost = 3
	nameAtMost   = 60
)

// owners lists the owners of leases.
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
