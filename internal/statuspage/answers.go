package statuspage

import (
	"context"
	"sync"
	"time"

	"github.com/gvrkit/gvrkit/internal/singleflight"
)

const (
	// keep is how long an answer is used for equal requests.
	keep = 500 * time.Millisecond
	// answersAtMost is the maximum number of stored answers. Others are used once, for the requests that wait.
	answersAtMost = 64
	// answerTimeout is the timeout of an answer. A Source does not block, so that it is not reached.
	answerTimeout = time.Minute
)

// answers are the recent answers, by request. Equal requests at the same time share one.
type answers[T any] struct {
	requests singleflight.Group[string, answer[T]]
	mu       sync.Mutex // guards the map; not held during the creation, the wait for, or the reading of an answer
	stored   map[string]answer[T]
}

// answer is one answer, and the time until which it is used.
type answer[T any] struct {
	value T
	until time.Time
}

func newAnswers[T any]() *answers[T] {
	a := &answers[T]{stored: map[string]answer[T]{}}
	a.requests.Timeout = answerTimeout
	return a
}

// get returns the answer to key, and the time until which it is stored. If there is no stored answer,
// it calls produce, or waits for a call in progress, until ctx ends. The context of produce ends only if
// no request waits. If produce panics, so does get, for each request that waits.
func (a *answers[T]) get(ctx context.Context, key string, produce func(context.Context) (T, time.Time, error)) (T, time.Time, error) {
	if found, there := a.find(key); there {
		return found.value, found.until, nil
	}
	made, _, err := a.requests.Do(ctx, key, nil, func(ctx context.Context) (made answer[T], err error) {
		if found, there := a.find(key); there { // created since the first look
			return found, nil
		}
		if made.value, made.until, err = produce(ctx); err == nil {
			a.store(key, made)
		}
		return made, err
	})
	return made.value, made.until, err
}

// find returns the stored answer to key.
func (a *answers[T]) find(key string) (found answer[T], there bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found, there = a.stored[key]
	return found, there && time.Now().Before(found.until)
}

// store stores an answer, if there is room, and removes those that are too old.
func (a *answers[T]) store(key string, made answer[T]) {
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for other, old := range a.stored {
		if !now.Before(old.until) {
			delete(a.stored, other)
		}
	}
	if len(a.stored) < answersAtMost {
		a.stored[key] = made
	}
}
