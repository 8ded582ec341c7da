package wire

import (
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// bypass passes a decoded event by client-go's stream decoder, which passes only
// bytes. The frame reader stores the event here and returns an empty frame. For an
// empty frame, the stream serializer returns the event's kind, and token as its
// object. For token, the object serializer returns the stored object. One goroutine
// calls the three in turn. No other frame is empty, and no other bytes are token's.
// client-go's streaming decoder passes on empty frames until a frame is too large;
// then its caller ends the stream.
type bypass struct {
	claimed  atomic.Bool
	kind     watch.EventType
	object   runtime.Object
	token    [1]byte
	bookmark atomic.Bool // the last event that client-go's serializer has decoded
}

// claim reports whether this is the first call.
func (b *bypass) claim() bool { return b.claimed.CompareAndSwap(false, true) }

// take returns the stored object if data is token, else nil.
func (b *bypass) take(data []byte) runtime.Object {
	if b == nil || len(data) != 1 || &data[0] != &b.token[0] {
		return nil
	}
	object := b.object
	b.object = nil
	return object
}

// streamSerializer decodes watch events, but not their objects.
type streamSerializer struct {
	runtime.Serializer
	bypass *bypass
}

// Decode has client-go's contract.
func (s *streamSerializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if ok && len(data) == 0 {
		event.Type = string(s.bypass.kind)
		event.Object.Raw = s.bypass.token[:]
		return event, nil, nil
	}
	object, gvk, err := s.Serializer.Decode(data, defaults, into)
	if ok {
		s.bypass.bookmark.Store(event.Type == string(watch.Bookmark))
	}
	return object, gvk, err
}
