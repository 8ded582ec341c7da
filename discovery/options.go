package discovery

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// defaultRequestTimeout is the default timeout of a request. client-go's discovery client has a
// similar timeout, which it does not apply to an http.Client that it is given.
const defaultRequestTimeout = 30 * time.Second

// Option configures a Resolver. Every combination of options is valid. A nil Option has no effect.
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

// unknownRate and unknownBurst limit the requests of a running resolver about unknown resources. They
// are kubectl's limits for discovery.
const (
	unknownRate  = 50
	unknownBurst = 300
)

func newOptions(opts []Option) options {
	o := options{
		requestTimeout: defaultRequestTimeout, pace: usualPace, watchPace: usualWatchPace,
		unknownRate: unknownRate, unknownBurst: unknownBurst, jitter: wait.Jitter,
	}
	for _, opt := range opts {
		if opt != nil {
			opt.apply(&o)
		}
	}
	return o
}

// WithRequestTimeout sets the timeout of requests, within the caller's context. If the server does not
// respond in time, the answer is inconclusive. The default is 30 s. A timeout of zero or less has no
// effect. The timeout of a rest.Config or an HTTP client has no effect either, since it would also end
// watches.
func WithRequestTimeout(timeout time.Duration) Option {
	return optionFunc(func(o *options) {
		if timeout > 0 {
			o.requestTimeout = timeout
		}
	})
}
