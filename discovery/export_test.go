package discovery

import "time"

// WithPace makes a running resolver quick: awaited is how often it asks for what it
// awaits, polled how often where it can't watch, doubted how long what a document does
// not list any more is taken to be served. Otherwise it asks once an hour.
func WithPace(awaited, polled, doubted time.Duration) Option {
	return optionFunc(func(o *options) {
		o.pace = pace{awaited: awaited, polled: polled, settled: time.Hour, crowded: 1, doubted: doubted, patient: time.Hour, gap: time.Millisecond, first: 5 * time.Second}
	})
}

// Waiting returns how many callers wait for documents.
func Waiting(r *Resolver) int {
	r.documents.mu.Lock()
	defer r.documents.mu.Unlock()
	if f := r.documents.flying[allGroups]; f != nil {
		return f.waiting
	}
	return 0
}

// WithForbiddenPace is how often a running resolver tries what is forbidden.
func WithForbiddenPace(forbidden time.Duration) Option {
	return optionFunc(func(o *options) { o.feedPace.forbidden = forbidden })
}

// WithGap is how long a running resolver leaves between requests.
func WithGap(gap time.Duration) Option {
	return optionFunc(func(o *options) { o.pace.gap = gap })
}

// WithUnknownRate bounds the requests about what a running resolver does not know.
func WithUnknownRate(perSecond float32, burst int) Option {
	return optionFunc(func(o *options) { o.unknownRate, o.unknownBurst = perSecond, burst })
}
