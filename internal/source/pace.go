package source

import (
	"context"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	firstPause = 250 * time.Millisecond
	lastPause  = 30 * time.Second
	// calm is how long nothing must have failed, beyond the last pause, for the
	// next failure to count as the first.
	calm = 10 * time.Second
)

// pace says when to try again what has failed: after 0.25, 0.5, 1 … 30 s, with a
// fifth of jitter, and not before the server wants to be asked. It belongs to one
// goroutine.
//
// It is the stages' own. The reflector's can't be cut short, grows over restarts that
// have nothing to do with each other, and is not to be had before 0.8 s.
type pace struct {
	last  time.Duration // the pause before, without jitter
	until time.Time     // nothing is tried before
	firm  bool          // because the server said so
}

// failed sets the next pause. Err may be nil, if what was tried is of no use though
// nothing went wrong.
func (p *pace) failed(now time.Time, err error) {
	if now.Sub(p.until) > p.last+calm {
		p.last = 0
	}
	p.last = min(max(firstPause, 2*p.last), lastPause)
	pause := p.last + rand.N(p.last/5) //nolint:gosec // not a secret
	p.firm = false
	if seconds, asked := apierrors.SuggestsClientDelay(err); asked {
		wish := time.Duration(seconds) * time.Second
		if wish > pause {
			pause, p.firm = wish+rand.N(wish/10+1), true //nolint:gosec // not a secret
		}
	}
	p.until = now.Add(pause)
}

// breathe puts the next try off for as long as the first pause, however often.
func (p *pace) breathe(now time.Time) {
	if now.Add(firstPause).After(p.until) {
		p.until, p.firm = now.Add(firstPause), false
	}
}

// hasten makes the next try due, unless the server has asked for the pause.
func (p *pace) hasten(now time.Time) {
	if !p.firm {
		p.last, p.until = 0, now
	}
}

// wait waits for the end of the pause, or for one of the two that hasten it, and
// reports whether the pause is over. It is not if ctx has ended.
func (p *pace) wait(ctx context.Context, changed, retry <-chan struct{}) bool {
	now := time.Now()
	if !now.Before(p.until) {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(p.until.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-changed:
	case <-retry:
	case <-ctx.Done():
		return false
	}
	p.hasten(time.Now())
	return !p.firm
}
