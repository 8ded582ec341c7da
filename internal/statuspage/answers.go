package statuspage

import (
	"context"
	"errors"
	"sync"
	"time"
)

// keep is how long an answer is used for equal requests.
const keep = 500 * time.Millisecond

// answersAtMost is how many different answers are kept. Beyond those, each request makes its own.
const answersAtMost = 64

// errNoAnswer is returned to requests that waited for an answer if making it has panicked.
var errNoAnswer = errors.New("the answer could not be made; ask again")

// answers are the answers of the last moment, by request. Of equal requests at the same time, one
// makes the answer, in its own goroutine, and the others wait for it. The zero value is ready.
type answers[T any] struct {
	// mu guards the map. It is not held while an answer is made, waited for or read.
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

// get returns the answer to key: the one that is kept, or the one that produce makes, with the time
// until which it is kept. It waits no longer than ctx lasts. The context of produce does not end with
// ctx, since other requests may wait for the answer.
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

// find returns the answer to key, and whether another request makes or has made it.
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

// outdated reports whether the answer has been made and is not to be used any more.
func (a *answer[T]) outdated(now time.Time) bool {
	select {
	case <-a.made:
		return a.err != nil || !now.Before(a.until)
	default:
		return false
	}
}

// produce makes the answer. If that panics, the requests that wait get an error.
func (a *answer[T]) produce(ctx context.Context, by func(context.Context) (T, time.Time, error)) {
	a.err = errNoAnswer
	defer close(a.made)
	a.value, a.until, a.err = by(ctx)
}
