package lister_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/lister"
	"github.com/gvrkit/gvrkit/metadatalister"
)

// plain is an object whose metadata can be read only by methods.
type plain struct {
	metav1.TypeMeta
	metav1.Object
}

func (p *plain) DeepCopyObject() kruntime.Object { panic("not called") }

// bare has no metadata, though it has the method.
type bare struct{ metav1.TypeMeta }

func (b *bare) GetObjectMeta() metav1.Object    { return nil }
func (b *bare) DeepCopyObject() kruntime.Object { panic("not called") }

// randomMetadata returns metadata in JSON, whose values may not fit their fields.
func randomMetadata(random *rand.Rand, name string) map[string]any {
	metadata := map[string]any{"name": name, "namespace": "ns", "uid": "uid-" + name, "resourceVersion": fmt.Sprint(random.IntN(100))}
	for field, values := range map[string][]any{
		"labels":                     {map[string]any{"app": "a"}, map[string]any{"app": nil}, map[string]any{}, nil, map[string]any{"app": 1}},
		"annotations":                {map[string]any{"note": "n", "other": ""}, []any{}},
		"generation":                 {7, nil, 0, "7"},
		"creationTimestamp":          {"2026-01-02T03:04:05Z", nil, "today"},
		"deletionTimestamp":          {"2026-01-02T03:04:05Z", nil, ""},
		"deletionGracePeriodSeconds": {30, 0, nil},
		"finalizers":                 {[]any{"a", "b"}, []any{}, nil, []any{"a", nil}, "a"},
		"ownerReferences":            {[]any{map[string]any{"kind": "Node", "name": "n", "uid": "u", "controller": true}}, []any{nil}},
		"managedFields":              {[]any{map[string]any{"manager": "m", "time": "2026-01-02T03:04:05Z", "fieldsV1": map[string]any{"f:spec": map[string]any{}}}}},
		"unknown":                    {map[string]any{"a": 1}},
		"Generation":                 {8},
	} {
		if random.IntN(3) > 0 {
			continue
		}
		metadata[field] = values[min(random.IntN(2*len(values)), len(values)-1)/(1+random.IntN(2))]
	}
	return metadata
}

// The metadata that a view reads is what an informer with metadata only decodes.
func TestMetadata_IsThatOfTheJSON(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var trees, fitting, typed, withMethods []any
	want, documents := map[string]*metav1.PartialObjectMetadata{}, map[string][]byte{}
	for i := range 400 {
		name := fmt.Sprint("b", i)
		data, err := json.Marshal(map[string]any{
			"apiVersion": "example.com/v1", "kind": "Widget", "metadata": randomMetadata(random, name), "spec": map[string]any{"sequence": "x", "tier": 1 << 40},
		})
		if err != nil {
			t.Fatal(err)
		}
		tree := map[string]any{}
		if err := utiljson.Unmarshal(data, &tree); err != nil {
			t.Fatal(err)
		}
		trees, documents[name] = append(trees, &unstructured.Unstructured{Object: tree}), data
		metadata := &metav1.PartialObjectMetadata{}
		if err := utiljson.Unmarshal(data, metadata); err != nil {
			continue
		}
		metadata.TypeMeta = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"}
		want[name] = metadata
		fitting = append(fitting, metadata)
		typed = append(typed, &block{TypeMeta: metav1.TypeMeta{Kind: "Widget"}, ObjectMeta: metadata.ObjectMeta})
		withMethods = append(withMethods, &plain{Object: &metadata.ObjectMeta})
	}
	if len(want) < 80 || len(want) > 320 {
		t.Fatalf("%d objects fit", len(want))
	}
	for form, cached := range map[string]struct {
		indexer cache.Indexer
		all     bool
	}{
		"unstructured":           {newIndexer(t, trees...), true},
		"packed":                 {newPacked(t, trees...), true},
		"metadata":               {newIndexer(t, fitting...), false},
		"a Go type":              {newIndexer(t, typed...), false},
		"a Go type with methods": {newIndexer(t, withMethods...), false},
	} {
		view := lister.NewMetadata(cached.indexer, widgets)
		if got, err := view.List(nil); len(got) != len(want) || (err != nil) != cached.all {
			t.Errorf("%s: %d objects, want %d; error %.200v", form, len(got), len(want), err)
		}
		for name, data := range documents {
			got, err := view.Namespace("ns").Get(name)
			switch {
			case want[name] != nil && err == nil:
				if diff := cmp.Diff(want[name], got); diff != "" {
					t.Errorf("%s (-want +got):\n%s\n%s", form, diff, data)
				}
			case want[name] != nil || cached.all && !errors.Is(err, lister.ErrConversion):
				t.Errorf("%s: error %v\n%s", form, err, data)
			}
		}
	}
}

func TestMetadata_ReadsAsALister(t *testing.T) {
	for form, newCache := range map[string]func(objs ...any) cache.Indexer{
		"unstructured": func(objs ...any) cache.Indexer { return newIndexer(t, objs...) },
		"packed":       func(objs ...any) cache.Indexer { return newPacked(t, objs...) },
	} {
		t.Run(form, func(t *testing.T) {
			view := lister.NewMetadata(newCache(
				newObject("ns", "a", map[string]string{"app": "a"}), newObject("other", "b", map[string]string{"app": "b"}), newObject("", "c", nil),
			), widgets)
			read := func(objects []*metav1.PartialObjectMetadata, err error) string {
				return fmt.Sprintf("%q, %v", keys(objects), err)
			}
			for call, c := range map[string]struct{ got, want string }{
				"List(nil)":                  {read(view.List(nil)), `["c" "ns/a" "other/b"], <nil>`},
				"List(app=b)":                {read(view.List(parseSelector(t, "app=b"))), `["other/b"], <nil>`},
				`Namespace("ns").List`:       {read(view.Namespace("ns").List(labels.Everything())), `["ns/a"], <nil>`},
				`Namespace("").List`:         {read(view.Namespace("").List(nil)), `["c" "ns/a" "other/b"], <nil>`},
				"Nothing":                    {read(view.List(labels.Nothing())), `[], <nil>`},
				"List by the shim (of type)": {fmt.Sprintf("%T", first(t, metadatalister.NewRuntimeObjectShim(view))), "*v1.PartialObjectMetadata"},
			} {
				if c.got != c.want {
					t.Errorf("%s = %s, want %s", call, c.got, c.want)
				}
			}
			for key, get := range map[string]func(string) (*metav1.PartialObjectMetadata, error){"ns/a": view.Get, "c": view.Get, "b": view.Namespace("other").Get} {
				one, err := get(key)
				if err != nil || !strings.HasSuffix(key, one.Name) || one.Kind != "PartialObjectMetadata" {
					t.Errorf("Get(%q) = %v, %v", key, one, err)
				}
				if again, err := get(key); err != nil || again != one {
					t.Errorf("Get(%q) is another object the second time, error %v", key, err)
				}
				if absent, err := get("absent"); absent != nil || !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `widgets.example.com "absent"`) {
					t.Errorf("Get = %v, %v", absent, err)
				}
			}
		})
	}
}

func first(t *testing.T, l cache.GenericLister) kruntime.Object {
	t.Helper()
	all, err := l.List(labels.Everything())
	if err != nil || len(all) == 0 {
		t.Fatalf("%v, %v", all, err)
	}
	return all[0]
}

func TestMetadata_FollowsTheCache(t *testing.T) {
	indexer := newIndexer(t, newBlock(t, "ns", "a", "1", `{}`))
	view := lister.NewMetadata(indexer, widgets)
	for _, version := range []string{"2", "2", ""} {
		changed := newBlock(t, "ns", "a", version, `{}`)
		changed.SetLabels(map[string]string{"at": version})
		update(t, indexer, changed)
		if got, err := view.Get("ns/a"); err != nil || got.ResourceVersion != version || got.Labels["at"] != version {
			t.Errorf("%v, %v", got, err)
		}
	}
	if err := indexer.Delete(newObject("ns", "a", nil)); err != nil {
		t.Fatal(err)
	}
	if got, err := view.Get("ns/a"); !apierrors.IsNotFound(err) {
		t.Errorf("%v, %v", got, err)
	}
}

func TestMetadata_ErrorsNameTheObjectAndAreNoPanics(t *testing.T) {
	bad := newBlock(t, "ns", "bad", "7", `{}`)
	bad.Object["metadata"].(map[string]any)["labels"] = map[string]any{"app": []any{"secret"}}
	for form, indexer := range map[string]cache.Indexer{
		"unstructured": newIndexer(t, bad, newObject("ns", "good", nil)),
		"packed":       newPacked(t, bad, newObject("ns", "good", nil)),
	} {
		all, err := lister.NewMetadata(indexer, widgets).List(nil)
		wrong, is := errors.AsType[*lister.ConversionError](err)
		if !is || wrong.Name != "ns/bad" || wrong.GVR != widgets || strings.Contains(err.Error(), "secret") || len(all) != 1 || all[0].Name != "good" {
			t.Errorf("%s: %v, %v", form, keys(all), err)
		}
	}
	for form, cached := range map[string]any{"a text": "text", "no metadata": &bare{}, "a number": 1} {
		indexer := cache.NewIndexer(func(any) (string, error) { return "ns/x", nil }, cache.Indexers{})
		update(t, indexer, cached)
		if got, err := lister.NewMetadata(indexer, widgets).Get("ns/x"); got != nil || err == nil || !strings.Contains(err.Error(), "lister: widgets.example.com: ") {
			t.Errorf("%s: %v, %v", form, got, err)
		}
	}
	if got, err := lister.NewMetadata(newIndexer(t, metadataOnly()), widgets).Get("ns/b"); err != nil || got.Kind != "" {
		t.Errorf("metadata is not that of the cache: %v, %v", got, err)
	}
	view := lister.NewMetadata(nil, widgets)
	if all, err := view.List(nil); len(all) > 0 || err == nil || !strings.Contains(err.Error(), "the indexer is nil") {
		t.Errorf("no indexer: %v, %v", all, err)
	}
	if one, err := view.Namespace("ns").Get("a"); one != nil || err == nil || !strings.Contains(err.Error(), "the indexer is nil") {
		t.Errorf("no indexer: %v, %v", one, err)
	}
}

// The result for an object of a Go type is not kept.
func TestMetadata_DropsTheConversionsOfDeletedObjectsBesideObjectsOfGoTypes(t *testing.T) {
	indexer := newBlocks(t, 10)
	view := lister.NewMetadata(indexer, widgets)
	if _, err := view.List(nil); err != nil {
		t.Fatal(err)
	}
	one, err := view.Get("ns/b7")
	if err != nil {
		t.Fatal(err)
	}
	gone := weak.Make(one)
	if err := indexer.Delete(newObject("ns", "b7", nil)); err != nil {
		t.Fatal(err)
	}
	update(t, indexer, &block{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "other"}})
	if all, err := view.List(nil); len(all) != 10 || err != nil {
		t.Errorf("%v, %v", keys(all), err)
	}
	runtime.GC()
	if gone.Value() != nil {
		t.Error("the conversion is still in memory")
	}
	runtime.KeepAlive(view)
}
