package dynamicinformer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

// Shutdown ends all informers and waits until they and everything that they
// started has ended, or until ctx ends. Nil means that no goroutine of the factory
// is left and no handler will be called again. Otherwise the error, a
// [*ShutdownError], names the resources whose handlers or requests have not returned; a later
// call may find them done. The factory can't be started again.
func (f *Factory) Shutdown(ctx context.Context) error {
	f.close()
	f.mu.Lock()
	for _, entries := range f.running {
		for _, e := range entries {
			e.retireLocked()
		}
	}
	f.mu.Unlock()
	return f.drain(ctx)
}

// close lets no informer start any more, and ends those that have not been started.
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
	f.stopResolverLocked()
	unhook := f.unhook
	f.mu.Unlock()
	if unhook != nil {
		unhook()
	}
}

// drain waits until nothing runs, or ctx ends. The factory has been closed.
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
				stuck = append(stuck, e.gvr)
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
	for _, done := range []<-chan struct{}{f.removals.Done(), resolver} { // these end by themselves, and soon
		if done == nil {
			continue
		}
		select {
		case <-done:
		case <-ctx.Done():
			return &ShutdownError{Err: context.Cause(ctx)}
		}
	}
	return nil
}

// ShutdownError says that informers had not ended when Shutdown gave up waiting.
// It unwraps to the cause of that, such as context.DeadlineExceeded.
type ShutdownError struct {
	// Running are their resources, sorted.
	Running []schema.GroupVersionResource
	// Err is why Shutdown gave up.
	Err error
}

func (e *ShutdownError) Error() string {
	refs := make([]string, len(e.Running))
	for i, gvr := range e.Running {
		refs[i] = discovery.RefOf(gvr).String()
	}
	return fmt.Sprintf("informers still running, an event handler or a request has not returned: %s: %v", strings.Join(refs, ", "), e.Err)
}

// Unwrap returns the cause.
func (e *ShutdownError) Unwrap() error { return e.Err }
