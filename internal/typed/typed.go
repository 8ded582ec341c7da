// Package typed has clients of a source whose objects are of a Go type T: [New] decodes JSON straight to
// T, [Convert] converts the objects of a dynamic client, [Packing] packs them, and [Metadata] is client-go's metadata client. An
// object that is not a T is an error of that object alone. The package does not know informers.
package typed

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/internal/errtext"
	"github.com/gvrkit/gvrkit/internal/gotype"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/undecodable"
	"github.com/gvrkit/gvrkit/internal/wire"
)

// client has what both clients have in common.
type client[T source.Object] struct{ of decoder[T] }

// New implements source.Client.
func (c client[T]) New(gvk schema.GroupVersionKind) source.Object {
	object := c.of.Empty()
	object.GetObjectKind().SetGroupVersionKind(gvk)
	return object
}

// KeepsKind implements source.Client.
func (c client[T]) KeepsKind() bool { return true }

// Server is a server on which clients can be created. They have tables of strings in common.
type Server struct {
	config *rest.Config
	http   *http.Client
	drop   *wire.Drop
	tables func() *wire.Tables
}

// NewServer returns the server that cfg reaches with httpClient, whose objects are without the fields of drop. The transport
// settings of cfg have no effect.
func NewServer(cfg *rest.Config, httpClient *http.Client, drop *wire.Drop) *Server {
	return &Server{cfg, httpClient, drop, sync.OnceValue(func() *wire.Tables { return wire.NewTables(wire.Shared) })}
}

// direct decodes responses to T.
type direct[T source.Object] struct {
	client[T]
	own, sharing requests // objects of sharing have equal parts in common
	// transformed is set while the informer has a transform, which may write to objects; nil: objects have nothing in common.
	transformed *atomic.Bool
}

// requests is a client and its decoder.
type requests struct {
	rest     rest.Interface
	decoding wire.Settings
}

// New returns a client, for one informer, that decodes the server's JSON straight to objects of type of. If sharing is Shared, they are
// read-only, and have equal parts of their metadata and of fields of type any in common. The informer sets transformed while it has a
// transform; then they have not. It does no I/O.
func New[T source.Object](s *Server, of gotype.Of[T], sharing wire.Sharing) (made source.Client, transformed *atomic.Bool, err error) {
	cfg := dynamic.ConfigFor(s.config)
	cfg.AcceptContentTypes, cfg.ContentType = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	decodes := decoder[T]{Of: of, drop: s.drop}
	stock := undecodable.Negotiated(negotiated[T]{cfg.NegotiatedSerializer, decodes})
	cfg.GroupVersion = nil
	cfg.APIPath = "/unused" // requests have absolute paths
	decoding := wire.Settings{Tables: s.tables(), Into: wire.NewStruct(of.GoType().Elem()), Drop: s.drop}
	c := &direct[T]{client: client[T]{decodes}}
	if sharing == wire.Shared {
		c.transformed = &atomic.Bool{}
	}
	for sharing, into := range map[wire.Sharing]*requests{wire.Own: &c.own, wire.Shared: &c.sharing} {
		decoding.Sharing = sharing
		cfg.NegotiatedSerializer = wire.Negotiated(stock, decoding)
		client, err := rest.UnversionedRESTClientForConfigAndClient(cfg, s.http)
		if err != nil {
			return nil, nil, err
		}
		*into = requests{client, decoding}
	}
	return c, c.transformed, nil
}

var parameters = func() runtime.ParameterCodec {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return runtime.NewParameterCodec(scheme)
}()

// request returns a request for the objects of gvr in namespace.
func request(client rest.Interface, accept string, gvr schema.GroupVersionResource, namespace string, opts *metav1.ListOptions) *rest.Request {
	path := []string{"apis", gvr.Group, gvr.Version}
	if gvr.Group == "" {
		path = []string{"api", gvr.Version}
	}
	if namespace != "" {
		path = append(path, "namespaces", namespace)
	}
	return client.Get().AbsPath(append(path, gvr.Resource)...).SetHeader("Accept", accept).
		SpecificallyVersionedParams(opts, parameters, schema.GroupVersion{Version: "v1"})
}

// envelope is a list whose items are not decoded yet.
type envelope struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []json.RawMessage `json:"items"`
}

// next returns what the next request uses.
func (c *direct[T]) next() *requests {
	if c.transformed == nil || c.transformed.Load() {
		return &c.own
	}
	return &c.sharing
}

// List implements source.Client.
func (c *direct[T]) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	next := c.next()
	var response body
	if err := request(next.rest, runtime.ContentTypeJSON, gvr, namespace, &opts).Do(ctx).Into(&response); err != nil {
		return nil, err
	}
	if list, ok := next.decoding.List(response.data); ok { // otherwise it may have items that are not a T
		return &internalversion.List{ListMeta: list.ListMeta, Items: list.Items}, nil
	}
	return c.of.list(response.data, next.decoding.Object)
}

// body is a response in JSON that is not decoded yet. client-go returns an error for one of another content type.
type body struct {
	metav1.TypeMeta
	data []byte
}

// DeepCopyObject implements runtime.Object.
func (b *body) DeepCopyObject() runtime.Object { return &body{b.TypeMeta, b.data} }

// Watch implements source.Client.
func (c *direct[T]) Watch(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	return request(c.next().rest, runtime.ContentTypeJSON, gvr, namespace, &opts).Watch(ctx)
}

// Convert implements source.Client.
func (c *direct[T]) Convert() func(runtime.Object) (runtime.Object, error) {
	fits := c.of.Fit()
	return func(object runtime.Object) (runtime.Object, error) {
		if c.of.Is(object) {
			return object, fits(object.GetObjectKind().GroupVersionKind())
		}
		return nil, fmt.Errorf("the server sent a %T", object)
	}
}

// IsWatchListSemanticsUnSupported implements source.Client.
func (c *direct[T]) IsWatchListSemanticsUnSupported() bool { return false }

// decoder decodes JSON to T, without the fields of drop.
type decoder[T source.Object] struct {
	gotype.Of[T]
	drop     *wire.Drop
	kindless bool // objects without apiVersion and kind stay so
}

// list decodes the items of a list one by one. Ordinary decodes an item that is ordinary, so that the others do not affect it.
func (of decoder[T]) list(data []byte, ordinary func(item []byte) (runtime.Object, bool)) (*internalversion.List, error) {
	var response envelope
	if err := utiljson.Unmarshal(data, &response); err != nil {
		var document json.RawMessage
		if invalid := json.Unmarshal(data, &document); invalid != nil { // its text has at most one character of data
			return nil, fmt.Errorf("%w: %w", source.ErrNotAList, invalid)
		}
		return nil, fmt.Errorf("%w: %w", source.ErrNotAList, gotype.WithoutValues(err))
	}
	kind, isList := strings.CutSuffix(response.Kind, "List")
	switch {
	case response.Kind == "" && (response.Items == nil || response.ResourceVersion == ""): // for example {}, which would empty the cache
		return nil, fmt.Errorf("%w: the server sent an object without a kind, and without items or a resourceVersion", source.ErrNotAList)
	case response.Kind != "" && !isList:
		return nil, fmt.Errorf("%w: the server sent a %s", source.ErrNotAList, errtext.Cut(response.Kind))
	}
	list := &internalversion.List{ListMeta: response.ListMeta, Items: make([]runtime.Object, len(response.Items))}
	missing := metav1.TypeMeta{APIVersion: response.APIVersion, Kind: kind}
	for i, item := range response.Items {
		if object, ok := ordinary(item); ok {
			list.Items[i] = of.complete(object, missing)
		} else {
			list.Items[i] = of.decode(item, missing)
		}
	}
	return list, nil
}

// decode returns the object in data: a T, as complete returns it, or an *undecodable.Object.
func (of decoder[T]) decode(data []byte, missing metav1.TypeMeta) runtime.Object {
	object := of.Empty()
	if err := gotype.Unmarshal(data, object); err != nil {
		return undecodable.New(data, err)
	}
	of.drop.RemoveFrom(object)
	return of.complete(object, missing)
}

// complete returns object. If it has no apiVersion and kind, as in lists of built-in types, it gets missing, unless of is kindless.
func (of decoder[T]) complete(object runtime.Object, missing metav1.TypeMeta) runtime.Object {
	if kind := object.GetObjectKind(); !of.kindless && kind.GroupVersionKind().Empty() {
		kind.SetGroupVersionKind(missing.GroupVersionKind())
	}
	return object
}

// negotiated decodes the objects of watch events to T. Everything else is left to client-go's serializer
// for dynamic clients.
type negotiated[T source.Object] struct {
	runtime.NegotiatedSerializer
	of decoder[T]
}

func (n negotiated[T]) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := slices.Clone(n.NegotiatedSerializer.SupportedMediaTypes())
	for i := range infos {
		if infos[i].MediaType == runtime.ContentTypeJSON {
			infos[i].Serializer = serializer[T]{infos[i].Serializer, n.of}
		}
	}
	return infos
}

type serializer[T source.Object] struct {
	runtime.Serializer
	of decoder[T]
}

// Decode implements runtime.Decoder.
func (s serializer[T]) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if response, is := into.(*body); is {
		response.data = data
		return response, nil, nil
	}
	var kind metav1.TypeMeta
	if into != nil || utiljson.Unmarshal(data, &kind) != nil || kind.Kind == "" || kind.Kind == "Status" && kind.APIVersion == "v1" {
		return s.Serializer.Decode(data, defaults, into)
	}
	gvk := kind.GroupVersionKind()
	return s.of.decode(data, kind), &gvk, nil
}

// converting converts the objects of another client to T.
type converting[T source.Object] struct {
	source.Client
	client[T]
	to   *gotype.Converter[T]
	fits func(schema.GroupVersionKind) error
}

// Convert returns a client that converts the objects of a dynamic client to type of. If from is nil, or holds
// a nil pointer, the result is nil.
func Convert[T source.Object](from dynamic.Interface, of gotype.Of[T]) source.Client {
	unstructured := source.Unstructured(from)
	if unstructured == nil {
		return nil
	}
	return &converting[T]{Client: unstructured, client: client[T]{decoder[T]{Of: of}}, to: of.NewConverter(), fits: of.Fit()}
}

// New implements source.Client.
func (c *converting[T]) New(gvk schema.GroupVersionKind) source.Object { return c.client.New(gvk) }

// KeepsKind implements source.Client.
func (c *converting[T]) KeepsKind() bool { return true }

// Convert implements source.Client.
func (c *converting[T]) Convert() func(runtime.Object) (runtime.Object, error) { return c.convert }

func (c *converting[T]) convert(object runtime.Object) (runtime.Object, error) {
	content, is := object.(*unstructured.Unstructured)
	if !is {
		return nil, fmt.Errorf("the client returned a %T", object)
	}
	if err := c.fits(content.GroupVersionKind()); err != nil {
		return nil, err
	}
	return c.to.Convert(content.Object)
}
