package metaproto

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The numbers of the fields of metav1.ObjectMeta.
const (
	nameField protowire.Number = iota + 1
	generateNameField
	namespaceField
	selfLinkField
	uidField
	resourceVersionField
	generationField
	creationTimestampField
	deletionTimestampField
	gracePeriodField
	labelsField
	annotationsField
	ownerReferencesField
	finalizersField
	managedFieldsField protowire.Number = 17
)

// head has the fields of a metav1.ObjectMeta before they are decoded.
type head struct {
	message                                                         []byte
	name, generateName, namespace, selfLink, uid, version           []byte
	created, deleted                                                []byte
	generation, gracePeriod                                         int64
	hasGracePeriod                                                  bool
	labels, annotations, ownerReferences, finalizers, managedFields run
}

// read reads the fields of message, which is a metav1.ObjectMeta. It returns false if the message is not ordinary.
func (h *head) read(message []byte) bool {
	h.message = message
	for at := 0; at < len(message); {
		f, length := consume(message[at:])
		if length < 0 || !h.field(f, at, at+length) {
			return false
		}
		at += length
	}
	return true
}

// field reads a field, which is in message[from:to].
func (h *head) field(f field, from, to int) bool {
	switch text, part := h.text(f.number), h.run(f.number); {
	case f.number == generationField:
		h.generation = int64(f.varint) //nolint:gosec // as client-go
		return f.kind == protowire.VarintType
	case f.number == gracePeriodField:
		h.gracePeriod, h.hasGracePeriod = int64(f.varint), true //nolint:gosec // as client-go
		return f.kind == protowire.VarintType
	case text != nil:
		again := *text != nil // client-go decodes both
		*text = f.bytes
		return !again && f.kind == protowire.BytesType
	case part != nil:
		return part.add(from, to) && f.kind == protowire.BytesType
	}
	return true
}

// text returns the bytes of h that are the value of a field; nil if it has another value.
func (h *head) text(number protowire.Number) *[]byte {
	switch number {
	case nameField:
		return &h.name
	case generateNameField:
		return &h.generateName
	case namespaceField:
		return &h.namespace
	case selfLinkField:
		return &h.selfLink
	case uidField:
		return &h.uid
	case resourceVersionField:
		return &h.version
	case creationTimestampField:
		return &h.created
	case deletionTimestampField:
		return &h.deleted
	}
	return nil
}

// run returns the run of h that has a field; nil if there is none.
func (h *head) run(number protowire.Number) *run {
	switch number {
	case labelsField:
		return &h.labels
	case annotationsField:
		return &h.annotations
	case ownerReferencesField:
		return &h.ownerReferences
	case finalizersField:
		return &h.finalizers
	case managedFieldsField:
		return &h.managedFields
	}
	return nil
}

// timeOf returns the time in message, a metav1.Timestamp.
func timeOf(message []byte) (t metav1.Time, ok bool) {
	if len(message) == 0 {
		return t, true
	}
	seconds := int64(0)
	for len(message) > 0 {
		f, length := consume(message)
		if length < 0 {
			return t, false
		}
		message = message[length:]
		switch f.number {
		case 1:
			seconds = int64(f.varint) //nolint:gosec // as client-go
			ok = f.kind == protowire.VarintType
		case 2: // client-go does not read nanoseconds
			ok = f.kind == protowire.VarintType
		default:
			ok = true
		}
		if !ok {
			return t, false
		}
	}
	return metav1.Time{Time: time.Unix(seconds, 0).Local()}, true
}
