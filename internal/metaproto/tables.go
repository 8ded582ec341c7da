package metaproto

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/internal/wire"
)

// The numbers of slots of the tables. They are small for the sake of programs with few objects: empty, the tables have 64 KB.
const (
	textSlots = 1 << 11
	partSlots = 1 << 9
)

// Tables have strings, maps, slices and managed fields that have been decoded before. They are bounded, and safe for concurrent use.
type Tables struct {
	texts      *wire.Texts
	maps       *wire.Parts[map[string]string]
	owners     *wire.Parts[[]metav1.OwnerReference]
	finalizers *wire.Parts[[]string]
	fields     *wire.Parts[*metav1.FieldsV1]
}

// NewTables returns empty tables.
func NewTables() *Tables {
	return &Tables{
		texts:      wire.NewTexts(textSlots),
		maps:       wire.NewParts[map[string]string](partSlots),
		owners:     wire.NewParts[[]metav1.OwnerReference](partSlots),
		finalizers: wire.NewParts[[]string](partSlots),
		fields:     wire.NewParts[*metav1.FieldsV1](partSlots),
	}
}

// text returns content as a string.
func (t *Tables) text(content []byte) string { return t.texts.Text(content) }

// get returns the part of an object with that content: the one in table, or that of decode.
func get[T any](d *Decoder, table *wire.Parts[T], content []byte, decode func(content []byte) (T, bool)) (T, bool) {
	if !d.Shared {
		return decode(content)
	}
	return table.Get(content, decode)
}

// share replaces parts of metadata by equal ones of other objects.
func (t *Tables) share(m *metav1.ObjectMeta) {
	shared := func(text *string) { *text = t.text([]byte(*text)) }
	shared(&m.Namespace)
	for i := range m.OwnerReferences {
		owner := &m.OwnerReferences[i]
		shared(&owner.APIVersion)
		shared(&owner.Kind)
	}
	for i := range m.ManagedFields {
		entry := &m.ManagedFields[i]
		shared(&entry.Manager)
		shared((*string)(&entry.Operation))
		shared(&entry.APIVersion)
		shared(&entry.FieldsType)
		shared(&entry.Subresource)
		if fields := entry.FieldsV1; fields != nil {
			entry.FieldsV1, _ = t.fields.Get(fields.GetRawBytes(), func([]byte) (*metav1.FieldsV1, bool) { return fields, true })
		}
	}
}
