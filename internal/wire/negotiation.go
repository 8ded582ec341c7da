package wire

import (
	"io"

	"k8s.io/apimachinery/pkg/runtime"
)

// Settings is how a client decodes.
type Settings struct {
	Tables  *Tables
	Sharing Sharing
	Drop    *Drop
}

func (s *Settings) decode(data []byte, use func(b *builder) bool) bool {
	return s.Tables.decode(data, s.Sharing, s.Drop, use)
}

// Negotiated returns client-go's serializer for dynamic clients with the decoding
// of JSON replaced. Encoding and other formats stay what they are.
func Negotiated(stock runtime.NegotiatedSerializer, settings Settings) runtime.NegotiatedSerializer {
	return &negotiated{NegotiatedSerializer: stock, settings: settings}
}

type negotiated struct {
	runtime.NegotiatedSerializer
	settings Settings
}

// SupportedMediaTypes is called for each request. What it returns is good for one
// stream, whose three parts work hand in hand.
func (n *negotiated) SupportedMediaTypes() []runtime.SerializerInfo {
	stock := n.NegotiatedSerializer.SupportedMediaTypes()
	infos := make([]runtime.SerializerInfo, len(stock))
	copy(infos, stock)
	for i := range infos {
		info := &infos[i]
		if info.MediaType != runtime.ContentTypeJSON || info.StreamSerializer == nil {
			continue
		}
		ahead := &ahead{}
		stream := *info.StreamSerializer
		info.Serializer = &serializer{Serializer: info.Serializer, settings: &n.settings, ahead: ahead}
		stream.Serializer = &streamSerializer{Serializer: stream.Serializer, ahead: ahead}
		stream.Framer = &framer{Framer: stream.Framer, settings: &n.settings, ahead: ahead}
		info.StreamSerializer = &stream
	}
	return infos
}

// framer makes the frame reader of one stream. Asked for a second one, it returns
// client-go's, since ahead has room for one stream.
type framer struct {
	runtime.Framer
	settings *Settings
	ahead    *ahead
}

func (f *framer) NewFrameReader(body io.ReadCloser) io.ReadCloser {
	if !f.ahead.claim() {
		return f.Framer.NewFrameReader(body)
	}
	return &frameReader{settings: f.settings, framer: f.Framer, body: body, ahead: f.ahead}
}
