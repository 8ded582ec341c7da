package typestate

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/typefacts"
)

// Run asks discovery about the type, and again after each event of it, until ctx ends. Each time that the type is served, it calls served.
func (s *State) Run(ctx context.Context, served func()) {
	s.setRuns(true)
	defer s.setRuns(false)
	s.ask(ctx, func() bool {
		served()
		return true
	})
}

// AskUntilServed asks discovery about the type until it is served or ctx ends. It is for an informer
// that a user runs without the factory. It returns at once if Run runs, or without discovery.
func (s *State) AskUntilServed(ctx context.Context) {
	s.mu.Lock()
	runs := s.runs
	s.mu.Unlock()
	if s.cfg.Resolver != nil && !runs {
		s.ask(ctx, s.isAbsent) // an answer may have been out of date
	}
}

const (
	// askRate and askBurst limit how often events lead to a question to discovery.
	askRate, askBurst = 5, 10
	// askEvery is the interval of questions to a resolver that runs, in addition to its events.
	askEvery = 10 * time.Minute
	// lookEvery is the interval of reads of Pending, for whose changes a resolver has no event. A read sends no request.
	lookEvery = 2 * time.Second
)

// inquiry is one call of ask. Its values are here and not on the stack of ask, since thousands of goroutines may wait in ask.
type inquiry struct {
	*State
	served  func() (goOn bool) // called each time that the type is served
	limiter flowcontrol.RateLimiter
	backoff wait.Backoff
	stop    func() // ends the expectation of the type; nil: there is none

	until   time.Time // the time of the next question without an event; zero: never
	looks   bool      // asks when Pending differs from pending
	pending string
}

// ask asks discovery until ctx ends or served returns false.
func (s *State) ask(ctx context.Context, served func() (goOn bool)) {
	q := &inquiry{State: s, served: served, limiter: flowcontrol.NewTokenBucketRateLimiter(askRate, askBurst), backoff: newBackoff()}
	defer q.expects(false)
	for q.limiter.Wait(ctx) == nil && q.once(ctx) {
		for again := false; !again; {
			select {
			case <-s.news:
				q.backoff, again = newBackoff(), true
			case <-q.elapsed():
				again = q.due()
			case <-ctx.Done():
				return
			}
		}
	}
}

// once asks discovery once, and reports whether to ask again.
func (q *inquiry) once(ctx context.Context) (goOn bool) {
	q.pending = q.whyPending()
	err := q.update(ctx)
	if ctx.Err() != nil {
		return false
	}
	if err != nil {
		q.until, q.looks = time.Now().Add(q.pause(err, &q.backoff)), true
		q.expects(true)
		return true
	}
	if !q.served() {
		return false
	}
	q.backoff = newBackoff()
	var doubted bool
	q.until, doubted = q.nextQuestion()
	q.looks = false
	q.expects(doubted)
	return true
}

// expects starts or ends the expectation of the type.
func (q *inquiry) expects(expected bool) {
	stop := q.stop
	q.stop = nil
	if expected {
		q.stop = q.facts().Expect(q.groupResource())
	}
	if stop != nil {
		stop() // after Expect, so that the expectation has no gap
	}
}

// elapsed returns a channel that receives a value at the time of the next check; nil: never.
func (q *inquiry) elapsed() <-chan time.Time {
	switch {
	case q.until.IsZero():
		return nil
	case q.looks:
		return time.After(min(time.Until(q.until), wait.Jitter(lookEvery, 0.1)))
	default:
		return time.After(time.Until(q.until))
	}
}

// due reports whether to ask now. It is called after the timer has ended.
func (q *inquiry) due() bool {
	return !time.Now().Before(q.until) || q.looks && q.whyPending() != q.pending
}

// facts returns the resolver's facts for this module.
func (s *State) facts() typefacts.Facts { return typefacts.Of(s.cfg.Resolver) }

// update asks discovery once and stores the answer, unless ctx has ended.
func (s *State) update(ctx context.Context) error {
	seen := s.eventsSoFar()
	res, err := s.cfg.Resolve(ctx)
	replaced := err != nil && s.hasSuccessor(ctx)
	if ctx.Err() == nil {
		s.answered(seen, res, err, replaced)
	}
	return err
}

// newBackoff returns the back-off of questions to a resolver that does not run: 1, 2, 4 … 30 s.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 30 * time.Second}
}

// pause returns how long to wait for an event before the next question to discovery, after err.
func (s *State) pause(err error, backoff *wait.Backoff) time.Duration {
	if inconclusive, is := errors.AsType[*discovery.InconclusiveError](err); is {
		return max(backoff.Step(), time.Until(inconclusive.Again))
	}
	if !s.cfg.Resolver.Status().Running {
		return backoff.Step()
	}
	switch now := s.Snapshot(); {
	case now.Evidence.Kind == discovery.CRDDeleted && now.Serving == source.Held:
		return max(0, successorFor-now.At.Sub(now.Evidence.At))
	case !now.denied.IsZero() && now.Evidence.Kind == "":
		return wait.Jitter(absentFor, 0.1)
	}
	return wait.Jitter(askEvery, 0.1)
}

// doubtFor is how long a resolver polls more often after a failure that discovery does not explain.
const doubtFor = 30 * time.Second

// nextQuestion returns the time of the next question about a served type without an event, zero if there is none,
// and whether the type is in doubt: while requests for it are NotFound, or since its watches are refused, a resolver
// that polls must poll more often. A call of Snapshot would double the stack of a waiting goroutine.
func (s *State) nextQuestion() (at time.Time, doubted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if until := s.now.doubt.Add(doubtFor); time.Now().Before(until) {
		at, doubted = until, true
	}
	if settled := s.now.settles(time.Now()); !settled.IsZero() && (at.IsZero() || settled.Before(at)) {
		at = settled
	}
	return at, doubted
}

// whyPending returns why an existing CRD is not served, or "" if there is no such CRD.
func (s *State) whyPending() string {
	if err := s.facts().Pending(s.groupResource()); err != nil {
		return err.Error()
	}
	return ""
}
