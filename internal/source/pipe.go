package source

import (
	"context"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/inflight"
)

// pipe is a watch.Interface for a reflector, or for the watch of a set of namespaces. A function in a goroutine creates the
// events; the goroutine is counted in calls.
type pipe struct {
	events chan watch.Event
	cancel context.CancelFunc
}

// openPipe runs body with ctx in a goroutine until it returns. Cancel must end ctx: it is called when the reader
// stops the watch, and at the end. Send passes an event and reports whether the reader has received it.
func openPipe(ctx context.Context, cancel context.CancelFunc, calls *inflight.Counter, body func(ctx context.Context, send func(watch.Event) bool)) (*pipe, error) {
	if !calls.Begin() {
		cancel()
		return nil, errClosed
	}
	o := &pipe{events: make(chan watch.Event), cancel: cancel}
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
func (o *pipe) ResultChan() <-chan watch.Event { return o.events }

// Stop ends the watch. It does not wait.
func (o *pipe) Stop() { o.cancel() }
