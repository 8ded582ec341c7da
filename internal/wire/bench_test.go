package wire

import (
	"bytes"
	"io"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	restwatch "k8s.io/client-go/rest/watch"
)

// BenchmarkStream decodes one watch event per iteration. The bench module measures
// whole informers.
func BenchmarkStream(b *testing.B) {
	const objects = 1000
	var data []byte
	for i := range objects {
		data = append(data, frame(b, "ADDED", block(i))...)
	}
	serializers := variants()
	serializers["client-go"] = stockSerializer()
	for name, s := range serializers {
		b.Run(name, func(b *testing.B) {
			info := jsonInfo(b, s)
			body := &endless{data: data}
			d := restwatch.NewDecoder(streaming.NewDecoder(info.StreamSerializer.NewFrameReader(body), info.StreamSerializer.Serializer), info.Serializer)
			b.SetBytes(int64(len(data) / objects))
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := d.Decode(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// endless repeats data.
type endless struct {
	data []byte
	rest bytes.Reader
}

func (e *endless) Read(p []byte) (int, error) {
	if e.rest.Len() == 0 {
		e.rest.Reset(e.data)
	}
	return e.rest.Read(p)
}

func (e *endless) Close() error { return nil }

var _ io.ReadCloser = (*endless)(nil)

// BenchmarkSkip measures only the scanner, as a lower bound for all decoders.
func BenchmarkSkip(b *testing.B) {
	data := encode(b, block(1))
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if s := (scanner{data: data}); !s.skip() {
			b.Fatal("not valid")
		}
	}
}

var _ runtime.Decoder = (*serializer)(nil)

// BenchmarkStruct decodes objects to a Go type, and to unstructured content.
func BenchmarkStruct(b *testing.B) {
	var data [][]byte
	for i := range 1000 {
		data = append(data, encode(b, block(i)))
	}
	settings := structSettings(structTypes["ipamBlock"])
	settings.Sharing = Shared
	with := func(use func(b *builder) bool) func(data []byte) bool {
		return func(data []byte) bool { return settings.decode(data, use) }
	}
	for name, decode := range map[string]func(data []byte) bool{
		"struct":       with(func(b *builder) bool { _, ok := settings.Into.item(b, metav1.TypeMeta{}); return ok }),
		"unstructured": with(func(b *builder) bool { _, ok := b.document(); return ok }),
		"util/json":    func(data []byte) bool { return utiljson.Unmarshal(data, &ipamBlock{}) == nil },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if !decode(data[i%len(data)]) {
					b.Fatal("not decoded")
				}
			}
		})
	}
}
