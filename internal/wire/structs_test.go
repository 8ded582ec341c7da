package wire

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// ipamBlock is Calico's IPAMBlock.
type ipamBlock struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		CIDR           string           `json:"cidr"`
		Affinity       *string          `json:"affinity,omitempty"`
		StrictAffinity bool             `json:"strictAffinity"`
		Allocations    []*int           `json:"allocations"`
		Unallocated    []int            `json:"unallocated"`
		Attributes     []blockAttribute `json:"attributes"`
		Sequence       map[string]int64 `json:"sequenceNumberForAllocation"`
		Deleted        bool             `json:"deleted"`
		Ratio          float64          `json:"ratio"`
	} `json:"spec"`
}

type blockAttribute struct {
	Handle    *string           `json:"handle_id,omitempty"`
	Secondary map[string]string `json:"secondary,omitempty"`
}

func (b *ipamBlock) DeepCopyObject() runtime.Object { panic("not called") }

// kinds has a field of each type that has rules of its own.
type kinds struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Bool      bool                       `json:"bool"`
	String    string                     `json:"string"`
	Named     types.UID                  `json:"named"`
	Int       int                        `json:"int"`
	Int8      int8                       `json:"int8"`
	Int64     int64                      `json:"int64"`
	Uint8     uint8                      `json:"uint8"`
	Uint64    uint64                     `json:"uint64"`
	Float     float64                    `json:"float"`
	Float32   float32                    `json:"float32"`
	Any       any                        `json:"any"`
	Errors    error                      `json:"errors"`
	Pointer   *string                    `json:"pointer"`
	Pointers  **int                      `json:"pointers"`
	Slice     []string                   `json:"slice"`
	Slices    [][]int                    `json:"slices"`
	Structs   []blockAttribute           `json:"structs"`
	Bytes     []byte                     `json:"bytes"`
	Array     [2]int                     `json:"array"`
	Texts     map[string]string          `json:"texts"`
	Uids      map[types.UID]string       `json:"uids"`
	Numbers   map[string]int             `json:"numbers"`
	ByNumber  map[int]string             `json:"byNumber"`
	ByText    map[text16]string          `json:"byText"`
	Maps      map[string]map[string]any  `json:"maps"`
	Lists     map[string][]string        `json:"lists"`
	Refs      map[string]*blockAttribute `json:"refs"`
	Next      *kinds                     `json:"next"`
	Time      metav1.Time                `json:"time"`
	TimeRef   *metav1.Time               `json:"timeRef"`
	MicroTime metav1.MicroTime           `json:"microTime"`
	Port      intstr.IntOrString         `json:"port"`
	Ports     []intstr.IntOrString       `json:"ports"`
	Raw       json.RawMessage            `json:"raw"`
	Extension runtime.RawExtension       `json:"extension"`
	Number    json.Number                `json:"number"`
	Text      text16                     `json:"text"`
	TextRef   *text16                    `json:"textRef"`
	Unnamed   struct{ metav1.Time }      `json:"unnamed"`
	Quoted    struct {
		A int `json:"a,string"`
	} `json:"quoted"`
	Strange struct {
		A int `json:"a|b"`
	} `json:"strange"`
	Embedding embedding        `json:"embedding"`
	Embedded  embeddingPointer `json:"embedded"`
	Hidden    hidden           `json:"hidden"`
	Large     large256         `json:"large"`
	NoTag     string
	Dash      int `json:"-"`
	DashName  int `json:"-,"` //nolint:staticcheck // the name is a dash
	private   int //nolint:unused // has no value
}

func (k *kinds) DeepCopyObject() runtime.Object { panic("not called") }

// text16 decodes itself from text.
type text16 string

var _ encoding.TextUnmarshaler = new(text16)

func (t *text16) UnmarshalText(data []byte) error {
	if len(data) > 16 {
		return errors.New("too long")
	}
	*t = text16("text " + string(data))
	return nil
}

// embedding has fields whose names compete.
type embedding struct {
	inner
	Other
	A int `json:"a"`
	E int
	F int `json:"f"`
	G int `json:"F"`
}

type inner struct {
	A int `json:"a"`
	B int `json:"b"`
	C int
	N int
	f int //nolint:unused // has no value
}

// Other competes with inner.
type Other struct {
	B int
	C int `json:"C"`
	N int
	deeper
}

type deeper struct {
	B  int `json:"b"`
	E  int
	Z  int `json:"z"`
	ZZ []int
}

type embeddingPointer struct {
	*Other
	X int
}

// hidden has an embedded field with a name.
type hidden struct {
	Other `json:"other"`
	text16
	X int
}

// large256 has more fields than a fieldSet.
type large256 struct {
	A [300]struct{} `json:"-"`
	B int
}

// structTypes are the types of the fuzz test. A pod is not among them: large exponents in a quantity take minutes.
var structTypes = map[string]reflect.Type{
	"ipamBlock": reflect.TypeFor[ipamBlock](), "kinds": reflect.TypeFor[kinds](),
	"metadata": reflect.TypeFor[metav1.PartialObjectMetadata](), "Event": reflect.TypeFor[corev1.Event](),
}

// structSettings returns settings for objects of a type.
func structSettings(t reflect.Type) *Settings {
	return &Settings{Tables: NewTables(Shared), Into: NewStruct(t)}
}

// sameStruct fails t if the decoder of settings has another result than util/json. It reports whether data is
// ordinary.
func sameStruct(t *testing.T, settings *Settings, data []byte) (ordinary bool) {
	t.Helper()
	want := reflect.New(settings.Into.(*Struct).of).Interface()
	err := utiljson.Unmarshal(data, want)
	for i, sharing := range []Sharing{Own, Shared, Shared, Shared} { // parts are shared when they have been decoded before
		settings := *settings
		settings.Sharing = sharing
		got, ok := settings.Object(data)
		if ok && (err != nil || !identical(want, any(got))) {
			t.Errorf("%v: %.2000s\nshared: %t: got %+v\nwant %+v, error %v", settings.Into.(*Struct).of, data, sharing, got, want, err)
		}
		if i > 0 && ok != ordinary {
			t.Errorf("%v: %.2000s\nordinary: %t, shared: %t", settings.Into.(*Struct).of, data, ordinary, ok)
		}
		ordinary = ok
	}
	return ordinary
}

// Equal parts of metadata are shared from the second time on, except those with fields to leave out.
// Parts that have the same slots of a table replace each other. They are in other slots of another table, which has a seed of its own.
func TestStruct_SharesMetadata(t *testing.T) {
	var wrong []string
	for range 5 {
		if wrong = sharesMetadata(t); wrong == nil {
			return
		}
	}
	t.Error(strings.Join(wrong, "; "))
}

// sharesMetadata returns what is wrong with the sharing of metadata by a new table.
func sharesMetadata(t *testing.T) (wrong []string) {
	t.Helper()
	settings := structSettings(structTypes["metadata"])
	decode := func(sharing Sharing, drop *Drop) *metav1.ObjectMeta {
		settings.Sharing, settings.Drop = sharing, drop
		object, ok := settings.Object([]byte(`{"kind":"A","apiVersion":"b/v1","metadata":{"name":"x","labels":{"a":"b","c":"d"},"annotations":{"a":"b"},"finalizers":["f"],
			"ownerReferences":[{"uid":"u"}],"managedFields":[{"manager":"m","fieldsV1":{"f:a":{}}}]}}`))
		if !ok {
			t.Fatal("not ordinary")
		}
		return &object.(*metav1.PartialObjectMetadata).ObjectMeta
	}
	shared := func(a, b *metav1.ObjectMeta) []bool {
		same := func(a, b map[string]string) bool { return reflect.ValueOf(a).Pointer() == reflect.ValueOf(b).Pointer() }
		return []bool{
			same(a.Labels, b.Labels), same(a.Annotations, b.Annotations), &a.Finalizers[0] == &b.Finalizers[0],
			&a.OwnerReferences[0] == &b.OwnerReferences[0], a.ManagedFields[0].FieldsV1 == b.ManagedFields[0].FieldsV1,
		}
	}
	first := decode(Shared, nil)
	second, third := decode(Shared, nil), decode(Shared, nil)
	label := dropAll([][]string{{"metadata", "labels", "a"}})
	for name, test := range map[string]struct {
		got  *metav1.ObjectMeta
		want []bool
	}{
		"once before": {first, make([]bool, 5)},
		"shared":      {third, []bool{true, true, true, true, true}},
		"own":         {decode(Own, nil), make([]bool, 5)},
		"dropped":     {decode(Shared, label), []bool{false, true, true, true, true}},
	} {
		if got := shared(second, test.got); !slices.Equal(got, test.want) {
			wrong = append(wrong, fmt.Sprintf("%s: %v, want %v", name, got, test.want))
		}
	}
	if got := decode(Shared, label).Labels; len(got) != 1 {
		wrong = append(wrong, fmt.Sprintf("labels without one: %v", got))
	}
	return wrong
}

func TestStruct_SharesPointersToSmallIntegers(t *testing.T) {
	type fields struct {
		Allocations []*int           `json:"allocations"`
		Small       *int8            `json:"small"`
		Map         map[string]*int8 `json:"map"`
		Text        *number8         `json:"text"`
	}
	decode := func(sharing Sharing, text string) (f fields) {
		ok := NewTables(Shared).decode([]byte(text), len(text), &Settings{Sharing: sharing}, func(b *builder) bool {
			return newPlanner().of(reflect.TypeFor[fields]())(b, reflect.ValueOf(&f).Elem()) && b.done()
		})
		if !ok {
			t.Fatalf("%s is not ordinary", text)
		}
		return f
	}
	text := `{"allocations":[0, 5 ,127,128,-1,-0,null,5,2147483647],"small":127,"map":{"a":127,"b":-128},"text":7}`
	var want fields
	if err := utiljson.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	for _, sharing := range []Sharing{Shared, Own} {
		got := decode(sharing, text)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("sharing %t: %s, want %s", sharing, encode(t, got), encode(t, want))
		}
		if same := got.Allocations[1] == got.Allocations[7]; same != bool(sharing) {
			t.Errorf("sharing %t: pointers to 5 are equal: %t", sharing, same)
		}
		if same := got.Small == got.Map["a"]; same != bool(sharing) {
			t.Errorf("sharing %t: pointers to 127 are equal: %t", sharing, same)
		}
	}
	for _, text := range []string{`{"allocations":[1.0]}`, `{"allocations":[1e0]}`, `{"allocations":["1"]}`, `{"small":128}`, `{"allocations":[01]}`} {
		var f fields
		ok := NewTables(Shared).decode([]byte(text), len(text), &Settings{Sharing: Shared}, func(b *builder) bool {
			return newPlanner().of(reflect.TypeFor[fields]())(b, reflect.ValueOf(&f).Elem()) && b.done()
		})
		if ok {
			t.Errorf("%s is ordinary: %s", text, encode(t, f))
		}
	}
}

// number8 decodes itself.
type number8 int8

func (n *number8) UnmarshalJSON(data []byte) error {
	*n = number8(len(data))
	return nil
}

// droppedOfKinds are paths of fields of kinds, also below values that are no objects.
var droppedOfKinds = [][]string{
	{"metadata", "managedFields"},
	{"metadata", "labels", "a"},
	{"metadata", "name"},
	{"kind"},
	{"texts", "a"},
	{"numbers", "a"},
	{"maps", "a", "b"},
	{"refs", "a", "handle_id"},
	{"lists", "a", "b"},
	{"next", "int"},
	{"next", "texts"},
	{"any", "a"},
	{"slice", "a"},
	{"structs", "handle_id"},
	{"int", "a"},
	{"pointer"},
	{"time"},
	{"embedding", "a"},
	{"quoted", "a"},
	{"quoted", "unknown"},
	{"byNumber", "1"},
	{"extension", "a"},
}

// sameDroppingOfStruct fails t if the decoder, or Drop.RemoveFrom after client-go's decoder, has another result than util/json for an
// object without the fields of drop.
func sameDroppingOfStruct(t *testing.T, settings *Settings, paths [][]string, data []byte) {
	t.Helper()
	of := settings.Into.(*Struct).of
	removed := reflect.New(of).Interface().(metav1.Object)
	if err := utiljson.Unmarshal(data, removed); err != nil {
		return
	}
	dropping := *settings
	dropping.Drop = dropAll(paths)
	dropping.Drop.RemoveFrom(removed)
	var got any
	if dropping.decode(data, func(b *builder) (ok bool) {
		got, ok = settings.Into.item(b, metav1.TypeMeta{})
		return ok && b.done()
	}) && !identical(any(removed), got) {
		t.Errorf("%v: %.2000s\n got %+v\nwant %+v", of, data, got, removed)
	}
	var content map[string]any
	if utiljson.Unmarshal(data, &content) != nil {
		return
	}
	again := func() any {
		text, err := json.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		object := reflect.New(of).Interface()
		if utiljson.Unmarshal(text, object) != nil {
			return nil
		}
		return object
	}
	whole := reflect.New(of).Interface()
	if err := utiljson.Unmarshal(data, whole); err != nil || !identical(whole, again()) {
		return // some values have no equal JSON
	}
	for _, path := range paths {
		if slices.Contains([]string{"kind", "byNumber", "extension"}, path[0]) || slices.Equal(path, []string{"metadata", "name"}) {
			continue // it is not dropped
		}
		unstructured.RemoveNestedField(content, path...)
	}
	if want := again(); !identical(want, any(removed)) {
		t.Errorf("%v: %.2000s: removed\n got %+v\nwant %+v", of, data, removed, want)
	}
}

func TestStruct_DropIsRemoveNestedField(t *testing.T) {
	whole(t)
	settings := structSettings(reflect.TypeFor[kinds]())
	for _, value := range append(slices.Clone(values), `{"a":"b","c":null}`, `{"a":{"b":1,"c":2}}`, `{"a":{"handle_id":"x","secondary":{}},"b":null}`, `{"a":1}`, `{"a":["b"]}`, `{"a":"5"}`, `{"1":"x"}`,
		`{"a":null}`, `[{"handle_id":"x"}]`, `{"int":3,"next":{"int":4,"texts":{"a":"b"}},"texts":{"a":"b"},"slice":["a"]}`, `{"name":"x","labels":{"a":"b","c":"d"},"managedFields":[{"manager":"m"}]}`, `"2024-01-02T03:04:05Z"`) {
		for _, path := range droppedOfKinds {
			sameDroppingOfStruct(t, settings, droppedOfKinds, []byte(`{"before":1,"`+path[0]+`":`+value+`,"int8":3}`))
		}
	}
	for i := range 5 {
		sameDroppingOfStruct(t, structSettings(structTypes["ipamBlock"]), [][]string{{"metadata", "managedFields"}, {"spec", "attributes"}, {"spec", "sequenceNumberForAllocation", "1"}, {"metadata", "annotations"}}, encode(t, block(i)))
	}
}

// Common has fields for types that embed it.
type Common struct {
	Big string `json:"big"`
	*Recursive
}

// Recursive embeds itself.
type Recursive struct {
	Deep string `json:"deep"`
	*Recursive
}

// embedsPointers has fields behind embedded pointers.
type embedsPointers struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		*Common
		Small string `json:"small"`
	} `json:"spec"`
}

func (e *embedsPointers) DeepCopyObject() runtime.Object { panic("not called") }

// Fields may be behind embedded pointers, which may be nil, and to a type that embeds itself.
func TestStruct_DropsFieldsBehindEmbeddedPointers(t *testing.T) {
	settings := structSettings(reflect.TypeFor[embedsPointers]())
	paths := [][]string{{"spec", "big"}, {"spec", "deep"}}
	for _, data := range []string{`{"spec":{"big":"b","small":"s","deep":"d"}}`, `{"spec":{"deep":"d","small":"s"}}`, `{"spec":{"big":"b"}}`, `{"spec":{"small":"s"}}`, `{"spec":null}`} {
		sameStruct(t, settings, []byte(data))
		dropping := *settings
		dropping.Drop = dropAll(paths)
		decoded, ok := dropping.Object([]byte(data))
		if !ok {
			t.Fatalf("%s is not ordinary", data)
		}
		removed := &embedsPointers{}
		if err := utiljson.Unmarshal([]byte(data), removed); err != nil {
			t.Fatal(err)
		}
		dropping.Drop.RemoveFrom(removed)
		for _, got := range []*embedsPointers{decoded.(*embedsPointers), removed} {
			if c := got.Spec.Common; c != nil && (c.Big != "" || c.Recursive != nil && c.Deep != "") || strings.Contains(data, "small") != (got.Spec.Small == "s") {
				t.Errorf("%s: %s", data, encode(t, got))
			}
		}
	}
}

// Fields of a list, and of the next item, are not those of an item.
func TestStruct_DropEndsWithTheValue(t *testing.T) {
	settings := structSettings(structTypes["ipamBlock"])
	settings.Drop = dropAll([][]string{{"metadata"}, {"spec", "cidr", "remainingItemCount"}})
	l, ok := settings.List([]byte(`{"kind":"AList","items":[{"metadata":{"name":"x","labels":{"a":"b"}},"spec":{"cidr":"c"}},{"metadata":{"name":"y","uid":"u"},"spec":{"cidr":"d"}}],"metadata":{"remainingItemCount":3,"continue":"c"}}`))
	if !ok || l.RemainingItemCount == nil || l.Continue != "c" || len(l.Items) != 2 {
		t.Fatalf("%t: %+v", ok, l)
	}
	for i, want := range []ipamBlock{{ObjectMeta: metav1.ObjectMeta{Name: "x"}}, {ObjectMeta: metav1.ObjectMeta{Name: "y", UID: "u"}}} {
		if got := l.Items[i].(*ipamBlock); !identical(got.ObjectMeta, want.ObjectMeta) || got.Spec.CIDR == "" {
			t.Errorf("item %d: %+v", i, got)
		}
	}
}

// An annotation marks the end of the initial events of a watch-list.
func TestStruct_DropKeepsBookmarks(t *testing.T) {
	settings := structSettings(structTypes["ipamBlock"])
	settings.Drop = dropAll([][]string{{"metadata"}, {"metadata", "annotations"}})
	const object = `{"kind":"IPAMBlock","metadata":{"annotations":{"k8s.io/initial-events-end":"true"}}}`
	for kind, kept := range map[string]bool{"BOOKMARK": true, "ADDED": false} {
		settings.decode([]byte(`{"type":"`+kind+`","object":`+object+`}`), func(b *builder) bool {
			_, decoded, ok := b.event()
			if !ok || (len(decoded.(*ipamBlock).Annotations) > 0) != kept {
				t.Errorf("%s: %t %+v", kind, ok, decoded)
			}
			return ok
		})
	}
	bookmark := &ipamBlock{}
	if err := utiljson.Unmarshal([]byte(object), bookmark); err != nil {
		t.Fatal(err)
	}
	if settings.Drop.RemoveFrom(bookmark); len(bookmark.Annotations) != 1 {
		t.Errorf("removed from a bookmark: %v", bookmark)
	}
}

// Each value in each field has the same result as with util/json.
func TestStruct_AsUtilJSON(t *testing.T) {
	whole(t)
	settings := structSettings(reflect.TypeFor[kinds]())
	fields := []string{"unknown", "metadata", "kind"}
	for name := range newPlanner().fields(reflect.TypeFor[kinds]()) {
		fields = append(fields, name)
	}
	values := append(values, `300`, `-129`, `65536`, `"2024-01-02T03:04:05Z"`, `"2024-01-02T03:04:05.123456Z"`, `"2024-01-02T03:04:05.5+02:00"`, `"\u0032024-01-02T03:04:05Z"`, `"2024-01-02t03:04:05z"`, `"80%"`, `"aGVsbG8="`, `"not base64!"`, `["a",null,"b"]`,
		`[[1,2],null,[]]`, `[{"handle_id":"x","secondary":{"a":"b"}},null,{}]`, `{"a":"b","c":null}`, `{"a":["b"],"c":null,"d":[]}`, `{"a":{"b":{"c":[1,1.5]}}}`, `{"1":"b"}`, `{"a":{"handle_id":null},"b":null}`,
		`{"int":3,"next":{"int":4,"texts":{}}}`, `{"a":1,"b":2,"c":3,"C":4,"N":5,"E":7,"f":8,"F":9,"z":10,"ZZ":[1]}`, `{"other":{"b":1},"B":2,"X":3,"text16":"x"}`, `{"B":1}`, `{"a":"5"}`, `{"a|b":5}`, `{"Time":null}`,
		`{"name":"x","labels":{"a":"b"},"creationTimestamp":null,"ownerReferences":[{"uid":"1","controller":true}],"managedFields":[{"fieldsV1":{"f:a":{}},"time":"2024-01-02T03:04:05Z"}]}`)
	for _, name := range fields {
		ordinary := 0
		for i, value := range values {
			if sameStruct(t, settings, []byte(`{"`+name+`":`+value+`,"another":1}`)) {
				ordinary++
			}
			sameStruct(t, settings, []byte(`{"`+name+`":`+value+`,"`+name+`":`+values[max(0, i-1)]+`}`))
		}
		if (ordinary == 0) != (name == "unnamed") {
			t.Errorf("%d values of %s are ordinary", ordinary, name)
		}
	}
}

// These would make the decoding of the whole object slow.
func TestStruct_UsualValuesAreOrdinary(t *testing.T) {
	settings := structSettings(reflect.TypeFor[kinds]())
	for _, text := range []string{
		`{"bytes":"aGVsbG8="}`, `{"bytes":null}`, `{"float32":1.5}`, `{"array":[1,2]}`, `{"byNumber":{"1":"a"}}`, `{"byText":{"a":"b"}}`, `{"number":1.50}`, `{"text":"a"}`,
		`{"quoted":{"a":"5"}}`, `{"strange":{"a|b":5}}`, `{"embedded":{"B":1,"X":2}}`, `{"time":"2024-01-02T03:04:05Z"}`, `{"port":"http"}`, `{"raw":[1, 2]}`,
		`{"unknown":{"a":[{}]}}`, `{"next":{"next":{"next":null}}}`, ` { "int" : 1 , "slice" : [ ] } `,
	} {
		if !sameStruct(t, settings, []byte(text)) {
			t.Errorf("%s is not ordinary", text)
		}
	}
}

// fragileJSON and fragileText decode themselves, and panic.
type (
	fragileJSON struct{ _ byte }
	fragileText string
)

func (f *fragileJSON) UnmarshalJSON([]byte) error { panic("a method panics") }
func (f *fragileText) UnmarshalText([]byte) error { panic("a method panics") }

// A panic of a method of a Go type, or of a type in it, must not end the program.
func TestStruct_AnObjectWhoseMethodPanicsIsNotOrdinary(t *testing.T) {
	type fragile struct {
		metav1.PartialObjectMetadata

		Itself   fragileJSON            `json:"itself"`
		Text     fragileText            `json:"text"`
		Key      map[fragileText]string `json:"key"`
		Array    [1]fragileJSON         `json:"array"`
		Embedded struct {
			*Other
			Value fragileJSON `json:"value"`
		} `json:"embedded"`
	}
	settings := structSettings(reflect.TypeFor[fragile]())
	for _, text := range []string{`{"itself":1}`, `{"text":"a"}`, `{"key":{"a":"b"}}`, `{"array":[1]}`, `{"embedded":{"value":1}}`} {
		if object, ok := settings.Object([]byte(text)); ok {
			t.Errorf("%s is ordinary: %+v", text, object)
		}
	}
	if _, ok := settings.Object([]byte(`{"metadata":{"name":"a"}}`)); !ok {
		t.Error("an object without these fields is not ordinary")
	}
}

// The objects of real servers are ordinary.
func TestStruct_RealisticObjects(t *testing.T) {
	for i := range 20 {
		for _, of := range []string{"ipamBlock", "metadata"} {
			if !sameStruct(t, structSettings(structTypes[of]), encode(t, block(i))) {
				t.Errorf("block %d is not ordinary for %s", i, of)
			}
		}
	}
	if !sameStruct(t, structSettings(reflect.TypeFor[corev1.Pod]()), []byte(pod)) {
		t.Error("a pod is not ordinary")
	}
}

const pod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"ns","generateName":"a-","uid":"u","resourceVersion":"7","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"app":"a"},
"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"a","uid":"v","controller":true,"blockOwnerDeletion":true}]},
"spec":{"containers":[{"name":"c","image":"i:1","args":["--x","--y=1"],"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],"env":[{"name":"E","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}],
"resources":{"limits":{"cpu":"2","memory":"4Gi"},"requests":{"cpu":"100m"}},"livenessProbe":{"httpGet":{"path":"/","port":"http","scheme":"HTTP"},"initialDelaySeconds":3},"securityContext":{"runAsUser":1000,"capabilities":{"drop":["ALL"]}}}],
"tolerations":[{"key":"k","operator":"Exists","tolerationSeconds":300}],"volumes":[{"name":"v","configMap":{"name":"m","defaultMode":420,"items":[{"key":"a","path":"b"}]}},{"name":"e","emptyDir":{}}],"nodeSelector":{"a":"b"},"terminationGracePeriodSeconds":30},
"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-02T03:04:05Z"}],"podIPs":[{"ip":"10.0.0.1"}],"startTime":"2026-01-02T03:04:05Z",
"containerStatuses":[{"name":"c","state":{"running":{"startedAt":"2026-01-02T03:04:05Z"}},"ready":true,"restartCount":0,"image":"i","imageID":"j","started":true}]}}`

// A list is ordinary only if each item is. Items without a kind get it from the list.
func TestSettings_ListOfStructs(t *testing.T) {
	settings := structSettings(structTypes["ipamBlock"])
	l, ok := settings.List(listOf(t, block(1), map[string]any{"metadata": map[string]any{"name": "x"}}, map[string]any{"kind": "Other"}))
	if !ok || len(l.Items) != 3 || l.ResourceVersion != "9" || l.RemainingItemCount == nil || *l.RemainingItemCount != 3 || l.Kind != "IPAMBlockList" {
		t.Fatalf("%v: %+v", ok, l)
	}
	for i, want := range []string{"crd.projectcalico.org/v1 IPAMBlock", "crd.projectcalico.org/v1 IPAMBlock", " Other"} {
		if got := l.Items[i].(*ipamBlock); got.APIVersion+" "+got.Kind != want {
			t.Errorf("item %d is of %s %s, want %s", i, got.APIVersion, got.Kind, want)
		}
	}
	for _, data := range listCorpus() {
		if l, ok := settings.List([]byte(data)); ok {
			var want struct {
				listHead
				Items []*ipamBlock `json:"items"`
			}
			if err := utiljson.Unmarshal([]byte(data), &want); err != nil || len(want.Items) != len(l.Items) || !identical(want.ListMeta, l.ListMeta) || want.TypeMeta != l.TypeMeta {
				t.Errorf("%.2000s: %+v, want %+v, error %v", data, l, want, err)
			}
		}
	}
	for _, data := range []string{
		`{"kind":"AList","items":null}`, `{"kind":"AList"}`, `{"kind":"A","items":[]}`, `{"kind":"AList","items":[],"items":[]}`, `{"kind":"AList","items":[null]}`, `{"kind":"AList","items":[{"spec":5}]}`, `{"kind":"AList","items":[]}x`,
	} {
		if _, ok := settings.List([]byte(data)); ok {
			t.Errorf("%s is ordinary", data)
		}
	}
}

// What API servers send is ordinary for a dynamic client and for one of a Go type: the encoder is theirs.
func TestSettings_ListsOfAPIServersAreOrdinary(t *testing.T) {
	custom := &unstructured.UnstructuredList{}
	if err := custom.UnmarshalJSON(listOf(t, block(1), block(2))); err != nil {
		t.Fatal(err)
	}
	builtIn := &corev1.EventList{TypeMeta: metav1.TypeMeta{Kind: "EventList", APIVersion: "v1"}, Items: []corev1.Event{{Reason: "a"}, {Reason: "b"}}}
	for _, streams := range []bool{false, true} {
		encoder := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, nil, nil, jsonserializer.SerializerOptions{StreamingCollectionsEncoding: streams})
		for of, list := range map[string]runtime.Object{"ipamBlock": custom, "Event": builtIn, "metadata": custom} {
			body, err := runtime.Encode(encoder, list)
			if err != nil {
				t.Fatal(err)
			}
			if l, ok := structSettings(structTypes[of]).List(body); !ok || len(l.Items) != 2 {
				t.Errorf("streaming %t: %T is not ordinary for %s: %+v", streams, list, of, l)
			}
			s := serializer{settings: &Settings{Tables: NewTables(Own)}}
			if l, _, ok := s.list(body); !ok || len(l.Items) != 2 || l.Items[0].GetKind() == "" {
				t.Errorf("streaming %t: %T is not ordinary for a dynamic client: %+v", streams, list, l)
			}
		}
	}
}

// A map and a slice of an object do not change when the next object is decoded.
func TestStruct_ObjectsShareNothing(t *testing.T) {
	settings := structSettings(reflect.TypeFor[kinds]())
	decode := func(data string) *kinds {
		var object any
		if !settings.decode([]byte(data), func(b *builder) (ok bool) { object, ok = settings.Into.item(b, metav1.TypeMeta{}); return ok }) {
			t.Fatal(data)
		}
		return object.(*kinds)
	}
	same := func(text string, got *kinds) {
		want := &kinds{}
		if err := utiljson.Unmarshal([]byte(text), want); err != nil || !identical(want, got) {
			t.Errorf("%+v, want %+v, error %v", got, want, err)
		}
	}
	text := `{"slice":["a","b"],"structs":[{"secondary":{"x":"y"}}],"numbers":{"a":1},"lists":{"a":["b"]},"any":{"a":[1]}}`
	first := decode(text)
	next := `{"slice":["c","d","e"],"structs":[{"handle_id":"z"},{}],"numbers":{"b":2},"lists":{"a":["c"]},"any":{"a":[2]}}`
	same(next, decode(next))
	same(text, first)
	if cap(first.Slice) != 2 || cap(first.Structs) != 1 {
		t.Errorf("capacities %d, %d", cap(first.Slice), cap(first.Structs))
	}
}

func FuzzStruct(f *testing.F) {
	for _, data := range append(objectCorpus(), pod, string(encode(f, block(1)))) {
		if len(data) < large {
			f.Add([]byte(data))
		}
	}
	settings := map[string]*Settings{}
	for name, of := range structTypes {
		settings[name] = structSettings(of)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, s := range settings {
			sameStruct(t, s, data)
		}
		sameDroppingOfStruct(t, settings["kinds"], droppedOfKinds, data)
	})
}
