package embedded

import (
	"io"
	"maps"
	"os"
)

// Option changes how a server is started. Every combination of options is valid;
// a nil Option has no effect.
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

// WithDataDir keeps the server's data in dir, which is made if it is not there
// and stays after Stop: a later server on it has the same objects. One server at
// a time can have it; another one fails to start. The default is a temporary
// directory that Stop removes.
func WithDataDir(dir string) Option {
	return optionFunc(func(o *options) { o.dataDir = dir })
}

// WithFeatureGates sets feature gates of k8s.io/apiserver, for this server alone.
func WithFeatureGates(gates map[string]bool) Option {
	gates = maps.Clone(gates)
	return optionFunc(func(o *options) { o.gates = gates })
}

// WithLog sends the server's log lines to w, from one goroutine that Stop waits for:
// w must not block. That it fails is no failure of the server's. The default is to
// keep the last lines, for the error if the server fails. Nil leaves that.
func WithLog(w io.Writer) Option {
	return optionFunc(func(o *options) {
		if w != nil {
			o.log = w
		}
	})
}

// WithProgress sends what Start says while it builds the server to w; io.Discard
// makes it silent. The default is standard error. Nil leaves that.
func WithProgress(w io.Writer) Option {
	return optionFunc(func(o *options) {
		if w != nil {
			o.progress = w
		}
	})
}
