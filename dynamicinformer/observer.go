package dynamicinformer

import (
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/typestate"
)

// observer keeps how an entry's requests go: in the state of its type, and counted.
type observer struct {
	*typestate.State
	traffic   *traffic
	completed func()
}

var _ source.Observer = (*observer)(nil)

// Failed implements source.Observer.
func (o *observer) Failed(verb string, err error) {
	if o.Fail(verb, err) {
		o.traffic.failed(typestate.Classify(err))
	}
}

// Succeeded implements source.Observer.
func (o *observer) Succeeded(verb string) {
	o.traffic.succeeded(verb)
	o.State.Succeeded(verb)
}

// Completed implements source.Observer.
func (o *observer) Completed() {
	o.State.Completed()
	o.completed()
}

// Received implements source.Observer.
func (o *observer) Received(bytes int) { o.traffic.bytes.Add(uint64(bytes)) } //nolint:gosec // not negative
