package lister_test

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamiclister"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/lister"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// newObject returns a widget; namespace "" is for one without.
func newObject(namespace, name string, labels map[string]string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       "Widget",
	}}
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetLabels(labels)
	return obj
}

// newIndexer returns a cache that holds objs, indexed as an informer's is.
func newIndexer(tb testing.TB, objs ...any) cache.Indexer {
	tb.Helper()
	return fill(tb, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, objs)
}

// newUnindexed returns a cache that holds objs and has no index.
func newUnindexed(t *testing.T, objs ...any) cache.Indexer {
	t.Helper()
	return fill(t, cache.Indexers{}, objs)
}

func fill(tb testing.TB, indexers cache.Indexers, objs []any) cache.Indexer {
	tb.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	for _, obj := range objs {
		if err := indexer.Add(obj); err != nil {
			tb.Fatalf("add to the cache: %v", err)
		}
	}
	return indexer
}

// metadataOnly is what a transform can leave of the widget ns/b: an object that has
// labels, and is of another type.
func metadataOnly() *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b", Labels: map[string]string{"app": "a"}},
	}
}

// upstreamLister is client-go's lister behind our interface, which differs in the
// type that Namespace returns.
type upstreamLister struct{ dynamiclister.Lister }

func (u upstreamLister) Namespace(namespace string) lister.NamespaceLister {
	return u.Lister.Namespace(namespace)
}

// subject is one of the two implementations on one cache.
type subject struct {
	name    string
	lister  lister.Lister
	generic cache.GenericLister
}

func upstream(indexer cache.Indexer) subject {
	l := dynamiclister.New(indexer, widgets)
	return subject{"upstream", upstreamLister{l}, dynamiclister.NewRuntimeObjectShim(l)}
}

func ours(indexer cache.Indexer) subject {
	l := lister.New(indexer, widgets)
	return subject{"ours", l, lister.NewRuntimeObjectShim(l)}
}

// keys returns the sorted keys of objs; nil for nil, and empty for empty.
func keys[T metav1.Object](objs []T) []string {
	if objs == nil {
		return nil
	}
	found := make([]string, 0, len(objs))
	for _, obj := range objs {
		found = append(found, strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), "/"))
	}
	slices.Sort(found)
	return found
}

// unwrap takes objs out of the generic form.
func unwrap(t *testing.T, objs []runtime.Object) []*unstructured.Unstructured {
	t.Helper()
	if objs == nil {
		return nil
	}
	unwrapped := make([]*unstructured.Unstructured, len(objs))
	for i, obj := range objs {
		unwrapped[i] = obj.(*unstructured.Unstructured)
	}
	return unwrapped
}

func parseSelector(t *testing.T, s string) labels.Selector {
	t.Helper()
	selector, err := labels.Parse(s)
	if err != nil {
		t.Fatalf("selector %q: %v", s, err)
	}
	return selector
}

// panics reports whether f panics.
func panics(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}
