package churn

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
)

// bodyReader is the response of one request. With frame, it calls frame for each frame of the body, which is a line, or what follows its
// length in four bytes; otherwise it keeps the body. Frame and passing are called before what is written is passed on.
type bodyReader struct {
	http.ResponseWriter
	frame   func(data []byte)
	passing func() // nil: nothing
	coded   func(code int)
	body    []byte
	cut     func(body []byte) (frame, rest []byte, found bool) // nil: the header has not been written
}

// WriteHeader implements [http.ResponseWriter].
func (b *bodyReader) WriteHeader(code int) {
	if b.cut == nil && code >= http.StatusOK {
		b.begin(code)
	}
	b.ResponseWriter.WriteHeader(code)
}

// begin reads the code, if coded is not nil, and the type of the body. Later, a fault may call Write while another goroutine calls Header,
// which are not safe for concurrent use.
func (b *bodyReader) begin(code int) {
	if b.coded != nil {
		b.coded(code)
	}
	b.cut = cutLine
	if strings.Contains(b.Header().Get("Content-Type"), "protobuf") {
		b.cut = cutMessage
	}
}

// Write implements [http.ResponseWriter].
func (b *bodyReader) Write(p []byte) (int, error) {
	b.body = append(b.body, p...)
	if b.passing != nil {
		b.passing()
	}
	if b.cut == nil {
		b.begin(http.StatusOK)
	}
	for b.frame != nil {
		frame, rest, found := b.cut(b.body)
		if !found {
			break
		}
		b.frame(frame)
		b.body = rest
	}
	return b.ResponseWriter.Write(p)
}

// Unwrap implements the interface that http.ResponseController uses.
func (b *bodyReader) Unwrap() http.ResponseWriter { return b.ResponseWriter }

func cutLine(body []byte) (frame, rest []byte, found bool) { return bytes.Cut(body, []byte("\n")) }

// cutMessage cuts a message of protobuf, which follows its length.
func cutMessage(body []byte) (frame, rest []byte, found bool) {
	if len(body) < 4 {
		return nil, body, false
	}
	size, rest := uint64(binary.BigEndian.Uint32(body)), body[4:]
	if uint64(len(rest)) < size {
		return nil, body, false
	}
	return rest[:size], rest[size:], true
}

// streamEvent is an event or a bookmark of a watch.
type streamEvent struct {
	kind    string
	uid     types.UID
	version string
	ends    bool // the initial events
}

// eventTypes are the types of frames that are no errors.
var eventTypes = []string{"ADDED", "MODIFIED", "DELETED", "BOOKMARK"}

// metadataOnly decodes protobuf, in which the servers send only metadata of custom resources.
var metadataOnly = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		panic(err) // impossible: the scheme is empty
	}
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	return protobuf.NewSerializer(scheme, scheme)
}()

// metadata is the part of an object or a list that the model reads.
type metadata struct {
	UID             types.UID         `json:"uid"`
	ResourceVersion string            `json:"resourceVersion"`
	Continue        string            `json:"continue"`
	Annotations     map[string]string `json:"annotations"`
}

// readEvent reads a frame of a watch, in JSON or protobuf.
func readEvent(frame []byte) (streamEvent, error) {
	var event struct {
		Type   string `json:"type"`
		Object struct {
			Metadata metadata `json:"metadata"`
		} `json:"object"`
	}
	if len(frame) > 0 && frame[0] == '{' {
		err := json.Unmarshal(frame, &event)
		of := event.Object.Metadata
		return streamEvent{event.Type, of.UID, of.ResourceVersion, endsInitial(of.Annotations)}, err
	}
	var message metav1.WatchEvent
	if err := message.Unmarshal(frame); err != nil {
		return streamEvent{}, err
	}
	object, _, err := metadataOnly.Decode(message.Object.Raw, nil, nil)
	seen := streamEvent{kind: message.Type}
	if of, is := object.(*metav1.PartialObjectMetadata); is {
		seen.uid, seen.version, seen.ends = of.UID, of.ResourceVersion, endsInitial(of.Annotations)
	}
	return seen, err
}

// endsInitial reports whether annotations are those of the bookmark after the initial events of a watch.
func endsInitial(annotations map[string]string) bool {
	return annotations[metav1.InitialEventsAnnotationKey] == "true"
}

// readList returns the version of a list in JSON or protobuf, and whether it is complete or its last page.
func readList(body []byte) (version string, last bool, err error) {
	if object, _, err := metadataOnly.Decode(body, nil, nil); err == nil {
		if of, is := object.(*metav1.PartialObjectMetadataList); is {
			return of.ResourceVersion, of.Continue == "", nil
		}
	}
	var list struct {
		Metadata metadata `json:"metadata"`
	}
	err = json.Unmarshal(body, &list)
	return list.Metadata.ResourceVersion, list.Metadata.Continue == "", err
}
