package namespaces

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/source"
)

// Resource is the resource of Namespace objects.
var Resource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// follow keeps set equal to the names of the Namespace objects that selector selects, until ctx ends. It calls result
// with the result of each request for them.
func follow(ctx context.Context, client source.Client, selector string, set *source.Namespaces, result func(verb string, err error)) {
	objects := source.New(source.Config{
		Client: client, GVR: Resource, Observer: results{result},
		Availability: source.NewAvailability(source.Type{Serving: source.Served, GVR: Resource}),
		Tweak:        func(opts *metav1.ListOptions) { opts.LabelSelector = selector },
	})
	defer objects.Wait()
	store := &selected{set: set, terminating: map[string]bool{}, exists: func(name string, uid types.UID) bool { return exists(ctx, client, name, uid) }}
	cache.NewReflectorWithOptions(objects.ListerWatcher(), nil, store, cache.ReflectorOptions{TypeDescription: "namespaces"}).RunWithContext(ctx)
}

const (
	// askFor is the maximum time for the question whether a namespace exists.
	askFor = 10 * time.Second
	// askAgain is the pause after the first failure of the question. It doubles.
	askAgain = 200 * time.Millisecond
)

// exists reports whether the server has the namespace with that UID, also while it is being deleted: its objects may still
// exist. It lists, since the user may list namespaces. Without an answer, it reports true: nothing is deleted without evidence.
func exists(ctx context.Context, client source.Client, name string, uid types.UID) bool {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	opts := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	list, err := client.List(ctx, Resource, metav1.NamespaceAll, opts)
	for pause := askAgain; err != nil; pause *= 2 {
		if apierrors.IsForbidden(err) {
			return true
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return true
		}
		list, err = client.List(ctx, Resource, metav1.NamespaceAll, opts)
	}
	found := false
	_ = meta.EachListItem(list, func(item runtime.Object) error { // fake clients ignore field selectors
		object, err := meta.Accessor(item)
		found = found || err == nil && object.GetName() == name && object.GetUID() == uid
		return nil
	})
	return found
}

// results is an observer of the results of requests.
type results struct {
	result func(verb string, err error)
}

func (r results) Failed(verb string, err error) { r.result(verb, err) }
func (r results) Succeeded(verb string)         { r.result(verb, nil) }
func (results) Received(int)                    {}
func (results) Doubted()                        {}
func (results) Completed()                      {}

// selected is the store of a reflector of Namespace objects. It has only their names.
type selected struct {
	set    *source.Namespaces
	exists func(name string, uid types.UID) bool // asks the server

	mu          sync.Mutex
	terminating map[string]bool // by name
}

var _ cache.ReflectorStore = (*selected)(nil)

// Add implements cache.ReflectorStore.
func (s *selected) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *selected) Update(obj any) error { return s.change([]any{obj}, false) }

// Delete implements cache.ReflectorStore. The server may have deleted the namespace, or the selector no longer selects it.
func (s *selected) Delete(obj any) error {
	namespace, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	name := namespace.GetName()
	gone := !s.exists(name, namespace.GetUID())
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.terminating, name)
	if gone {
		s.set.Follow(s.terminating, name)
		return nil
	}
	s.set.Follow(s.terminating)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *selected) Replace(list []any, _ string) error { return s.change(list, true) }

// Resync implements cache.ReflectorStore.
func (s *selected) Resync() error { return nil }

// change adds objects, or replaces all of them, and gives the names to the set.
func (s *selected) change(added []any, replaced bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if replaced {
		clear(s.terminating)
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
