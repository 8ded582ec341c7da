package lister_test

import (
	"strconv"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/gvrkit/gvrkit/lister"
)

func TestLister_ObjectsAreTheCachesOwn(t *testing.T) {
	cached := newObject("ns", "a", nil)
	s := ours(newIndexer(t, cached))
	listed, err := s.lister.List(labels.Everything())
	if err != nil || len(listed) != 1 {
		t.Fatalf("List = %v, %v; want one object", listed, err)
	}
	if listed[0] != cached {
		t.Error("List returned a copy")
	}
	generic, err := s.generic.List(labels.Everything())
	if err != nil || len(generic) != 1 {
		t.Fatalf("List of the shim = %v, %v; want one object", generic, err)
	}
	if generic[0] != cached {
		t.Error("List of the shim returned a copy")
	}
	if got, err := s.lister.Namespace("ns").Get("a"); got != cached {
		t.Errorf("Get returned a copy, error %v", err)
	}
	if got, err := s.generic.Get("ns/a"); got != cached {
		t.Errorf("Get of the shim returned a copy, error %v", err)
	}
}

func TestLister_SlicesAreTheCallers(t *testing.T) {
	for name, list := range map[string]func(lister.Lister) ([]string, error){
		"List": func(l lister.Lister) ([]string, error) {
			objs, err := l.List(labels.Everything())
			got := keys(objs)
			clear(objs)
			return got, err
		},
		"List of the shim": func(l lister.Lister) ([]string, error) {
			objs, err := lister.NewRuntimeObjectShim(l).List(labels.Everything())
			got := keys(unwrap(t, objs))
			clear(objs)
			return got, err
		},
	} {
		l := lister.New(newIndexer(t, newObject("ns", "a", nil)), widgets)
		for range 2 {
			got, err := list(l)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if diff := cmp.Diff([]string{"ns/a"}, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

func TestLister_GetOfAMissingObjectIsNotFound(t *testing.T) {
	_, err := lister.New(newIndexer(t), widgets).Namespace("ns").Get("nobody")
	if !apierrors.IsNotFound(err) {
		t.Errorf("error is %v, want one that IsNotFound", err)
	}
	if got, want := err.Error(), `widgets.example.com "nobody" not found`; got != want {
		t.Errorf("text = %q, want %q", got, want)
	}
}

func TestLister_ReadsWhatTheCacheHoldsNow(t *testing.T) {
	indexer := newIndexer(t)
	s := ours(indexer)
	inNamespace := s.lister.Namespace("ns")
	if got, err := inNamespace.List(labels.Everything()); len(got) != 0 || err != nil {
		t.Errorf("List of an empty cache = %v, %v", got, err)
	}
	cached := newObject("ns", "a", nil)
	if err := indexer.Add(cached); err != nil {
		t.Fatal(err)
	}
	if got, err := inNamespace.Get("a"); got != cached {
		t.Errorf("Get after the object came = %v, %v", got, err)
	}
	if err := indexer.Delete(cached); err != nil {
		t.Fatal(err)
	}
	if got, err := inNamespace.Get("a"); !apierrors.IsNotFound(err) {
		t.Errorf("Get after the object went = %v, %v", got, err)
	}
}

// The race detector is what judges this one.
func TestLister_ReadersAndTheInformerRunTogether(t *testing.T) {
	indexer := newIndexer(t)
	s := ours(indexer)
	selector := parseSelector(t, "app=a")
	var wg sync.WaitGroup
	for writer := range 2 {
		wg.Go(func() {
			for i := range 100 {
				obj := newObject("ns", strconv.Itoa(writer)+"-"+strconv.Itoa(i%10), map[string]string{"app": "a"})
				if err := indexer.Update(obj); err != nil {
					t.Error(err)
				}
				if err := indexer.Delete(obj); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			// Nothing of t in here: its lock would order the readers.
			for range 100 {
				if _, err := s.lister.List(selector); err != nil {
					t.Errorf("List: %v", err)
				}
				if _, err := s.generic.ByNamespace("ns").List(selector); err != nil {
					t.Errorf("List of the shim in a namespace: %v", err)
				}
				if _, err := s.generic.Get("ns/0-1"); err != nil && !apierrors.IsNotFound(err) {
					t.Errorf("Get of the shim: %v", err)
				}
			}
		})
	}
	wg.Wait()
}

func TestLister_OfANilIndexerIsAnError(t *testing.T) {
	l := lister.New(nil, widgets)
	generic := lister.NewRuntimeObjectShim(l)
	for name, err := range map[string]error{
		"List":                  second(l.List(labels.Everything())),
		"Get":                   second(l.Get("ns/a")),
		"List of the namespace": second(l.Namespace("ns").List(nil)),
		"Get of the namespace":  second(l.Namespace("ns").Get("a")),
		"List of the shim":      second(generic.List(nil)),
		"Get of the shim":       second(generic.ByNamespace("ns").Get("a")),
	} {
		if err == nil || err.Error() != "lister: widgets.example.com: the indexer is nil" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
