package discovery

import (
	"context"
	"sync"
	"time"
)

// flights let callers that ask the same at the same time share one answer. The context of
// one caller does not affect another: a flight ends early only when no caller waits for it
// any more, and the last to leave waits until it has ended.
type flights[K comparable, V any] struct {
	timeout time.Duration // of a flight

	mu     sync.Mutex // never held while asking
	flying map[K]*flight[V]
}

type flight[V any] struct {
	cancel  context.CancelFunc
	done    chan struct{} // closed once value and err are there
	value   V
	err     error
	waiting int  // guarded by flights.mu
	asked   bool // the question has been asked; guarded by flights.mu
}

// do returns what ask answers to key, and whether the question had been asked before
// do was called: then the answer may be older than the caller's question. The flight begins
// with admit, which may wait, and may refuse it; nil admits it at once.
func (f *flights[K, V]) do(ctx context.Context, key K, admit func(context.Context) error, ask func(context.Context) (V, error)) (value V, joined bool, err error) {
	if err := ctx.Err(); err != nil {
		return value, false, err
	}
	f.mu.Lock()
	current, flies := f.flying[key]
	if !flies {
		current = f.takeOffLocked(ctx, key, admit, ask)
	}
	joined = flies && current.asked
	current.waiting++
	f.mu.Unlock()
	select {
	case <-current.done:
		f.leave(key, current)
		return current.value, joined, current.err
	case <-ctx.Done():
		if f.leave(key, current) {
			<-current.done
		}
		return value, joined, context.Cause(ctx)
	}
}

// takeOffLocked begins a flight in a goroutine that ends by itself. Caller holds f.mu.
func (f *flights[K, V]) takeOffLocked(ctx context.Context, key K, admit func(context.Context) error, ask func(context.Context) (V, error)) *flight[V] {
	flying, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.timeout)
	taken := &flight[V]{cancel: cancel, done: make(chan struct{})}
	if f.flying == nil {
		f.flying = map[K]*flight[V]{}
	}
	f.flying[key] = taken
	go func() {
		defer close(taken.done)
		defer cancel()
		if admit != nil {
			taken.err = admit(flying)
		}
		if taken.err == nil {
			f.mu.Lock()
			taken.asked = true
			f.mu.Unlock()
			taken.value, taken.err = ask(flying)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.flying[key] == taken {
			delete(f.flying, key) // who asks from now on may want a newer answer
		}
	}()
	return taken
}

// leave takes one off those who wait, and reports whether it was the last; then the
// flight is cancelled and nobody joins it any more.
func (f *flights[K, V]) leave(key K, left *flight[V]) (last bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	left.waiting--
	if left.waiting > 0 {
		return false
	}
	left.cancel()
	if f.flying[key] == left {
		delete(f.flying, key)
	}
	return true
}
