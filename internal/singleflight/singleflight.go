// Package singleflight lets concurrent callers with the same question share one request. Unlike
// golang.org/x/sync/singleflight, it has contexts: the context of one caller does not affect the
// others. The package does not know what the requests are.
package singleflight

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// Group shares requests by key. A request ends early only if no caller waits for it. The last caller
// that leaves cancels the request and waits for its end. The zero value has a timeout of zero: set
// Timeout before the first call of Do. A Group is safe for concurrent use.
type Group[K comparable, V any] struct {
	// Timeout is the timeout of a request, including the time that it waits for admission.
	Timeout time.Duration

	mu    sync.Mutex // not held during a request
	calls map[K]*call[V]
}

// call is one shared request.
type call[V any] struct {
	cancel  context.CancelFunc
	done    chan struct{} // closed when value, err and panic are set
	value   V
	err     error
	panic   *panicError // request or admit has panicked
	callers int         // that wait; guarded by Group.mu
	sent    bool        // the request has been sent; guarded by Group.mu
	limited bool        // the request waits for admission before it is sent
}

// Do returns the result of request for key. If a call for key is in progress, Do waits for its result.
// Joined reports whether the request had been sent before Do was called: then the result may be older
// than the call of Do. Before the request, admit is called, which may wait, and whose error is the
// result; nil admits the request at once, also if another one for key waits. If ctx ends first, Do returns
// the cause. If admit or request panics, Do panics in each caller that waits, with an error that has the
// stack of the request.
func (g *Group[K, V]) Do(ctx context.Context, key K, admit func(context.Context) error, request func(context.Context) (V, error)) (value V, joined bool, err error) {
	if ctx.Err() != nil {
		return value, false, context.Cause(ctx)
	}
	g.mu.Lock()
	current, inProgress := g.calls[key]
	inProgress = inProgress && (current.sent || !current.limited || admit != nil)
	if !inProgress {
		current = g.startLocked(ctx, key, admit, request)
	}
	joined = inProgress && current.sent
	current.callers++
	g.mu.Unlock()
	select {
	case <-current.done:
		g.leave(key, current)
		current.repanic()
		return current.value, joined, current.err
	case <-ctx.Done():
		if g.leave(key, current) {
			<-current.done
			current.repanic()
		}
		return value, joined, context.Cause(ctx)
	}
}

// Callers returns the number of callers that wait for the result for key.
func (g *Group[K, V]) Callers(key K) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if c := g.calls[key]; c != nil {
		return c.callers
	}
	return 0
}

// startLocked starts a call in a goroutine, which ends with the request. Caller holds g.mu.
func (g *Group[K, V]) startLocked(ctx context.Context, key K, admit func(context.Context) error, request func(context.Context) (V, error)) *call[V] {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), g.Timeout)
	c := &call[V]{cancel: cancel, done: make(chan struct{}), limited: admit != nil}
	if g.calls == nil {
		g.calls = map[K]*call[V]{}
	}
	g.calls[key] = c
	go func() {
		defer close(c.done)
		defer cancel()
		defer g.end(key, c)
		if admit != nil {
			c.err = admit(ctx)
		}
		if c.err == nil {
			g.mu.Lock()
			c.sent = true
			g.mu.Unlock()
			c.value, c.err = request(ctx)
		}
	}()
	return c
}

// end stores a panic of the request, and removes the call: later callers may need a newer result.
func (g *Group[K, V]) end(key K, ended *call[V]) {
	if value := recover(); value != nil {
		ended.panic = &panicError{value, debug.Stack()}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.calls[key] == ended {
		delete(g.calls, key)
	}
}

// repanic panics if the request has panicked.
func (c *call[V]) repanic() {
	if c.panic != nil {
		panic(c.panic)
	}
}

// panicError is the panic of a request.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("%v\n\n%s", e.value, e.stack) }

// Unwrap returns the value of the panic, if it is an error.
func (e *panicError) Unwrap() error {
	err, _ := e.value.(error)
	return err
}

// leave removes one caller from left, and reports whether it was the last one. Then the call is
// cancelled, and later callers do not join it.
func (g *Group[K, V]) leave(key K, left *call[V]) (last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	left.callers--
	if left.callers > 0 {
		return false
	}
	left.cancel()
	if g.calls[key] == left {
		delete(g.calls, key)
	}
	return true
}
