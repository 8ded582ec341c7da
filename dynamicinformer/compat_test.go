package dynamicinformer_test

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// These are the names of client-go's package with its signatures, as a program with a changed import
// line uses them. Values of the two interfaces can be assigned to each other, but function types that
// return them can't.

var (
	_ dynamicinformer.DynamicSharedInformerFactory = upstream.DynamicSharedInformerFactory(nil)
	_ upstream.DynamicSharedInformerFactory        = dynamicinformer.DynamicSharedInformerFactory(nil)

	_ dynamicinformer.TweakListOptionsFunc = upstream.TweakListOptionsFunc(nil)
	_ upstream.TweakListOptionsFunc        = dynamicinformer.TweakListOptionsFunc(nil)
)

// An option of client-go can be used, and a factory has client-go's type.
func _(client dynamic.Interface, tweak upstream.TweakListOptionsFunc) {
	var (
		_ upstream.DynamicSharedInformerFactory = dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
		_ upstream.DynamicSharedInformerFactory = dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, "", tweak)
	)
}

var _ func(dynamic.Interface, schema.GroupVersionResource, string, time.Duration, cache.Indexers, func(*metav1.ListOptions)) informers.GenericInformer = dynamicinformer.NewFilteredDynamicInformer
