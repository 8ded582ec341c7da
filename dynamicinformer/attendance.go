package dynamicinformer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/gvrkit/gvrkit/discovery"
)

// attendance is a factory's part in discovery: it keeps the resolver running while
// informers do, and tells their entries what happens to their types.
type attendance struct {
	cancel context.CancelFunc
	done   chan struct{}
}

// attendLocked begins it, if there is discovery. Values of ctx are used, and not its end:
// it goes on until the last informer has ended. The caller holds f.mu.
func (f *Factory) attendLocked(ctx context.Context) {
	if f.options.resolver == nil || f.attendance != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a := &attendance{cancel: cancel, done: make(chan struct{})}
	f.attendance = a
	before := slices.Clone(f.dismissed)
	go func() {
		defer close(a.done)
		for _, done := range before { // it may run the resolver still, but not for long
			<-done
		}
		f.attend(ctx)
	}()
}

// dismissLocked ends it if no informer runs, and none is about to. The caller holds f.mu.
func (f *Factory) dismissLocked() {
	idle := len(f.running) == 0 && (f.life == nil || closed(f.closing))
	if !idle || f.attendance == nil {
		return
	}
	f.attendance.cancel()
	f.dismissed = append(slices.DeleteFunc(f.dismissed, closed), f.attendance.done)
	f.attendance = nil
}

// runAgain is how long to wait for another who runs the resolver.
const runAgain = 5 * time.Second

func (f *Factory) attend(ctx context.Context) {
	resolver := f.options.resolver
	var running sync.WaitGroup
	running.Go(func() {
		for errors.Is(resolver.Run(ctx), discovery.ErrRunning) && pause(ctx, runAgain) {
		}
	})
	for event := range resolver.Subscribe(ctx) {
		for _, e := range f.entriesOf(event) {
			e.state.Heard(event)
		}
	}
	running.Wait()
}

// entriesOf returns those whose type event is about.
func (f *Factory) entriesOf(event discovery.Event) []*entry {
	gr := event.Resource.GVR.GroupResource()
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*entry(nil), f.types[gr]...)
}

// pause waits for d, and reports whether ctx lasted for so long.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
