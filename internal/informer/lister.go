package informer

import "k8s.io/client-go/tools/cache"

// Lister returns a lister on the informer's cache. Its objects are shared and
// read-only.
func (i *Informer) Lister() cache.GenericLister {
	return i.lister(i.filled().GetIndexer(), i.gvr)
}

// ReadFrom makes i's lister read old's cache until i has synced. Otherwise a program that calls Lister
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
