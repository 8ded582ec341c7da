package dynamicinformer

import (
	"fmt"

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
