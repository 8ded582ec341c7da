// Package backoff has the pauses between attempts of all packages, with apimachinery's types: how pauses
// grow, and how they differ between programs. It does not wait, and knows nothing of requests.
package backoff

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// steps is the number of pauses until the longest one at most.
const steps = 10

// New returns pauses that double from first to last. A pause is longer by at most that part of it.
func New(first, last time.Duration, jitter float64) wait.Backoff {
	return wait.Backoff{Duration: first, Factor: 2, Jitter: jitter, Steps: steps, Cap: last}
}

// Jitter returns a duration from d to d and factor times d, as wait.Jitter does.
type Jitter func(d time.Duration, factor float64) time.Duration

// Spread returns a duration that differs from d by at most that part of d, so that many programs do not
// send requests at the same time.
func Spread(d time.Duration, part float64) time.Duration { return Jitter(wait.Jitter).Spread(d, part) }

// Spread is the function Spread with j.
func (j Jitter) Spread(d time.Duration, part float64) time.Duration {
	return j(time.Duration(float64(d)*(1-part)), 2*part/(1-part))
}
