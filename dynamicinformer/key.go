package dynamicinformer

import (
	"cmp"
	"errors"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/lister"
	"github.com/gvrkit/gvrkit/metadatalister"
)

// key identifies an entry.
type key struct {
	gvr      schema.GroupVersionResource
	versions discovery.VersionPolicy
	form     form
	separate uint64 // 0: the entry is shared
}

// compare orders keys by name: group, version, resource.
func (k *key) compare(other *key) int {
	return cmp.Or(
		strings.Compare(k.gvr.Group, other.gvr.Group), strings.Compare(k.gvr.Version, other.gvr.Version),
		strings.Compare(k.gvr.Resource, other.gvr.Resource),
		strings.Compare(k.versions.String(), other.versions.String()),
		strings.Compare(k.form.String(), other.form.String()), cmp.Compare(k.separate, other.separate),
	)
}

// ofForResource is the value of key.separate for an entry that ForResource has created beside an
// entry with other options.
const ofForResource = ^uint64(0)

// form is the form of an informer's objects: their Go type, and how they are requested and decoded. Equal
// forms can share an informer.
type form interface {
	// check returns an [*OptionError] if c has no client for this form.
	check(c *clients) error
	// client returns the client of one informer, which sets transformed, if that is not nil, while it
	// has a transform.
	client(c *clients) (client source.Client, transformed *atomic.Bool, err error)
	// lister returns a lister on the objects of indexer.
	lister(indexer cache.Indexer, gvr schema.GroupVersionResource) cache.GenericLister
	// String returns the name of the form in a status. It is empty for the default form.
	String() string
}

// asUnstructured is the default form: *unstructured.Unstructured.
type asUnstructured struct{}

func (asUnstructured) check(*clients) error { return nil }

func (asUnstructured) client(c *clients) (source.Client, *atomic.Bool, error) {
	if c.shared == nil {
		return source.Unstructured(c.own), nil, nil
	}
	chosen := &choice{clients: c}
	return source.Unstructured(chosen), &chosen.transformed, nil
}

func (asUnstructured) lister(indexer cache.Indexer, gvr schema.GroupVersionResource) cache.GenericLister {
	return lister.NewRuntimeObjectShim(lister.New(indexer, gvr))
}

func (asUnstructured) String() string { return "" }

// asMetadata is the form of WithMetadataOnly: *metav1.PartialObjectMetadata.
type asMetadata struct{}

var errNoMetadataClient = errors.New("the factory has no metadata client: call New with WithMetadataClient")

func (asMetadata) check(c *clients) error {
	if source.Metadata(c.metadata) == nil {
		return &OptionError{Option: "WithMetadataOnly", Err: errNoMetadataClient}
	}
	return nil
}

func (asMetadata) client(c *clients) (source.Client, *atomic.Bool, error) {
	if c.partial != nil {
		return c.partial, nil, nil
	}
	return source.Metadata(c.metadata), nil, nil
}

func (asMetadata) lister(indexer cache.Indexer, gvr schema.GroupVersionResource) cache.GenericLister {
	return metadatalister.NewRuntimeObjectShim(metadatalister.New(indexer, gvr))
}

func (asMetadata) String() string { return "metadata" }
