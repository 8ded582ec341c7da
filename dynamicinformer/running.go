package dynamicinformer

import (
	"context"
	"slices"

	"github.com/gvrkit/gvrkit/discovery"
)

// startAll starts with ctx each entry for which wanted returns true, unless it has been started.
func (f *Factory) startAll(ctx context.Context, wanted func(e *entry) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.entries {
		if wanted(e) {
			f.startLocked(ctx, e)
		}
	}
}

// startLocked runs e, if it is waiting, in a goroutine that drain waits for. The caller holds f.mu. When the factory is closing, no entry is
// waiting. So drain, which is called after that, knows all goroutines.
func (f *Factory) startLocked(ctx context.Context, e *entry) {
	if e.phase != waiting {
		return
	}
	f.resolver.start(ctx, len(f.entries))
	own := e.startLocked(ctx)
	gr := e.events()
	f.running[gr] = append(f.running[gr], e)
	begun := f.resolver.begun()
	go func() {
		f.awaitResolver(own, begun)
		e.run(own, f.options.resolver != nil)
		e.pending.Close()
		<-e.pending.Done()
		f.ended(e)
	}()
}

// awaitResolver waits until begun closes, which is the result of resolverRunner.begun. The resolver then answers from memory and needs no request.
func (f *Factory) awaitResolver(ctx context.Context, begun <-chan struct{}) {
	if begun == nil {
		return
	}
	select {
	case <-begun:
	case <-f.closing:
	case <-ctx.Done():
	}
}

// ended is the last call of e's goroutine.
func (f *Factory) ended(e *entry) {
	f.mu.Lock()
	defer f.mu.Unlock()
	gr := e.events()
	f.running[gr] = slices.DeleteFunc(f.running[gr], func(other *entry) bool { return other == e })
	if len(f.running[gr]) == 0 {
		delete(f.running, gr)
	}
	f.stopResolverLocked()
	e.endLocked()
}

// stopResolverLocked stops the resolver if no informer runs and the factory is not started or is closing. The caller holds f.mu.
func (f *Factory) stopResolverLocked() {
	if len(f.running) == 0 && (f.ctx == nil || closed(f.closing)) {
		f.resolver.stop()
	}
}

// handle passes an event of the resolver to the informers on its type.
func (f *Factory) handle(event discovery.Event) {
	f.mu.Lock()
	entries := slices.Concat(f.running[event.Resource.GVR.GroupResource()], f.running[ofAllTypes])
	f.mu.Unlock()
	for _, e := range entries {
		if e.concerns(event) {
			e.state.HandleEvent(event)
		}
	}
}
