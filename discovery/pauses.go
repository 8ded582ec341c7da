package discovery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
)

const (
	// maxPause is the longest pause that a server's Retry-After makes.
	maxPause = 10 * time.Minute
	// firstBackoff is how long a path is not asked for after it has failed twice in a row. It
	// doubles with each failure, up to maxBackoff. One failure may be tried again at once.
	firstBackoff = 50 * time.Millisecond
	maxBackoff   = time.Second
	// forgetAfter is how long after its pause a path still counts as failing.
	forgetAfter = 10 * time.Second
	// maxPaused is how many paths are remembered. Of more, any are forgotten: they are asked
	// for too early, once each.
	maxPaused = 4096
)

// pauses are the paths of a server that are not asked for at present: the server has sent
// Retry-After, or asking has failed several times in a row. The zero value has none.
type pauses struct {
	mu    sync.Mutex // never held over a request
	paths map[string]*pauseError
	// look is when it is worth looking for paths to forget.
	look time.Time
}

// pauseError is what a path answers until then.
type pauseError struct {
	until   time.Time
	asked   time.Time        // when the server was last asked
	wanted  bool             // the server has sent Retry-After
	backoff utilwait.Backoff // after the next failures
	err     error
}

func (e *pauseError) Error() string {
	if !e.wanted {
		return e.err.Error()
	}
	return fmt.Sprintf("%v (not asked again before %s, as the server wants)", e.err, e.until.Format(time.RFC3339))
}

func (e *pauseError) Unwrap() error { return e.err }

// pausedUntil returns when what err says can be asked for again, if err consists of pauses
// alone: then nothing was asked for.
func pausedUntil(err error) (until time.Time, paused bool) {
	causes := []error{err}
	if several, is := errors.AsType[*causesError](err); is {
		causes = several.errs
	}
	for _, cause := range causes {
		pause, is := errors.AsType[*pauseError](cause)
		if !is {
			return time.Time{}, false
		}
		if until.IsZero() || pause.until.Before(until) {
			until = pause.until
		}
	}
	return until, true
}

// of returns the error of a path that is not to be asked for yet, or nil.
func (p *pauses) of(path string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if paused := p.paths[path]; paused != nil && time.Now().Before(paused.until) {
		return paused
	}
	return nil
}

// settle takes how a request for a path has ended.
func (p *pauses) settle(path string, err error) {
	if paused, is := errors.AsType[*pauseError](err); is && paused != nil {
		return // there was none
	}
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsNotAcceptable(err):
		delete(p.paths, path)
		return
	case errors.Is(err, context.Canceled): // by the callers: it says nothing of the server
		return
	}
	next := &pauseError{asked: now, err: err, backoff: newBackoff(firstBackoff, maxBackoff)}
	last, known := p.paths[path]
	if known {
		next.backoff = last.backoff
		next.until = now.Add(next.backoff.Step())
	}
	if after, wanted := apierrors.SuggestsClientDelay(err); wanted && after > 0 {
		next.wanted = true
		next.until = now.Add(min(time.Duration(after)*time.Second, maxPause))
	}
	if !known {
		p.makeRoomLocked(now)
	}
	if p.paths == nil {
		p.paths = map[string]*pauseError{}
	}
	p.paths[path] = next
}

// makeRoomLocked forgets a path if there are maxPaused: all those that are over, if there can
// be any, or else one of the others. Caller holds p.mu.
func (p *pauses) makeRoomLocked(now time.Time) {
	if len(p.paths) < maxPaused {
		return
	}
	if !now.Before(p.look) {
		p.look = now.Add(forgetAfter)
		for path, paused := range p.paths {
			if now.Sub(paused.until) > forgetAfter && now.Sub(paused.asked) > forgetAfter {
				delete(p.paths, path)
			}
		}
	}
	for path := range p.paths {
		if len(p.paths) < maxPaused {
			return
		}
		delete(p.paths, path)
	}
}
