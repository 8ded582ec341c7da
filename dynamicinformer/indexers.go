package dynamicinformer

import (
	"fmt"
	"maps"

	"k8s.io/client-go/tools/cache"
)

// guard returns indexers whose functions may fail or panic for an object. client-go's store
// would panic then, and end the process: the object is left out of that index instead, and the
// status says so.
func (e *entry) guard(indexers cache.Indexers) cache.Indexers {
	guarded := make(cache.Indexers, len(indexers))
	for name, function := range indexers {
		guarded[name] = e.guardIndex(name, function)
	}
	return guarded
}

func (e *entry) guardIndex(name string, function cache.IndexFunc) cache.IndexFunc {
	if name == cache.NamespaceIndex || function == nil {
		return function
	}
	return func(obj any) ([]string, error) {
		values, err := callIndex(function, obj)
		if err == nil && !e.state.HasUnindexed() {
			return values, nil
		}
		if err != nil {
			values, err = nil, fmt.Errorf("index %q: %w", name, err)
		}
		if key, unknown := cache.MetaNamespaceKeyFunc(obj); unknown == nil {
			e.state.Unindexed(key, name, err)
		}
		return values, nil
	}
}

// callIndex calls function. A panic is an error: it concerns one object.
func callIndex(function cache.IndexFunc, obj any) (values []string, err error) {
	defer func() {
		if r := recover(); r != nil {
			values, err = nil, fmt.Errorf("panic: %v", r)
		}
	}()
	return function(obj)
}

// readIndexer is an informer's indexer for those who read. An object that they ask with is not
// one of the cache: its index functions are called as they are, and what they return or fail
// with says nothing about the cache.
type readIndexer struct {
	cache.Indexer
	informer *sharedInformer
}

// Index implements cache.Indexer.
func (r *readIndexer) Index(indexName string, obj any) ([]any, error) {
	function, known := r.informer.indexFunc(indexName)
	if !known {
		return r.Indexer.Index(indexName, obj) // which says so
	}
	values, err := function(obj)
	if err != nil {
		return nil, err
	}
	var found []any
	seen := map[string]bool{}
	for _, value := range values {
		keys, err := r.IndexKeys(indexName, value)
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			item, there, err := r.GetByKey(key)
			if err == nil && there && !seen[key] {
				seen[key] = true
				found = append(found, item)
			}
		}
	}
	return found, nil
}

// GetIndexers implements cache.Indexer.
func (r *readIndexer) GetIndexers() cache.Indexers {
	r.informer.mu.Lock()
	defer r.informer.mu.Unlock()
	return maps.Clone(r.informer.unguarded)
}

// AddIndexers implements cache.Indexer.
func (r *readIndexer) AddIndexers(indexers cache.Indexers) error {
	return r.informer.AddIndexers(indexers)
}

// indexFunc returns the index function of that name as it is.
func (i *sharedInformer) indexFunc(name string) (cache.IndexFunc, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	function, known := i.unguarded[name]
	return function, known
}
