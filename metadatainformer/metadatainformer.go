// Package metadatainformer has the names and behaviour of k8s.io/client-go/metadata/metadatainformer v0.37.2:
// a program changes only an import line to use it. Its informers are those of package dynamicinformer with
// metadata only: their objects are *metav1.PartialObjectMetadata, shared and read-only. The differences from
// client-go are those of package dynamicinformer.
//
// A program that also needs whole objects, leases or types that come and go uses
// [dynamicinformer.Factory] with the option [dynamicinformer.WithMetadataOnly].
package metadatainformer

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// SharedInformerFactory has the same methods as client-go's interface of this name. Values of the two
// interfaces can be assigned to each other.
type SharedInformerFactory = dynamicinformer.DynamicSharedInformerFactory

// TweakListOptionsFunc changes the options of list and watch requests. It is called for each request
// with the options of that request, concurrently.
type TweakListOptionsFunc = dynamicinformer.TweakListOptionsFunc

// SharedInformerOption is an option of NewSharedInformerFactoryWithOptions. A nil option has no effect.
type SharedInformerOption func(*options)

type options struct{ transform cache.TransformFunc }

// WithTransform sets the transform of all informers; see [dynamicinformer.WithTransform].
func WithTransform(transform cache.TransformFunc) SharedInformerOption {
	return func(o *options) { o.transform = transform }
}

// NewSharedInformerFactory returns a factory of informers on the metadata of objects in all namespaces.
func NewSharedInformerFactory(client metadata.Interface, defaultResync time.Duration) SharedInformerFactory {
	return NewFilteredSharedInformerFactory(client, defaultResync, metav1.NamespaceAll, nil)
}

// NewFilteredSharedInformerFactory returns a factory of informers on the metadata of objects in one
// namespace. If tweakListOptions is not nil, it is applied to each request.
func NewFilteredSharedInformerFactory(client metadata.Interface, defaultResync time.Duration, namespace string, tweakListOptions TweakListOptionsFunc) SharedInformerFactory {
	return dynamicinformer.NewFilteredMetadataSharedInformerFactory(client, defaultResync, namespace, tweakListOptions, nil)
}

// NewSharedInformerFactoryWithOptions is NewSharedInformerFactory with options.
func NewSharedInformerFactoryWithOptions(client metadata.Interface, defaultResync time.Duration, opts ...SharedInformerOption) SharedInformerFactory {
	var o options
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	return dynamicinformer.NewFilteredMetadataSharedInformerFactory(client, defaultResync, metav1.NamespaceAll, nil, o.transform)
}

// NewFilteredMetadataInformer returns an informer that does not belong to a factory; the caller runs it.
// If indexers is nil, it has no index, not even by namespace.
func NewFilteredMetadataInformer(client metadata.Interface, gvr schema.GroupVersionResource, namespace string, resyncPeriod time.Duration, indexers cache.Indexers, tweakListOptions TweakListOptionsFunc) informers.GenericInformer {
	return dynamicinformer.NewFilteredMetadataInformer(client, gvr, namespace, resyncPeriod, indexers, tweakListOptions)
}
