package lister

import (
	"fmt"
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/objectlister"
)

// Reader is a [Lister] that also iterates over objects, and reads them by an index and by fields. Its methods
// return the errors that [New] describes. The objects are those of the cache, and read-only, unless the option [WithCopies] is
// given. It is safe for concurrent use.
type Reader struct {
	objects  objectlister.Of[*unstructured.Unstructured]
	copies   bool
	complete func(namespace string) error // nil: the cache is complete
}

var _ Lister = (*Reader)(nil)

// NewReader returns a reader of the objects of indexer. It uses gvr only in the texts of errors. Nil options
// have no effect.
func NewReader(indexer cache.Indexer, gvr schema.GroupVersionResource, opts ...ReaderOption) *Reader {
	r := &Reader{objects: objectlister.New[*unstructured.Unstructured]("lister", indexer, gvr)}
	for _, opt := range opts {
		if opt != nil {
			opt.apply(r)
		}
	}
	return r
}

// ReaderOption is an option of [NewReader].
type ReaderOption interface{ apply(r *Reader) }

type readerOption func(r *Reader)

func (o readerOption) apply(r *Reader) { o(r) }

// WithCopies makes a reader return deep copies, which belong to the caller. A copy of a large object costs
// about as much as its decoding.
func WithCopies() ReaderOption { return readerOption(func(r *Reader) { r.copies = true }) }

// WithCompleteness makes a reader call check before each read, with the namespace of the read; an empty namespace means
// all. If check returns an error, the cache does not have all objects: lists and queries return the error with the
// objects, an iterator returns it last, and Get returns it instead of NotFound. Reads by an index, and
// Get for a name without a namespace, do not call it. The readers of a lease on a set of namespaces have this option; a
// nil check turns it off.
func WithCompleteness(check func(namespace string) error) ReaderOption {
	return readerOption(func(r *Reader) { r.complete = check })
}

// check returns why the cache does not have all objects in namespace, or nil.
func (r *Reader) check(namespace string) error {
	if r.complete == nil {
		return nil
	}
	return r.complete(namespace)
}

// List returns the objects that selector matches, in no order. A nil selector selects everything.
func (r *Reader) List(selector labels.Selector) ([]*unstructured.Unstructured, error) {
	return r.listIn("", selector)
}

func (r *Reader) listIn(namespace string, selector labels.Selector) ([]*unstructured.Unstructured, error) {
	incomplete := r.check(namespace)
	objects, err := r.own(r.objects.ListIn(namespace, selector))
	if err == nil {
		err = incomplete
	}
	return objects, err
}

// Get returns the object with the cache key name: the name of a cluster-scoped object, or namespace/name of a
// namespaced object. If there is no such object, apierrors.IsNotFound is true for the error.
func (r *Reader) Get(name string) (*unstructured.Unstructured, error) { return r.get(name, name) }

// Namespace returns a lister of the objects in namespace, as [Lister] says.
func (r *Reader) Namespace(namespace string) NamespaceLister {
	return &namespaceReader{reader: r, namespace: namespace}
}

// All returns an iterator over the objects in namespace that selector matches, in no order. An empty namespace
// means all namespaces, and a nil selector selects everything. For an object that is not unstructured, or can't be
// copied, the iterator returns an error and continues; after any other error, it ends.
//
// Each iteration reads the references to all objects of the cache, or of the namespace, when it begins. It sees no
// later change. The cache is not locked between the steps. Compared with List, there is no second slice, and objects
// are copied, and those of a packed cache unpacked, one after another.
func (r *Reader) All(namespace string, selector labels.Selector) iter.Seq2[*unstructured.Unstructured, error] {
	return all(r, namespace, selector, r.object)
}

// all returns the iterator of [Reader.All] over what object returns.
func all[T any](r *Reader, namespace string, selector labels.Selector, object func(cached any) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		more, incomplete := true, r.check(namespace)
		if err := r.objects.Each(namespace, selector, func(cached any) {
			if more {
				more = yield(object(cached))
			}
		}); err != nil && more {
			yield(none, err)
			return
		}
		if incomplete != nil && more {
			yield(none, incomplete)
		}
	}
}

// ByIndex returns the objects that have value in an index of the indexer, in no order. It returns an error if
// there is no such index.
func (r *Reader) ByIndex(indexName, value string) (found []*unstructured.Unstructured, err error) {
	var wrong error
	err = r.objects.EachByIndex(indexName, value, func(cached any) {
		object, err := r.object(cached)
		if err != nil {
			wrong = err
			return
		}
		found = append(found, object)
	})
	if err == nil {
		err = wrong
	}
	if err != nil {
		return nil, err
	}
	return found, nil
}

// object returns a cached object, or a copy of it.
func (r *Reader) object(cached any) (*unstructured.Unstructured, error) {
	object, err := r.objects.Object(cached)
	if err != nil {
		return nil, err
	}
	if r.copies {
		return copied(object)
	}
	return object, nil
}

// copied returns a copy of object. apimachinery's copy panics on a value that no decoder returns, such as an int from a transform.
func copied(object *unstructured.Unstructured) (own *unstructured.Unstructured, err error) {
	defer func() {
		if r := recover(); r != nil {
			own, err = nil, fmt.Errorf("lister: %s can't be copied: %v", cache.MetaObjectToName(object), r)
		}
	}()
	return object.DeepCopy(), nil
}

// own replaces objects with copies, if the reader makes copies.
func (r *Reader) own(objects []*unstructured.Unstructured, err error) ([]*unstructured.Unstructured, error) {
	if !r.copies {
		return objects, err
	}
	for n, object := range objects {
		if objects[n], err = copied(object); err != nil {
			return nil, err
		}
	}
	return objects, err
}

func (r *Reader) get(key, name string) (*unstructured.Unstructured, error) {
	object, err := get(r, &r.objects, key, name)
	if err == nil && r.copies {
		return copied(object)
	}
	return object, err
}

// get reads an object of the reader from objects.
func get[T runtime.Object](r *Reader, objects *objectlister.Of[T], key, name string) (T, error) {
	var incomplete error
	if name, err := cache.ParseObjectName(key); err == nil && name.Namespace != "" {
		incomplete = r.check(name.Namespace)
	}
	object, err := objects.Get(key, name)
	if apierrors.IsNotFound(err) && incomplete != nil {
		var none T
		return none, incomplete // the object may exist
	}
	return object, err
}

type namespaceReader struct {
	reader    *Reader
	namespace string
}

func (n *namespaceReader) List(selector labels.Selector) ([]*unstructured.Unstructured, error) {
	return n.reader.listIn(n.namespace, selector)
}

func (n *namespaceReader) Get(name string) (*unstructured.Unstructured, error) {
	// No object has the key "/name", so Get finds none in the empty namespace, as upstream.
	return n.reader.get(n.namespace+"/"+name, name)
}
