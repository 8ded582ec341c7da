package lister_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// What differs from client-go on purpose. Each test shows what client-go does
// first, so that it fails when client-go stops doing it.

// A caller that compares client-go's answer with nil takes the nil pointer in it
// for an object.
func TestDifference_ShimGetOfAMissingObjectIsNil(t *testing.T) {
	gets := func(s subject) map[string]func(string) (runtime.Object, error) {
		return map[string]func(string) (runtime.Object, error){
			"Get":              s.generic.Get,
			"Get in namespace": s.generic.ByNamespace("ns").Get,
		}
	}
	indexer := newIndexer(t)
	for name, get := range gets(upstream(indexer)) {
		if obj, err := get("nobody"); err == nil || obj == nil {
			t.Errorf("upstream: %s = %v, %v; want an error and a nil pointer that is not nil", name, obj, err)
		}
	}
	for name, get := range gets(ours(indexer)) {
		if obj, err := get("nobody"); err == nil || obj != nil {
			t.Errorf("ours: %s = %v, %v; want nil and an error", name, obj, err)
		}
	}
}

// lists are the ways to list s: in all and in one namespace, typed and generic.
func lists(t *testing.T, s subject) map[string]func(labels.Selector) ([]string, error) {
	t.Helper()
	generic := func(list func(labels.Selector) ([]runtime.Object, error)) func(labels.Selector) ([]string, error) {
		return func(selector labels.Selector) ([]string, error) {
			objs, err := list(selector)
			return keys(unwrap(t, objs)), err
		}
	}
	return map[string]func(labels.Selector) ([]string, error){
		"List": func(selector labels.Selector) ([]string, error) {
			objs, err := s.lister.List(selector)
			return keys(objs), err
		},
		"List in namespace": func(selector labels.Selector) ([]string, error) {
			objs, err := s.lister.Namespace("ns").List(selector)
			return keys(objs), err
		},
		"List of the shim":              generic(s.generic.List),
		"List of the shim in namespace": generic(s.generic.ByNamespace("ns").List),
	}
}

func TestDifference_NilSelectorSelectsEverything(t *testing.T) {
	indexer := newIndexer(t, newObject("ns", "a", nil), newObject("ns", "b", nil))
	for name, list := range lists(t, upstream(indexer)) {
		if !panics(func() { _, _ = list(nil) }) {
			t.Errorf("upstream: %s(nil) does not panic", name)
		}
	}
	for name, list := range lists(t, ours(indexer)) {
		got, err := list(nil)
		if err != nil {
			t.Errorf("ours: %s(nil): %v", name, err)
		}
		if diff := cmp.Diff([]string{"ns/a", "ns/b"}, got); diff != "" {
			t.Errorf("ours: %s(nil) (-want +got):\n%s", name, diff)
		}
	}
}

func TestDifference_ListOfAnotherTypeIsAnError(t *testing.T) {
	indexer := newIndexer(t, newObject("ns", "a", nil), metadataOnly())
	for name, list := range lists(t, upstream(indexer)) {
		if !panics(func() { _, _ = list(labels.Everything()) }) {
			t.Errorf("upstream: %s does not panic", name)
		}
	}
	for name, list := range lists(t, ours(indexer)) {
		got, err := list(labels.Everything())
		if got != nil {
			t.Errorf("ours: %s = %v, want nil", name, got)
		}
		checkNamesBoth(t, name, err)
	}
}

func TestDifference_GetOfAnotherTypeIsAnError(t *testing.T) {
	indexer := newIndexer(t, metadataOnly())
	gets := func(s subject) map[string]func() (any, error) {
		return map[string]func() (any, error){
			"Get":                          func() (any, error) { return s.lister.Get("ns/b") },
			"Get in namespace":             func() (any, error) { return s.lister.Namespace("ns").Get("b") },
			"Get of the shim":              func() (any, error) { return s.generic.Get("ns/b") },
			"Get of the shim in namespace": func() (any, error) { return s.generic.ByNamespace("ns").Get("b") },
		}
	}
	for name, get := range gets(upstream(indexer)) {
		if !panics(func() { _, _ = get() }) {
			t.Errorf("upstream: %s does not panic", name)
		}
	}
	for name, get := range gets(ours(indexer)) {
		_, err := get()
		checkNamesBoth(t, name, err)
	}
}

// Only the objects that a selector selects are converted.
func TestLister_AnotherTypeThatIsNotSelectedIsNoError(t *testing.T) {
	indexer := newIndexer(t, newObject("ns", "a", map[string]string{"app": "z"}), metadataOnly())
	for name, list := range lists(t, ours(indexer)) {
		got, err := list(parseSelector(t, "app=z"))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff([]string{"ns/a"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// client-go returns the objects that it had found before the error; which ones
// they are is chance.
func TestDifference_ListThatFailsReturnsNoObjects(t *testing.T) {
	// A string has no labels to select by. The cache lists in any order: in some
	// of many runs an object comes before it.
	indexer := cache.NewIndexer(func(obj any) (string, error) {
		if s, ok := obj.(string); ok {
			return s, nil
		}
		return cache.MetaNamespaceKeyFunc(obj)
	}, cache.Indexers{})
	for _, obj := range []any{newObject("ns", "a", nil), newObject("ns", "b", nil), newObject("ns", "c", nil), "text"} {
		if err := indexer.Add(obj); err != nil {
			t.Fatal(err)
		}
	}
	selector := parseSelector(t, "!absent")
	partial := false
	for range 1000 {
		got, err := upstream(indexer).lister.List(selector)
		if err == nil {
			t.Fatal("upstream: no error")
		}
		partial = partial || got != nil
		if got, err := ours(indexer).lister.List(selector); got != nil || err == nil {
			t.Fatalf("ours: List = %v, %v; want nil and an error", got, err)
		}
	}
	if !partial {
		t.Error("upstream: never a part of the objects")
	}
}

// checkNamesBoth checks that err names the resource, and the type that was found
// where another was wanted.
func checkNamesBoth(t *testing.T, name string, err error) {
	t.Helper()
	if err == nil {
		t.Errorf("ours: %s: no error", name)
		return
	}
	for _, part := range []string{"widgets.example.com", "*v1.PartialObjectMetadata", "*unstructured.Unstructured"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("ours: %s: error %q does not name %s", name, err, part)
		}
	}
}
