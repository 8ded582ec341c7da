package statuspage

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gvrkit/gvrkit/status"
)

// bounds are the limits for the display of one informer.
type bounds struct {
	items int // owners, handlers, namespaces, and objects that are left out
	text  int // bytes of a sentence
}

var (
	rowBounds    = bounds{items: 20, text: 1 << 10}
	detailBounds = bounds{items: 500, text: 16 << 10}
)

// objectText is the maximum number of bytes of a text about an object that is left out, or about a namespace.
const objectText = 256

// informersAtMost is the maximum number of informers of one resource in the detailed view, and
// stepsAtMost that of the steps of its explanation.
const (
	informersAtMost = 50
	stepsAtMost     = 6 * informersAtMost
)

// bounded returns i within b at a moment. It does not change values that i refers to.
func bounded(i status.Informer, b bounds, at time.Time) status.Informer {
	i.Err, i.LastFailed = clipError(i.Err, b.text), clip(i.LastFailed, b.text)
	if more := len(i.Owners) - b.items; more > 0 {
		i.Owners, i.MoreOwners = i.Owners[:b.items:b.items], more
	}
	if more := len(i.Handlers) - b.items; more > 0 {
		has := func(h *status.Handler) bool { return problem(*h, at) != "" }
		i.Handlers, i.MoreHandlers = choose(i.Handlers, b.items, has, func(*status.Handler) {}), more
	}
	i.Namespaces, i.MoreNamespaces = boundedNamespaces(i.Namespaces, b)
	if i.Shard != nil {
		i.Shard = boundedShard(*i.Shard, b)
	}
	objects := slices.Clone(i.Quarantine.Objects[:min(len(i.Quarantine.Objects), b.items)])
	for n := range objects {
		o := &objects[n]
		o.Key, o.Index, o.Err = clip(o.Key, objectText), clip(o.Index, objectText), clipError(o.Err, objectText)
	}
	i.Quarantine.Objects = objects
	return i
}

// boundedNamespaces returns namespaces within b, in their order. Those that fail come before others.
func boundedNamespaces(all []status.Namespace, b bounds) (some []status.Namespace, more status.NamespaceCounts) {
	if all == nil {
		return nil, more
	}
	some = choose(all, b.items, func(n *status.Namespace) bool { return n.Err != nil }, more.Add)
	for n := range some {
		some[n].Err = clipError(some[n].Err, objectText)
	}
	return some, more
}

// choose returns a new slice with at most so many items of all, in their order. It leaves out those that are not urgent first, and calls leave for
// each that it leaves out.
func choose[T any](all []T, most int, isUrgent func(*T) bool, leave func(*T)) []T {
	urgent := 0
	for n := range all {
		if isUrgent(&all[n]) {
			urgent++
		}
	}
	urgent = min(urgent, most)
	others := most - urgent
	some := make([]T, 0, min(len(all), most))
	for n := range all {
		left := &others
		if isUrgent(&all[n]) {
			left = &urgent
		}
		if *left == 0 {
			leave(&all[n])
			continue
		}
		*left--
		some = append(some, all[n])
	}
	return some
}

// boundedShard returns s within b. It does not change values that s refers to.
func boundedShard(s status.Shard, b bounds) *status.Shard {
	s.Err = clip(s.Err, b.text)
	if more := len(s.Owners) - b.items; more > 0 {
		s.Owners, s.MoreOwners = s.Owners[:b.items:b.items], more
	}
	if more := len(s.WaitsFor) - b.items; more > 0 {
		s.WaitsFor, s.MoreWaitsFor = s.WaitsFor[:b.items:b.items], more
	}
	return &s
}

// bound cuts e to its bounds, and may write to its slices.
func bound(e *status.Explanation) {
	if more := len(e.Informers) - informersAtMost; more > 0 {
		e.Informers, e.MoreInformers = e.Informers[:informersAtMost], more
	}
	for n := range e.Informers {
		e.Informers[n] = bounded(e.Informers[n], detailBounds, e.At)
	}
	e.Chain = e.Chain[:min(len(e.Chain), stepsAtMost)]
	for n := range e.Chain {
		e.Chain[n].Text = clip(e.Chain[n].Text, detailBounds.text)
	}
	e.Elsewhere = e.Elsewhere[:min(len(e.Elsewhere), informersAtMost)]
}

// clipped is an error with a shorter text.
type clipped struct {
	text string
	err  error
}

func (c *clipped) Error() string { return c.text }

func (c *clipped) Unwrap() error { return c.err }

func clipError(err error, size int) error {
	if err == nil {
		return nil
	}
	if text := err.Error(); len(text) > size {
		return &clipped{clip(text, size), err}
	}
	return err
}

// clip returns s, or as much of it as fits into size bytes, with a mark.
func clip(s string, size int) string {
	if len(s) <= size {
		return s
	}
	for size > 0 && !utf8.RuneStart(s[size]) {
		size--
	}
	return strings.TrimSpace(s[:size]) + " …"
}
