package discovery

import "time"

// WithPace makes a running resolver quick: awaited is how often it asks for what it
// awaits, polled how often after a minute of it, doubted how long what a document does
// not list any more is taken to be served. Otherwise it asks once an hour.
func WithPace(awaited, polled, doubted time.Duration) Option {
	return optionFunc(func(o *options) {
		o.pace = pace{
			awaited: awaited, patient: polled, settled: time.Hour, legacy: 1, doubted: doubted, hurry: time.Hour, persist: time.Hour,
			batch: time.Millisecond, gap: time.Millisecond, readAfter: 10 * time.Millisecond, first: 5 * time.Second, questions: 2 * time.Second,
		}
	})
}

// Waiting returns how many callers wait for documents.
func Waiting(r *Resolver) int { return r.documents.Callers(allGroups) }

// Wanted returns how many types are stored because callers wait for them, or have waited.
func Wanted(r *Resolver) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.wanted)
}

// WithForbiddenPace is how often a running resolver tries what is forbidden, however often it was refused.
func WithForbiddenPace(forbidden time.Duration) Option {
	return optionFunc(func(o *options) {
		o.watchPace.denied, o.watchPace.refused, o.watchPace.other = forbidden, forbidden, forbidden
	})
}

// WithGap is how long a running resolver leaves between requests.
func WithGap(gap time.Duration) Option {
	return optionFunc(func(o *options) { o.pace.gap = gap })
}

// WithUnknownRate bounds the requests about what a running resolver does not know.
func WithUnknownRate(perSecond float32, burst int) Option {
	return optionFunc(func(o *options) { o.unknownRate, o.unknownBurst = perSecond, burst })
}

// Idle reports whether what a running resolver has learned is known, and nothing is to be
// read.
func Idle(r *Resolver) bool {
	r.mu.Lock()
	l := r.live
	r.mu.Unlock()
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.news) == 0 && len(l.knowledge.dirty) == 0 && !l.knowledge.all && len(l.knowledge.unread) == 0
}

// Published identifies what a running resolver has made known last.
func Published(r *Resolver) any { return r.current.Load() }

// WithPatience is how long the first answer of a running resolver waits for the lists of CRDs
// and APIServices.
func WithPatience(patience time.Duration) Option {
	return optionFunc(func(o *options) { o.pace.first = patience })
}

// WithQuestionPatience is how long a question waits for the first snapshot of a running resolver.
func WithQuestionPatience(patience time.Duration) Option {
	return optionFunc(func(o *options) { o.pace.questions = patience })
}

// WithJitter makes all waits of a running resolver as long as a number below 1 says.
func WithJitter(number float64) Option {
	return optionFunc(func(o *options) {
		o.jitter = func(d time.Duration, factor float64) time.Duration {
			return d + time.Duration(number*factor*float64(d))
		}
	})
}
