// Package sample watches IPAMBlocks with a dynamic informer factory.
package sample

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// Run sends what happens to IPAMBlocks to events until stop closes.
func Run(config *rest.Config, stop <-chan struct{}, events chan<- string) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	gvr := schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"}

	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 5*time.Second, metav1.NamespaceAll, nil)
	informer := factory.ForResource(gvr).Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			events <- "added " + obj.(*unstructured.Unstructured).GetName()
		},
		UpdateFunc: func(_, obj any) {
			events <- "updated " + obj.(*unstructured.Unstructured).GetName()
		},
		DeleteFunc: func(obj any) {
			events <- "deleted " + obj.(*unstructured.Unstructured).GetName()
		},
	})
	if err != nil {
		return err
	}

	factory.Start(stop)
	for gvr, synced := range factory.WaitForCacheSync(stop) {
		if !synced {
			return fmt.Errorf("the cache of %v did not sync", gvr)
		}
	}
	events <- "synced"
	<-stop
	factory.Shutdown()
	return nil
}
