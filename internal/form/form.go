package form

import (
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/gotype"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/typed"
	"github.com/gvrkit/gvrkit/internal/wire"
	"github.com/gvrkit/gvrkit/lister"
	"github.com/gvrkit/gvrkit/metadatalister"
)

// Form is the form of an informer's objects: their Go type, and how they are requested and decoded. Equal
// forms can share an informer.
type Form interface {
	// Check returns an [*Error] if c has no client for this form.
	Check(c *Clients) error
	// Client returns the client of one informer, which sets transformed, if that is not nil, while it
	// has a transform.
	Client(c *Clients) (client source.Client, transformed *atomic.Bool, err error)
	// Lister returns a lister on the objects of indexer.
	Lister(indexer cache.Indexer, gvr schema.GroupVersionResource) cache.GenericLister
	// String returns the name of the form in a status. It is empty for the default form.
	String() string
}

// Error says that a form can't be had.
type Error struct {
	// Option is the option that asks for the form, or the function.
	Option string
	Err    error
}

// Error implements error.
func (e *Error) Error() string { return e.Option + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Fits returns an [*Error] if objects of res are certainly not those of the form. If the kind of res is not known, it
// returns nil.
func Fits(f Form, res discovery.Resource) error {
	typed, is := f.(interface {
		Fits(gvk schema.GroupVersionKind) error
	})
	if !is {
		return nil
	}
	if err := typed.Fits(res.GVK); err != nil {
		return &Error{Option: "AcquireTyped", Err: fmt.Errorf("%s: %w", discovery.RefOf(res.GVR), err)}
	}
	return nil
}

// Unstructured is the default form: *unstructured.Unstructured.
type Unstructured struct{}

// Check implements Form.
func (Unstructured) Check(*Clients) error { return nil }

// Client implements Form.
func (Unstructured) Client(c *Clients) (source.Client, *atomic.Bool, error) {
	if c.shared == nil {
		return source.Unstructured(c.Own), nil, nil
	}
	chosen := &choice{usual: c.shared, unshared: c.unshared}
	return source.Unstructured(chosen), &chosen.transformed, nil
}

// Lister implements Form.
func (Unstructured) Lister(indexer cache.Indexer, gvr schema.GroupVersionResource) cache.GenericLister {
	return lister.NewRuntimeObjectShim(lister.New(indexer, gvr))
}

// String implements Form.
func (Unstructured) String() string { return "" }

// Metadata is the form of WithMetadataOnly: *metav1.PartialObjectMetadata.
type Metadata struct{}

var errNoMetadataClient = errors.New("the factory has no metadata client: call New with WithMetadataClient")

// Check implements Form.
func (Metadata) Check(c *Clients) error {
	if source.Metadata(c.Metadata) == nil {
		return &Error{Option: "WithMetadataOnly", Err: errNoMetadataClient}
	}
	return nil
}

// Client implements Form.
func (Metadata) Client(c *Clients) (source.Client, *atomic.Bool, error) {
	if c.partial != nil && c.sharing == wire.Shared {
		client, transformed := typed.Sharing(c.partial)
		return client, transformed, nil
	}
	if c.partial != nil {
		return c.partial, nil, nil
	}
	return source.Metadata(c.Metadata), nil, nil
}

// Lister implements Form.
func (Metadata) Lister(indexer cache.Indexer, gvr schema.GroupVersionResource) cache.GenericLister {
	return metadatalister.NewRuntimeObjectShim(metadatalister.New(indexer, gvr))
}

// String implements Form.
func (Metadata) String() string { return "metadata" }

// Typed is the form of AcquireTyped and WithGoType.
type Typed struct{ gotype.Of[source.Object] }

// OfType returns the form of objects of type t.
func OfType(t reflect.Type) Typed { return Typed{gotype.Of[source.Object]{Type: t}} }

// Check implements Form.
func (t Typed) Check(*Clients) error {
	if err := t.Of.Check(); err != nil {
		return &Error{Option: "AcquireTyped", Err: err}
	}
	return nil
}

// Client implements Form.
func (t Typed) Client(c *Clients) (source.Client, *atomic.Bool, error) {
	if c.typed == nil {
		return typed.Convert(c.Own, t.Of), nil, nil
	}
	return typed.New(c.typed, t.Of, c.sharing)
}

// Lister implements Form.
func (Typed) Lister(indexer cache.Indexer, gvr schema.GroupVersionResource) cache.GenericLister {
	return cache.NewGenericLister(indexer, gvr.GroupResource())
}

// Mixed is the form of AcquireTyped with WithMetadataOnly, which no lease has.
type Mixed struct{ Metadata }

// Check implements Form.
func (Mixed) Check(*Clients) error {
	return &Error{Option: "WithMetadataOnly", Err: errors.New("AcquireTyped returns whole objects: use Acquire")}
}
