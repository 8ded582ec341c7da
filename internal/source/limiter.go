package source

import (
	"context"

	"k8s.io/client-go/util/flowcontrol"
)

// Limiter returns limiter for the clients of sources. It does not limit comparisons of versions: a comparison belongs to a watch, which client-go
// does not limit. If the comparisons of many sources waited after an outage, they would be late, and a whole list would follow each of them.
func Limiter(limiter flowcontrol.RateLimiter) flowcontrol.RateLimiter { return exempting{limiter} }

type exempting struct{ flowcontrol.RateLimiter }

// Wait implements flowcontrol.RateLimiter.
func (e exempting) Wait(ctx context.Context) error {
	if ctx.Value(unlimited{}) != nil {
		return nil
	}
	return e.RateLimiter.Wait(ctx)
}

type unlimited struct{}

// withoutLimit returns a context for requests that a [Limiter] does not limit.
func withoutLimit(ctx context.Context) context.Context {
	return context.WithValue(ctx, unlimited{}, true)
}
