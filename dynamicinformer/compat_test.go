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

// The names of client-go's package, with its signatures: what compiles here
// compiles in a program that has changed its import line. Values of the two
// interfaces assign to each other; function types that return them do not.

var (
	_ dynamicinformer.DynamicSharedInformerFactory = upstream.DynamicSharedInformerFactory(nil)
	_ upstream.DynamicSharedInformerFactory        = dynamicinformer.DynamicSharedInformerFactory(nil)

	_ dynamicinformer.TweakListOptionsFunc = upstream.TweakListOptionsFunc(nil)
	_ upstream.TweakListOptionsFunc        = dynamicinformer.TweakListOptionsFunc(nil)
)

// A client-go option passes as it is, and gives a factory of client-go's type.
func _(client dynamic.Interface, tweak upstream.TweakListOptionsFunc) {
	var (
		_ upstream.DynamicSharedInformerFactory = dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
		_ upstream.DynamicSharedInformerFactory = dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, "", tweak)
	)
}

var _ func(dynamic.Interface, schema.GroupVersionResource, string, time.Duration, cache.Indexers, func(*metav1.ListOptions)) informers.GenericInformer = dynamicinformer.NewFilteredDynamicInformer
