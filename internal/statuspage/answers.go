package statuspage

import (
	"context"
	"errors"
	"sync"
	"time"
)

// keep is how long an answer is used for equal requests.
const keep = 500 * time.Millisecond

// answersAtMost is the maximum number of stored answers. Other requests create their own answer.
const answersAtMost = 64

// errNoAnswer is returned to requests that wait for an answer if its creation has panicked.
var errNoAnswer = errors.New("an internal error occurred; repeat the request")

// answers are the recent answers, by request. If there are equal requests at the same time, the
// goroutine of one creates the answer, and the others wait for it. The zero value is ready.
type answers[T any] struct {
	// mu guards the map. It is not held during the creation, the wait for, or the reading of an answer.
	mu  sync.Mutex
	all map[string]*answer[T]
}

// answer is one answer. The fields after made may be read once made is closed.
type answer[T any] struct {
	made  chan struct{}
	value T
	until time.Time
	err   error
}

// get returns the answer to key, and the time until which it is stored. If there is no stored answer,
// it calls produce. It waits at most until ctx ends. The context of produce does not end with ctx, since
// other requests may wait for the answer.
func (a *answers[T]) get(ctx context.Context, key string, produce func(context.Context) (T, time.Time, error)) (T, time.Time, error) {
	mine, there := a.find(key)
	if !there {
		mine.produce(context.WithoutCancel(ctx), produce)
		return mine.value, mine.until, mine.err
	}
	select {
	case <-mine.made:
		return mine.value, mine.until, mine.err
	case <-ctx.Done():
		var none T
		return none, time.Time{}, ctx.Err()
	}
}

// find returns the answer to key, and whether another request creates or has created it.
func (a *answers[T]) find(key string) (found *answer[T], there bool) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for other, answer := range a.all {
		if answer.outdated(now) {
			delete(a.all, other)
		}
	}
	if found := a.all[key]; found != nil {
		return found, true
	}
	found = &answer[T]{made: make(chan struct{})}
	if len(a.all) < answersAtMost {
		if a.all == nil {
			a.all = map[string]*answer[T]{}
		}
		a.all[key] = found
	}
	return found, false
}

// outdated reports whether the answer has been created and must no longer be used.
func (a *answer[T]) outdated(now time.Time) bool {
	select {
	case <-a.made:
		return a.err != nil || !now.Before(a.until)
	default:
		return false
	}
}

// produce creates the answer. If it panics, the waiting requests get an error.
func (a *answer[T]) produce(ctx context.Context, by func(context.Context) (T, time.Time, error)) {
	a.err = errNoAnswer
	defer close(a.made)
	a.value, a.until, a.err = by(ctx)
}
