package metaproto

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/internal/wire"
)

// sightings is how often a part must be decoded until it is shared.
const sightings = 3

// decoders returns decoders of all kinds, without the fields at paths.
func decoders(paths ...[]string) map[string]*Decoder {
	d := &wire.Drop{}
	for _, path := range paths {
		d.Add(path...)
	}
	return decodersOf(d)
}

// decodersOf returns decoders of all kinds, without the fields of d.
func decodersOf(d *wire.Drop) map[string]*Decoder {
	drop := NewDrop(d)
	tables := NewTables()
	return map[string]*Decoder{"own": {Tables: tables, Drop: drop}, "shared": {Tables: tables, Shared: true, Drop: drop}}
}

// stock returns client-go's serializer of a metadata client.
func stock() runtime.NegotiatedSerializer {
	return metadata.ConfigFor(&rest.Config{}).NegotiatedSerializer
}

func infoOf(t *testing.T, n runtime.NegotiatedSerializer, mediaType string) runtime.SerializerInfo {
	t.Helper()
	info, found := runtime.SerializerInfoForMediaType(n.SupportedMediaTypes(), mediaType)
	if !found {
		t.Fatalf("no serializer of %s", mediaType)
	}
	return info
}

// encoded returns object in protobuf.
func encoded(t *testing.T, object runtime.Object) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := protobuf.NewSerializer(metainternalversionscheme.Scheme, metainternalversionscheme.Scheme).Encode(object, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// response returns message as a response of that kind of metadata.
func response(kind string, message []byte) []byte { return responseOf("meta.k8s.io/v1", kind, message) }

// responseOf returns message as a response of that kind.
func responseOf(apiVersion, kind string, message []byte) []byte {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: message}
	data, err := unknown.Marshal()
	if err != nil {
		panic(err)
	}
	return append([]byte(prefix), data...)
}

// marshalled returns the message of an object.
func marshalled(object *metav1.PartialObjectMetadata) []byte {
	message, err := object.Marshal()
	if err != nil {
		panic(err)
	}
	return message
}

// random makes random metadata.
type random struct{ *rand.Rand }

func newRandom(seed uint64) random { return random{rand.New(rand.NewPCG(seed, 0))} } //nolint:gosec // test data

func (r random) text() string {
	switch r.IntN(12) {
	case 0:
		return ""
	case 1:
		return strings.Repeat("long ", 60+r.IntN(1000))
	case 2:
		return "\xff\xfe invalid"
	}
	return fmt.Sprint("text-", r.IntN(6))
}

func (r random) texts() map[string]string {
	if r.IntN(3) == 0 {
		return nil
	}
	texts := map[string]string{}
	for range r.IntN(4) {
		texts[r.text()] = r.text()
	}
	return texts
}

func (r random) time() metav1.Time {
	switch r.IntN(5) {
	case 0:
		return metav1.Time{}
	case 1:
		return metav1.Unix(r.Int64()-r.Int64(), 0) // also out of the range of JSON
	}
	return metav1.Unix(1_700_000_000+r.Int64N(3), 0)
}

func maybe[T any](r random, value T) *T {
	if r.IntN(2) == 0 {
		return nil
	}
	return &value
}

// object returns random metadata.
func (r random) object() *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: r.text(), GenerateName: r.text(), Namespace: r.text(), UID: types.UID(r.text()), ResourceVersion: r.text(),
		Generation: r.Int64N(3) - 1, CreationTimestamp: r.time(), DeletionTimestamp: maybe(r, r.time()), DeletionGracePeriodSeconds: maybe(r, r.Int64N(3)-1),
		Labels: r.texts(), Annotations: r.texts(),
	}}
	o.SetSelfLink(r.text())
	for range r.IntN(3) {
		o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{
			APIVersion: r.text(), Kind: r.text(), Name: r.text(), UID: types.UID(r.text()),
			Controller: maybe(r, r.IntN(2) == 0), BlockOwnerDeletion: maybe(r, r.IntN(2) == 0),
		})
		o.Finalizers = append(o.Finalizers, r.text())
	}
	for range r.IntN(7) {
		o.ManagedFields = append(o.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: r.text(), Operation: metav1.ManagedFieldsOperationType(r.text()), APIVersion: r.text(), Time: maybe(r, r.time()),
			FieldsType: r.text(), FieldsV1: r.fields(), Subresource: r.text(),
		})
	}
	return o
}

func (r random) fields() *metav1.FieldsV1 {
	switch r.IntN(4) {
	case 0:
		return nil
	case 1:
		return &metav1.FieldsV1{}
	}
	return metav1.NewFieldsV1(fmt.Sprintf(`{"f:%s":{}}`, r.text()))
}

// damaged changes a message at random: fields are moved, repeated, left out, of another type, unknown, or cut, at any depth.
func (r random) damaged(message []byte, depth int) []byte {
	var fields [][]byte
	for rest := message; len(rest) > 0; {
		number, kind, length := protowire.ConsumeField(rest)
		if length < 0 {
			return message
		}
		content, isBytes := []byte(nil), kind == protowire.BytesType
		if isBytes {
			_, _, tag := protowire.ConsumeTag(rest)
			content, _ = protowire.ConsumeBytes(rest[tag:])
		}
		field := rest[:length]
		if isBytes && depth > 0 && r.IntN(3) == 0 {
			field = protowire.AppendBytes(protowire.AppendTag(nil, number, kind), r.damaged(content, depth-1))
		}
		fields, rest = append(fields, field), rest[length:]
	}
	for range r.IntN(3) {
		at := r.IntN(len(fields) + 1)
		number := protowire.Number(1 + r.IntN(20))
		switch r.IntN(6) {
		case 0:
			unknown := protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), r.Uint64())
			fields = append(fields[:at:at], append([][]byte{unknown}, fields[at:]...)...)
		case 1:
			unknown := protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), []byte(r.text()))
			fields = append(fields[:at:at], append([][]byte{unknown}, fields[at:]...)...)
		case 2:
			group := protowire.AppendGroup(protowire.AppendTag(nil, number, protowire.StartGroupType), number, nil)
			fields = append(fields[:at:at], append([][]byte{group}, fields[at:]...)...)
		case 3:
			r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		case 4:
			if at < len(fields) {
				fields = append(fields, fields[at])
			}
		case 5:
			if at < len(fields) {
				fields = append(fields[:at:at], fields[at+1:]...)
			}
		}
	}
	damaged := bytes.Join(fields, nil)
	switch {
	case len(damaged) == 0:
	case r.IntN(8) == 0:
		damaged = damaged[:r.IntN(len(damaged))]
	case r.IntN(8) == 0:
		damaged[r.IntN(len(damaged))] = byte(r.Uint32()) //nolint:gosec // any byte
	}
	return damaged
}

// at is a time as objects have it.
func at(seconds int64) metav1.Time { return metav1.Time{Time: time.Unix(seconds, 0).Local()} }
