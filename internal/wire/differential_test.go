package wire

import (
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"
)

// outcome is everything that a decoder returns for some bytes.
type outcome struct {
	Object runtime.Object
	Into   runtime.Object // the argument
	GVK    string
	Err    string
}

func decodeOutcome(d runtime.Decoder, data []byte, into runtime.Object) outcome {
	object, gvk, err := d.Decode(data, nil, into)
	o := outcome{Object: object, Into: into, Err: errText(err)}
	if gvk != nil {
		o.GVK = gvk.String()
	}
	return o
}

// targets are the types that the dynamic client decodes into.
var targets = map[string]func() runtime.Object{
	"nothing":   func() runtime.Object { return nil },
	"an object": func() runtime.Object { return &unstructured.Unstructured{} },
	"a list":    func() runtime.Object { return &unstructured.UnstructuredList{} },
}

// sameDecoding checks that ours decodes data as client-go does.
func sameDecoding(t *testing.T, ours runtime.NegotiatedSerializer, data []byte) {
	t.Helper()
	stock := jsonInfo(t, stockSerializer()).Serializer
	for name, target := range targets {
		input := append([]byte(nil), data...)
		want := decodeOutcome(stock, input, target())
		got := decodeOutcome(jsonInfo(t, ours).Serializer, input, target())
		clear(input) // neither result may refer to it
		if !identical(want, got) {
			t.Errorf("into %s: %.200q\n(-client-go +ours)\n%s", name, data, difference(data, want, got))
		}
	}
}

// difference returns the difference of two results for the test's output, unless data is large:
// cmp.Diff takes minutes for deep values.
func difference(data []byte, want, got any) string {
	if len(data) > 2000 {
		return "(too large to print)"
	}
	return cmp.Diff(want, got)
}

func TestDecode_AsClientGo(t *testing.T) {
	whole(t)
	for name, ours := range variants() {
		t.Run(name, func(t *testing.T) {
			for range sightings {
				for _, data := range listCorpus() {
					sameDecoding(t, ours, []byte(data))
				}
			}
		})
	}
}

func TestDecode_RealisticObjects(t *testing.T) {
	whole(t)
	for name, ours := range variants() {
		t.Run(name, func(t *testing.T) {
			for i := range 60 {
				sameDecoding(t, ours, encode(t, block(i)))
			}
			sameDecoding(t, ours, listOf(t, block(1), block(2), block(1), block(3)))
		})
	}
}

// events is everything that a decoder returns for a watch stream.
type events struct {
	Events []watch.Event
	Err    string
}

// readEvents decodes body to its end, as client-go's REST client does.
func readEvents(info runtime.SerializerInfo, body io.ReadCloser) events {
	frames := info.StreamSerializer.NewFrameReader(body)
	d := restwatch.NewDecoder(streaming.NewDecoder(frames, info.StreamSerializer.Serializer), info.Serializer)
	defer d.Close()
	var all events
	for {
		if len(all.Events) > 10_000 { // no test has so many
			all.Err = "the stream is endless"
			return all
		}
		kind, object, err := d.Decode()
		if err != nil {
			all.Err = errText(err)
			return all
		}
		all.Events = append(all.Events, watch.Event{Type: kind, Object: object})
	}
}

// pieces is a body that arrives in pieces of at most size bytes, and ends with err.
type pieces struct {
	data []byte
	size int
	err  error
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, p.err
	}
	n := copy(b, p.data[:min(p.size, len(p.data))])
	p.data = p.data[n:]
	return n, nil
}

func (p *pieces) Close() error { return nil }

var errBroken = errors.New("connection broken")

// sameStream checks that ours decodes the stream data, in pieces of size bytes, as
// client-go does.
func sameStream(t *testing.T, ours runtime.NegotiatedSerializer, data []byte, size int) {
	t.Helper()
	for _, end := range []error{io.EOF, errBroken} {
		want := readEvents(jsonInfo(t, stockSerializer()), &pieces{data, len(data) + 1, end})
		got := readEvents(jsonInfo(t, ours), &pieces{data, size, end})
		if !identical(want, got) {
			t.Errorf("in pieces of %d, ended by %v: %.300q\n(-client-go +ours)\n%s", size, end, data, difference(data, want, got))
		}
	}
}

func TestStream_AsClientGo(t *testing.T) {
	for name, ours := range variants() {
		t.Run(name, func(t *testing.T) {
			for _, data := range streamCorpus(t) {
				for _, size := range []int{1, 7, 4096, 1 << 30} {
					if size == 1 && len(data) > 20_000 {
						continue
					}
					sameStream(t, ours, []byte(data), size)
				}
			}
		})
	}
}

func TestStream_RealisticEvents(t *testing.T) {
	whole(t)
	var data []byte
	for i := range 60 {
		data = append(data, frame(t, "ADDED", block(i))...)
		data = append(data, frame(t, "MODIFIED", block(i))...)
	}
	for name, ours := range variants() {
		t.Run(name, func(t *testing.T) {
			for _, size := range []int{1000, 16 << 10, 1 << 30} {
				sameStream(t, ours, data, size)
			}
		})
	}
}
