package lister

import (
	"maps"
	"math"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// conversions has the results of the last conversion of each object. Its zero value is empty. It is safe for
// concurrent use.
type conversions[T any] struct {
	mu sync.Mutex // never held while an object is converted or the cache is read
	of map[cache.ObjectName]conversion[T]
	// until is the number of reads until the next sweep.
	until int
}

// conversion is the result of one conversion.
type conversion[T any] struct {
	state state
	to    T
	err   error
}

// state distinguishes an object from its other states, and from others with the same name.
type state struct {
	apiVersion, version string
	uid                 types.UID
	object              any // only if the object has no version
}

func stateOf(object *unstructured.Unstructured) state {
	s := state{apiVersion: object.GetAPIVersion(), version: object.GetResourceVersion(), uid: object.GetUID()}
	if s.version == "" {
		s.object = object
	}
	return s
}

// stateOfPacked is stateOf for a packed object.
func stateOfPacked(object fielder) state {
	apiVersion, _ := object.Field("apiVersion")
	s := state{version: object.GetResourceVersion(), uid: object.GetUID()}
	if s.apiVersion, _ = apiVersion.(string); s.version == "" {
		s.object = object
	}
	return s
}

// mostOfPacked is the maximum number of conversions of a packed cache, in which 10,000 structs would take more memory than the objects.
const mostOfPacked = 1 << 10

// A sweep looks up each conversion, so it comes after fewConversions more conversions than there are, or after
// readsPerConversion times as many reads.
const (
	fewConversions     = 64
	readsPerConversion = 8
)

// get returns the conversion of the object called name, if it is of that state.
func (c *conversions[T]) get(name cache.ObjectName, s state) (conversion[T], bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until--
	known, there := c.of[name]
	return known, there && known.state == s
}

// put keeps made, unless another goroutine has kept the conversion of the same state, and returns the result
// that is kept. Most is the maximum number of conversions; 0: all.
func (c *conversions[T]) put(name cache.ObjectName, made conversion[T], most int) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, there := c.of[name]; there && known.state == made.state {
		return known.to, known.err
	}
	if c.of == nil {
		c.of = map[cache.ObjectName]conversion[T]{}
	}
	if _, replaced := c.of[name]; !replaced && most > 0 && len(c.of) >= most {
		for other := range c.of {
			delete(c.of, other)
			break
		}
	}
	c.of[name] = made
	c.until -= readsPerConversion
	return made.to, made.err
}

// drop drops the conversion of the object under key, which is not in the cache.
func (c *conversions[T]) drop(key string) {
	name, err := cache.ParseObjectName(key)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.of, name)
}

// trim sweeps if there are more conversions than the objects that have just been read, which were all.
func (c *conversions[T]) trim(objects int, cached func(cache.ObjectName) bool) {
	c.mu.Lock()
	if len(c.of) > objects {
		c.until = 0
	}
	c.mu.Unlock()
	c.sweep(cached)
}

// sweep drops the conversions of objects that are not in the cache, if it is time.
func (c *conversions[T]) sweep(cached func(cache.ObjectName) bool) {
	c.mu.Lock()
	if c.until > 0 {
		c.mu.Unlock()
		return
	}
	names := slices.AppendSeq(make([]cache.ObjectName, 0, len(c.of)), maps.Keys(c.of))
	c.until = math.MaxInt // no other goroutine sweeps meanwhile
	c.mu.Unlock()
	gone := slices.DeleteFunc(names, cached)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range gone {
		delete(c.of, name)
	}
	c.until = (len(c.of) + fewConversions) * readsPerConversion
}
