package dynamicinformer

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gvrkit/gvrkit/status"
)

// HealthCheck is a check of a factory's informers, for the /healthz or /readyz of a program. It is an http.Handler and a HealthChecker of
// k8s.io/apiserver. Its method Check is a Checker of controller-runtime.
type HealthCheck struct {
	name    string
	factory *Factory
	policy  status.HealthPolicy
}

// Readyz returns a check that fails until the informers have synced: the informers on the resources of [WithResources], or all informers whose types
// are served. It fails again if an informer has been degraded, or its type has been gone, for longer than [WithHealthTolerance], and after Shutdown.
func (f *Factory) Readyz(opts ...HealthOption) *HealthCheck {
	return &HealthCheck{name: "gvrkit-informer-sync", factory: f, policy: newHealthPolicy(true, opts)}
}

// Healthz returns a check that fails if a restart may help: an event handler has not returned within the time of [WithHandlerTimeout]. Without
// options, it never fails. With [WithResources] or [WithHealthTolerance], it also fails for informers that have not been synced, or have been
// degraded, for longer than the tolerance. A restart does not help against missing permissions or a failed server.
func (f *Factory) Healthz(opts ...HealthOption) *HealthCheck {
	return &HealthCheck{name: "gvrkit-informers", factory: f, policy: newHealthPolicy(false, opts)}
}

// Name returns the name of the check, gvrkit-informer-sync or gvrkit-informers. If several factories have checks, NamedCheck of k8s.io/apiserver names them.
func (c *HealthCheck) Name() string { return c.name }

// Check returns nil or a [*status.HealthError]. It does not block; the request is ignored and may be nil.
func (c *HealthCheck) Check(*http.Request) error {
	informers := c.factory.Status()
	if c.policy.Ready && len(informers) == 0 && closed(c.factory.closing) { // all leases have been released
		return &status.HealthError{Problems: []status.HealthProblem{{Text: "the factory has been shut down"}}}
	}
	return c.policy.Check(informers, time.Now())
}

// ServeHTTP responds to any request with 200 and "ok", or with 500 and one problem per line. The problems have the names of types, states,
// leases, and Go types of handlers. There is no access control: the program must add it.
func (c *HealthCheck) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", "text/plain; charset=utf-8")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	text := "ok\n"
	if wrong, is := errors.AsType[*status.HealthError](c.Check(r)); is {
		w.WriteHeader(http.StatusInternalServerError)
		text = fmt.Sprintf("%s failed:\n%s\n", c.name, strings.Join(wrong.Lines(), "\n"))
	}
	_, _ = io.WriteString(w, text) // an error means that the client has disconnected
}

// HealthOption configures a [HealthCheck]. Every combination is valid. If an option is given twice, the last one counts. A nil HealthOption has no effect.
type HealthOption interface{ applyToHealth(*healthOptions) }

type healthOptionFunc func(*healthOptions)

func (f healthOptionFunc) applyToHealth(o *healthOptions) { f(o) }

type healthOptions struct {
	status.HealthPolicy
	tolerant bool // WithHealthTolerance was given
}

// DefaultHealthTolerance is the default tolerance of Readyz, and of Healthz with [WithResources].
const DefaultHealthTolerance = 5 * time.Minute

// WithHealthTolerance sets how long a synced informer may be degraded, or its type be gone, before the check fails. If d is less than zero, there is no limit.
func WithHealthTolerance(d time.Duration) HealthOption {
	return healthOptionFunc(func(o *healthOptions) { o.Tolerance, o.tolerant = d, true })
}

// WithHandlerTimeout makes the check fail for an informer with an event handler that has been in
// one call for longer than d. If d is zero or less, the default, handlers are not checked.
func WithHandlerTimeout(d time.Duration) HealthOption {
	return healthOptionFunc(func(o *healthOptions) { o.HandlerTimeout = d })
}

func newHealthPolicy(ready bool, opts []HealthOption) status.HealthPolicy {
	o := healthOptions{HealthPolicy: status.HealthPolicy{Ready: ready, Tolerance: DefaultHealthTolerance}}
	for _, opt := range opts {
		if opt != nil {
			opt.applyToHealth(&o)
		}
	}
	if !ready && len(o.Resources) == 0 && !o.tolerant {
		o.Tolerance = -1
	}
	return o.HealthPolicy
}
