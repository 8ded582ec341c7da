package informer

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// Lister returns a lister on the informer's cache. Its objects are shared and
// read-only.
func (i *Informer) Lister() cache.GenericLister {
	if i.filled() == i {
		return i.lister(i.GetIndexer(), i.gvr)
	}
	return laterLister{i}
}

// ReadFrom makes i's listers read old's cache until i has synced. Otherwise a program that calls Lister
// again for each read would find no objects after its informer has stopped.
func (i *Informer) ReadFrom(old *Informer) { i.before.Store(old.filled()) }

// filled returns the informer whose cache is read.
func (i *Informer) filled() *Informer {
	before := i.before.Load()
	if before == nil {
		return i
	}
	select {
	case <-i.listed:
		i.before.Store(nil) // releases the old cache
		return i
	default:
		return before
	}
}

// release releases the old cache when i has listed, also if no lister is read. The returned function ends its goroutine.
func (i *Informer) release(ctx context.Context) (stop func()) {
	if i.before.Load() == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-i.listed:
			i.filled()
		case <-ctx.Done():
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

// laterLister is the lister of an informer that may not have synced yet. Each read chooses the cache.
type laterLister struct{ informer *Informer }

func (l laterLister) now() cache.GenericLister {
	return l.informer.lister(l.informer.filled().GetIndexer(), l.informer.gvr)
}

// List implements cache.GenericLister.
func (l laterLister) List(selector labels.Selector) ([]runtime.Object, error) {
	return l.now().List(selector)
}

// Get implements cache.GenericLister.
func (l laterLister) Get(name string) (runtime.Object, error) { return l.now().Get(name) }

// ByNamespace implements cache.GenericLister.
func (l laterLister) ByNamespace(namespace string) cache.GenericNamespaceLister {
	return laterNamespace{l, namespace}
}

// laterNamespace is laterLister in one namespace.
type laterNamespace struct {
	lister    laterLister
	namespace string
}

// List implements cache.GenericNamespaceLister.
func (n laterNamespace) List(selector labels.Selector) ([]runtime.Object, error) {
	return n.lister.now().ByNamespace(n.namespace).List(selector)
}

// Get implements cache.GenericNamespaceLister.
func (n laterNamespace) Get(name string) (runtime.Object, error) {
	return n.lister.now().ByNamespace(n.namespace).Get(name)
}
