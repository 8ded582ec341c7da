package lister_test

import (
	"fmt"
	"log"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/lister"
)

// A lister on the indexer of an informer, which is filled by hand here.
func ExampleNew() {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for name, tier := range map[string]string{"a": "gold", "b": "silver"} {
		gadget := &unstructured.Unstructured{}
		gadget.SetNamespace("default")
		gadget.SetName(name)
		gadget.SetLabels(map[string]string{"tier": tier})
		if err := indexer.Add(gadget); err != nil {
			log.Fatal(err)
		}
	}
	gadgets := lister.New(indexer, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"})

	gold, err := gadgets.Namespace("default").List(labels.SelectorFromSet(labels.Set{"tier": "gold"}))
	if err != nil {
		log.Fatal(err)
	}
	for _, cached := range gold {
		gadget := cached.DeepCopy() // cached objects are read-only
		gadget.SetLabels(nil)
		fmt.Println(cached.GetName(), cached.GetLabels(), gadget.GetLabels())
	}
	_, err = gadgets.Get("default/c")
	fmt.Println(err)
	// Output:
	// a map[tier:gold] map[]
	// gadgets.example.com "default/c" not found
}

// The fullest of the gold and silver gadgets.
func ExampleReader_Query() {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for name, spec := range map[string]map[string]any{
		"a": {"tier": "gold", "used": "900Mi"}, "b": {"tier": "silver", "used": "2Gi"}, "c": {"tier": "gold", "used": "1Gi"}, "d": {"tier": "bronze"},
	} {
		gadget := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		gadget.SetNamespace("default")
		gadget.SetName(name)
		if err := indexer.Add(gadget); err != nil {
			log.Fatal(err)
		}
	}
	gadgets := lister.NewReader(indexer, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"})

	result, err := gadgets.Query(lister.Query{Where: "spec.tier in (gold, silver), spec.used > 500Mi", SortBy: "spec.used", Descending: true, Limit: 2})
	if err != nil {
		log.Fatal(err)
	}
	for _, gadget := range result.Items { // read-only
		fmt.Println(gadget.GetName(), gadget.Object["spec"])
	}
	fmt.Println(result.Total, "in total")
	// Output:
	// b map[tier:silver used:2Gi]
	// c map[tier:gold used:1Gi]
	// 3 in total
}

// Gadget is the Go type of a custom resource.
type Gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Size int64 `json:"size"`
	} `json:"spec"`
}

// DeepCopyObject implements runtime.Object.
func (g *Gadget) DeepCopyObject() runtime.Object {
	copied := *g
	g.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

// A view of the unstructured objects of an informer as objects of a Go type. One of them does not fit.
func ExampleNewTyped() {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for name, size := range map[string]any{"a": int64(9007199254740993), "b": "large"} {
		gadget := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": size}}}
		gadget.SetNamespace("default")
		gadget.SetName(name)
		gadget.SetResourceVersion("1")
		if err := indexer.Add(gadget); err != nil {
			log.Fatal(err)
		}
	}
	gadgets := lister.NewTyped[*Gadget](indexer, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"})

	found, err := gadgets.List(labels.Everything())
	for _, gadget := range found { // read-only
		fmt.Println(gadget.Name, gadget.Spec.Size)
	}
	fmt.Println(err)
	// Output:
	// a 9007199254740993
	// gadgets.example.com "default/b": json: cannot unmarshal string into Go struct field .spec.size of type int64
}

// A program that already watches a type reads its metadata without another watch, for code that requires a metadata lister.
func ExampleNewMetadata() {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	gadget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Gadget"}}
	gadget.SetNamespace("default")
	gadget.SetName("a")
	gadget.SetLabels(map[string]string{"size": "large"})
	if err := indexer.Add(gadget); err != nil {
		log.Fatal(err)
	}
	metadata := lister.NewMetadata(indexer, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gadgets"})

	found, err := metadata.Namespace("default").Get("a")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Kind, found.Name, found.Labels) // read-only
	// Output: PartialObjectMetadata a map[size:large]
}
