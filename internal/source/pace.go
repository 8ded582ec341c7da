package source

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	firstPause = 250 * time.Millisecond
	lastPause  = 30 * time.Second
	// resetAfter is the time without failures, beyond the last pause, after which the next failure
	// counts as the first. A watch that has lasted for this time has worked.
	resetAfter = 10 * time.Second
	// allowedAgain is the mean time until a forbidden namespace is listed again, if only those that are allowed count.
	allowedAgain = 5 * time.Minute
)

// pace is the back-off of failed requests: 0.25, 0.5, 1 … 30 s, with 20 % jitter, and not less
// than the pause that the server requests, unless limit ends it. Only one goroutine uses it.
//
// Only Retry and another generation of the type end a pause early. Another set of namespaces ends what
// forbidden has added. Other changes of a type may be reverted at once, and repeat.
//
// The reflector's back-off is not used: it can't be ended early, increases with unrelated
// restarts, and is at least 0.8 s.
type pace struct {
	backoff   wait.Backoff    // the next pauses, if last is not zero
	last      time.Duration   // the previous pause, without jitter; zero: the next failure is the first
	expired   bool            // the last failure was an expired version
	until     time.Time       // the end of the pause
	requested bool            // the server has requested the pause
	replaced  <-chan struct{} // closes when there are other namespaces than the forbidden ones; nil: never
	shorter   time.Time       // the end of the pause then
	of        int             // the generation of the type of the last request

	// retry closes when Retry is called or the set of namespaces changes, and asked when Retry is called, since the last request began. Its failure is
	// known before the pause begins. Nil: there was no request.
	retry, asked <-chan struct{}
}

// failed sets the next pause. Err may be nil, if a request has succeeded but its result can't be
// used. An expired version is the ordinary end of a watch, also after an outage: there is no pause,
// unless it happens again: failed reports whether it is that end. No failure ends an earlier pause: a list may be sent during the pause of a watch.
func (p *pace) failed(now time.Time, err error) (ordinary bool) {
	if now.Sub(p.until) > p.last+resetAfter {
		p.last, p.expired = 0, false
	}
	again := p.expired
	p.expired = expired(err)
	var pause time.Duration
	ordinary = p.expired && !again
	if !ordinary {
		pause = p.step()
	}
	p.requested, p.replaced = false, nil
	if seconds, asked := apierrors.SuggestsClientDelay(err); asked {
		wish := time.Duration(seconds) * time.Second
		if wish > pause {
			pause, p.requested = wait.Jitter(wish, 0.1), true
		}
	}
	if until := now.Add(pause); until.After(p.until) {
		p.until = until
	}
	return ordinary
}

// forbidden makes the pause longer after a forbidden list, which has failed. When replaced closes, the pause is as long as before, and the
// back-off goes on: sets may change often.
func (p *pace) forbidden(now time.Time, replaced <-chan struct{}) {
	if until := now.Add(wait.Jitter(allowedAgain-allowedAgain/10, 0.2)); until.After(p.until) {
		p.replaced, p.shorter, p.until = replaced, p.until, until
	}
}

// limit ends the pause at latest then, also if the server has requested a longer one.
func (p *pace) limit(latest time.Time) {
	if p.until.After(latest) {
		p.until, p.requested = latest, false
	}
}

// shorten ends what forbidden has added.
func (p *pace) shorten(now time.Time) {
	p.until, p.replaced = p.shorter, nil
	if p.until.Before(now) {
		p.until = now // the next failure is not the first
	}
}

// step returns the next pause of the back-off.
func (p *pace) step() time.Duration {
	if p.last == 0 {
		p.backoff = wait.Backoff{Duration: firstPause, Factor: 2, Jitter: 0.2, Steps: 10, Cap: lastPause}
	}
	p.last = p.backoff.Duration
	return p.backoff.Step()
}

// reset records that a watch has worked for long enough: the next failure is the first.
func (p *pace) reset() { p.last, p.expired = 0, false }

// slow reports whether the pause has reached its maximum.
func (p *pace) slow() bool { return p.last == lastPause }

// forGeneration ends the pause if generation differs from that of the last request.
func (p *pace) forGeneration(generation int) {
	if p.of != generation {
		p.of = generation
		p.hasten(time.Now())
	}
}

// hasten ends the pause, unless the server has requested it.
func (p *pace) hasten(now time.Time) {
	if !p.requested {
		p.last, p.expired, p.until = 0, false, now
	}
}

// await is wait before a request of g. Calls of Retry since the last request began end the pause, too.
func (p *pace) await(ctx context.Context, n news, g *gate) bool {
	if p.retry == nil {
		p.begins(g)
	}
	ready := p.wait(ctx, n, p.retry)
	if !ready && p.requested && isClosed(p.retry) {
		p.retry = g.retries.Next()
	}
	return ready
}

// begins is called when the waits before a request of g have ended.
func (p *pace) begins(g *gate) { p.retry, p.asked = g.retries.Next(), g.asked.Next() }

// wait waits for the end of the pause, which retry ends early. It reports false if there is news
// or another set of namespaces before, or if ctx ends.
func (p *pace) wait(ctx context.Context, n news, retry <-chan struct{}) bool {
	now := time.Now()
	if !now.Before(p.until) {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(p.until.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-retry:
	case <-p.replaced:
		p.shorten(time.Now())
		return false
	case <-n.changed:
		return false
	case <-n.reviewed:
		return false
	case <-n.listed:
		return false
	case <-ctx.Done():
		return false
	}
	p.hasten(time.Now())
	return !p.requested
}
