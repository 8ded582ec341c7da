package discovery

import "time"

// WithPace makes a running resolver quick: awaited is how often it asks for what it
// awaits, polled how often where it can't watch, doubted how long what a document does
// not list any more is taken to be served. Otherwise it asks once an hour.
func WithPace(awaited, polled, doubted time.Duration) Option {
	return optionFunc(func(o *options) {
		o.pace = pace{awaited: awaited, polled: polled, settled: time.Hour, crowded: 1, doubted: doubted, first: 5 * time.Second}
	})
}
