package dynamicinformer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/informer"
)

// Shutdown stops all informers and waits until all their goroutines have ended, or until ctx ends. If it returns nil, no goroutine of the
// factory runs and no handler will be called again. Otherwise it returns a [*ShutdownError] with the resources whose handlers or requests have
// not returned. It may be called again to wait for them. The factory can't be started again.
func (f *Factory) Shutdown(ctx context.Context) error {
	f.lists.Close()
	f.close()
	f.mu.Lock()
	for _, entries := range f.running {
		for _, e := range entries {
			e.retireLocked()
		}
	}
	unhook := f.unhook
	f.mu.Unlock()
	if unhook != nil {
		unhook()
	}
	if err := checkContext(ctx); err != nil {
		return fmt.Errorf("dynamicinformer: shutdown: the informers have been stopped, and were not waited for: %w", err)
	}
	return f.drain(ctx)
}

// close prevents the start of informers, and ends the informers that have not been started.
func (f *Factory) close() {
	f.mu.Lock()
	if !closed(f.closing) {
		close(f.closing)
		f.removals.Close()
		for _, e := range f.entries {
			e.stopLinger()
			if e.phase == waiting {
				e.endLocked()
			}
		}
	}
	goesOn := false
	for _, entries := range f.running {
		for _, e := range entries {
			goesOn = !e.ending() || goesOn // ending retires e if the end of Start's context closes the factory
		}
	}
	if !goesOn {
		f.lists.Close()
	}
	f.stopResolverLocked()
	f.mu.Unlock()
}

// refuse returns why no handler can be added to the informer of e, which has not run.
func (f *Factory) refuse(e *entry) error {
	switch {
	case !closed(e.done):
		return nil
	case closed(f.closing):
		return ErrShutDown
	}
	return informer.ErrEnded
}

// drain waits until all goroutines have ended, or ctx ends. The factory has been closed.
func (f *Factory) drain(ctx context.Context) error {
	f.mu.Lock()
	running := slices.Concat(slices.Collect(maps.Values(f.running))...)
	f.mu.Unlock()
	var stuck []schema.GroupVersionResource
	for _, e := range running {
		select {
		case <-e.done:
		case <-ctx.Done():
			if !closed(e.done) {
				stuck = append(stuck, e.resource())
			}
		}
	}
	if stuck != nil {
		slices.SortFunc(stuck, func(a, b schema.GroupVersionResource) int { return strings.Compare(a.String(), b.String()) })
		return &ShutdownError{Running: stuck, Err: context.Cause(ctx)}
	}
	f.mu.Lock()
	resolver := f.resolver.done
	f.mu.Unlock()
	for _, done := range []<-chan struct{}{f.removals.Done(), resolver} { // both end soon
		if done == nil {
			continue
		}
		select {
		case <-done:
		case <-ctx.Done():
			if !closed(done) {
				return &ShutdownError{Err: context.Cause(ctx)}
			}
		}
	}
	return nil
}

// ShutdownError reports that goroutines of the factory had not ended when the context of Shutdown ended. It unwraps to the context's cause.
type ShutdownError struct {
	// Running are the resources of the informers that had not ended, sorted. It is empty if only discovery, or the removal of a handler, had not ended.
	Running []schema.GroupVersionResource
	// Err is the cause of the context's end.
	Err error
}

func (e *ShutdownError) Error() string {
	refs := make([]string, len(e.Running))
	for i, gvr := range e.Running {
		refs[i] = discovery.RefOf(gvr).String()
	}
	if len(refs) == 0 {
		return fmt.Sprintf("all informers have ended, discovery or the removal of an event handler has not: %v", e.Err)
	}
	return fmt.Sprintf("informers still running, an event handler or a request has not returned: %s: %v", strings.Join(refs, ", "), e.Err)
}

// Unwrap returns the cause.
func (e *ShutdownError) Unwrap() error { return e.Err }
