package follow

import (
	"context"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
)

const (
	// stopPatience is how long the deletion of a type's objects may make no progress before the
	// lease is released.
	stopPatience = 10 * time.Second
	// firstLook and longestLook are the limits of the interval between checks of the progress,
	// which doubles.
	firstLook   = 5 * time.Millisecond
	longestLook = 100 * time.Millisecond
)

// awaitDeletion waits until l can be released. It reports false if l must no longer be released.
func (f *Follower) awaitDeletion(ctx context.Context, t *followed, l Lease) bool {
	var (
		look     = firstLook
		last     = Deletion{}
		progress = time.Now()
	)
	for {
		changed := l.Changed()
		f.mu.Lock()
		end, ending := t.end, f.ending
		f.mu.Unlock()
		switch {
		case ending:
			return true
		case end == nil:
			return false
		}
		now := l.Deletion(*end)
		if now.Objects != last.Objects || now.Delivered != last.Delivered || now.Phase != DeletionRunning {
			last, progress, look = now, time.Now(), firstLook
		}
		if now.Phase == DeletionDone || time.Since(progress) >= stopPatience {
			return true
		}
		pause := recheckEvery
		if now.Phase == DeletionRunning {
			pause, look = look, min(2*look, longestLook)
		}
		timer := time.NewTimer(pause)
		select {
		case <-t.changed:
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// stop releases the lease of t and calls Stopped, if there is still a reason.
func (f *Follower) stop(ctx context.Context, t *followed, l Lease) {
	f.mu.Lock()
	if t.end == nil && !f.ending {
		f.mu.Unlock()
		return
	}
	var evidence discovery.Evidence
	if t.end != nil && (t.end.Kind != discovery.NotListed || !f.ending) {
		evidence = *t.end
	}
	res := t.res
	t.held, t.lease, t.end = false, nil, nil
	f.mu.Unlock()
	l.Release()
	if f.Stopped != nil {
		f.Stopped(res, evidence)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaveLocked(ctx)
}
