package namespaces

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/source"
)

// Resource is the resource of Namespace objects.
var Resource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// follow keeps set equal to the names of the Namespace objects that selector selects, until ctx ends. It reports the
// failures of requests for them.
func follow(ctx context.Context, client source.Client, selector string, set *source.Namespaces, failed func(verb string, err error)) {
	objects := source.New(source.Config{
		Client: client, GVR: Resource, Observer: failures{failed},
		Availability: source.NewAvailability(source.Type{Serving: source.Served, GVR: Resource}),
		Tweak:        func(opts *metav1.ListOptions) { opts.LabelSelector = selector },
	})
	defer objects.Wait()
	store := &selected{set: set, terminating: map[string]bool{}}
	cache.NewReflectorWithOptions(objects.ListerWatcher(), nil, store, cache.ReflectorOptions{TypeDescription: "namespaces"}).RunWithContext(ctx)
}

// failures is an observer of failures.
type failures struct {
	failed func(verb string, err error)
}

func (f failures) Failed(verb string, err error) { f.failed(verb, err) }
func (failures) Succeeded(string)                {}
func (failures) Received(int)                    {}
func (failures) Completed()                      {}

// selected is the store of a reflector of Namespace objects. It has only their names.
type selected struct {
	set *source.Namespaces

	mu          sync.Mutex
	terminating map[string]bool // by name
}

var _ cache.ReflectorStore = (*selected)(nil)

// Add implements cache.ReflectorStore.
func (s *selected) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *selected) Update(obj any) error { return s.change([]any{obj}, nil, false) }

// Delete implements cache.ReflectorStore.
func (s *selected) Delete(obj any) error { return s.change(nil, []any{obj}, false) }

// Replace implements cache.ReflectorStore.
func (s *selected) Replace(list []any, _ string) error { return s.change(list, nil, true) }

// Resync implements cache.ReflectorStore.
func (s *selected) Resync() error { return nil }

// change adds and removes objects, or replaces all of them, and gives the names to the set.
func (s *selected) change(added, removed []any, replaced bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if replaced {
		clear(s.terminating)
	}
	for _, obj := range removed {
		namespace, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		delete(s.terminating, namespace.GetName())
	}
	for _, obj := range added {
		namespace, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		s.terminating[namespace.GetName()] = namespace.GetDeletionTimestamp() != nil
	}
	s.set.Follow(s.terminating)
	return nil
}
