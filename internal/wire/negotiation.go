package wire

import (
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// Settings are the settings of a client's decoders. Tables is required. Sharing may be
// Shared only if the tables were made for it. If Into is not nil, objects have its form. With a [*Struct], Sharing is about equal
// parts of metadata, fields of type any and pointers to small integers; with a [Read], it has no effect.
type Settings struct {
	Tables  *Tables
	Sharing Sharing
	Drop    *Drop
	Into    Form
}

// Form is a form of objects other than unstructured: a [*Struct] or a [Read].
type Form interface {
	// event consumes the object of an event, and item an item of a list of kind list, as far as it is known. They
	// return false for an object that is not ordinary.
	event(b *builder, kind watch.EventType) (runtime.Object, bool)
	item(b *builder, list metav1.TypeMeta) (runtime.Object, bool)
}

func (s *Settings) decode(data []byte, use func(b *builder) bool) bool {
	return s.Tables.decode(data, len(data), s, use)
}

// Negotiated returns stock, client-go's serializer for dynamic clients or one for the type of settings.Into, with another
// decoder of JSON. Of objects that stock decodes from other formats, it only removes the fields of settings.Drop. Encoding is
// not changed. It is safe for concurrent use, like stock.
func Negotiated(stock runtime.NegotiatedSerializer, settings Settings) runtime.NegotiatedSerializer {
	return &negotiated{NegotiatedSerializer: stock, settings: settings}
}

type negotiated struct {
	runtime.NegotiatedSerializer
	settings Settings
}

// SupportedMediaTypes is called for each request. The result can decode one stream:
// its serializer, stream serializer and framer have a bypass in common.
func (n *negotiated) SupportedMediaTypes() []runtime.SerializerInfo {
	stock := n.NegotiatedSerializer.SupportedMediaTypes()
	infos := make([]runtime.SerializerInfo, len(stock))
	copy(infos, stock)
	for i := range infos {
		info, bypass := &infos[i], &bypass{}
		info.Serializer = dropper{info.Serializer, n.settings.Drop, bypass}
		if info.StreamSerializer == nil {
			continue
		}
		stream := *info.StreamSerializer
		stream.Serializer = &streamSerializer{Serializer: stream.Serializer, bypass: bypass}
		info.StreamSerializer = &stream
		if info.MediaType == runtime.ContentTypeJSON {
			info.Serializer = &serializer{Serializer: info.Serializer, settings: &n.settings, bypass: bypass}
			stream.Framer = &framer{Framer: stream.Framer, settings: &n.settings, bypass: bypass}
		}
	}
	return infos
}

// dropper removes fields from the objects that client-go's serializer has decoded, except bookmarks.
type dropper struct {
	runtime.Serializer
	drop   *Drop
	bypass *bypass
}

// Decode has client-go's contract.
func (d dropper) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, gvk, err := d.Serializer.Decode(data, defaults, into)
	if into != nil || !d.bypass.bookmark.Load() {
		d.drop.removeFrom(object)
	}
	return object, gvk, err
}

// framer makes frame readers. The first one is ours; all others are client-go's,
// because a bypass serves one stream.
type framer struct {
	runtime.Framer
	settings *Settings
	bypass   *bypass
}

func (f *framer) NewFrameReader(body io.ReadCloser) io.ReadCloser {
	if !f.bypass.claim() {
		return f.Framer.NewFrameReader(body)
	}
	return &frameReader{settings: f.settings, framer: f.Framer, body: body, bypass: f.bypass}
}
