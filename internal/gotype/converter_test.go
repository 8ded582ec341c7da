package gotype_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	for _, text := range []string{
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
	} {
		want, got := &narrow{}, (*narrow)(nil)
		if err := utiljson.Unmarshal([]byte(text), want); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got, err := gotype.NewConverter[*narrow]().Convert(contentOf(t, text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(narrow{})); diff != "" {
			t.Errorf("%s (-JSON +converter):\n%s", text, diff)
		}
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
