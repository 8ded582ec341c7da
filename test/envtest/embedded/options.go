package embedded

import (
	"io"
	"maps"
	"os"
)

// Option configures a server. Every combination of options is valid. A nil Option has no
// effect.
type Option interface{ apply(*options) }

type optionFunc func(*options)

func (f optionFunc) apply(o *options) { f(o) }

type options struct {
	dataDir  string
	gates    map[string]bool
	log      io.Writer
	progress io.Writer
}

func newOptions(opts []Option) options {
	o := options{log: io.Discard, progress: os.Stderr}
	for _, opt := range opts {
		if opt != nil {
			opt.apply(&o)
		}
	}
	return o
}

// WithDataDir keeps the server's data in dir, which is created if it does not exist, and
// is kept after Stop: a later server with dir has the same objects. Only one server at a
// time can use dir; another one fails to start. The default is a temporary directory that
// Stop removes.
func WithDataDir(dir string) Option {
	return optionFunc(func(o *options) { o.dataDir = dir })
}

// WithFeatureGates sets feature gates of k8s.io/apiserver, only for this server.
func WithFeatureGates(gates map[string]bool) Option {
	gates = maps.Clone(gates)
	return optionFunc(func(o *options) { o.gates = gates })
}

// WithLog sends the server's log lines to w, from one goroutine that Stop waits for: w
// must not block. Errors of w are ignored. The default, also for a nil w, is to keep the
// last lines for the error if the server fails.
func WithLog(w io.Writer) Option {
	return optionFunc(func(o *options) {
		if w != nil {
			o.log = w
		}
	})
}

// WithProgress sends the messages of Start about the build of the server to w. With
// io.Discard there are no messages. The default, also for a nil w, is standard error.
func WithProgress(w io.Writer) Option {
	return optionFunc(func(o *options) {
		if w != nil {
			o.progress = w
		}
	})
}
