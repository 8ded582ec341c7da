package dynamicinformer

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/status"
)

// HealthCheck is a check of a factory's informers, for the /healthz or /readyz of a program.
// It is an http.Handler, a HealthChecker of k8s.io/apiserver, and its Check a Checker of
// controller-runtime.
type HealthCheck struct {
	name    string
	factory *Factory
	policy  healthPolicy
}

// Readyz returns a check that fails until the informers have synced: the informers on the resources
// of [WithResources], or all informers whose types are served. It fails again if an informer has been
// degraded, or its type has been gone, for longer than [WithHealthTolerance], and after Shutdown.
func (f *Factory) Readyz(opts ...HealthOption) *HealthCheck {
	return &HealthCheck{name: "informer-sync", factory: f, policy: newHealthPolicy(true, opts)}
}

// Healthz returns a check that fails if a restart may help: an event handler has not returned within
// the time of [WithHandlerTimeout]. With [WithResources] or [WithHealthTolerance], it also fails for
// informers that have not been synced, or have been degraded, for longer than the tolerance. A restart
// does not help against missing permissions or a failed server.
func (f *Factory) Healthz(opts ...HealthOption) *HealthCheck {
	return &HealthCheck{name: "informers", factory: f, policy: newHealthPolicy(false, opts)}
}

// Name returns the name of the check: informer-sync or informers.
func (c *HealthCheck) Name() string { return c.name }

// Check returns nil or a [*HealthError]. It does not block; the request is ignored and may be nil.
func (c *HealthCheck) Check(*http.Request) error {
	now := time.Now()
	statuses := c.factory.Status()
	e := &HealthError{}
	for _, gvr := range c.policy.of {
		if !slices.ContainsFunc(statuses, func(s status.Informer) bool { return s.GVR == gvr }) {
			e.add(gvr, "there is no informer on it")
		}
	}
	for i := range statuses {
		if problem := c.policy.problem(&statuses[i], now); problem != "" {
			e.add(statuses[i].GVR, problem)
		}
	}
	if len(e.Problems) == 0 {
		return nil
	}
	return e
}

// ServeHTTP responds to any request with 200 and "ok", or with 500 and one problem per line. The
// problems have the names of types, states, leases, and Go types of handlers. There is no access
// control: the program must add it.
func (c *HealthCheck) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	text := "ok\n"
	if wrong, is := errors.AsType[*HealthError](c.Check(r)); is {
		w.WriteHeader(http.StatusInternalServerError)
		text = fmt.Sprintf("%s failed:\n%s\n", c.name, strings.Join(wrong.lines(), "\n"))
	}
	_, _ = io.WriteString(w, text) // an error means that the client has disconnected
}

// HealthOption configures a [HealthCheck]. Every combination is valid. If an option is given twice,
// the last one counts. A nil HealthOption has no effect.
type HealthOption interface{ applyToHealth(*healthPolicy) }

type healthOptionFunc func(*healthPolicy)

func (f healthOptionFunc) applyToHealth(p *healthPolicy) { f(p) }

// DefaultHealthTolerance is the tolerance of Readyz by default.
const DefaultHealthTolerance = 5 * time.Minute

// WithHealthTolerance sets how long a synced informer may be degraded, or its type be gone, before
// the check fails. If d is less than zero, there is no limit.
func WithHealthTolerance(d time.Duration) HealthOption {
	return healthOptionFunc(func(p *healthPolicy) { p.tolerance = d })
}

// WithHandlerTimeout makes the check fail for an informer with an event handler that has been in
// one call for longer than d. If d is zero or less, the default, handlers are not checked.
func WithHandlerTimeout(d time.Duration) HealthOption {
	return healthOptionFunc(func(p *healthPolicy) { p.handlers = d })
}

// healthPolicy is what a check requires of informers.
type healthPolicy struct {
	of        []schema.GroupVersionResource // empty: all
	ready     bool                          // the informers must have synced
	tolerance time.Duration                 // less than zero: no limit
	handlers  time.Duration                 // zero or less: not checked
}

func newHealthPolicy(ready bool, opts []HealthOption) healthPolicy {
	p := healthPolicy{ready: ready, tolerance: DefaultHealthTolerance}
	if !ready {
		p.tolerance = -1
	}
	for _, opt := range opts {
		if opt != nil {
			opt.applyToHealth(&p)
		}
	}
	if !ready && len(p.of) > 0 && p.tolerance < 0 {
		p.tolerance = DefaultHealthTolerance
	}
	return p
}

// problem returns the problem of an informer, or "".
func (p *healthPolicy) problem(s *status.Informer, now time.Time) string {
	named := slices.Contains(p.of, s.GVR)
	if len(p.of) > 0 && !named {
		return ""
	}
	if p.handlers > 0 {
		for _, h := range s.Handlers {
			if !h.RunningSince.IsZero() && now.Sub(h.RunningSince) > p.handlers {
				return h.Call(now)
			}
		}
	}
	switch {
	case s.State == status.StateSynced, s.State == status.StateNotServed && !named:
		return ""
	case p.ready && (!s.Listed || s.State == status.StateStopped):
	case p.tolerance < 0, s.Since.IsZero(), now.Sub(s.Since) <= p.tolerance:
		return ""
	}
	return s.Summary(now)
}

// HealthError reports the problems of a factory's informers.
type HealthError struct {
	// Problems are sorted by resource. There are at most [MaxHealthProblems].
	Problems []HealthProblem
	// More is the number of further problems.
	More int
}

// HealthProblem is a problem of one informer.
type HealthProblem struct {
	GVR  schema.GroupVersionResource
	Text string
}

// MaxHealthProblems is the maximum number of problems in a [HealthError], which people read and
// probes store.
const MaxHealthProblems = 20

func (e *HealthError) add(gvr schema.GroupVersionResource, text string) {
	if len(e.Problems) == MaxHealthProblems {
		e.More++
		return
	}
	e.Problems = append(e.Problems, HealthProblem{gvr, text})
}

func (e *HealthError) Error() string { return strings.Join(e.lines(), "; ") }

// lines returns one line of text per problem.
func (e *HealthError) lines() []string {
	lines := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		lines = append(lines, fmt.Sprintf("%s: %s", discovery.RefOf(p.GVR), p.Text))
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", e.More))
	}
	return lines
}
