package dynamicinformer

import (
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

// Explanation is why the informers on one resource do what they do, at one moment.
type Explanation struct {
	GVR schema.GroupVersionResource
	At  time.Time
	// Informers are the states of its informers, sorted as by [Factory.Status]: more than
	// one if leases have asked for other versions or for an informer of their own.
	Informers []ResourceStatus
	// Elsewhere are the informers on other versions of it, if there are none.
	Elsewhere []schema.GroupVersionResource
	// Discovery is where answers about types come from; nil without discovery.
	Discovery *discovery.Status
	// Chain says it in sentences: what is wanted, what that led to, and what is next.
	Chain []Step
}

// Step is one part of an explanation.
type Step struct {
	// About says what Text is about.
	About StepKind
	// Text is one or more sentences.
	Text string
}

// StepKind is what a [Step] is about.
type StepKind string

// The steps, in the order in which each informer has them; those of which nothing is to be
// said are left out.
const (
	// StepWanted: who asked for the informer.
	StepWanted StepKind = "Wanted"
	// StepServed: what the server serves, by what evidence.
	StepServed StepKind = "Served"
	// StepRequests: how its requests go.
	StepRequests StepKind = "Requests"
	// StepCache: what is in its cache.
	StepCache StepKind = "Cache"
	// StepHandlers: how its event handlers do.
	StepHandlers StepKind = "Handlers"
	// StepNext: what it waits for, and what a person can do.
	StepNext StepKind = "Next"
)

// Explain tells why the informers on gvr do what they do. It asks nobody, and no informer
// that is busy holds it up: what it says is what the factory knows.
func (f *Factory) Explain(gvr schema.GroupVersionResource) Explanation {
	e := Explanation{GVR: gvr, At: time.Now()}
	for _, other := range f.versionsOf(gvr.GroupResource()) {
		if other.gvr == gvr {
			e.Informers = append(e.Informers, f.status(other))
		} else if !slices.Contains(e.Elsewhere, other.gvr) {
			e.Elsewhere = append(e.Elsewhere, other.gvr)
		}
	}
	if len(e.Informers) > 0 {
		e.Elsewhere = nil
	}
	if resolver := f.options.resolver; resolver != nil {
		status := resolver.Status()
		e.Discovery = &status
	}
	e.Chain = e.tell()
	return e
}

// String returns the sentences, a step a line.
func (e Explanation) String() string {
	lines := make([]string, len(e.Chain))
	for i, step := range e.Chain {
		lines[i] = step.Text
	}
	return strings.Join(lines, "\n")
}
