package wire

import (
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// ahead carries an event past client-go's stream decoder, which knows bytes only:
// from the frame reader, which has decoded it, through the stream serializer, which
// is given an empty frame, to the object serializer, which is given token. The three
// are called in turn by one goroutine. No other frame is empty, and no other bytes
// are token's. It rests on client-go's streaming decoder passing empty frames on,
// which it does until a frame is too large; then its caller ends the stream.
type ahead struct {
	claimed atomic.Bool
	kind    watch.EventType
	object  *unstructured.Unstructured
	token   [1]byte
}

// claim reports whether a is the caller's; it is the first one's.
func (a *ahead) claim() bool { return a.claimed.CompareAndSwap(false, true) }

// take returns the object that data stands for, nil if data is data.
func (a *ahead) take(data []byte) *unstructured.Unstructured {
	if a == nil || len(data) != 1 || &data[0] != &a.token[0] {
		return nil
	}
	object := a.object
	a.object = nil
	return object
}

// streamSerializer decodes watch events, but not their objects.
type streamSerializer struct {
	runtime.Serializer
	ahead *ahead
}

// Decode has client-go's contract.
func (s *streamSerializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if ok && len(data) == 0 {
		event.Type = string(s.ahead.kind)
		event.Object.Raw = s.ahead.token[:]
		return event, nil, nil
	}
	return s.Serializer.Decode(data, defaults, into)
}
