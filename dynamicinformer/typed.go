package dynamicinformer

import (
	"context"
	"errors"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/listers"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/form"
	"github.com/gvrkit/gvrkit/lister"
)

// Object is the constraint on the type T of [AcquireTyped]: a pointer to a struct with TypeMeta and ObjectMeta.
type Object = lister.Object

// TypedLease is a lease on an informer whose objects are of type T. Cached objects are shared and read-only. It has all methods of
// [Lease]; Informer and Lister have client-go's typed variants.
type TypedLease[T Object] struct {
	*Lease
}

// AcquireTyped is [Factory.Acquire] for an informer whose objects are of type T, such as *corev1.Pod or the Go type of a custom resource. With a factory of
// NewForConfig, the server's JSON is decoded straight to T. With a factory of New, the objects of its client are converted to T. Fields that T does not have
// are dropped. T is also the type of objects in transforms, index functions and handlers. Objects share equal parts of metadata and of fields of type any, and
// pointers to small integers, as in [NewForConfig]. [WithGoType] is for a type that is known only at run time.
//
// An object that can't be decoded to T is left out, and the status names it, with [status.ReasonDecodeFailed]; all others are served. The
// object is added with its next version that can be decoded. The same is true of an object for which the transform returns another type.
// Leases with equal T share an informer; the informers of other leases on gvr are separate. Fields that [WithClientOptions] leaves out are zero.
//
// The error is an [*OptionError] with [WithMetadataOnly], if T is not a pointer to a struct that embeds TypeMeta and ObjectMeta as values, or
// if T is a type of k8s.io/api and discovery knows that gvr has another kind, group or version. Before discovery knows that, objects of
// another kind are left out. Any other T is not compared with the kind: objects of another type are cached with the fields that T has.
func AcquireTyped[T Object](ctx context.Context, f *Factory, gvr schema.GroupVersionResource, opts ...LeaseOption) (*TypedLease[T], error) {
	if f == nil {
		return nil, errors.New("dynamicinformer: acquire: the factory is nil")
	}
	opts = append(slices.Clip(opts), leaseOptionFunc(func(o *leaseOptions) {
		if o.form == (form.Metadata{}) {
			o.form = form.Mixed{}
			return
		}
		o.form = form.OfType(reflect.TypeFor[T]())
	}))
	lease, err := f.Acquire(ctx, gvr, opts...)
	if err != nil {
		return nil, err
	}
	return &TypedLease[T]{lease}, nil
}

// WithGoType makes the objects of the lease's informer values of the Go type of example, as [AcquireTyped] does for T. Only the type of example is used. It
// replaces an earlier [WithMetadataOnly].
func WithGoType(example runtime.Object) LeaseOption {
	return leaseOptionFunc(func(o *leaseOptions) { o.form = form.OfType(reflect.TypeOf(example)) })
}

// Informer returns the lease's view of the shared informer, as [Lease.Informer] does. A nil handler of AddTypedEventHandler panics at its first event.
func (l *TypedLease[T]) Informer() cache.TypedSharedIndexInformer[T] {
	return cache.NewTypedSharedIndexInformer[T](l.Lease.Informer())
}

// Lister returns a lister on the informer's cache. Its objects are shared and read-only. listers.NewNamespaced limits it to a namespace.
// Unlike the lister of Lease, it does not report that namespaces of a set are missing: [Lease.Status] does.
func (l *TypedLease[T]) Lister() listers.ResourceIndexer[T] {
	return listers.New[T](l.Lease.Informer().GetIndexer(), l.entry.gvr.GroupResource())
}
