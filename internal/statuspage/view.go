package statuspage

import (
	"cmp"
	"strings"
	"time"

	"github.com/gvrkit/gvrkit/status"
)

// view has the values of the templates.
type view struct {
	Title string
	At    string
	// Home is the link to the whole table; Text and JSON are links to this view in other formats.
	Home, Text, JSON string
	Style, Script    any

	// The table.
	Counts []tally // of each state, problems first
	Totals string
	Search string       // the filter's text
	State  status.State // the filter's state
	States []status.State
	Rows   []row
	Shown  string // the range of rows and their total; empty: all
	Before string // links
	After  string

	// One resource.
	Detail *detailView
}

// tally is the number of informers in one state.
type tally struct {
	Class       string
	State       status.State
	Count, Link string
	Chosen      bool
}

// detailView is a resource in detail.
type detailView struct {
	Chain     []status.Step
	Elsewhere []linked
	Informers []informerView
	More      string
	Discovery []fact
}

type linked struct{ Name, Link string }

// informerView is one informer with all its fields.
type informerView struct {
	row
	Facts    []fact
	Handlers []handlerView
	Leases   []ownerView
	LeftOut  []leftOutView
	More     string
}

type fact struct{ Name, Value string }

type handlerView struct {
	Handler, Lease, Delivered, Backlog, Call, Behind string
	Late                                             bool
}

type ownerView struct{ Name, Leases, Since string }

// leftOutView is an object that is left out of the cache, or of an index.
type leftOutView struct{ Key, Reason, Index, For, Error string }

// newView returns a view with the values that all responses to q have.
func newView(q query, title string, at time.Time) *view {
	v := &view{Title: plain(title), At: clock(at), Home: q.base + "?", Style: style, Script: script}
	text, json := q, q
	text.format, json.format = asText, asJSON
	v.Text, v.JSON = text.link(), json.link()
	return v
}

// tableView returns the view of t for q.
func tableView(t *Table, q query) *view {
	v := newView(q, "Informers", t.At)
	v.Search, v.State, v.States = plain(q.text), q.state, states
	for _, state := range states {
		if n := t.Summary.States[state]; n > 0 {
			v.Counts = append(v.Counts, tally{classOf(state), state, number(n), query{state: state, base: q.base}.link(), q.state == state})
		}
	}
	totals := []string{count(t.Summary.Informers, "informer"), count(t.Summary.Objects, "object"), count(t.Summary.Backlog, "event") + " waiting for handlers"}
	if n := t.Summary.Late; n > 0 {
		totals = append(totals, number(n)+" with a stuck or slow handler")
	}
	v.Totals = strings.Join(totals, ", ")
	v.Rows = newRows(t.Informers, t.whole, q, t.At)
	v.pages(t, q)
	return v
}

// pages sets the range of the displayed rows, and the links to the other rows.
func (v *view) pages(t *Table, q query) {
	shown := len(t.Informers)
	q.format = ""
	switch {
	case shown == 0 && t.Matching == 0:
		v.Shown = "There are no informers."
		if t.Summary.Informers > 0 {
			v.Shown = "0 of " + number(t.Summary.Informers) + " informers match."
		}
	case shown == 0:
		v.Shown = "Offset " + number(t.Offset) + " is beyond the last of " + count(t.Matching, "informer") + "."
	case t.Matching > shown:
		v.Shown = number(t.Offset+1) + " to " + number(t.Offset+shown) + " of " + count(t.Matching, "informer") + ", problems first; " + number(t.Matching-shown) + " not shown."
	case t.Matching < t.Summary.Informers:
		v.Shown = number(t.Matching) + " of " + count(t.Summary.Informers, "informer") + "."
	}
	if t.Offset > 0 {
		before := q
		before.offset = max(0, min(t.Offset, t.Matching)-rowsAtMost)
		v.Before = before.link()
	}
	if t.Offset+shown < t.Matching && shown > 0 {
		after := q
		after.offset = t.Offset + shown
		v.After = after.link()
	}
}

// viewOfDetail returns the view of e for q.
func viewOfDetail(e *status.Explanation, q query) *view {
	v := newView(q, e.Name(), e.At)
	v.Detail = &detailView{}
	for _, step := range e.Chain {
		v.Detail.Chain = append(v.Detail.Chain, status.Step{About: status.StepKind(plain(string(step.About))), Text: plain(step.Text)})
	}
	for _, name := range e.ElsewhereNames() {
		v.Detail.Elsewhere = append(v.Detail.Elsewhere, linked{plain(name), query{resource: name, base: q.base}.link()})
	}
	rows := newRows(e.Informers, nil, q, e.At)
	for n := range e.Informers {
		v.Detail.Informers = append(v.Detail.Informers, newInformerView(&e.Informers[n], rows[n], e.At))
	}
	if e.MoreInformers > 0 {
		v.Detail.More = "And " + count(e.MoreInformers, "informer") + " more, not shown."
	}
	v.Detail.Discovery = discoveryFacts(e)
	return v
}

func newInformerView(i *status.Informer, r row, at time.Time) informerView {
	v := informerView{row: r, Facts: factsOf(i, at)}
	for _, h := range i.Handlers {
		v.Handlers = append(v.Handlers, handlerView{
			Handler: plain(h.Handler), Lease: plain(cmp.Or(h.Lease, "-")), Delivered: number(h.Delivered), Backlog: number(h.Backlog),
			Call: ago(h.RunningSince, at), Behind: ago(h.BehindSince, at), Late: h.Late(at),
		})
	}
	for _, o := range i.Owners {
		v.Leases = append(v.Leases, ownerView{plain(cmp.Or(o.Name, "-")), number(o.Leases), ago(o.Since, at)})
	}
	for _, o := range i.Quarantine.Objects {
		text := "-"
		if o.Err != nil {
			text = o.Err.Error()
		}
		v.LeftOut = append(v.LeftOut, leftOutView{plain(o.Key), plain(string(o.Reason)), plain(cmp.Or(o.Index, "-")), ago(o.Since, at), plain(text)})
	}
	var more []string
	if all, shown := i.Quarantine.Count(), uint64(len(v.LeftOut)); all > shown {
		more = append(more, count(all-shown, "left out object"))
	}
	if i.MoreHandlers > 0 {
		more = append(more, count(i.MoreHandlers, "handler"))
	}
	if i.MoreOwners > 0 {
		more = append(more, count(i.MoreOwners, "owner"))
	}
	if len(more) > 0 {
		v.More = "And " + strings.Join(more, ", ") + " more, not shown."
	}
	return v
}
