package lister

import (
	"maps"
	"math"
	"slices"
	"sync"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// conversion is the result of the conversion of one cached object. A cached object is never written to, so its address stands for its
// state. Its version does not: some servers send none or always the same one, and one whose etcd was restored sends earlier ones again.
type conversion[T any] struct {
	tree   weak.Pointer[unstructured.Unstructured] // does not keep an object that has left the cache
	packed metav1.Object                           // set for a packed object, which is small, instead of tree
	to     T
	err    error
}

// isOf reports whether c is the conversion of object.
func (c *conversion[T]) isOf(object metav1.Object) bool {
	if tree, is := object.(*unstructured.Unstructured); is {
		return c.tree.Value() == tree
	}
	return c.packed == object
}

// newConversion returns the result of a conversion of object.
func newConversion[T any](object metav1.Object, to T, err error) conversion[T] {
	c := conversion[T]{to: to, err: err}
	if tree, is := object.(*unstructured.Unstructured); is {
		c.tree = weak.Make(tree)
	} else {
		c.packed = object
	}
	return c
}

// mostOfPacked is the maximum number of conversions of a packed cache, in which 10,000 structs would take more memory than the objects.
const mostOfPacked = 1 << 10

// A sweep looks up each conversion, so it comes after fewConversions more conversions than there are, or after
// readsPerConversion times as many reads.
const (
	fewConversions     = 64
	readsPerConversion = 8
)

// get returns the conversion of object, which is called name.
func (c *conversions[T]) get(name cache.ObjectName, object metav1.Object) (conversion[T], bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until--
	known, there := c.of[name]
	return known, there && known.isOf(object)
}

// put keeps made, the conversion of object, unless another goroutine has kept one of the same object, and returns the result
// that is kept. Most is the maximum number of conversions; 0: all.
func (c *conversions[T]) put(name cache.ObjectName, object metav1.Object, made conversion[T], most int) (T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, there := c.of[name]; there && known.isOf(object) {
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

// trim sweeps if there may be conversions of deleted objects: all objects have just been read, and there are more conversions than
// objects, or put has dropped conversions of objects because there are at least most.
func (c *conversions[T]) trim(objects, most int, cached func(cache.ObjectName) bool) {
	c.mu.Lock()
	if len(c.of) > objects || most > 0 && objects >= most {
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
