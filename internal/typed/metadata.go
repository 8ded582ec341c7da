package typed

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/undecodable"
)

// partial is a client of metadata.
type partial struct {
	source.Client                // of client-go's client
	own, sharing  rest.Interface // objects of sharing have equal parts in common
	// transformed is set while the informer has a transform, which may write to objects; nil: objects have nothing in common.
	transformed *atomic.Bool
	of          decoder[*metav1.PartialObjectMetadata]
}

// Metadata returns a client whose objects are *metav1.PartialObjectMetadata, with the requests and the decoders
// of client, which is client-go's metadata client for cfg. An object in JSON that client-go can't decode is an
// *undecodable.Object; client-go would fail the whole list. It does no I/O.
func Metadata(client metadata.Interface, cfg *rest.Config, httpClient *http.Client) (source.Client, error) {
	cfg = metadata.ConfigFor(cfg)
	cfg.NegotiatedSerializer = undecodable.Negotiated(cfg.NegotiatedSerializer)
	cfg.GroupVersion = &schema.GroupVersion{}
	cfg.APIPath = "/unused" // requests have absolute paths
	own, err := rest.RESTClientForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, err
	}
	cfg.NegotiatedSerializer = sharing{cfg.NegotiatedSerializer, newCommon()}
	shared, err := rest.RESTClientForConfigAndClient(cfg, httpClient)
	if err != nil {
		return nil, err
	}
	return &partial{Client: source.Metadata(client), own: own, sharing: shared}, nil
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

// rest returns the client of the next request.
func (c *partial) rest() rest.Interface {
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
	result := request(c.rest(), accepted("PartialObjectMetadataList"), gvr, namespace, &opts).Do(ctx)
	if err := result.Error(); err != nil {
		return nil, err
	}
	list, err := result.Get()
	if _, is := list.(*metav1.PartialObjectMetadataList); is && err == nil {
		return list, nil
	}
	body, rawErr := result.Raw()
	if rawErr != nil {
		return nil, rawErr
	}
	items, jsonErr := c.of.list(body) // a list of whole objects, or with an object that can't be decoded
	switch {
	case jsonErr == nil:
		return items, nil
	case err != nil && !errors.Is(jsonErr, source.ErrNotAList):
		return nil, err
	}
	return nil, jsonErr
}

// Watch implements source.Client.
func (c *partial) Watch(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	watch := request(c.rest(), accepted("PartialObjectMetadata"), gvr, namespace, &opts)
	if seconds := opts.TimeoutSeconds; seconds != nil {
		watch.Timeout(time.Duration(*seconds) * time.Second)
	}
	return watch.Watch(ctx)
}
