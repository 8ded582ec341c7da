package lister_test

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/lister"
)

// byApp indexes objects by the label app, and by namespace.
func byApp(t *testing.T, objs ...any) cache.Indexer {
	t.Helper()
	return fill(t, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc, "app": func(obj any) ([]string, error) {
		object, is := obj.(*unstructured.Unstructured)
		if !is {
			return []string{"a"}, nil
		}
		return []string{object.GetLabels()["app"]}, nil
	}}, objs)
}

// reads has each way to read the object ns/a.
var reads = map[string]func(r *lister.Reader) (*unstructured.Unstructured, error){
	"Get": func(r *lister.Reader) (*unstructured.Unstructured, error) { return r.Get("ns/a") },
	"Get of a namespace": func(r *lister.Reader) (*unstructured.Unstructured, error) {
		return r.Namespace("ns").Get("a")
	},
	"List": func(r *lister.Reader) (*unstructured.Unstructured, error) {
		return only(r.List(labels.SelectorFromSet(labels.Set{"app": "a"})))
	},
	"List of a namespace": func(r *lister.Reader) (*unstructured.Unstructured, error) {
		return only(r.Namespace("ns").List(labels.SelectorFromSet(labels.Set{"app": "a"})))
	},
	"ByIndex": func(r *lister.Reader) (*unstructured.Unstructured, error) { return only(r.ByIndex("app", "a")) },
	"Query": func(r *lister.Reader) (*unstructured.Unstructured, error) {
		result, err := r.Query(lister.Query{Where: "metadata.labels.app=a"})
		return only(result.Items, err)
	},
	"All": func(r *lister.Reader) (found *unstructured.Unstructured, err error) {
		for object, err := range r.All("ns", labels.SelectorFromSet(labels.Set{"app": "a"})) {
			if err != nil || found != nil {
				return nil, errors.Join(err, errors.New("another object"))
			}
			found = object
		}
		return found, nil
	},
}

func only(objects []*unstructured.Unstructured, err error) (*unstructured.Unstructured, error) {
	if err != nil || len(objects) != 1 {
		return nil, errors.Join(err, errors.New("not one object"))
	}
	return objects[0], nil
}

func TestReader_ObjectsAreTheCachesOwnOrCopies(t *testing.T) {
	cached := newObject("ns", "a", map[string]string{"app": "a"})
	indexer := byApp(t, cached, newObject("ns", "b", map[string]string{"app": "b"}))
	for name, read := range reads {
		if got, err := read(lister.NewReader(indexer, widgets, nil)); err != nil || got != cached {
			t.Errorf("%s returns a copy, error %v", name, err)
		}
		got, err := read(lister.NewReader(indexer, widgets, lister.WithCopies()))
		if err != nil || got == cached || got.GetName() != "a" {
			t.Errorf("%s with copies returns %v, %v", name, got, err)
			continue
		}
		got.SetLabels(nil)
		if cached.GetLabels()["app"] != "a" {
			t.Fatalf("%s with copies returns a part of the cached object", name)
		}
	}
}

func TestReader_ErrorsOfEachRead(t *testing.T) {
	broken := metadataOnly()
	broken.Name = "a"
	for name, read := range reads {
		for cause, r := range map[string]*lister.Reader{
			"the indexer is nil":              lister.NewReader(nil, widgets),
			"want *unstructured.Unstructured": lister.NewReader(byApp(t, broken), widgets, lister.WithCopies()),
		} {
			if got, err := read(r); got != nil || err == nil || !strings.Contains(err.Error(), cause) {
				t.Errorf("%s: %v, %v; want %q", name, got, err, cause)
			}
		}
	}
	r := lister.NewReader(byApp(t), widgets, lister.WithCopies())
	if _, err := r.ByIndex("color", "red"); err == nil || !strings.Contains(err.Error(), "widgets.example.com") {
		t.Errorf("an unknown index: %v", err)
	}
	if got, err := r.Get("ns/none"); got != nil || !apierrors.IsNotFound(err) {
		t.Errorf("Get returns %v, %v", got, err)
	}
}

// A transform may set a value that no decoder returns, and that apimachinery can't copy.
func TestReader_AnObjectThatCannotBeCopiedIsAnError(t *testing.T) {
	broken := newObject("ns", "a", map[string]string{"app": "a"})
	broken.Object["spec"] = map[string]any{"size": 5}
	r := lister.NewReader(byApp(t, broken, newObject("ns", "b", nil)), widgets, lister.WithCopies())
	for name, read := range reads {
		if got, err := read(r); got != nil || err == nil || !strings.Contains(err.Error(), "lister: ns/a can't be copied") {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if all, err := r.List(nil); all != nil || err == nil { // a list that fails returns no objects
		t.Errorf("List returns %d objects, %v", len(all), err)
	}
}

func TestReader_AllGoesOnAfterAnObjectOfAnotherType(t *testing.T) {
	r := lister.NewReader(newIndexer(t, newObject("ns", "a", nil), metadataOnly(), newObject("ns", "c", nil)), widgets)
	objects, failures := 0, 0
	for object, err := range r.All("", nil) {
		if (object == nil) == (err == nil) {
			t.Errorf("both are %v, %v", object, err)
		}
		if err == nil {
			objects++
		} else {
			failures++
		}
	}
	if objects != 2 || failures != 1 {
		t.Errorf("%d objects and %d errors", objects, failures)
	}
	for _, err := range r.All("", nil) {
		objects++
		if err != nil {
			t.Log(err) // it may come first
		}
		break
	}
	if objects != 3 {
		t.Errorf("the loop has gone on after its end")
	}
	for _, err := range lister.NewReader(nil, widgets).All("", nil) {
		failures++
		if err == nil {
			t.Error("no error without an indexer")
		}
	}
	if failures != 2 {
		t.Errorf("%d errors", failures)
	}
}

func TestReader_AllGoesOnAfterAnObjectThatCannotBeCopied(t *testing.T) {
	broken := newObject("ns", "b", nil)
	broken.Object["spec"] = map[string]any{"size": 5}
	copies, failures := 0, 0
	for _, err := range lister.NewReader(newIndexer(t, newObject("ns", "a", nil), broken, newObject("ns", "c", nil)), widgets, lister.WithCopies()).All("", nil) {
		if err == nil {
			copies++
		} else {
			failures++
		}
	}
	if copies != 2 || failures != 1 {
		t.Errorf("%d copies and %d errors", copies, failures)
	}
}

// The cache may be written to during an iteration.
func TestReader_AllDoesNotLockTheCache(t *testing.T) {
	indexer := newIndexer(t, newObject("ns", "a", nil), newObject("ns", "b", nil))
	seen := 0
	for object, err := range lister.NewReader(indexer, widgets).All("", nil) {
		if err != nil {
			t.Fatal(err)
		}
		seen++
		for _, change := range []func(any) error{indexer.Delete, func(any) error { return indexer.Add(newObject("ns", "c", nil)) }} {
			if err := change(object); err != nil {
				t.Fatal(err)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d objects, want those at the beginning", seen)
	}
}
