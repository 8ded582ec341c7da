package churn

import (
	"context"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// Subject is a program under test: informers, or a controller. The runner calls its methods
// one at a time.
type Subject interface {
	// Do carries out an operation that [Verbs] marks as the subject's. A subject that has nothing of
	// the kind returns nil. The operation may be the first one that concerns what it names. An error
	// ends the run, and is not a violation.
	Do(ctx context.Context, op Op) error
	// Settle is called when the subject is not at rest some seconds after all faults have ended, to
	// hasten what it would do later, such as retries after long pauses.
	Settle()
	// AtRest returns the difference between what the subject has and what it must have now: [Compare] finds it, and [World.Want] has
	// what a view must have. While AtRest returns violations, the runner calls it again until its patience runs out: violations that
	// do not end, such as those of [Recorder.Check], are those of Stop.
	AtRest(ctx context.Context) []Violation
	// Stop ends the subject and waits for it. It returns the violations of its whole history, and
	// what is left of it.
	Stop(ctx context.Context) []Violation
}

// Environment is what a subject runs in.
type Environment struct {
	// Config is for a client of the proxy. It has no credentials and no rate limit.
	Config *rest.Config
	// HTTP is a client for Config. The runner closes its connections.
	HTTP *http.Client
	// World is the truth.
	World *World
	// Proxy counts the subject's requests and watches.
	Proxy *faultproxy.Proxy
	// DiscoveryFails reports whether a fault of requests for discovery documents or CRDs is active. It may be called
	// during a call of a method of the subject.
	DiscoveryFails func() bool
}

// NewSubject starts a subject.
type NewSubject func(ctx context.Context, env Environment) (Subject, error)
