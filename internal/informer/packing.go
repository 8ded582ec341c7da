package informer

import (
	"context"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	internalpacked "github.com/gvrkit/gvrkit/internal/packed"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/packed"
)

// packing is between an informer's users, whose objects are unstructured, and its cache, whose objects are packed. It is
// source.Packing.
type packing struct {
	packer   *packed.Packer
	stored   func() []any // the objects of the cache
	synced   func() bool  // the cache has had a whole list
	detector cache.MutationDetector
	resize   func(key string, stored metav1.Object)
	packed   atomic.Int64  // the number of objects that have been packed
	begun    *atomic.Bool  // objects are packed
	check    chan struct{} // has a value if the packer must be checked
}

var _ source.Packing = (*packing)(nil)

// newPacking returns nil if packer is nil. If begun is not nil, objects are packed when it is true, which Begin makes it.
func newPacking(packer *packed.Packer, begun *atomic.Bool, gvr schema.GroupVersionResource) *packing {
	if packer == nil {
		return nil
	}
	if begun == nil {
		begun = &atomic.Bool{}
		begun.Store(true)
	}
	p := &packing{
		packer: packer, detector: cache.NewCacheMutationDetector(gvr.String()), check: make(chan struct{}, 1),
		resize: func(string, metav1.Object) {}, begun: begun,
	}
	if internalpacked.DetectsMutations() {
		internalpacked.Observe(packer, p.detector.AddObject)
	}
	return p
}

// IsPacked reports whether the cache has packed objects.
func (i *Informer) IsPacked() bool { return i.packing != nil && i.packing.begun.Load() }

// checkAfter is the number of packed objects after which the packer is checked, if the cache has few objects; otherwise it is
// checkEach times their number, since a check reads all of them.
const checkAfter, checkEach = 1 << 12, 4

// Pack implements source.Packing. An object that a transform has given another type, or values that no decoder returns, is not
// packed: it is cached as it is.
func (p *packing) Pack(object runtime.Object) runtime.Object {
	if !p.begun.Load() {
		return object
	}
	if p.packed.Add(1)%checkAfter == 0 {
		select {
		case p.check <- struct{}{}:
		default:
		}
	}
	if tree, is := object.(*unstructured.Unstructured); is {
		if packed, err := p.packer.Pack(tree); err == nil {
			return packed
		}
	}
	return object
}

// Unpack implements source.Packing.
func (p *packing) Unpack(stored metav1.Object) metav1.Object {
	if object, is := stored.(*packed.Object); is {
		return object.Unstructured().DeepCopy()
	}
	return stored
}

// Begin implements source.Packing.
func (p *packing) Begin() bool { return !p.begun.Swap(true) }

// Forget implements source.Packing.
func (p *packing) Forget() { internalpacked.Forget(p.packer) }

// Size implements source.Packing. It is zero until an object has been packed.
func (p *packing) Size() int {
	if p.packed.Load() == 0 {
		return 0
	}
	return p.packer.Size()
}

// unpacked returns what users get for an object of the cache or of an event: the same object, unstructured.
func (p *packing) unpacked(stored any) any {
	switch object := stored.(type) {
	case *packed.Object:
		return object.Unstructured()
	case cache.DeletedFinalStateUnknown:
		object.Obj = p.unpacked(object.Obj)
		return object
	}
	return stored
}

// unpackedLike is unpacked for the earlier object of an update, of which later is the new one.
func (p *packing) unpackedLike(stored, later any) any {
	object, is := stored.(*packed.Object)
	other, both := later.(*packed.Object)
	if !is || !both {
		return p.unpacked(stored)
	}
	return object.UnstructuredLike(other)
}

// index returns function for objects of the cache. It gets each object unpacked, and only once: the store asks for the values of an
// object again when it replaces or deletes the object.
func (p *packing) index(function cache.IndexFunc) cache.IndexFunc {
	return func(obj any) ([]string, error) {
		known := internalpacked.ValuesOf(obj)
		if known != nil {
			if values, are := known.Of(&function); are {
				return values, nil
			}
		}
		values, err := function(p.unpacked(obj))
		if err == nil && known != nil {
			known.Keep(&function, values)
		}
		return values, err
	}
}

// run runs the mutation detector, and renews what the objects have in common, until the function that it returns is called. That
// waits.
func (p *packing) run(ctx context.Context) (stop func()) {
	if p == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { p.detector.Run(ctx.Done()) })
	running.Go(func() { p.renew(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

func (p *packing) renew(ctx context.Context) {
	checked := int64(0) // the number of packed objects at the last check
	renewed := false    // by the last check: objects that were on their way to the cache have the old dictionary
	for {
		select {
		case <-p.check:
		case <-ctx.Done():
			return
		}
		if !p.synced() {
			continue // the objects of the first list are on their way to the cache
		}
		if now := p.packed.Load(); renewed || now-checked >= int64(max(checkAfter, checkEach*len(p.stored()))) {
			checked, renewed = now, p.repack(ctx, renewed)
		}
	}
}

// repack renews what the objects have in common, if that is worth it. Objects with an earlier dictionary are packed again.
func (p *packing) repack(ctx context.Context, again bool) (renewed bool) {
	live := func(yield func(*packed.Object) bool) {
		for _, stored := range p.stored() { // Renew reads the objects again after it has begun another dictionary
			if object, is := stored.(*packed.Object); ctx.Err() != nil || is && !yield(object) {
				return
			}
		}
	}
	if renewed = p.packer.Renew(live); renewed || again {
		for object := range live {
			p.resize(cache.MetaObjectToName(object).String(), object)
		}
	}
	return renewed
}

// packedIndexer is the indexer of a packed cache for users: what it returns is unstructured, and what they store is packed.
type packedIndexer struct {
	cache.Indexer // of packed objects, with index functions that get unstructured ones
	packing       *packing
}

func (i *packedIndexer) all(stored []any, err error) ([]any, error) {
	if err != nil {
		return nil, err
	}
	objects := make([]any, len(stored))
	for n, object := range stored {
		objects[n] = i.packing.unpacked(object)
	}
	return objects, nil
}

// List implements cache.Store.
func (i *packedIndexer) List() []any {
	objects, _ := i.all(i.Indexer.List(), nil)
	return objects
}

// Get implements cache.Store.
func (i *packedIndexer) Get(obj any) (item any, exists bool, err error) {
	item, exists, err = i.Indexer.Get(obj)
	return i.packing.unpacked(item), exists, err
}

// GetByKey implements cache.Store.
func (i *packedIndexer) GetByKey(key string) (item any, exists bool, err error) {
	item, exists, err = i.Indexer.GetByKey(key)
	return i.packing.unpacked(item), exists, err
}

// Index implements cache.Indexer.
func (i *packedIndexer) Index(indexName string, obj any) ([]any, error) {
	return i.all(i.Indexer.Index(indexName, obj))
}

// ByIndex implements cache.Indexer.
func (i *packedIndexer) ByIndex(indexName, indexedValue string) ([]any, error) {
	return i.all(i.Indexer.ByIndex(indexName, indexedValue))
}

// Add implements cache.Store.
func (i *packedIndexer) Add(obj any) error { return i.Indexer.Add(i.packed(obj)) }

// Update implements cache.Store.
func (i *packedIndexer) Update(obj any) error { return i.Indexer.Update(i.packed(obj)) }

// Replace implements cache.Store.
func (i *packedIndexer) Replace(list []any, resourceVersion string) error {
	objects := make([]any, len(list))
	for n, obj := range list {
		objects[n] = i.packed(obj)
	}
	return i.Indexer.Replace(objects, resourceVersion)
}

// packed returns what the cache stores for an object of a user.
func (i *packedIndexer) packed(obj any) any {
	if object, is := obj.(runtime.Object); is {
		return i.packing.Pack(object)
	}
	return obj
}
