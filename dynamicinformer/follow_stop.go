package dynamicinformer

import (
	"context"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/source"
)

const (
	// stopPatience is how long a type that has gone may make no progress with the deletions of
	// its objects before its lease is released all the same.
	stopPatience = 10 * time.Second
	// stopLook is how often it is looked how far they are, at least.
	stopLook = 100 * time.Millisecond
)

// awaitEnd waits until l can be given back, and reports false if that is not to be any more.
func (w *follow) awaitEnd(ctx context.Context, t *followed, l *Lease) bool {
	var (
		look     = lookAgain
		left     = leftover{}
		progress = time.Now()
	)
	for {
		changed, news := t.changed.Next(), l.entry.changed.Next()
		w.mu.Lock()
		end, over := t.end, w.over
		w.mu.Unlock()
		switch {
		case over:
			return true
		case end == nil:
			return false
		}
		now, parting := l.parting(*end)
		if now != left || parting != partingLeaves {
			left, progress, look = now, time.Now(), lookAgain
		}
		if parting == partingOver || time.Since(progress) >= stopPatience {
			return true
		}
		pause := lookEvery
		if parting == partingLeaves {
			pause, look = look, min(2*look, stopLook)
		}
		timer := time.NewTimer(pause)
		select {
		case <-changed:
		case <-news:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// parting is how far a lease is whose type has gone.
type parting int

const (
	// partingStays: nobody knows that the objects are gone.
	partingStays parting = iota
	// partingLeaves: handlers are about to be told of their deletion.
	partingLeaves
	// partingOver: there is nothing left to be told.
	partingOver
)

// leftover is what is left to be told: as long as that changes, it goes on.
type leftover struct {
	objects   int
	delivered uint64
}

// parting returns how far l is, whose type has gone by that evidence.
func (l *Lease) parting(end discovery.Evidence) (leftover, parting) {
	e := l.entry
	if end.Kind != discovery.CRDDeleted && end.Kind != discovery.NotListed {
		return leftover{}, partingOver // its objects are still there
	}
	now := e.state.Snapshot()
	gone, state := now.Ended(end), now.Given
	delivered, waiting := e.informer.informer.handlers.Progress(l.handlers)
	left := leftover{state.Objects, delivered}
	emptied := state.Objects == 0 || state.Generation == now.Generation && now.Serving != source.Gone
	switch {
	case l.released.Load(), closed(e.done), !e.hasSynced() && state.Objects == 0:
		return left, partingOver
	case !gone && end.Kind == discovery.NotListed:
		return left, partingStays
	case gone && (l.factory.keepsCache(e) || emptied && !waiting):
		return left, partingOver
	}
	return left, partingLeaves
}

// keepsCache reports whether e keeps the objects of a type that has gone.
func (f *Factory) keepsCache(e *entry) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return e.settings.removal == KeepCache
}
