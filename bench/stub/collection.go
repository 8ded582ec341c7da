package stub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/bench/objects"
)

// lead is how many events a change may be ahead of a watch.
const lead = 512

var errExpired = errors.New("the resource version is too old")

// form says how much of an object a client asks for.
type form int

const (
	whole form = iota
	metadataOnly
)

// item is an object, encoded in both forms. Its bytes never change.
type item struct {
	name string
	text [2][]byte
}

// newItem encodes an object.
func newItem(name string, object map[string]any) (i item, err error) {
	i.name = name
	if i.text[whole], err = json.Marshal(object); err != nil {
		return i, err
	}
	i.text[metadataOnly], err = json.Marshal(map[string]any{
		"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"],
	})
	return i, err
}

type event struct {
	kind watch.EventType
	of   item
}

// subscription is the queue of one watch.
type subscription struct {
	events chan event
	gone   <-chan struct{} // closed when nothing reads events any more
}

// collection is the present objects of one resource. It is safe for concurrent use, but for
// changes, which are made one at a time.
type collection struct {
	gvk schema.GroupVersionKind

	// mu guards the fields below. It is never held while writing to a client or a watch.
	mu      sync.Mutex
	version int64 // of the last change
	items   []item
	watches map[*subscription]struct{}
	watched chan struct{} // closed when there is a first watch
}

// newCollection returns a collection whose items have the first resource versions.
func newCollection(gvk schema.GroupVersionKind, items []item) *collection {
	return &collection{
		gvk: gvk, items: items, version: objects.Version(len(items) - 1),
		watches: map[*subscription]struct{}{}, watched: make(chan struct{}),
	}
}

// change makes one change, with the next resource version, and sends its event to all watches.
// It returns when the event was made. make runs with mu held.
func (c *collection) change(ctx context.Context, make func(version int64) (event, error)) (at time.Time, err error) {
	c.mu.Lock()
	e, err := make(c.version + 1)
	if err == nil {
		c.version++
	}
	watches := slices.Collect(maps.Keys(c.watches))
	c.mu.Unlock()
	at = time.Now()
	for _, w := range watches {
		if err != nil {
			break
		}
		select {
		case w.events <- e:
		case <-w.gone:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return at, err
}

// put adds or replaces an object. object makes it, given its resource version.
func (c *collection) put(ctx context.Context, name string, object func(version string) map[string]any) (time.Time, error) {
	return c.change(ctx, func(version int64) (event, error) {
		i, err := newItem(name, object(objects.FormatVersion(version)))
		if at := c.indexLocked(name); at >= 0 {
			c.items[at] = i
			return event{watch.Modified, i}, err
		}
		c.items = append(c.items, i)
		return event{watch.Added, i}, err
	})
}

// remove deletes an object that exists.
func (c *collection) remove(ctx context.Context, name string, object func(version string) map[string]any) (time.Time, error) {
	return c.change(ctx, func(version int64) (event, error) {
		at := c.indexLocked(name)
		c.items = slices.Delete(c.items, at, at+1)
		i, err := newItem(name, object(objects.FormatVersion(version)))
		return event{watch.Deleted, i}, err
	})
}

func (c *collection) indexLocked(name string) int {
	return slices.IndexFunc(c.items, func(i item) bool { return i.name == name })
}

// update updates the object with this index.
func (c *collection) update(ctx context.Context, index int, counter string) error {
	_, err := c.change(ctx, func(version int64) (event, error) {
		i := &c.items[index]
		i.text[whole] = updated(i.text[whole], counter, version)
		return event{watch.Modified, *i}, nil
	})
	return err
}

// page returns limit items from offset on, all if limit is 0, the version, and how many items
// follow. Any other version than 0 and the present one is too old.
func (c *collection) page(version int64, offset, limit int) (items []item, present int64, left int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if version != 0 && version != c.version {
		return nil, 0, 0, errExpired
	}
	rest := c.items[min(offset, len(c.items)):]
	if limit > 0 && len(rest) > limit {
		left = len(rest) - limit
		rest = rest[:limit]
	}
	return slices.Clone(rest), c.version, left, nil
}

// subscribe begins a watch after version. A watch after version 0 begins with all items; any
// other version than the present one is too old, since no events are kept.
func (c *collection) subscribe(version int64, gone <-chan struct{}) (s *subscription, items []item, present int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if version == 0 {
		items = slices.Clone(c.items)
	} else if version != c.version {
		return nil, nil, 0, errExpired
	}
	s = &subscription{events: make(chan event, lead), gone: gone}
	if c.watches[s] = struct{}{}; len(c.watches) == 1 {
		close(c.watched)
	}
	return s, items, c.version, nil
}

// unsubscribe ends a watch.
func (c *collection) unsubscribe(s *subscription) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if delete(c.watches, s); len(c.watches) == 0 {
		c.watched = make(chan struct{})
	}
}

// waitForWatch waits until there is a watch.
func (c *collection) waitForWatch(ctx context.Context) error {
	c.mu.Lock()
	watched := c.watched
	c.mu.Unlock()
	select {
	case <-watched:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// updated returns a copy of the JSON of an object after an update: with another version, the
// next generation, and a counter incremented if there is one.
func updated(text []byte, counter string, version int64) []byte {
	// The keys are sorted: generation and resourceVersion of metadata precede all others.
	text = bytes.Clone(text)
	if at := valueAt(text, bytes.Index, "resourceVersion"); at >= 0 {
		copy(text[at+1:], objects.FormatVersion(version))
	}
	text = increment(text, valueAt(text, bytes.LastIndex, counter))
	return increment(text, valueAt(text, bytes.Index, "generation"))
}

// valueAt returns where the value of a key begins, or -1 without the key.
func valueAt(text []byte, index func(s, sep []byte) int, key string) int {
	mark := `"` + key + `":`
	if at := index(text, []byte(mark)); at >= 0 {
		return at + len(mark)
	}
	return -1
}

// increment adds one to the whole number at a place in text. It may change text.
func increment(text []byte, at int) []byte {
	var n int64
	if at < 0 {
		return text
	}
	if _, err := fmt.Sscanf(string(text[at:min(at+20, len(text))]), "%d", &n); err != nil {
		return text
	}
	return slices.Replace(text, at, at+len(fmt.Sprint(n)), fmt.Append(nil, n+1)...)
}
