package dynamicinformer_test

import (
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"

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

func _(client dynamic.Interface) {
	var (
		tweak upstream.TweakListOptionsFunc

		_ upstream.DynamicSharedInformerFactory = dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
		_ upstream.DynamicSharedInformerFactory = dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, "", tweak)
		_ informers.GenericInformer             = dynamicinformer.NewFilteredDynamicInformer(client, widgets, "", 0, nil, tweak)
	)
}
