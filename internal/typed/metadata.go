package typed

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/internal/metaproto"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/undecodable"
	"github.com/gvrkit/gvrkit/internal/wire"
)

// partial is a client of metadata.
type partial struct {
	source.Client          // of client-go's client
	own, sharing  decoding // objects of sharing have equal parts in common
	// transformed is set while the informer has a transform, which may write to objects; nil: objects have nothing in common.
	transformed *atomic.Bool
	of          decoder[*metav1.PartialObjectMetadata]
}

// decoding is a client and its decoder.
type decoding struct {
	rest    rest.Interface
	decoder *metaproto.Decoder
}

// Metadata returns a client whose objects are *metav1.PartialObjectMetadata, without the fields of drop. Its requests are those of client,
// which is client-go's metadata client for cfg, and so are its objects. An object that client-go can't decode is an
// *undecodable.Object; client-go would fail the whole list. It does no I/O.
func Metadata(client metadata.Interface, cfg *rest.Config, httpClient *http.Client, drop *wire.Drop) (source.Client, error) {
	cfg = metadata.ConfigFor(cfg)
	cfg.GroupVersion = &schema.GroupVersion{}
	cfg.APIPath = "/unused" // requests have absolute paths
	inner := undecodable.Negotiated(cfg.NegotiatedSerializer)
	c := &partial{Client: source.Metadata(client), of: decoder[*metav1.PartialObjectMetadata]{kindless: true}}
	own := metaproto.Decoder{Tables: metaproto.NewTables(), Drop: metaproto.NewDrop(drop)}
	shared := own
	shared.Shared = true
	for _, made := range []struct {
		decoder *metaproto.Decoder
		into    *decoding
	}{{&own, &c.own}, {&shared, &c.sharing}} {
		cfg.NegotiatedSerializer = metaproto.Negotiated(inner, made.decoder)
		client, err := rest.RESTClientForConfigAndClient(cfg, httpClient)
		if err != nil {
			return nil, err
		}
		*made.into = decoding{client, made.decoder}
	}
	return c, nil
}

// Sharing returns a client as client, which is one of [Metadata], for one informer: its objects are read-only, and have equal parts in
// common. The informer sets transformed while it has a transform; then they have not.
func Sharing(client source.Client) (_ source.Client, transformed *atomic.Bool) {
	of, is := client.(*partial)
	if !is {
		return client, nil
	}
	chosen := *of
	chosen.transformed = &atomic.Bool{}
	return &chosen, chosen.transformed
}

// next returns the client of the next request.
func (c *partial) next() decoding {
	if c.transformed == nil || c.transformed.Load() {
		return c.own
	}
	return c.sharing
}

// accepted returns client-go's Accept header of requests for objects of kind.
func accepted(kind string) string {
	const as = ";g=meta.k8s.io;v=v1,"
	return "application/vnd.kubernetes.protobuf;as=" + kind + as + "application/json;as=" + kind + as + "application/json"
}

// List implements source.Client.
func (c *partial) List(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (runtime.Object, error) {
	next, contentType := c.next(), ""
	result := request(next.rest, accepted("PartialObjectMetadataList"), gvr, namespace, &opts).Do(ctx).ContentType(&contentType)
	if err := result.Error(); err != nil {
		return nil, err
	}
	body, err := result.Raw()
	if err != nil {
		return nil, err
	}
	protobuf := strings.HasPrefix(contentType, runtime.ContentTypeProtobuf)
	if protobuf {
		if list, ok := next.decoder.List(body); ok {
			return list, nil
		}
	}
	object, err := result.Get()
	if err != nil && (protobuf || !runtime.IsNotRegisteredError(err)) { // not registered: a list of whole objects
		return nil, err
	}
	switch object := object.(type) {
	case *metav1.PartialObjectMetadataList:
		return object, nil
	case *undecodable.Object: // not of an item
		if protobuf {
			return nil, object.Err
		}
	default:
		if protobuf {
			return nil, fmt.Errorf("%w: the server sent a %T", source.ErrNotAList, object)
		}
	}
	none := func([]byte) (runtime.Object, bool) { return nil, false }
	list, err := c.of.list(body, none) // of whole objects, or with an object that can't be decoded
	if err != nil {
		return nil, err
	}
	for _, item := range list.Items {
		next.decoder.Complete(item)
	}
	return list, nil
}

// Watch implements source.Client.
func (c *partial) Watch(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	var timeout time.Duration // not that of the HTTP client
	if seconds := opts.TimeoutSeconds; seconds != nil {
		timeout = time.Duration(*seconds) * time.Second
	}
	return request(c.next().rest, accepted("PartialObjectMetadata"), gvr, namespace, &opts).Timeout(timeout).Watch(ctx)
}
