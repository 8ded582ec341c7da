package lister_test

import (
	"fmt"
	"log"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
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
