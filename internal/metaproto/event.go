package metaproto

import (
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// readEvent reads a watch event. Its object refers to message. It returns false if the event is not ordinary, and then does not
// change into.
func readEvent(message []byte, into *metav1.WatchEvent) bool {
	var (
		kind   watch.EventType
		object []byte
	)
	for len(message) > 0 {
		f, length := consume(message)
		if length < 0 || f.number > 2 || f.kind != protowire.BytesType {
			return false
		}
		message = message[length:]
		switch {
		case f.number == 1:
			kind = eventType(f.bytes)
		case object != nil:
			return false
		default:
			object = raw(f.bytes)
		}
	}
	if kind == "" || object == nil {
		return false
	}
	into.Type, into.Object.Raw = string(kind), object
	return true
}

// raw returns the bytes of a runtime.RawExtension that has only these; nil if it is not ordinary.
func raw(message []byte) []byte {
	if len(message) == 0 {
		return nil
	}
	f, length := consume(message)
	if length != len(message) || f.number != 1 || f.kind != protowire.BytesType {
		return nil
	}
	return f.bytes
}

// eventType returns the type of an event without a copy; empty if there is no such type.
func eventType(name []byte) watch.EventType {
	for _, known := range [...]watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark, watch.Error} {
		if string(name) == string(known) {
			return known
		}
	}
	return ""
}

// identify sets the name, the namespace, the UID and the version of m to those in message, a PartialObjectMetadata that can't be
// decoded, as far as they can be read: each whole field before the one that is not valid.
func identify(m *metav1.ObjectMeta, message []byte) {
	for metadata := part(message, 1); len(metadata) > 0; {
		f, length := consume(metadata)
		if length < 0 {
			return
		}
		metadata = metadata[length:]
		if f.kind != protowire.BytesType {
			continue
		}
		switch f.number {
		case nameField:
			m.Name = string(f.bytes)
		case namespaceField:
			m.Namespace = string(f.bytes)
		case uidField:
			m.UID = types.UID(f.bytes)
		case resourceVersionField:
			m.ResourceVersion = string(f.bytes)
		}
	}
}

// part returns the bytes of the first field with that number, as far as they are in message.
func part(message []byte, number protowire.Number) []byte {
	for len(message) > 0 {
		f, length := consume(message)
		switch {
		case length >= 0 && f.number == number:
			return f.bytes
		case length >= 0:
			message = message[length:]
			continue
		}
		of, kind, n := protowire.ConsumeTag(message)
		if n < 0 || of != number || kind != protowire.BytesType {
			return nil
		}
		_, size := protowire.ConsumeVarint(message[n:]) // more than there are bytes
		return message[n+max(size, 0):]
	}
	return nil
}
