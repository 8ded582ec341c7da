package discovery

import (
	"time"

	utilwait "k8s.io/apimachinery/pkg/util/wait"
)

// defaultRequestTimeout bounds one question to the server. client-go's discovery
// client has a similar bound of its own, which it loses when it is given a
// client to share.
const defaultRequestTimeout = 30 * time.Second

// Option changes how a Resolver asks. Every combination of options is valid; a
// nil Option has no effect.
type Option interface{ apply(*options) }

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

type options struct {
	requestTimeout time.Duration
	pace           pace
	watchPace      watchPace
	unknownRate    float32 // requests a second
	unknownBurst   int
	jitter         jitter // wait.Jitter, unless a test replaces it
}

// unknownRate and unknownBurst bound the requests of a resolver that runs about what it does
// not know to be served, as kubectl bounds its own for discovery.
const (
	unknownRate  = 50
	unknownBurst = 300
)

func newOptions(opts []Option) options {
	o := options{
		requestTimeout: defaultRequestTimeout, pace: usualPace, watchPace: usualWatchPace,
		unknownRate: unknownRate, unknownBurst: unknownBurst, jitter: utilwait.Jitter,
	}
	for _, opt := range opts {
		if opt != nil {
			opt.apply(&o)
		}
	}
	return o
}

// WithRequestTimeout bounds how long a question may take, within the bounds of
// the caller's context; a server that does not answer in time is inconclusive.
// The default is 30 s. A timeout of zero or less leaves the default.
func WithRequestTimeout(timeout time.Duration) Option {
	return optionFunc(func(o *options) {
		if timeout > 0 {
			o.requestTimeout = timeout
		}
	})
}
