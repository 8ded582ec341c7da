package dynamicinformer

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gvrkit/gvrkit/discovery"
)

// How a life asks discovery about its type, and how it waits until it is worth asking again.

// attend asks discovery about the type until it is served, for an informer that is run
// by hand. One that the factory runs is followed.
func (l *life) attend(ctx context.Context) {
	l.mu.Lock()
	followed := l.followed
	l.mu.Unlock()
	if l.resolver != nil && !followed {
		l.ask(ctx, func() bool { return false })
	}
}

// follow asks discovery about the type as long as ctx lasts, and calls served each time
// that it is served.
func (l *life) follow(ctx context.Context, served func()) {
	l.mu.Lock()
	l.followed = true
	l.mu.Unlock()
	l.ask(ctx, func() bool {
		served()
		return true
	})
}

// ask asks discovery about the type, again when there is news of it, until ctx ends.
// Each time that it is served it calls served, which returns whether to go on. It waits
// here, for there may be many that do: what learn needs is not on the stack meanwhile.
func (l *life) ask(ctx context.Context, served func() bool) {
	backoff := newBackoff()
	expected := func() {}
	defer func() { expected() }()
	for {
		pending := l.pending()
		err := l.learn(ctx)
		if ctx.Err() != nil {
			return
		}
		expected()
		var told bool
		if err == nil {
			if !served() {
				return
			}
			told = l.awaitServed(ctx)
		} else {
			expected = l.resolver.Expect()
			told = l.awaitFor(ctx, l.pause(err, &backoff), pending)
		}
		if ctx.Err() != nil {
			return
		}
		if told || err == nil {
			backoff = newBackoff()
		}
	}
}

// learn asks discovery once, and tells the source what that means, unless ctx has ended.
func (l *life) learn(ctx context.Context) error {
	res, err := l.versions.resolve(ctx, l.resolver, l.gvr)
	if ctx.Err() == nil {
		l.settle(res, err)
	}
	return err
}

// awaitServed waits for news of a type that is served. While it answers NotFound all the
// same, a resolver that has to poll is made to do so more often.
func (l *life) awaitServed(ctx context.Context) (told bool) {
	l.mu.Lock()
	doubt := l.doubt
	l.mu.Unlock()
	left := doubtFor - time.Since(doubt)
	if left <= 0 {
		return l.await(ctx, nil)
	}
	defer l.resolver.Expect()()
	timer := time.NewTimer(left)
	defer timer.Stop()
	return l.await(ctx, timer.C)
}

// notFound is told that a request for the type was answered so. It does not block.
func (l *life) notFound() {
	if l.resolver == nil {
		return
	}
	l.mu.Lock()
	l.doubt = time.Now()
	l.mu.Unlock()
	l.look()
}

// await waits for news, which it reports, for elapsed or for the end of ctx.
func (l *life) await(ctx context.Context, elapsed <-chan time.Time) (told bool) {
	select {
	case <-l.news:
		return true
	case <-elapsed:
	case <-ctx.Done():
	}
	return false
}

// awaitFor waits for news, or for another reason than pending why the type is not served,
// for d.
func (l *life) awaitFor(ctx context.Context, d time.Duration, pending string) (told bool) {
	end := time.Now().Add(d)
	for {
		timer := time.NewTimer(min(time.Until(end), wait.Jitter(lookEvery, 0.1)))
		told = l.await(ctx, timer.C)
		timer.Stop()
		if told || ctx.Err() != nil || !time.Now().Before(end) || l.pending() != pending {
			return told
		}
	}
}

// pending returns why a CRD that is there is not served; empty if none is.
func (l *life) pending() string {
	if err := l.resolver.Pending(l.gvr.GroupResource()); err != nil {
		return err.Error()
	}
	return ""
}

// newBackoff is how often a resolver is asked that does not run: 1, 2, 4 … 30 s.
func newBackoff() wait.Backoff {
	return wait.Backoff{Duration: time.Second, Factor: 2, Jitter: 0.1, Steps: 10, Cap: 30 * time.Second}
}

const (
	// lookEvery is how often it is looked whether a CRD is there that is not served, of
	// which a resolver does not tell. It costs next to nothing.
	lookEvery = 2 * time.Second
	// doubtFor is how long a NotFound lasts that discovery does not explain.
	doubtFor = 30 * time.Second
	// askEvery is how often a resolver is asked that runs and tells what is new.
	askEvery = 10 * time.Minute
)

// pause returns how long to wait for news before asking again, after err.
func (l *life) pause(err error, backoff *wait.Backoff) time.Duration {
	if inconclusive, is := errors.AsType[*discovery.InconclusiveError](err); is {
		return max(backoff.Step(), time.Until(inconclusive.Again))
	}
	if !l.resolver.Status().Running {
		return backoff.Step()
	}
	if l.missing() {
		return wait.Jitter(absentFor, 0.1)
	}
	return wait.Jitter(askEvery, 0.1)
}
