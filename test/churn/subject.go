package churn

import (
	"context"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// Subject is a program under test: informers, or a controller. The runner calls its methods
// one at a time. None may wait for an event of the server, which can be late: a fault may be active.
type Subject interface {
	// Do carries out an operation that [Verbs] marks as the subject's. A subject that has nothing of
	// the kind returns nil. Earlier operations may be missing, such as the acquire of the lease that op
	// releases: then op does nothing. An error ends the run, and is not a violation.
	Do(ctx context.Context, op Op) error
	// Settle is called if the subject is not at rest [Config.Unaided] after all faults have ended, and then every second. It ends
	// long pauses of the subject, such as the one before a retry. It should do so only for informers whose status says that they
	// wait: a retry of all of them would hide an event that was missed.
	Settle()
	// AtRest returns the difference between what the subject has and what it must have now: [Compare] finds it, and [World.Want] has
	// what a view must have. While AtRest returns violations, the runner calls it again, for at most [Config.Patience]: violations
	// that do not end, such as those of [Recorder.Check], belong in the result of Stop. The runner calls it every 20 ms, so that a
	// controller need not report whether its work queue is empty: AtRest returns violations until the queue has been processed.
	AtRest(ctx context.Context) []Violation
	// Stop ends the subject and waits for it. It returns the violations of its whole history, and
	// what is left of it. It is called once, also after violations, errors and the end of the context of [Run]; its ctx ends after 30 s.
	Stop(ctx context.Context) []Violation
}

// Observer is a subject that follows writes.
type Observer interface {
	Subject
	// Wrote is called after an operation has written objects of a type, or may have. Like Do, it must not wait.
	Wrote(ctx context.Context, typ string)
}

// Environment is what a subject runs in. It belongs to the runner.
type Environment struct {
	// Config is for a client of the proxy. It has no credentials and no rate limit.
	Config *rest.Config
	// HTTP is a client for Config, for all requests of the subject. The runner closes its connections: the goroutines of idle connections of
	// another client would count as left.
	HTTP *http.Client
	// World has what the runner has written. The subject must not change it.
	World *World
	// Proxy counts the subject's requests and watches. The subject may call only its Requests, Past and OpenWatches.
	Proxy *faultproxy.Proxy
	// DiscoveryFails reports whether a fault of requests for discovery documents or CRDs is active. Only methods of the subject may
	// call it, in the goroutine in which the runner calls them; it is not safe for concurrent use.
	DiscoveryFails func() bool
}

// NewSubject starts a subject for one run, before its types exist. It must not wait for them. Ctx is that of [Run]: it may end before
// Stop is called. Stop needs a subject that still works, so derive the context of the subject by [context.WithoutCancel]. After an error, Stop
// is not called, and nothing may be left of the subject. The goroutines that it starts have a label of the run.
type NewSubject func(ctx context.Context, env Environment) (Subject, error)
