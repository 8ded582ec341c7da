package typed

import (
	"bytes"
	"hash/maphash"
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// common has parts of metadata that have been decoded before: objects of a type have equal ones, and need not have them twice.
// Each part has one place, and replaces the one that is there. It is safe for concurrent use.
type common struct {
	seed   maphash.Seed
	texts  [1 << 8]atomic.Pointer[string]
	fields [1 << 9]atomic.Pointer[metav1.FieldsV1]
}

// maxCommon is the size of the largest part, in bytes.
const maxCommon = 4 << 10

func newCommon() *common { return &common{seed: maphash.MakeSeed()} }

// text replaces a text by an equal one.
func (c *common) text(text *string) {
	if *text == "" || len(*text) > maxCommon {
		return
	}
	place := &c.texts[maphash.String(c.seed, *text)%uint64(len(c.texts))]
	if known := place.Load(); known != nil && *known == *text {
		*text = *known
		return
	}
	made := *text
	place.Store(&made)
}

// fieldsOf returns fields or equal ones.
func (c *common) fieldsOf(fields *metav1.FieldsV1) *metav1.FieldsV1 {
	if fields == nil || fields.Size() > maxCommon {
		return fields
	}
	content := fields.GetRawBytes()
	place := &c.fields[maphash.Bytes(c.seed, content)%uint64(len(c.fields))]
	if known := place.Load(); known != nil && bytes.Equal(known.GetRawBytes(), content) {
		return known
	}
	place.Store(fields)
	return fields
}

// share replaces parts of the metadata by equal ones of other objects.
func (c *common) share(meta *metav1.ObjectMeta) {
	c.text(&meta.Namespace)
	for i := range meta.OwnerReferences {
		owner := &meta.OwnerReferences[i]
		c.text(&owner.APIVersion)
		c.text(&owner.Kind)
	}
	for i := range meta.ManagedFields {
		entry := &meta.ManagedFields[i]
		c.text(&entry.Manager)
		c.text((*string)(&entry.Operation))
		c.text(&entry.APIVersion)
		c.text(&entry.FieldsType)
		c.text(&entry.Subresource)
		entry.FieldsV1 = c.fieldsOf(entry.FieldsV1)
	}
}

// sharing is a serializer whose objects share equal parts of their metadata.
type sharing struct {
	runtime.NegotiatedSerializer
	common *common
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (s sharing) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes())
	for i := range infos {
		infos[i].Serializer = sharingSerializer{infos[i].Serializer, s.common}
	}
	return infos
}

type sharingSerializer struct {
	runtime.Serializer
	common *common
}

// Decode implements runtime.Decoder.
func (s sharingSerializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, gvk, err := s.Serializer.Decode(data, defaults, into)
	switch object := object.(type) {
	case *metav1.PartialObjectMetadata:
		s.common.share(&object.ObjectMeta)
	case *metav1.PartialObjectMetadataList:
		for i := range object.Items {
			s.common.share(&object.Items[i].ObjectMeta)
		}
	}
	return object, gvk, err
}
