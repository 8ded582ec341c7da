package metaproto

import (
	"bytes"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/internal/errtext"
	"github.com/gvrkit/gvrkit/internal/undecodable"
)

// prefix is the beginning of each response. A runtime.Unknown follows.
const prefix = "k8s\x00"

// The kinds of objects and lists that a Decoder decodes.
const (
	objectKind = "PartialObjectMetadata"
	listKind   = "PartialObjectMetadataList"
)

// open returns the message of a response of that kind. It returns false if data is another response, or not ordinary.
func open(data []byte, kind string) (message []byte, ok bool) {
	rest, ok := bytes.CutPrefix(data, []byte(prefix))
	if !ok {
		return nil, false
	}
	of, named := false, false
	for len(rest) > 0 {
		f, length := consume(rest)
		if length < 0 || f.number <= 4 && f.kind != protowire.BytesType {
			return nil, false
		}
		rest = rest[length:]
		switch f.number {
		case 1:
			if named {
				return nil, false
			}
			of, named = isOf(f.bytes, kind), true
		case 2:
			message = f.bytes
		}
	}
	return message, of
}

// isOf reports whether message, the type of a runtime.Unknown, is kind.
func isOf(message []byte, kind string) bool {
	version, of := false, false
	for len(message) > 0 {
		f, length := consume(message)
		if length < 0 || f.number <= 2 && f.kind != protowire.BytesType {
			return false
		}
		message = message[length:]
		switch f.number {
		case 1:
			version = string(f.bytes) == "meta.k8s.io/v1"
		case 2:
			of = string(f.bytes) == kind
		}
	}
	return version && of
}

// Object decodes a response that is an object. It returns false if client-go's decoder has to decode it.
func (d *Decoder) Object(data []byte) (*metav1.PartialObjectMetadata, bool) {
	message, ok := open(data, objectKind)
	if !ok {
		return nil, false
	}
	return d.object(message)
}

// List decodes a response that is a list, item by item. An item that can't be decoded is an *undecodable.Object. List returns false if
// client-go's decoder has to decode the response: it is not ordinary, or can't be decoded as a whole.
func (d *Decoder) List(data []byte) (*internalversion.List, bool) {
	message, ok := open(data, listKind)
	if !ok {
		return nil, false
	}
	list := &internalversion.List{Items: []runtime.Object{}}
	for len(message) > 0 {
		f, length := consume(message)
		if length < 0 || f.number <= 2 && f.kind != protowire.BytesType {
			return nil, false
		}
		message = message[length:]
		switch f.number {
		case 1:
			if list.ListMeta.Unmarshal(f.bytes) != nil {
				return nil, false
			}
		case 2:
			list.Items = append(list.Items, d.item(f.bytes))
		}
	}
	return list, true
}

// item decodes an item of a list.
func (d *Decoder) item(message []byte) runtime.Object {
	if object, ok := d.object(message); ok {
		return object
	}
	object := &metav1.PartialObjectMetadata{}
	if err := object.Unmarshal(message); err != nil {
		return newUndecodable(message, err)
	}
	d.Complete(object)
	return object
}

// newUndecodable returns the Object for message, a PartialObjectMetadata that can't be decoded because of err.
func newUndecodable(message []byte, err error) *undecodable.Object {
	o := &undecodable.Object{Err: errtext.Clean(err)}
	identify(&o.ObjectMeta, message)
	return o
}

// Negotiated returns inner, a serializer of client-go's metadata client that only lists and watches, with another decoder of Protocol
// Buffers, which uses d: an object that can't be decoded is an *undecodable.Object. Everything else is as inner decodes it, errors
// included, and then completed by d.
func Negotiated(inner runtime.NegotiatedSerializer, d *Decoder) runtime.NegotiatedSerializer {
	return negotiated{inner, d}
}

type negotiated struct {
	runtime.NegotiatedSerializer
	decoder *Decoder
}

// SupportedMediaTypes implements runtime.NegotiatedSerializer.
func (n negotiated) SupportedMediaTypes() []runtime.SerializerInfo {
	infos := slices.Clone(n.NegotiatedSerializer.SupportedMediaTypes())
	for i := range infos {
		info := &infos[i]
		info.Serializer = completing{info.Serializer, n.decoder}
		if info.MediaType != runtime.ContentTypeProtobuf || info.StreamSerializer == nil {
			continue
		}
		info.Serializer = serializer{info.Serializer, n.decoder}
		stream := *info.StreamSerializer
		stream.Serializer = streamSerializer{stream.Serializer}
		info.StreamSerializer = &stream
	}
	return infos
}

// completing completes what a serializer decodes.
type completing struct {
	runtime.Serializer
	decoder *Decoder
}

// Decode implements runtime.Decoder.
func (c completing) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := c.Serializer.Decode(data, defaults, into)
	c.decoder.Complete(object)
	return object, kind, err
}

// serializer decodes ordinary responses. Any other serializer decodes the others.
type serializer struct {
	runtime.Serializer
	decoder *Decoder
}

// Decode implements runtime.Decoder.
func (s serializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if defaults != nil || into != nil {
		return s.Serializer.Decode(data, defaults, into)
	}
	kind := metav1.SchemeGroupVersion.WithKind(objectKind)
	if object, ok := s.decoder.Object(data); ok {
		object.SetGroupVersionKind(kind)
		return object, &kind, nil
	}
	object, gvk, err := s.Serializer.Decode(data, nil, nil)
	if err == nil || runtime.IsNotRegisteredError(err) { // not registered: a whole object
		return object, gvk, err
	}
	return newUndecodable(unknown(data), err), &kind, nil
}

// unknown returns the message in data, a response that can't be decoded, as far as it can be read, and if it may be an object.
func unknown(data []byte) []byte {
	rest, _ := bytes.CutPrefix(data, []byte(prefix))
	if kind := part(part(rest, 1), 2); len(kind) > 0 && string(kind) != objectKind {
		return nil
	}
	return part(rest, 2)
}

// streamSerializer decodes watch events, but not their objects, which stay in the buffer of the stream. client-go's decoder of events
// decodes the object before it reads the next event.
type streamSerializer struct{ runtime.Serializer }

// Decode implements runtime.Decoder.
func (s streamSerializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if event, is := into.(*metav1.WatchEvent); is && defaults == nil && readEvent(data, event) {
		return event, nil, nil
	}
	return s.Serializer.Decode(data, defaults, into)
}
