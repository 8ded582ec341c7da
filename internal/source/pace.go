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
	// next failure to count as the first. A watch that has lasted for so long has worked.
	calm = 10 * time.Second
)

// pace says when to try again what has failed: after 0.25, 0.5, 1 … 30 s, with a
// fifth of jitter, and not before the server wants to be asked. It belongs to one
// goroutine.
//
// Nothing ends the pause early but Retry and another generation of the type. What else is
// learned of a type may change back at once, and as often as it is asked about.
//
// It is the stages' own. The reflector's can't be cut short, grows over restarts that
// have nothing to do with each other, and is not to be had before 0.8 s.
type pace struct {
	last  time.Duration // the pause before, without jitter
	until time.Time     // nothing is tried before
	firm  bool          // because the server said so
	of    int           // the generation of the type that was tried
}

// failed sets the next pause. Err may be nil, if what was tried is of no use though
// nothing went wrong. That a version has expired is the ordinary end of a watch, after which
// there is no pause, unless it happens again.
func (p *pace) failed(now time.Time, err error) {
	if now.Sub(p.until) > p.last+calm {
		p.last = 0
	}
	first := p.last == 0
	p.last = min(max(firstPause, 2*p.last), lastPause)
	pause := p.last + rand.N(p.last/5) //nolint:gosec // not a secret
	p.firm = false
	if first && expired(err) {
		pause = 0
	}
	if seconds, asked := apierrors.SuggestsClientDelay(err); asked {
		wish := time.Duration(seconds) * time.Second
		if wish > pause {
			pause, p.firm = wish+rand.N(wish/10+1), true //nolint:gosec // not a secret
		}
	}
	p.until = now.Add(pause)
}

// worked says that what was tried has worked for long enough: the next failure is the first.
func (p *pace) worked() { p.last = 0 }

// slow reports whether the pauses have become as long as they get.
func (p *pace) slow() bool { return p.last == lastPause }

// forGeneration makes the next try due if generation is not the one that was tried before.
func (p *pace) forGeneration(generation int) {
	if p.of != generation {
		p.of = generation
		p.hasten(time.Now())
	}
}

// hasten makes the next try due, unless the server has asked for the pause.
func (p *pace) hasten(now time.Time) {
	if !p.firm {
		p.last, p.until = 0, now
	}
}

// wait waits for the end of the pause, which retry hastens, and reports whether the pause is
// over. It is not if changed closes before, or if ctx has ended.
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
	case <-retry:
	case <-changed:
		return false
	case <-ctx.Done():
		return false
	}
	p.hasten(time.Now())
	return !p.firm
}
