package statuspage

import (
	"strings"
	"unicode/utf8"
)

// bounds are how much is told of one informer at most.
type bounds struct {
	people int // holders, and handlers
	text   int // bytes of a sentence
}

var (
	rowBounds    = bounds{people: 20, text: 1 << 10}
	detailBounds = bounds{people: 500, text: 16 << 10}
)

// informersAtMost is of how many informers a detail tells, and stepsAtMost in how many
// steps.
const (
	informersAtMost = 50
	stepsAtMost     = 6 * informersAtMost
)

// bounded returns i within b. It writes to nothing that i refers to.
func bounded(i Informer, b bounds) Informer {
	i.Message, i.Error, i.LastFailed = clip(i.Message, b.text), clip(i.Error, b.text), clip(i.LastFailed, b.text)
	if more := len(i.Holders) - b.people; more > 0 {
		i.Holders, i.MoreHolders = i.Holders[:b.people:b.people], more
	}
	if more := len(i.Handlers) - b.people; more > 0 {
		i.Handlers, i.MoreHandlers = i.Handlers[:b.people:b.people], more
	}
	return i
}

// boundedDetail returns d within bounds. It may write to d's slices.
func boundedDetail(d Detail) Detail {
	if more := len(d.Informers) - informersAtMost; more > 0 {
		d.Informers, d.MoreInformers = d.Informers[:informersAtMost], more
	}
	for n := range d.Informers {
		d.Informers[n] = bounded(d.Informers[n], detailBounds)
	}
	d.Chain = d.Chain[:min(len(d.Chain), stepsAtMost)]
	for n := range d.Chain {
		d.Chain[n].Text = clip(d.Chain[n].Text, detailBounds.text)
	}
	d.Elsewhere = d.Elsewhere[:min(len(d.Elsewhere), informersAtMost)]
	return d
}

// clip returns s, or what of it fits into size bytes, with a mark.
func clip(s string, size int) string {
	if len(s) <= size {
		return s
	}
	for size > 0 && !utf8.RuneStart(s[size]) {
		size--
	}
	return strings.TrimSpace(s[:size]) + " …"
}
