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

// ask asks discovery until ctx ends or served returns false, which is called each time that the
// type is served. It waits in this function: there may be thousands that do, and the stack that
// learn needs is not part of it.
func (s *State) ask(ctx context.Context, served func() (goOn bool)) {
	limiter := flowcontrol.NewTokenBucketRateLimiter(askRate, askBurst)
	backoff := newBackoff()
	expected := func() {}
	defer func() { expected() }()
	for limiter.Wait(ctx) == nil {
		pending := s.pending()
		err := s.learn(ctx)
		if ctx.Err() != nil {
			return
		}
		expected()
		var news bool
		if err == nil {
			if !served() {
				return
			}
			news = s.awaitServed(ctx)
		} else {
			expected = s.facts().Expect(s.cfg.GVR.GroupResource())
			news = s.awaitFor(ctx, s.pause(err, &backoff), pending)
		}
		if news || err == nil {
			backoff = newBackoff()
		}
	}
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

// awaitServed waits for news of a type that is served. While requests for it are answered
// NotFound all the same, a resolver that polls is made to do so more often.
func (s *State) awaitServed(ctx context.Context) (news bool) {
	left := doubtFor - time.Since(s.doubtedSince())
	if left <= 0 {
		return s.await(ctx, nil)
	}
	defer s.facts().Expect(s.cfg.GVR.GroupResource())()
	timer := time.NewTimer(left)
	defer timer.Stop()
	return s.await(ctx, timer.C)
}

// doubtedSince returns when a request was last answered NotFound that discovery does not explain.
// A snapshot would take as much of the stack as all else of a goroutine that waits.
func (s *State) doubtedSince() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now.doubt
}

// await waits for news, which it reports, for elapsed or for the end of ctx.
func (s *State) await(ctx context.Context, elapsed <-chan time.Time) (news bool) {
	select {
	case <-s.news:
		return true
	case <-elapsed:
	case <-ctx.Done():
	}
	return false
}

// awaitFor waits for d, for news, or until Pending differs from pending.
func (s *State) awaitFor(ctx context.Context, d time.Duration, pending string) (news bool) {
	end := time.Now().Add(d)
	for {
		timer := time.NewTimer(min(time.Until(end), wait.Jitter(lookEvery, 0.1)))
		news = s.await(ctx, timer.C)
		timer.Stop()
		if news || ctx.Err() != nil || !time.Now().Before(end) || s.pending() != pending {
			return news
		}
	}
}

// pending returns why a CRD that exists is not served; empty if none is.
func (s *State) pending() string {
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
