package source

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/watchlist"

	"github.com/gvrkit/gvrkit/internal/errtext"
)

// ErrNotAList is the error of a list whose response is not a list.
var ErrNotAList = errors.New("the response is not a list")

// ErrInvalid is the error of a source whose configuration allows no request.
var ErrInvalid = errors.New("invalid client or options")

var errNoClient = fmt.Errorf("%w: the client is nil", ErrInvalid)

// Object is an object of an informer.
type Object interface {
	metav1.Object
	runtime.Object
}

// Client sends requests and decodes the responses: it determines the form of a source's objects, which
// is their Go type.
type Client interface {
	// List and Watch send a request for the objects of gvr in namespace. An empty namespace means all
	// namespaces, or that the type is cluster-scoped.
	List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (runtime.Object, error)
	Watch(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (watch.Interface, error)
	// Convert returns the function that converts an object of a list or event to the source's form; nil:
	// the objects have this form. If the function returns an error, the object is left out.
	Convert() func(obj runtime.Object) (runtime.Object, error)
	// New returns an empty object of a type of kind gvk, for an event that no server has sent.
	New(gvk schema.GroupVersionKind) Object
	// KeepsKind reports whether objects have the kind of their type. If they do, the source rejects
	// objects of another kind.
	KeepsKind() bool
	// IsWatchListSemanticsUnSupported is client-go's marker of clients that do not support watch-lists.
	IsWatchListSemanticsUnSupported() bool
}

// Unstructured returns a client whose objects are *unstructured.Unstructured. If client is nil, or
// holds a nil pointer, the result is nil.
func Unstructured(client dynamic.Interface) Client {
	if isNil(client) {
		return nil
	}
	return unstructuredClient{client}
}

type unstructuredClient struct{ dynamic.Interface }

func (c unstructuredClient) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	list, err := c.Resource(gvr).Namespace(namespace).List(ctx, opts)
	if err != nil {
		return nil, err
	}
	// Without this check, the response would be read as an empty list and empty the cache.
	if kind := list.GetKind(); kind != "" && !strings.HasSuffix(kind, "List") {
		return nil, fmt.Errorf("%w: the server sent a %s", ErrNotAList, errtext.Cut(kind))
	}
	return list, nil
}

func (c unstructuredClient) Watch(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	return c.Resource(gvr).Namespace(namespace).Watch(ctx, opts)
}

func (c unstructuredClient) Convert() func(runtime.Object) (runtime.Object, error) { return nil }

func (c unstructuredClient) New(gvk schema.GroupVersionKind) Object {
	obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{}}}
	obj.SetGroupVersionKind(gvk)
	return obj
}

func (c unstructuredClient) KeepsKind() bool { return true }

func (c unstructuredClient) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(c.Interface)
}

// Metadata returns a client whose objects are *metav1.PartialObjectMetadata: it requests only the
// metadata from the server. If client is nil, or holds a nil pointer, the result is nil.
func Metadata(client metadata.Interface) Client {
	if isNil(client) {
		return nil
	}
	return metadataClient{client}
}

type metadataClient struct{ metadata.Interface }

func (c metadataClient) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	list, err := c.Resource(gvr).Namespace(namespace).List(ctx, opts)
	if err != nil {
		return nil, err
	}
	return list, nil
}

func (c metadataClient) Watch(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	return c.Resource(gvr).Namespace(namespace).Watch(ctx, opts)
}

func (c metadataClient) Convert() func(runtime.Object) (runtime.Object, error) { return nil }

func (c metadataClient) New(schema.GroupVersionKind) Object {
	return &metav1.PartialObjectMetadata{}
}

// KeepsKind implements Client: the kind of the objects is empty or PartialObjectMetadata.
func (c metadataClient) KeepsKind() bool { return false }

func (c metadataClient) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(c.Interface)
}

func isNil(client any) bool {
	v := reflect.ValueOf(client)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// client is the last stage: the client. Its errors contain no response bodies, since they are stored,
// logged and displayed.
type client struct {
	to        Client
	gvr       schema.GroupVersionResource
	namespace string // of requests; empty for a cluster-scoped type, whatever Config has
}

func (c *client) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	list, err := c.to.List(ctx, c.gvr, c.namespace, opts)
	return list, errtext.Clean(err)
}

func (c *client) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	in, err := c.to.Watch(ctx, c.gvr, c.namespace, opts)
	return in, errtext.Clean(err)
}
