package typestate

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/typefacts"
)

// Run asks discovery about the type, and again whenever there is news of it, until ctx ends.
// Each time that the type is served it calls served.
func (s *State) Run(ctx context.Context, served func()) {
	s.mu.Lock()
	s.runs = true
	s.mu.Unlock()
	s.ask(ctx, func() bool {
		served()
		return true
	})
}

// AskUntilServed asks discovery about the type until it is served or ctx ends, for an informer that
// its user runs. It returns at once if Run runs, or without discovery.
func (s *State) AskUntilServed(ctx context.Context) {
	s.mu.Lock()
	runs := s.runs
	s.mu.Unlock()
	if s.cfg.Resolver != nil && !runs {
		s.ask(ctx, func() bool { return false })
	}
}

const (
	// askRate and askBurst bound how often news has discovery asked at once. A type that
	// changes more often is asked about at that rate.
	askRate, askBurst = 5, 10
	// askEvery is how often a resolver is asked that runs, though it tells what is new.
	askEvery = 10 * time.Minute
	// lookEvery is how often Pending is read, of whose changes a resolver has no event. It
	// costs no request.
	lookEvery = 2 * time.Second
	// doubtFor is how long a NotFound keeps a resolver polling that discovery does not explain.
	doubtFor = 30 * time.Second
)

// inquiry is one call of ask. What it keeps from one question to the next is here and not on the
// stack of ask, which waits: there may be thousands that do.
type inquiry struct {
	*State
	served  func() (goOn bool) // called each time that the type is served
	limiter flowcontrol.RateLimiter
	backoff wait.Backoff
	stop    func() // ends the expectation of the type, if there is one

	until   time.Time // when to ask again without news; zero is never
	looks   bool      // asks as soon as Pending differs from pending
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
	q.pending = q.isPending()
	err := q.learn(ctx)
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
	// While requests for a type that is served are answered NotFound, a resolver that polls is made
	// to do so more often.
	q.until, q.looks = q.doubtedSince().Add(doubtFor), false
	doubted := time.Now().Before(q.until)
	if !doubted {
		q.until = time.Time{}
	}
	q.expects(doubted)
	return true
}

// expects lets the resolver expect the type, or no longer.
func (q *inquiry) expects(expected bool) {
	stop := q.stop
	q.stop = nil
	if expected {
		q.stop = q.facts().Expect(q.cfg.GVR.GroupResource())
	}
	if stop != nil {
		stop() // after Expect, for which the type is then the same as before
	}
}

// elapsed returns a channel that tells when to look again; nil is never.
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

// due reports, when the timer has ended, whether to ask now.
func (q *inquiry) due() bool {
	return !time.Now().Before(q.until) || q.looks && q.isPending() != q.pending
}

// facts returns what the resolver tells this module alone.
func (s *State) facts() typefacts.Facts { return typefacts.Of(s.cfg.Resolver) }

// learn asks discovery once and keeps the answer, unless ctx has ended.
func (s *State) learn(ctx context.Context) error {
	heard := s.asking()
	res, err := s.cfg.Resolve(ctx)
	if ctx.Err() == nil {
		s.answered(heard, res, err)
	}
	return err
}

// doubtedSince returns when a request was last answered NotFound that discovery does not explain.
// A snapshot would take as much of the stack as all else of a goroutine that waits.
func (s *State) doubtedSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.doubt
}

// isPending returns why a CRD that exists is not served; empty if none is.
func (s *State) isPending() string {
	if err := s.facts().Pending(s.cfg.GVR.GroupResource()); err != nil {
		return err.Error()
	}
	return ""
}

// newBackoff is how often a resolver is asked that does not run: 1, 2, 4 … 30 s.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 30 * time.Second}
}

// pause returns how long to wait for news before discovery is asked again, after err.
func (s *State) pause(err error, backoff *wait.Backoff) time.Duration {
	if inconclusive, is := errors.AsType[*discovery.InconclusiveError](err); is {
		return max(backoff.Step(), time.Until(inconclusive.Again))
	}
	if !s.cfg.Resolver.Status().Running {
		return backoff.Step()
	}
	if now := s.Snapshot(); !now.denied.IsZero() && now.Evidence.Kind == "" {
		return wait.Jitter(absentFor, 0.1)
	}
	return wait.Jitter(askEvery, 0.1)
}
