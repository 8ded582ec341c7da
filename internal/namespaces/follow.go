package namespaces

import (
	"context"
	"maps"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
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
	store := &selected{
		set: set, terminating: map[string]bool{}, again: map[string]types.UID{},
		ask: func(name string, uid types.UID) fate { return ask(ctx, client, selector, name, uid) },
	}
	cache.NewReflectorWithOptions(objects.ListerWatcher(), nil, store, cache.ReflectorOptions{TypeDescription: "namespaces"}).RunWithContext(ctx)
}

const (
	// askFor is the maximum time for the question whether a namespace exists.
	askFor = 10 * time.Second
	// askAgain is the pause after the first failure of the question. It doubles.
	askAgain = 200 * time.Millisecond
)

// fate is what the server says about a namespace that is no longer selected.
type fate int

const (
	// exists: the server has it, also while it is being deleted: its objects may still exist. So it is without an answer: nothing is deleted
	// without evidence.
	exists fate = iota
	// gone: the server does not have it.
	gone
	// replaced: the server does not have it, and the selector selects another one with its name.
	replaced
)

// ask asks for the fate of the namespace with that UID. It lists, since the user may list namespaces.
func ask(ctx context.Context, client source.Client, selector, name string, uid types.UID) fate {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	opts := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	list, err := client.List(ctx, Resource, metav1.NamespaceAll, opts)
	for pause := askAgain; err != nil; pause *= 2 {
		if apierrors.IsForbidden(err) {
			return exists
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return exists
		}
		list, err = client.List(ctx, Resource, metav1.NamespaceAll, opts)
	}
	return fateBy(list, selector, name, uid)
}

// fateBy returns the fate of the namespace with that UID by a list of the namespaces with its name.
func fateBy(list runtime.Object, selector, name string, uid types.UID) fate {
	selects, err := labels.Parse(selector)
	if err != nil {
		selects = labels.Nothing()
	}
	found := gone
	_ = meta.EachListItem(list, func(item runtime.Object) error { // fake clients ignore field selectors
		object, err := meta.Accessor(item)
		switch {
		case err != nil || object.GetName() != name:
		case object.GetUID() == uid:
			found = exists
		case selects.Matches(labels.Set(object.GetLabels())):
			found = replaced
		}
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
	set *source.Namespaces
	ask func(name string, uid types.UID) fate // asks the server

	mu          sync.Mutex
	terminating map[string]bool // by name
	// again has the UIDs of namespaces that were replaced, by their names, until the reflector has the others. The names stay in the set: their
	// watches show which objects are deleted.
	again map[string]types.UID
}

var (
	_ cache.ReflectorStore         = (*selected)(nil)
	_ cache.ReflectorBookmarkStore = (*selected)(nil)
)

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
	s.remove(namespace.GetName(), namespace.GetUID())
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore. The reflector may have listed again: it does not get a namespace that was created and deleted
// before the list.
func (s *selected) Bookmark(string) error {
	s.mu.Lock()
	again := maps.Clone(s.again)
	s.mu.Unlock()
	for name, uid := range again {
		s.remove(name, uid)
	}
	return nil
}

// remove removes the name of the namespace with that UID from the set, unless it was replaced.
func (s *selected) remove(name string, uid types.UID) {
	fate := s.ask(name, uid)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.terminating, name)
	delete(s.again, name)
	switch fate {
	case gone:
		s.set.Follow(s.terminating, name)
		return
	case replaced:
		s.terminating[name], s.again[name] = false, uid
	case exists:
	}
	s.set.Follow(s.terminating)
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
		clear(s.again)
	}
	for _, obj := range added {
		namespace, err := meta.Accessor(obj)
		if err != nil {
			return err
		}
		s.terminating[namespace.GetName()] = namespace.GetDeletionTimestamp() != nil
		delete(s.again, namespace.GetName())
	}
	s.set.Follow(s.terminating)
	return nil
}
