package metadatalister_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	upstream "k8s.io/client-go/metadata/metadatalister"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/metadatalister"
)

// The namespace listers of client-go and ours are the same type but for the name.
var (
	_ metadatalister.NamespaceLister = upstream.NamespaceLister(nil)
	_ upstream.NamespaceLister       = metadatalister.NamespaceLister(nil)
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func newIndexer(t *testing.T) cache.Indexer {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, object := range []metav1.ObjectMeta{
		{Namespace: "ns", Name: "a", Labels: map[string]string{"app": "x"}},
		{Namespace: "ns", Name: "b"},
		{Namespace: "other", Name: "a", Labels: map[string]string{"app": "x"}},
		{Name: "cluster"},
	} {
		if err := indexer.Add(&metav1.PartialObjectMetadata{ObjectMeta: object}); err != nil {
			t.Fatal(err)
		}
	}
	return indexer
}

// read calls every method of a lister with these arguments, and returns all results as text.
func read(list func(namespace string, selector labels.Selector) ([]*metav1.PartialObjectMetadata, error), get func(namespace, name string) (*metav1.PartialObjectMetadata, error)) (results []string) {
	for _, namespace := range []string{"*", "", "ns", "other", "none"} {
		for _, selector := range []string{"", "app=x"} {
			parsed, err := labels.Parse(selector)
			if err != nil {
				panic(err)
			}
			objects, err := list(namespace, parsed)
			var keys []string
			for _, object := range objects {
				keys = append(keys, cache.MetaObjectToName(object).String())
			}
			slices.Sort(keys)
			results = append(results, cmp.Diff(nil, keys), text(err))
		}
		for _, name := range []string{"a", "ns/a", "cluster", "none", ""} {
			object, err := get(namespace, name)
			results = append(results, text(err))
			if object != nil {
				results = append(results, cache.MetaObjectToName(object).String())
			}
		}
	}
	return results
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestLister_ReadsAsClientGos(t *testing.T) {
	indexer := newIndexer(t)
	ours, theirs := metadatalister.New(indexer, widgets), upstream.New(indexer, widgets)
	got := read(func(namespace string, selector labels.Selector) ([]*metav1.PartialObjectMetadata, error) {
		if namespace == "*" {
			return ours.List(selector)
		}
		return ours.Namespace(namespace).List(selector)
	}, func(namespace, name string) (*metav1.PartialObjectMetadata, error) {
		if namespace == "*" {
			return ours.Get(name)
		}
		return ours.Namespace(namespace).Get(name)
	})
	want := read(func(namespace string, selector labels.Selector) ([]*metav1.PartialObjectMetadata, error) {
		if namespace == "*" {
			return theirs.List(selector)
		}
		return theirs.Namespace(namespace).List(selector)
	}, func(namespace, name string) (*metav1.PartialObjectMetadata, error) {
		if namespace == "*" {
			return theirs.Get(name)
		}
		return theirs.Namespace(namespace).Get(name)
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("client-go's results (-), ours (+):\n%s", diff)
	}
}

func TestRuntimeObjectShim_FailedGetIsNil(t *testing.T) {
	generic := metadatalister.NewRuntimeObjectShim(metadatalister.New(newIndexer(t), widgets))
	if object, err := generic.Get("ns/none"); object != nil || !apierrors.IsNotFound(err) {
		t.Errorf("Get returns %#v, %v; want a nil interface and NotFound", object, err)
	}
	if object, err := generic.ByNamespace("ns").Get("none"); object != nil || !apierrors.IsNotFound(err) {
		t.Errorf("Get in a namespace returns %#v, %v; want a nil interface and NotFound", object, err)
	}
	if objects, err := generic.ByNamespace("ns").List(nil); len(objects) != 2 || err != nil {
		t.Errorf("List with a nil selector returns %v, %v; want both objects", objects, err)
	}
}

func TestLister_WrongTypesAreErrors(t *testing.T) {
	indexer := newIndexer(t)
	if err := indexer.Add(&metav1.Status{}); err == nil {
		t.Fatal("a Status has a key")
	}
	if err := indexer.Add(&metav1.ObjectMeta{Namespace: "ns", Name: "c"}); err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]metadatalister.Lister{
		"another type": metadatalister.New(indexer, widgets),
		"no indexer":   metadatalister.New(nil, widgets),
	} {
		const want = "metadatalister: widgets.example.com: "
		if _, err := l.List(labels.Everything()); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: List returns the error %v, want %q", name, err, want)
		}
		if _, err := l.Namespace("ns").Get("c"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: Get returns the error %v, want %q", name, err, want)
		}
	}
}
