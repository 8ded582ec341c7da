package lister

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/gotype"
	"github.com/gvrkit/gvrkit/internal/objectlister"
	"github.com/gvrkit/gvrkit/metadatalister"
)

// NewMetadata returns a lister that reads the metadata of the objects of indexer, which may be unstructured, packed, of a Go type, or
// metadata. It is a view as [Typed] is: it needs no watch and no cache of its own, keeps what it has read of unstructured and packed objects,
// and is safe for concurrent use. Create one and keep it. It uses gvr only in the texts of errors.
//
// The results are those of an informer with metadata only: their kind is PartialObjectMetadata of meta.k8s.io/v1. They are shared by all callers,
// and may have parts of the cached objects. They are read-only: call DeepCopy before the first write.
//
// If the metadata of objects does not fit the Go type, such as a label that is a number, List returns all others, and an error that joins a
// [*ConversionError] for each of these objects, sorted by name. For an object without metadata, which a transform may return, there is an error.
// If indexer is nil, every call returns an error. All else is as the comments of [metadatalister.Lister] say.
func NewMetadata(indexer cache.Indexer, gvr schema.GroupVersionResource) metadatalister.Lister {
	return &metadata{view[*metav1.PartialObjectMetadata]{
		objects: objectlister.New[*unstructured.Unstructured]("lister", indexer, gvr),
		convert: metadataOf{gotype.NewConverter[*metav1.PartialObjectMetadata]()},
	}}
}

// metadata implements metadatalister.Lister.
type metadata struct {
	view view[*metav1.PartialObjectMetadata]
}

func (m *metadata) List(selector labels.Selector) ([]*metav1.PartialObjectMetadata, error) {
	return m.view.list(metav1.NamespaceAll, selector)
}

func (m *metadata) Get(name string) (*metav1.PartialObjectMetadata, error) {
	return m.view.get(name, name)
}

func (m *metadata) Namespace(namespace string) metadatalister.NamespaceLister {
	return TypedNamespace[*metav1.PartialObjectMetadata]{&m.view, namespace}
}

// metadataOf converts objects to their metadata.
type metadataOf struct {
	converter *gotype.Converter[*metav1.PartialObjectMetadata]
}

// ofTree implements converter.
func (m metadataOf) ofTree(object *unstructured.Unstructured) (*metav1.PartialObjectMetadata, error) {
	return m.of(object.Object["metadata"])
}

// ofPacked implements converter. It unpacks only the metadata.
func (m metadataOf) ofPacked(object packedObject) (*metav1.PartialObjectMetadata, error) {
	content, _ := object.Field("metadata")
	return m.of(content)
}

func (m metadataOf) of(content any) (*metav1.PartialObjectMetadata, error) {
	to, err := m.converter.Convert(map[string]any{"metadata": content})
	if err != nil {
		return nil, err
	}
	to.TypeMeta = metadataType
	return to, nil
}

// ofOther implements converter. It copies the metadata of an object of a Go type, but not the maps and slices in it.
func (metadataOf) ofOther(object any) (*metav1.PartialObjectMetadata, bool) {
	var from metav1.Object
	switch object := object.(type) {
	case *metav1.PartialObjectMetadata:
		return object, true
	case *unstructured.Unstructured:
		return nil, false
	case metav1.ObjectMetaAccessor:
		from = object.GetObjectMeta()
	case metav1.Object:
		from = object
	}
	if from == nil {
		return nil, false
	}
	to := meta.AsPartialObjectMetadata(from)
	to.TypeMeta = metadataType
	return to, true
}

var metadataType = metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: "PartialObjectMetadata"}
