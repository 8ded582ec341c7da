package packed

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/gvrkit/gvrkit/internal/wire"
)

// decoded returns what client-go's decoder makes of data.
func decoded(data []byte) (content map[string]any, err error) {
	err = utiljson.Unmarshal(data, &content)
	return content, err
}

// same reports whether a and b are equal, including the sign of zeros.
func same(a, b any) bool {
	if !reflect.DeepEqual(a, b) {
		return false
	}
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// FromJSON packs the JSON of one object, as Read does.
func (p *Packer) FromJSON(data []byte, drop *wire.Drop) (t Tape, ok bool) {
	var from wire.Scanner
	from.Reset(data)
	t, ok = p.Read(&from, drop, metav1.TypeMeta{})
	return t, ok && from.Done()
}

// check packs data in both ways, and compares the tapes with what client-go decodes.
func check(t *testing.T, p *Packer, data []byte) (packs bool) {
	t.Helper()
	want, err := decoded(data)
	input := bytes.Clone(data)
	tape, ok := p.FromJSON(input, nil)
	clear(input) // the tape must not refer to it
	if ok && (err != nil || want == nil) {
		t.Fatalf("%.200q is packed, but not JSON of an object: %v", data, err)
	}
	if ok {
		checkTape(t, tape, want)
	}
	if err == nil && want != nil {
		tape, converted := p.FromContent(want)
		if !converted {
			t.Fatalf("%.200q: its content is not packed", data)
		}
		checkTape(t, tape, want)
	}
	return ok
}

func checkTape(t *testing.T, tape Tape, want map[string]any) {
	t.Helper()
	if got := tape.Content(); !same(want, got) {
		t.Fatalf("content\n%.2000q, want\n%.2000q", fmt.Sprint(got), fmt.Sprint(want))
	}
	data, ok := tape.AppendJSON([]byte("x"))
	if got, err := decoded(data[1:]); !ok || err != nil || !same(want, got) {
		t.Fatalf("JSON %.2000q, error %v, want %.2000q", data, err, fmt.Sprint(want))
	}
	metadata, _ := want["metadata"].(map[string]any)
	for name, got := range map[string]string{"name": tape.Name(), "namespace": tape.Namespace(), "uid": tape.UID(), "resourceVersion": tape.ResourceVersion()} {
		if text, _ := metadata[name].(string); got != text {
			t.Fatalf("%s is %q, want %q, of %.2000q", name, got, text, fmt.Sprint(want))
		}
	}
	owners, there := metadata["ownerReferences"]
	if got, found := tape.OwnerReferences(); found != there || !same(got, owners) {
		t.Fatalf("ownerReferences are %v, %v, want %v, %v", got, found, owners, there)
	}
	labels := (&unstructured.Unstructured{Object: want}).GetLabels()
	if got, field := tape.LabelMap(), tape.Texts("metadata", "labels"); !same(got, labels) || !same(field, labels) {
		t.Fatalf("labels are %v, %v, want %v", got, field, labels)
	}
	for name, value := range labels {
		if got, found := tape.Label(name); !found || got != value {
			t.Fatalf("label %q is %q, %v, want %q", name, got, found, value)
		}
	}
	if got, found := tape.Label("no such label"); found {
		t.Fatalf("a label that is not there is %q", got)
	}
	paths(want, nil, func(path []string, value any) {
		if got, found := tape.Field(path...); !found || !same(got, value) {
			t.Fatalf("field %q is %v, %v, want %v", path, got, found, value)
		}
		if text, _ := value.(string); tape.Text(path...) != text {
			t.Fatalf("field %q is %q, want %q", path, tape.Text(path...), text)
		}
	})
	if got, found := tape.Field("no such field"); found {
		t.Fatalf("a field that is not there is %v", got)
	}
}

// paths calls visit for the fields of content, but at most 50 of each object.
func paths(content map[string]any, path []string, visit func(path []string, value any)) {
	n := 0
	for name, value := range content {
		if n++; n > 50 || len(path) > 5 {
			return
		}
		at := append(slices.Clip(path), name)
		visit(at, value)
		if below, is := value.(map[string]any); is {
			paths(below, at, visit)
		}
	}
}

// block returns object i of a series that resembles Calico's IPAMBlocks.
func block(i int) map[string]any {
	r := rand.New(rand.NewPCG(uint64(i), 7)) //nolint:gosec // test data
	node := fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", i>>10, i>>2&255)
	allocations, attributes, sequences := make([]any, 64), []any{}, map[string]any{}
	for k := range 30 {
		allocations[2*k] = k
		sequences[fmt.Sprint(2*k)] = 1700000000000000000 + r.Int64N(1<<40)
		attributes = append(attributes, map[string]any{
			"handle_id": fmt.Sprintf("k8s-pod-network.%016x%016x%016x%016x", r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64()),
			"secondary": map[string]any{
				"namespace": fmt.Sprintf("team-%02d", r.IntN(40)),
				"node":      node, "pod": fmt.Sprintf("checkout-%x-%05x", r.Uint32(), r.IntN(1<<20)),
			},
		})
	}
	return map[string]any{
		"apiVersion": "crd.projectcalico.org/v1", "kind": "IPAMBlock",
		"metadata": map[string]any{
			"name": fmt.Sprintf("10-0-%d-%d-26", i>>8, i&255), "uid": uuid(r), "resourceVersion": fmt.Sprint(1000 + i),
			"generation": 7, "creationTimestamp": "2026-01-02T03:04:05Z", "labels": map[string]any{"team": fmt.Sprint("t", i%7), "node": node},
			"ownerReferences": []any{map[string]any{"kind": "Node", "uid": uuid(rand.New(rand.NewPCG(uint64(i/4), 3))), "name": node}}, //nolint:gosec // test data
			"annotations":     map[string]any{"projectcalico.org/metadata": `{"creationTimestamp":null}`},
			"managedFields": []any{map[string]any{
				"apiVersion": "crd.projectcalico.org/v1", "manager": "calico-ipam", "operation": "Update", "fieldsType": "FieldsV1", "time": "2026-01-02T03:04:05Z",
				"fieldsV1": map[string]any{"f:spec": map[string]any{".": map[string]any{}, "f:affinity": map[string]any{}, "f:allocations": map[string]any{}}},
			}},
		},
		"spec": map[string]any{
			"affinity": "host:" + node, "allocations": allocations, "attributes": attributes, "cidr": fmt.Sprintf("10.0.%d.%d/26", i>>8, i&255),
			"deleted": false, "sequenceNumberForAllocation": sequences, "strictAffinity": i%2 == 0, "ratio": 0.5,
		},
	}
}

func uuid(r *rand.Rand) string {
	s := fmt.Sprintf("%016x%016x", r.Uint64(), r.Uint64())
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

func encode(tb testing.TB, v any) []byte {
	tb.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// values are values that encoders and decoders are known to treat differently, or that have a form of their own.
var values = []string{
	`0`, `-0`, `-0.0`, `0.0`, `1`, `-1`, `63`, `64`, `-64`, `1.0`, `1e3`, `1E+2`, `0.1`, `1e400`, `1e-400`, `127`, `128`,
	`9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `-9223372036854775809`, `01`, `-`, `1.`,
	`true`, `false`, `null`, `tru`, `""`, `"a"`, `"\u0000"`, `"\ud800"`, `"h` + "\u00e9" + `llo"`, `"` + "\xff" + `"`, `"\""`, `"` + "\x00" + `"`,
	`"2026-01-02T03:04:05Z"`, `"2026-02-30T03:04:05Z"`, `"2026-01-02T24:00:00Z"`, `"2026-01-02t03:04:05Z"`, `"1960-01-02T03:04:05Z"`, `"2016-12-31T23:59:60Z"`, `"2026-01-02T03:04:05z"`, `"02026-1-02T03:04:05Z"`, `"9999-12-31T23:59:59Z"`,
	`"01234567-89ab-cdef-0123-456789abcdef"`, `"01234567-89AB-cdef-0123-456789abcdef"`, `"01234567-89ab-cdef-0123-456789abcdeg"`, `"01234567x89ab-cdef-0123-456789abcdef"`, `"01234567-89ab-cdefx0123-456789abcdef"`,
	`"123456"`, `"012345"`, `"12345678901234567"`, `"123456789012345678"`, `"1234567890123456789"`, `"18446744073709551616"`, `"0"`, `"000000"`, `"-123456"`, `"12345x"`,
	`"deadbeef"`, `"deadbeefc"`, `"DEADBEEF"`, `"sha256:deadbeefdeadbeefdeadbeefdeadbeef"`, `"k8s-pod-network.0123456789abcdef0123456789abcdef"`, `"prefix-prefix-prefix-1234567"`, `"prefix-prefix-prefix-2026-01-02T03:04:05Z"`, `"a-b-c-d-e-f-g-h-i-j-k-l-m"`, `"------------------------"`,
	`{}`, `[]`, `[[]]`, `[{}]`, `[null,0,null,1]`, `{"a":1,"a":2}`, `{"a":{"b":1},"a":{"c":2}}`, `{"":1}`, `{"a":{"a":{"a":[{"a":"a"}]}}}`, `{"a":1,}`, `[1,]`, `{`, `[`,
	`[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]`, `[1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]`, `[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]`,
	`{"some key":"some value","other key":"other value","third key":["some value","other value","some value"]}`,
	`"` + strings.Repeat("x", 31) + `"`, `"` + strings.Repeat("x", 32) + `"`, `"` + strings.Repeat("y", 128) + `"`, `"` + strings.Repeat("y", 129) + `"`, `"` + strings.Repeat("long ", 10_000) + `"`,
	strings.Repeat(`[`, 900) + strings.Repeat(`]`, 900), strings.Repeat(`{"a":`, 900) + `1` + strings.Repeat(`}`, 900), strings.Repeat(`[`, 1100) + strings.Repeat(`]`, 1100),
}

var documents = []string{
	`{}`, ``, `null`, `[]`, `1`, `{"kind":"A"}`, `{"kind":1}`, `{"Kind":"A"}`, `{"apiVersion":"g/v1","kind":"A"}x`, `{"metadata":{"name":"x"}}{}`,
	`{"metadata":{"name":"x","namespace":"y","uid":"z","resourceVersion":"1"}}`, `{"metadata":{"name":"x","labels":{"a":"b"}},"metadata":{"uid":"y"}}`, `{"metadata":{"name":"x"},"metadata":1}`, `{"metadata":{"name":"x"},"metadata":null}`,
	`{"metadata":{"name":"x","name":"y"}}`, `{"metadata":{"name":"x","name":1}}`, `{"metadata":{"name":1,"name":"x"}}`, `{"metadata":{"labels":{"a":"b"},"labels":{"c":"d"}}}`, `{"metadata":{"labels":1}}`, `{"metadata":{"labels":null,"ownerReferences":[]}}`,
	`{"metadata":{"metadata":{"name":"x","labels":{"a":"b"}}}}`, `{"spec":{"metadata":{"name":"x","labels":{"a":"b"}}}}`, `{"metadata":[{"name":"x"}]}`, `{"items":[]}`, `{"metadata":{"uid":"01234567-89ab-cdef-0123-456789abcdef","resourceVersion":"00123456","name":"","namespace":"name-of-a-namespace"}}`,
	`{"metadata":{"labels":{"first":"first"},"name":"x"},"first":{"labels":{"first":"first"}}}`, `{"a":{"labels":{"first":"first"},"b":{"labels":{"first":"first"}}},"metadata":{"labels":{"labels":{"first":"first"}}}}`,
}

func corpus() (all []string) {
	all = append(all, documents...)
	for _, v := range values {
		all = append(all,
			`{"apiVersion":"g/v1","kind":"A","metadata":{"name":"x","resourceVersion":"1"},"spec":`+v+`}`,
			`{"metadata":{"name":`+v+`,"labels":`+v+`,"uid":`+v+`},"status":[`+v+`,{"a":`+v+`,"b":`+v+`}]}`,
			`{`+v+`:1,"spec":{`+v+`:`+v+`,"x":{`+v+`:[`+v+`]}}}`)
	}
	if !testing.Short() {
		return all
	}
	var some []string // with the race detector, packing takes ten times as long
	for i := 0; i < len(all); i += 6 {
		some = append(some, all[i])
	}
	return some
}

// sightings is how often each input is packed with one dictionary: words, shapes and values enter one after the
// other.
const sightings = 5

func TestPacker_AsClientGo(t *testing.T) {
	p := NewPacker()
	for range sightings {
		for _, data := range corpus() {
			check(t, p, []byte(data))
		}
	}
}

func TestPacker_RealisticObjects(t *testing.T) {
	whole(t)
	p := NewPacker()
	for i := range 120 {
		if !check(t, p, encode(t, block(i%80))) {
			t.Fatal("an ordinary object is not packed")
		}
	}
}

// Such documents are decoded by client-go to something else than their content, or not at all.
func TestFromJSON_LeavesUnusualDocuments(t *testing.T) {
	p := NewPacker()
	for _, data := range []string{
		`{"kind":"A","items":[]}`, `{"kind":"A","items":null}`, `{"kind":1}`, `{"apiVersion":null}`, `{"Kind":"A"}`, `{"KIND":"A"}`, `{"apiversion":"v1"}`, `{"\u212aind":"A"}`, `{"apiVer\u017fion":"v1"}`,
		`[]`, `null`, `1`, `"x"`, ``, `{"kind":"A"}{}`, `{"kind":"A"`, `{"a":` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "}",
	} {
		if _, ok := p.FromJSON([]byte(data), nil); ok {
			t.Errorf("%.100s is packed", data)
		}
	}
}

func FuzzPacker(f *testing.F) {
	for _, data := range corpus() {
		if len(data) < 8<<10 {
			f.Add([]byte(data))
		}
	}
	f.Add(encode(f, block(1)))
	p := NewPacker()
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(p.Dictionary().words.boxed) > maxWords/2 {
			p = NewPacker()
		}
		for range sightings {
			check(t, p, data)
		}
	})
}

func BenchmarkPacker(b *testing.B) {
	var all [][]byte
	for i := range 2000 {
		all = append(all, encode(b, block(i)))
	}
	b.Run("pack", func(b *testing.B) {
		p := NewPacker()
		for _, data := range all {
			p.FromJSON(data, nil)
		}
		size, i := 0, 0
		b.ReportAllocs()
		for b.Loop() {
			tape, _ := p.FromJSON(all[i%len(all)], nil)
			size += tape.Size()
			i++
		}
		b.ReportMetric(float64(size)/float64(i), "bytes/tape")
		b.ReportMetric(float64(len(all[0])), "bytes/JSON")
		b.ReportMetric(float64(p.Dictionary().Size())/float64(len(all)), "dictionary/object")
	})
	p := NewPacker()
	tapes := make([]Tape, len(all))
	for range 2 {
		for i, data := range all {
			tapes[i], _ = p.FromJSON(data, nil)
		}
	}
	b.Run("unpack", func(b *testing.B) {
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			tapes[i%len(all)].Content()
			i++
		}
	})
	b.Run("name", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			tapes[0].Name()
		}
	})
	b.Run("labels", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			tapes[0].Label("team")
		}
	})
	b.Run("field", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			tapes[0].Field("spec", "cidr")
		}
	})
}

// whole leaves a test that needs no race detector out of short runs. make test runs the tests of this package twice: all without the race
// detector, and then with it, which takes ten times as long, and with -short.
func whole(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it has one goroutine, and runs without -short")
	}
}

// If a key occurs twice, the last value counts, as in client-go's decoder.
func TestTape_TextsOfKeysThatOccurTwice(t *testing.T) {
	p := NewPacker()
	for _, members := range []string{
		`"a":5,"a":"z"`, `"a":{"b":[1]},"b":"y","a":"z"`, `"a":"z","a":5`, `"a":5,"a":"z","a":5`, `"a":5,"a":null`, `"a":5,"b":"z"`,
		`"a":5,"a":5,"a":"z"`, `"a":5,"b":5,"a":"z"`, `"a":"y","a":"z"`,
	} {
		for range 3 { // the dictionary grows
			text := `{"metadata":{"labels":{` + members + `},"annotations":{` + members + `}}}`
			tape, ok := p.FromJSON([]byte(text), nil)
			if !ok {
				t.Fatalf("%s is not packed", text)
			}
			var want unstructured.Unstructured
			if err := utiljson.Unmarshal([]byte(text), &want.Object); err != nil {
				t.Fatal(err)
			}
			for name, got := range map[string]map[string]string{"labels": tape.LabelMap(), "annotations": tape.Texts("metadata", "annotations")} {
				if diff := cmp.Diff(want.GetLabels(), got); diff != "" {
					t.Errorf("%s of %s (-want +got):\n%s", name, text, diff)
				}
			}
			value, found := tape.Label("a")
			if w, is := want.GetLabels()["a"]; value != w || found != is {
				t.Errorf("label of %s: %q, %v, want %q, %v", text, value, found, w, is)
			}
		}
	}
}
