package source

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/inflight"
)

// outlet is the watch.Interface that a reflector reads. A function in a goroutine creates the
// events; the goroutine is counted in calls.
type outlet struct {
	events chan watch.Event
	cancel context.CancelFunc
}

// openOutlet runs body in a goroutine until it returns. Its context ends when the reflector
// stops the watch. Send passes an event and reports whether the reflector has received it.
func openOutlet(ctx context.Context, calls *inflight.Counter, body func(ctx context.Context, send func(watch.Event) bool)) (*outlet, error) {
	if !calls.Begin() {
		return nil, errClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	o := &outlet{events: make(chan watch.Event), cancel: cancel}
	go func() {
		defer calls.End()
		defer cancel()
		defer close(o.events)
		body(ctx, func(event watch.Event) bool {
			select {
			case o.events <- event:
				return true
			case <-ctx.Done():
				return false
			}
		})
	}()
	return o, nil
}

// ResultChan returns the channel of events. It is closed at the end.
func (o *outlet) ResultChan() <-chan watch.Event { return o.events }

// Stop ends the watch. It does not wait.
func (o *outlet) Stop() { o.cancel() }
