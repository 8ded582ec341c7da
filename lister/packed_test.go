package lister_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/lister"
	"github.com/gvrkit/gvrkit/packed"
)

// packedCache is the indexer of a packed cache, as informers have it. It counts the objects that it unpacks.
type packedCache struct {
	cache.Indexer // a test fails that reads it by the methods of cache.Indexer
	cached        cache.Indexer
	unpacked      int
}

func (c *packedCache) Packed() (cache.Indexer, func(any) any) { return c.cached, c.unpack }

func (c *packedCache) unpack(cached any) any {
	if object, is := cached.(*packed.Object); is {
		c.unpacked++
		return object.Unstructured()
	}
	return cached
}

// object is any object.
type object interface {
	metav1.Object
	runtime.Object
}

// newPacked returns a packed cache of objs; those that are not unstructured are cached as they are.
func newPacked(tb testing.TB, objs ...any) *packedCache {
	tb.Helper()
	packer, cached := packed.NewPacker(), make([]any, len(objs))
	for i, obj := range objs {
		cached[i] = obj
		if tree, is := obj.(*unstructured.Unstructured); is {
			object, err := packer.Pack(tree)
			if err != nil {
				tb.Fatal(err)
			}
			cached[i] = object
		}
	}
	return &packedCache{cached: newIndexer(tb, cached...)}
}

// manyPacked returns a packed cache of 10,000 objects, of which each hundredth has the label tier=gold.
func manyPacked(tb testing.TB) *packedCache {
	tb.Helper()
	var objs []any
	for i := range 10_000 {
		tier := "silver"
		if i%100 == 0 {
			tier = "gold"
		}
		obj := newObject(fmt.Sprintf("ns-%d", i%10), fmt.Sprintf("widget-%d", i), map[string]string{"tier": tier, "app": fmt.Sprintf("app-%d", i%50)})
		obj.SetResourceVersion(fmt.Sprint(i + 1))
		obj.Object["spec"] = map[string]any{"size": int64(i), "color": fmt.Sprintf("color-%d", i%7), "ports": []any{map[string]any{"name": "http", "port": int64(i)}}}
		objs = append(objs, obj)
	}
	return newPacked(tb, objs...)
}

var gold = labels.SelectorFromSet(labels.Set{"tier": "gold"})

func TestPacked_OnlyResultsAreUnpacked(t *testing.T) {
	c := manyPacked(t)
	r := lister.NewReader(c, widgets)
	count := func(objects int, err error) error {
		if err == nil && objects == 0 {
			return fmt.Errorf("nothing is found")
		}
		return err
	}
	for _, read := range []struct {
		name     string
		read     func() error
		unpacked int
	}{
		{"List", func() error { found, err := r.List(gold); return count(len(found), err) }, 100},
		{"List of a namespace", func() error { found, err := r.Namespace("ns-0").List(gold); return count(len(found), err) }, 100},
		{"List of everything in a namespace", func() error { found, err := r.Namespace("ns-1").List(nil); return count(len(found), err) }, 1000},
		{"List of nothing", func() error { _, err := r.List(labels.Nothing()); return err }, 0},
		{"the generic lister", func() error { found, err := lister.NewRuntimeObjectShim(r).List(gold); return count(len(found), err) }, 100},
		{"All, three steps", func() error {
			n := 0
			for _, err := range r.All("", gold) {
				if n++; n == 3 || err != nil {
					return err
				}
			}
			return nil
		}, 3},
		{"a page", func() error {
			result, err := r.Query(lister.Query{Where: `spec.color=color-3,spec.ports[?(@.name=="http")].port>2000`, SortBy: "spec.size", Descending: true, Offset: 10, Limit: 5})
			return count(len(result.Items), err)
		}, 5},
		{"Count", func() error { n, err := r.Count(lister.Query{Where: "spec.size>5000"}); return count(n, err) }, 0},
		{"AllCached", func() error {
			n := 0
			for object, err := range lister.AllCached[*packed.Object](r, "", gold) {
				if n++; err != nil || object.GetLabels()["tier"] != "gold" {
					return fmt.Errorf("%v, %w", object, err)
				}
			}
			return count(n/100, nil)
		}, 0},
		{"GetCached", func() error { _, err := lister.GetCached[*packed.Object](r, "ns-3/widget-13"); return err }, 0},
		{"Get", func() error { _, err := r.Get("ns-3/widget-13"); return err }, 1},
	} {
		if c.unpacked = 0; read.read() != nil || c.unpacked != read.unpacked {
			t.Errorf("%s unpacks %d objects, want %d, error %v", read.name, c.unpacked, read.unpacked, read.read())
		}
	}
	if got := testing.AllocsPerRun(10, func() { _, _ = r.Count(lister.Query{Selector: gold}) }); got > 1000 {
		t.Errorf("a selector on 10,000 objects makes %v allocations", got)
	}
}

// A transform may have replaced an object. Its labels count, and it is the error that it is in other caches.
func TestPacked_AnObjectOfAnotherTypeIsAnError(t *testing.T) {
	a := newObject("ns", "a", map[string]string{"app": "a"})
	r := lister.NewReader(newPacked(t, a, metadataOnly()), widgets)
	for _, selector := range []labels.Selector{nil, labels.SelectorFromSet(labels.Set{"app": "a"})} {
		_, err := r.List(selector)
		_, queryErr := r.Query(lister.Query{Selector: selector})
		for _, err := range []error{err, queryErr} {
			if err == nil || !strings.Contains(err.Error(), "cached object is a *v1.PartialObjectMetadata, want *unstructured.Unstructured") {
				t.Errorf("error %v", err)
			}
		}
		var found []string
		for object, err := range lister.AllCached[object](r, "ns", selector) {
			found = append(found, fmt.Sprintf("%s %v", object.GetName(), err))
		}
		slices.Sort(found)
		if diff := cmp.Diff([]string{"a <nil>", "b <nil>"}, found); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if objects, err := r.List(labels.SelectorFromSet(labels.Set{"app": "other"})); err != nil || len(objects) != 0 {
		t.Errorf("%v, %v", objects, err)
	}
}

func TestPacked_CachedObjectsHaveTheErrorsOfReaders(t *testing.T) {
	incomplete := fmt.Errorf("incomplete")
	r := lister.NewReader(newPacked(t, newObject("ns", "a", nil)), widgets, lister.WithCompleteness(func(string) error { return incomplete }))
	if object, err := lister.GetCached[*packed.Object](r, "ns/none"); object != nil || err != incomplete { //nolint:errorlint // the same error
		t.Errorf("%v, %v", object, err)
	}
	if object, err := lister.GetCached[*unstructured.Unstructured](r, "ns/a"); object != nil || err == nil || !strings.Contains(err.Error(), "cached object is a *packed.Object, want *unstructured.Unstructured") {
		t.Errorf("%v, %v", object, err)
	}
	if _, err := lister.GetCached[*packed.Object](lister.NewReader(newPacked(t), widgets), "none"); !apierrors.IsNotFound(err) {
		t.Errorf("error %v", err)
	}
	var last error
	for _, err := range lister.AllCached[*packed.Object](r, "", nil) {
		last = err
	}
	if last != incomplete { //nolint:errorlint // the same error
		t.Errorf("the last error is %v", last)
	}
}

func BenchmarkPacked(b *testing.B) {
	c := manyPacked(b)
	r := lister.NewReader(c, widgets)
	for _, bench := range []struct {
		name string
		read func() error
	}{
		{"select=1%", func() error { _, err := r.List(gold); return err }},
		{"select=all", func() error { _, err := r.List(nil); return err }},
		{"query", func() error {
			_, err := r.Query(lister.Query{Where: "spec.color=color-3", SortBy: "spec.size", Limit: 20})
			return err
		}},
		{"iterate=packed", func() error {
			for _, err := range lister.AllCached[*packed.Object](r, "", gold) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		b.Run(bench.name+"/objects=10000", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := bench.read(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
