package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// collection is the objects of one resource and the events since the beginning. It is
// safe for concurrent use.
type collection struct {
	groupVersion, kind string

	// mu guards the fields below. It is never held while writing to a client.
	mu      sync.Mutex
	version int // of the last change
	items   []item
	events  []texts       // that of version v is at v-1
	more    chan struct{} // closed and replaced by each event
}

// item is an object, encoded.
type item struct {
	name string
	texts
}

// texts are an object or an event, encoded: in the form whole and in the form metadata.
type texts [2][]byte

// form is how much of its objects a client asks for.
type form int

const (
	whole form = iota
	metadata
)

// encode returns an object in both forms.
func encode(object map[string]any) (t texts, err error) {
	if t[whole], err = json.Marshal(object); err != nil {
		return t, err
	}
	t[metadata], err = json.Marshal(map[string]any{
		"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"],
	})
	return t, err
}

func newCollection(groupVersion, kind string) *collection {
	// A server with nothing in it has a version, too, and 0 stands for any.
	return &collection{groupVersion: groupVersion, kind: kind, version: 1, events: make([]texts, 1), more: make(chan struct{})}
}

// put adds an object or replaces it, sends the event, and returns when it did. object
// makes it, given its resource version.
func (c *collection) put(name string, object func(version string) map[string]any) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, err := encode(object(fmt.Sprint(c.version + 1)))
	if err != nil {
		return time.Time{}, err
	}
	kind := watch.Modified
	at, found := c.findLocked(name)
	if !found {
		kind = watch.Added
		c.items = slices.Insert(c.items, at, item{name: name})
	}
	c.items[at].texts = text
	return c.sendLocked(kind, text), nil
}

// remove takes an object away, sends the event, and returns when it did; the zero time
// if there is no such object. object makes what the event tells of it.
func (c *collection) remove(name string, object func(version string) map[string]any) (time.Time, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, found := c.findLocked(name)
	if !found {
		return time.Time{}, nil
	}
	text, err := encode(object(fmt.Sprint(c.version + 1)))
	if err != nil {
		return time.Time{}, err
	}
	c.items = slices.Delete(c.items, at, at+1)
	return c.sendLocked(watch.Deleted, text), nil
}

func (c *collection) findLocked(name string) (at int, found bool) {
	return slices.BinarySearchFunc(c.items, name, func(i item, name string) int { return strings.Compare(i.name, name) })
}

func (c *collection) sendLocked(kind watch.EventType, text texts) time.Time {
	event := texts{eventText(kind, text[whole]), eventText(kind, text[metadata])}
	at := time.Now()
	c.version++
	c.events = append(c.events, event)
	close(c.more)
	c.more = make(chan struct{})
	return at
}

func eventText(kind watch.EventType, object []byte) []byte {
	return fmt.Appendf(nil, `{"type":%q,"object":%s}`+"\n", kind, object)
}

// forget drops the events so far: nobody begins a watch before now.
func (c *collection) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.events)
}

var errGone = errors.New("the version has passed")

// page returns limit items from offset on, all if limit is 0, and how many are left.
// A version of the list other than 0 has to be the present one.
func (c *collection) page(version, offset, limit int) (items []item, present, left int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if version != 0 && version != c.version {
		return nil, 0, 0, errGone
	}
	rest := c.items[min(offset, len(c.items)):]
	if limit > 0 && len(rest) > limit {
		left = len(rest) - limit
		rest = rest[:limit]
	}
	return slices.Clone(rest), c.version, left, nil
}

// after returns the events since version, or if there are none what is closed when
// there are.
func (c *collection) after(version int) ([]texts, <-chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case version == c.version:
		return nil, c.more, nil
	case version > c.version || c.events[version][whole] == nil:
		return nil, nil, errGone
	}
	return slices.Clone(c.events[version:]), nil, nil
}
