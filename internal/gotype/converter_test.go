package gotype_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/gvrkit/gvrkit/internal/gotype"
)

// block has a field of each type that has rules of its own.
type block struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Allocations []*int             `json:"allocations,omitempty"`
	Sequence    int64              `json:"sequence,omitempty"`
	Unsigned    uint64             `json:"unsigned,omitempty"`
	Ratio       float64            `json:"ratio,omitempty"`
	Port        intstr.IntOrString `json:"port"`
	At          metav1.Time        `json:"at"`
	Any         any                `json:"any,omitempty"`
	Next        *block             `json:"next,omitempty"`
}

func (b *block) DeepCopyObject() runtime.Object { panic("not called") }

// narrow has small numbers.
type narrow struct {
	block

	Count  int32            `json:"count,omitempty"`
	Byte   map[string]uint8 `json:"byte,omitempty"`
	Single float32          `json:"single,omitempty"`
}

// contentOf returns JSON as unstructured content.
func contentOf(t *testing.T, text string) map[string]any {
	t.Helper()
	var content map[string]any
	if err := utiljson.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	return content
}

// The converter returns what the JSON decoder returns for the same object.
func TestConverter_ConvertsAsTheJSONDecoder(t *testing.T) {
	testAsJSON[narrow](t, []string{
		`{"kind":"Block","apiVersion":"v1","metadata":{"name":"a","generation":3,"creationTimestamp":"2024-01-02T03:04:05Z"}}`,
		`{"allocations":[null,0,null,1]}`,
		`{"allocations":null}`,
		`{"sequence":9007199254740993}`,
		`{"sequence":9223372036854775807}`,
		`{"sequence":-9223372036854775808}`,
		`{"unsigned":9223372036854775807}`,
		`{"ratio":0.5}`,
		`{"ratio":3}`,
		`{"ratio":1e300}`,
		`{"ratio":9223372036854775808}`,
		`{"port":80}`,
		`{"port":"http"}`,
		`{"at":"2024-01-02T03:04:05Z"}`,
		`{"any":{"a":[1,9223372036854775808,null,1e300]}}`,
		`{"next":{"sequence":1,"next":{"ratio":1e20}}}`,
		`{"unknown":{"deep":[1]},"sequence":1}`,
		`{"count":2147483647,"byte":{"a":255},"single":1.5}`,
	})
	testAsJSON[decodesScalar](t, []string{`{"mode":"abc"}`, `{"mode":null}`, `{"mode":"bad"}`, `{"mode":1}`})
	testAsJSON[decodesPointer](t, []string{`{"mode":"abc"}`, `{"mode":null}`, `{"mode":"bad"}`, `{}`})
	testAsJSON[decodesText](t, []string{`{"text":"abc"}`, `{"text":"bad"}`, `{"text":1}`})
	testAsJSON[decodesKeys](t, []string{`{"of":{"abc":1}}`, `{"of":{"bad":1}}`, `{"of":{}}`})
	testAsJSON[decodesStruct](t, []string{`{"text":"abc"}`, `{"text":"bad"}`, `{"text":{"value":"abc"}}`})
	testAsJSON[decodesBytes](t, []string{`{"text":"abcd"}`, `{"text":"bad"}`, `{"text":[1]}`})
	testAsJSON[keepsJSON](t, []string{`{"raw":null}`, `{"raw":{"a":[1,null]}}`, `{}`})
	testAsJSON[keepsDigits](t, []string{`{"number":"abc"}`, `{"number":"1.50"}`, `{"number":1}`})
	testAsJSON[quoted](t, []string{`{"number":"3"}`, `{"number":3}`})
	testAsJSON[decodesNull](t, []string{`{"value":null}`, `{"list":[null,1]}`, `{"of":{"a":null}}`, `{"pointer":null}`, `{}`})
	testAsJSON[inlined](t, []string{`{}`, `{"paused":true}`, `{"paused":null}`})
	testAsJSON[hides](t, []string{`{"paused":true}`, `{"shared":{"paused":true}}`, `{"paused":true,"shared":{"paused":false}}`})
	testAsJSON[embedsMap](t, []string{`{"a":1}`, `{"Extra":{"a":1}}`})
	testAsJSON[embedsBoth](t, []string{`{"A":true}`, `{"B":null}`, `{}`})
	testAsJSON[hasNoName](t, []string{`{"-":1}`, `{"spec":{"-":1},"count":2}`, `{"spec":{"a":{"-":1}}}`})
	testAsJSON[notExported](t, []string{`{}`, `{"count":1}`})
	testAsJSON[keepsFloats](t, []string{`{"any":3.0}`, `{"any":[3.0,0.5,1e21,1e19,-0.0,3]}`, `{"any":3.0,"raw":[1]}`})
}

// testAsJSON converts the texts to T. An error is wanted if the JSON decoder has one.
func testAsJSON[T any, P interface {
	*T
	runtime.Object
}](t *testing.T, texts []string,
) {
	t.Helper()
	for _, text := range texts {
		want := P(new(T))
		wantErr := utiljson.Unmarshal([]byte(text), want)
		got, err := gotype.NewConverter[P]().Convert(contentOf(t, text))
		switch {
		case (err == nil) != (wantErr == nil):
			t.Errorf("%T from %s: error %v, that of the JSON decoder: %v", want, text, err, wantErr)
		case err == nil && !reflect.DeepEqual(want, got):
			t.Errorf("%T from %s (-JSON +converter):\n%s", want, text, cmp.Diff(want, got, cmp.Exporter(func(reflect.Type) bool { return true })))
		}
	}
}

// object is the part that the types below have in common.
type object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (o *object) DeepCopyObject() runtime.Object { panic("not called") }

// mode decodes itself from JSON.
type mode string

func (m *mode) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	*m = mode(strings.ToUpper(text))
	return refuse(text)
}

// word, textStruct and textBytes decode themselves from texts.
type (
	word       string
	textStruct struct {
		Value string `json:"value"`
	}
	textBytes []byte
)

func (w *word) UnmarshalText(data []byte) error {
	*w = word(strings.ToUpper(string(data)))
	return refuse(string(data))
}

func (s *textStruct) UnmarshalText(data []byte) error {
	s.Value = strings.ToUpper(string(data))
	return refuse(string(data))
}

func (b *textBytes) UnmarshalText(data []byte) error {
	*b = textBytes(strings.ToUpper(string(data)))
	return refuse(string(data))
}

// optional has another value for null than for a field that is not there.
type optional struct{ Set, Null bool }

func (o *optional) UnmarshalJSON(data []byte) error {
	o.Set, o.Null = true, string(data) == "null"
	return nil
}

// First and Second decode themselves: a struct with both does not.
type (
	First  struct{ A bool }
	Second struct{ B bool }
)

func (f *First) UnmarshalJSON([]byte) error {
	f.A = true
	return nil
}

func (s *Second) UnmarshalJSON([]byte) error {
	s.B = true
	return nil
}

func refuse(text string) error {
	if text == "bad" {
		return errors.New("the text is bad")
	}
	return nil
}

// Each type has one field that apimachinery's converter does not convert as the JSON decoder.
type (
	decodesScalar struct {
		object `json:",inline"`
		Mode   mode `json:"mode"`
	}
	decodesPointer struct {
		object `json:",inline"`
		Mode   *mode `json:"mode"`
	}
	decodesText struct {
		object `json:",inline"`
		Text   word `json:"text"`
	}
	decodesKeys struct {
		object `json:",inline"`
		Of     map[word]int `json:"of"`
	}
	decodesStruct struct {
		object `json:",inline"`
		Text   textStruct `json:"text"`
	}
	decodesBytes struct {
		object `json:",inline"`
		Text   textBytes `json:"text"`
	}
	keepsJSON struct {
		object `json:",inline"`
		Raw    json.RawMessage `json:"raw"`
	}
	keepsDigits struct {
		object `json:",inline"`
		Number json.Number `json:"number"`
	}
	quoted struct {
		object `json:",inline"`
		Number int64 `json:"number,string"`
	}
	decodesNull struct {
		object  `json:",inline"`
		Value   optional            `json:"value"`
		List    []optional          `json:"list"`
		Of      map[string]optional `json:"of"`
		Pointer *optional           `json:"pointer"`
	}
	inlined struct {
		object  `json:",inline"`
		*Common `json:",inline"`
	}
	hides struct {
		object `json:",inline"`
		Common `json:",inline"`
		Paused bool `json:"paused"`
		Shared struct {
			Common
			Paused bool `json:"paused"`
		} `json:"shared"`
	}
	embedsMap struct {
		object `json:",inline"`
		Extra  `json:",inline"`
	}
	embedsBoth struct {
		object `json:",inline"`
		First  `json:",inline"`
		Second `json:",inline"`
	}
	hasNoName struct {
		object `json:",inline"`
		Count  int                       `json:"-"`
		Named  int                       `json:"count"`
		Spec   map[string]map[string]int `json:"spec"`
	}
	notExported struct {
		object `json:",inline"`
		Count  int `json:"count"`
		count  int //nolint:unused // apimachinery's converter panics at it
	}
	keepsFloats struct {
		object `json:",inline"`
		Any    any             `json:"any"`
		Raw    json.RawMessage `json:"raw"`
	}
	// Extra is embedded, and is no struct.
	Extra map[string]any
	// Common is exported, so that the JSON decoder can set a pointer to it.
	Common struct {
		Paused bool `json:"paused"`
	}
)

// usual has fields of apimachinery's own types.
type usual struct {
	block

	Limits map[string]resource.Quantity `json:"limits"`
	Raw    runtime.RawExtension         `json:"raw"`
	Wait   *metav1.Duration             `json:"wait"`
}

// The fast converter takes parts of the content, and the JSON decoder does not.
func TestConverter_UsualTypesAreConvertedWithoutJSON(t *testing.T) {
	content := contentOf(t, `{"any":{"a":1},"limits":{"cpu":"500m","memory":null},"raw":{"b":2},"wait":"3s","at":null,"port":null,"metadata":{"creationTimestamp":null}}`)
	got, err := gotype.NewConverter[*usual]().Convert(content)
	if err != nil || got.Limits["cpu"] != resource.MustParse("500m") || string(got.Raw.Raw) != `{"b":2}` || got.Wait.Seconds() != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	content["any"].(map[string]any)["a"] = "changed"
	if got.Any.(map[string]any)["a"] != "changed" {
		t.Error("the object was converted through JSON")
	}
}

// CASES 61: nulls in a list of pointers survive the way to T and back.
func TestConverter_KeepsNullsInLists(t *testing.T) {
	got, err := gotype.NewConverter[*block]().Convert(contentOf(t, `{"allocations":[null,0,null,1]}`))
	if err != nil {
		t.Fatal(err)
	}
	back, err := json.Marshal(got.Allocations)
	if err != nil || string(back) != "[null,0,null,1]" {
		t.Errorf("back: %s, %v", back, err)
	}
}

// A number that its field can't have is an error with the field, and without the number.
func TestConverter_RefusesNumbersThatDoNotFit(t *testing.T) {
	for text, field := range map[string]string{
		`{"sequence":9223372036854775808}`:            "sequence", // CASES 62
		`{"sequence":-9223372036854775809}`:           "sequence",
		`{"sequence":1e19}`:                           "sequence",
		`{"sequence":0.5}`:                            "sequence",
		`{"unsigned":18446744073709551615}`:           "unsigned",
		`{"unsigned":10000000000000000001}`:           "unsigned", // it fits, but unstructured content has only a rounded number
		`{"unsigned":-1}`:                             "unsigned",
		`{"count":2147483648}`:                        "count",
		`{"count":4294967296}`:                        "count", // the low 32 bits are zero
		`{"byte":{"a":256}}`:                          "byte",
		`{"byte":{"a":-1}}`:                           "byte",
		`{"single":1e39}`:                             "single",
		`{"sequence":"a"}`:                            "sequence",
		`{"allocations":[1,9223372036854775808]}`:     "allocations",
		`{"next":{"next":{"sequence":[5]}}}`:          "sequence",
		`{"metadata":{"generation":1e19}}`:            "generation",
		`{"metadata":{"labels":{"a":9007199254741}}}`: "labels",
	} {
		got, err := gotype.NewConverter[*narrow]().Convert(contentOf(t, text))
		if err == nil {
			t.Errorf("%s: no error: %+v", text, got)
			continue
		}
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%s: the error does not name the field: %v", text, err)
		}
		for _, digits := range []string{"922337", "922e", "1e19", "1e+19", "184467", "100000", "42949", "2147483648", "256", "90071"} {
			if strings.Contains(err.Error(), digits) {
				t.Errorf("%s: the error has the value: %v", text, err)
			}
		}
	}
}

// A transform may set values that JSON does not have.
func TestConverter_ConvertsNumbersOfATransform(t *testing.T) {
	got, err := gotype.NewConverter[*narrow]().Convert(map[string]any{"sequence": 7, "count": int32(8), "unsigned": uint64(math.MaxUint64)})
	if err != nil || got.Sequence != 7 || got.Count != 8 || got.Unsigned != math.MaxUint64 {
		t.Errorf("%+v, %v", got, err)
	}
	for _, content := range []map[string]any{{"sequence": 3.0, "count": 3.0}, {"sequence": 3.0, "count": 3.0, "unsigned": uint64(0)}} { // the second one through JSON
		if got, err := gotype.NewConverter[*narrow]().Convert(content); err != nil || got.Sequence != 3 || got.Count != 3 {
			t.Errorf("%v: %+v, %v", content, got, err)
		}
	}
	if got, err := gotype.NewConverter[*narrow]().Convert(map[string]any{"count": int64(1) << 40}); err == nil {
		t.Errorf("an int64 beyond int32: %+v", got)
	}
	if got, err := gotype.NewConverter[*block]().Convert(map[string]any{"any": func() {}}); err == nil {
		t.Errorf("a function: %+v", got)
	}
}

func TestConverter_DoesNotWriteToTheContent(t *testing.T) {
	const text = `{"sequence":1,"ratio":1e300,"any":{"a":[9223372036854775808]},"allocations":[null,1]}`
	content := contentOf(t, text)
	if _, err := gotype.NewConverter[*block]().Convert(content); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(contentOf(t, text), content); diff != "" {
		t.Errorf("the content has changed (-want +got):\n%s", diff)
	}
}

// byPointer has no metadata until it is set.
type byPointer struct {
	*metav1.TypeMeta   `json:",inline"`
	*metav1.ObjectMeta `json:"metadata"`
}

func (b *byPointer) DeepCopyObject() runtime.Object { panic("not called") }

// kindByPointer has only no kind.
type kindByPointer struct {
	*metav1.TypeMeta  `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (b *kindByPointer) DeepCopyObject() runtime.Object { panic("not called") }

// nameByPointer has only no name.
type nameByPointer struct {
	metav1.TypeMeta    `json:",inline"`
	*metav1.ObjectMeta `json:"metadata"`
}

func (b *nameByPointer) DeepCopyObject() runtime.Object { panic("not called") }

func TestCheck_RefusesTypesWithoutMetadata(t *testing.T) {
	if err := (gotype.Of[*block]{}).Check(); err != nil {
		t.Error(err)
	}
	for _, err := range []error{(gotype.Of[*byPointer]{}).Check(), (gotype.Of[*kindByPointer]{}).Check(), (gotype.Of[*nameByPointer]{}).Check()} {
		if err == nil || !strings.Contains(err.Error(), "as values, not as pointers") {
			t.Errorf("error: %v", err)
		}
	}
}

// frail is a Go type with a method that panics.
type frail struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec  fragile    `json:"spec"`
	Array [1]fragile `json:"array"`
}

func (f *frail) DeepCopyObject() runtime.Object { return f }

type fragile struct{}

func (*fragile) UnmarshalJSON(data []byte) error { panic("a secret: " + string(data)) }

// text is a source of JSON.
type text string

func (t text) AppendJSON(b []byte) (_ []byte, ok bool) { return append(b, t...), true }

// The error of a method that panics says where, and has no value.
func TestConverter_AMethodThatPanicsIsAnError(t *testing.T) {
	for _, json := range []string{`{"spec":"x"}`, `{"array":["x"]}`} {
		content := func() map[string]any { return contentOf(t, json) }
		_, converted := gotype.NewConverter[*frail]().Convert(content())
		_, decoded := gotype.NewConverter[*frail]().Decode(text(json), content)
		for _, err := range []error{converted, decoded} {
			if err == nil || !strings.Contains(err.Error(), "(*fragile).UnmarshalJSON, converter_test.go:") || strings.Contains(err.Error(), "secret") {
				t.Errorf("error = %v", err)
			}
		}
	}
}

// lasting is a T with fields of types that decode themselves.
type lasting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	inner             `json:",inline"`
	Times             []*metav1.Time             `json:"times"`
	Limits            map[string]metav1.Duration `json:"limits"`
	Words             map[word]int               `json:"words"`
	Size              int                        `json:"size"`
}

type inner struct {
	For *metav1.Duration `json:"for,omitempty"`
}

func (l *lasting) DeepCopyObject() runtime.Object { clone := *l; return &clone }

// The error of a value that a type's own method rejects names the field, and has neither the value nor a key.
func TestConverter_NamesTheFieldWhoseTypeRejectsItsValue(t *testing.T) {
	for json, want := range map[string]string{
		`{"for":"a secret"}`:                        "the value of .for does not fit its Go type v1.Duration",
		`{"for":5}`:                                 "the value of .for does not fit its Go type v1.Duration",
		`{"times":[null,"a secret"]}`:               "the value of .times[1] does not fit its Go type v1.Time",
		`{"limits":{"secret":"secret"},"size":1}`:   "the value of .limits[*] does not fit its Go type v1.Duration",
		`{"for":null,"times":null,"size":"secret"}`: "json: cannot unmarshal string into Go struct field lasting.size of type int",
		`{"metadata":{"creationTimestamp":"soon"}}`: "the value of .metadata.creationTimestamp does not fit its Go type v1.Time",
	} {
		content := func() map[string]any { return contentOf(t, json) }
		_, converted := gotype.NewConverter[*lasting]().Convert(content())
		_, decoded := gotype.NewConverter[*lasting]().Decode(text(json), content)
		for _, err := range []error{converted, decoded} {
			if err == nil || err.Error() != want {
				t.Errorf("%s: error = %v, want %s", json, err, want)
			}
		}
	}
}

// quoting is a T with a number that is a string in JSON.
type quoting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Size              int `json:"size,string"`
}

func (q *quoting) DeepCopyObject() runtime.Object { clone := *q; return &clone }

// The decoder's error has the value of a field with the option "string".
func TestConverter_ErrorsHaveNoValues(t *testing.T) {
	_, err := gotype.NewConverter[*quoting]().Convert(contentOf(t, `{"size":"a secret"}`))
	if err == nil || err.Error() != "a value does not fit the Go type of its field" {
		t.Errorf("error = %v", err)
	}
}
