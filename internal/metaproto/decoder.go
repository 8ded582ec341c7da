package metaproto

import (
	"bytes"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Decoder decodes metadata. The values are those of client-go's decoder, without the fields of Drop. It is safe for concurrent use.
type Decoder struct {
	// Tables are for decoders with equal Drop.
	Tables *Tables
	// Shared lets objects have equal maps, slices and managed fields in common. Then the program must not write to objects.
	// Otherwise they have only strings in common.
	Shared bool
	Drop   *Drop
}

// object decodes a PartialObjectMetadata. It returns false if the message is not ordinary, or not valid.
func (d *Decoder) object(message []byte) (*metav1.PartialObjectMetadata, bool) {
	var h head
	found := false
	for len(message) > 0 {
		f, length := consume(message)
		if length < 0 {
			return nil, false
		}
		message = message[length:]
		if f.number != 1 {
			continue
		}
		if found || f.kind != protowire.BytesType || !h.read(f.bytes) {
			return nil, false
		}
		found = true
	}
	return d.decode(&h)
}

// decode returns the object with the metadata of h.
func (d *Decoder) decode(h *head) (_ *metav1.PartialObjectMetadata, ok bool) {
	droppedLabels, droppedAnnotations := d.Drop.from(h)
	made := d.allocate(h.managedFields.count)
	m := &made.object.ObjectMeta
	m.Name, m.UID, m.ResourceVersion = identity(h)
	m.GenerateName, m.Namespace = d.Tables.text(h.generateName), d.Tables.text(h.namespace)
	m.SetSelfLink(string(h.selfLink))
	m.Generation = h.generation
	if m.CreationTimestamp, ok = timeOf(h.created); !ok {
		return nil, false
	}
	if h.deleted != nil {
		deleted, ok := timeOf(h.deleted)
		if !ok {
			return nil, false
		}
		m.DeletionTimestamp = &deleted
	}
	if h.hasGracePeriod {
		seconds := h.gracePeriod
		m.DeletionGracePeriodSeconds = &seconds
	}
	if m.Labels, ok = d.textMap(h, h.labels, droppedLabels); !ok {
		return nil, false
	}
	if m.Annotations, ok = d.textMap(h, h.annotations, droppedAnnotations); !ok {
		return nil, false
	}
	if m.OwnerReferences, ok = d.ownerReferences(h.ownerReferences.of(h.message), h.ownerReferences.count); !ok {
		return nil, false
	}
	if m.Finalizers, ok = d.finalizers(h.finalizers.of(h.message), h.finalizers.count); !ok {
		return nil, false
	}
	m.ManagedFields = made.entries
	return made.object, d.managedFields(h, &made)
}

// identity returns the texts that no other object has, which are one string in memory.
func identity(h *head) (name string, uid types.UID, version string) {
	var buffer [128]byte
	text := string(append(append(append(buffer[:0], h.name...), h.uid...), h.version...))
	name, text = text[:len(h.name)], text[len(h.name):]
	return name, types.UID(text[:len(h.uid)]), text[len(h.uid):]
}

// pair returns the key and the value of an entry of a map.
func pair(message []byte) (key, value []byte, ok bool) {
	for len(message) > 0 {
		f, length := consume(message)
		if length < 0 {
			return nil, nil, false
		}
		message = message[length:]
		switch f.number {
		case 1:
			key = f.bytes
		case 2:
			value = f.bytes
		default:
			continue
		}
		if f.kind != protowire.BytesType {
			return nil, nil, false
		}
	}
	return key, value, true
}

// pairs calls each for the entries of a map, which are fields of a message. It returns false if each does, or an entry is not ordinary.
func pairs(fields []byte, each func(key, value []byte) bool) bool {
	for len(fields) > 0 {
		f, length := consume(fields) // it is valid
		fields = fields[length:]
		key, value, ok := pair(f.bytes)
		if !ok || !each(key, value) {
			return false
		}
	}
	return true
}

// endsInitialEvents reports whether h is the metadata of the bookmark that ends the initial events of a watch-list.
func (h *head) endsInitialEvents() bool {
	return !pairs(h.annotations.of(h.message), func(key, value []byte) bool {
		return string(key) != metav1.InitialEventsAnnotationKey || string(value) != "true"
	})
}

// textMap decodes labels or annotations, without the keys that are dropped. Dropped is nil if the object keeps all fields.
func (d *Decoder) textMap(h *head, entries run, dropped func(key string) bool) (map[string]string, bool) {
	if entries.count == 0 {
		return nil, true
	}
	decode := func(fields []byte) (map[string]string, bool) {
		texts := make(map[string]string, entries.count)
		ok := pairs(fields, func(key, value []byte) bool {
			if dropped == nil || !dropped(string(key)) {
				texts[d.Tables.text(key)] = d.Tables.text(value)
			}
			return true
		})
		if len(texts) == 0 { // all keys are left out
			texts = nil
		}
		return texts, ok
	}
	if d.Drop != nil && dropped == nil { // the maps of the table are without the keys that are dropped
		return decode(entries.of(h.message))
	}
	return get(d, d.Tables.maps, entries.of(h.message), decode)
}

// finalizers decodes count finalizers.
func (d *Decoder) finalizers(fields []byte, count int) ([]string, bool) {
	if count == 0 {
		return nil, true
	}
	return get(d, d.Tables.finalizers, fields, func(fields []byte) ([]string, bool) {
		all := make([]string, 0, count)
		for len(fields) > 0 {
			f, length := consume(fields)
			fields = fields[length:]
			all = append(all, d.Tables.text(f.bytes))
		}
		return all, true
	})
}

// ownerReferences decodes count owner references.
func (d *Decoder) ownerReferences(fields []byte, count int) ([]metav1.OwnerReference, bool) {
	if count == 0 {
		return nil, true
	}
	return get(d, d.Tables.owners, fields, func(fields []byte) ([]metav1.OwnerReference, bool) {
		all := make([]metav1.OwnerReference, count)
		for i := range all {
			f, length := consume(fields)
			fields = fields[length:]
			if !d.ownerReference(f.bytes, &all[i]) {
				return nil, false
			}
		}
		return all, true
	})
}

func (d *Decoder) ownerReference(message []byte, into *metav1.OwnerReference) bool {
	for len(message) > 0 {
		f, length := consume(message)
		if length < 0 {
			return false
		}
		message = message[length:]
		kind := protowire.BytesType
		switch f.number {
		case 1:
			into.Kind = d.Tables.text(f.bytes)
		case 3:
			into.Name = d.Tables.text(f.bytes)
		case 4:
			into.UID = types.UID(d.Tables.text(f.bytes))
		case 5:
			into.APIVersion = d.Tables.text(f.bytes)
		case 6:
			kind, into.Controller = protowire.VarintType, boolean(f.varint)
		case 7:
			kind, into.BlockOwnerDeletion = protowire.VarintType, boolean(f.varint)
		default:
			continue
		}
		if f.kind != kind {
			return false
		}
	}
	return true
}

func boolean(varint uint64) *bool {
	b := varint != 0
	return &b
}

// managedFields decodes the managed fields of h.
func (d *Decoder) managedFields(h *head, into *allocation) bool {
	fields := h.managedFields.of(h.message)
	last := h.created // the time of lastTime
	lastTime := &into.object.CreationTimestamp
	for i := range into.entries {
		f, length := consume(fields)
		fields = fields[length:]
		entry := &into.entries[i]
		at, ok := d.managedFieldsEntry(f.bytes, entry)
		if !ok {
			return false
		}
		switch {
		case at == nil:
		case d.Shared && bytes.Equal(at, last):
			entry.Time = lastTime
		default:
			t, ok := timeOf(at)
			if !ok {
				return false
			}
			entry.Time = into.time(t)
			last, lastTime = at, entry.Time
		}
	}
	return true
}

// managedFieldsEntry decodes an entry, and returns its time; nil if there is none.
func (d *Decoder) managedFieldsEntry(message []byte, into *metav1.ManagedFieldsEntry) (at []byte, ok bool) {
	for len(message) > 0 {
		f, length := consume(message)
		if length < 0 {
			return nil, false
		}
		message = message[length:]
		switch f.number {
		case 1:
			into.Manager = d.Tables.text(f.bytes)
		case 2:
			into.Operation = metav1.ManagedFieldsOperationType(d.Tables.text(f.bytes))
		case 3:
			into.APIVersion = d.Tables.text(f.bytes)
		case 4:
			if at != nil {
				return nil, false
			}
			at = f.bytes
		case 6:
			into.FieldsType = d.Tables.text(f.bytes)
		case 7:
			if into.FieldsV1, ok = d.fieldsV1(f.bytes); !ok {
				return nil, false
			}
		case 8:
			into.Subresource = d.Tables.text(f.bytes)
		default:
			continue
		}
		if f.kind != protowire.BytesType {
			return nil, false
		}
	}
	return at, true
}

// fieldsV1 decodes a metav1.FieldsV1 with one field.
func (d *Decoder) fieldsV1(message []byte) (*metav1.FieldsV1, bool) {
	f, length := field{}, 0
	if len(message) > 0 {
		f, length = consume(message)
	}
	if length != len(message) || f.number != 1 || f.kind != protowire.BytesType {
		return nil, false
	}
	return get(d, d.Tables.fields, f.bytes, func(raw []byte) (*metav1.FieldsV1, bool) {
		fields := &metav1.FieldsV1{}
		fields.SetRawBytes(raw)
		return fields, true
	})
}

// Complete makes an object or a list that client-go has decoded one of the decoder: without the fields of Drop and, if objects are
// shared, with strings and managed fields that they have in common. Any other object stays as it is.
func (d *Decoder) Complete(object runtime.Object) {
	switch object := object.(type) {
	case *metav1.PartialObjectMetadata:
		d.complete(&object.ObjectMeta)
	case *metav1.PartialObjectMetadataList:
		for i := range object.Items {
			d.complete(&object.Items[i].ObjectMeta)
		}
	}
}

func (d *Decoder) complete(m *metav1.ObjectMeta) {
	d.Drop.Remove(m)
	if d.Shared {
		d.Tables.share(m)
	}
}
