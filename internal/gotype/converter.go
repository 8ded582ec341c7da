package gotype

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/gvrkit/gvrkit/internal/errtext"
	"github.com/gvrkit/gvrkit/internal/wire"
)

// Converter converts unstructured content to T. It is safe for concurrent use.
type Converter[T runtime.Object] struct {
	of   Of[T]
	fast limits                // of apimachinery's converter
	json func() *wire.Settings // the decoder of JSON
}

// NewConverter returns a converter to T. Check must have returned nil for T.
func NewConverter[T runtime.Object]() *Converter[T] { return Of[T]{}.NewConverter() }

// NewConverter returns a converter. Check must have returned nil.
func (of Of[T]) NewConverter() *Converter[T] {
	fast := limits{min: math.MinInt64, max: math.MaxInt64}
	fast.narrow(of.GoType(), map[reflect.Type]bool{})
	return &Converter[T]{of: of, fast: fast, json: sync.OnceValue(func() *wire.Settings {
		return &wire.Settings{Tables: wire.NewTables(wire.Own), Into: wire.NewStruct(of.GoType().Elem())}
	})}
}

// Source is an object that is not a tree.
type Source interface {
	// AppendJSON appends the object as JSON, in which each float has a point or an exponent. It returns false if it can't.
	AppendJSON(b []byte) (_ []byte, ok bool)
}

// maxBuffer is the maximum size of a buffer whose memory is kept for the next object.
const maxBuffer = 1 << 20

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Decode returns from as a T. The result is that of Convert for the same content, except that fields that keep JSON, such as a
// RawExtension, may have another text of the same values. Decode builds no tree. Only if from is not ordinary, it calls content, and
// returns the object or the error of Convert.
func (c *Converter[T]) Decode(from Source, content func() map[string]any) (T, error) {
	buffer := buffers.Get().(*[]byte)
	data, ok := from.AppendJSON((*buffer)[:0])
	var decoded runtime.Object
	if ok {
		decoded, ok = c.json().Object(data)
	}
	if cap(data) <= maxBuffer {
		*buffer = data
		buffers.Put(buffer)
	}
	if to, is := decoded.(T); ok && is && c.of.Is(to) {
		return to, nil
	}
	return c.Convert(content())
}

// Convert returns content as a T, which may share parts with content. Fields that T does not have are
// dropped. A value that does not fit its field is an error that names the Go field and has no value. So is
// an integer beyond int64 in an integer field: unstructured content has only a float64 near it.
//
// apimachinery's converter is fast and does not check ranges: it would cut 1<<32 to an int32 of zero. Nor does it call the methods
// by which strings, numbers and keys of maps decode themselves, or pass a null to the method of a struct, or know which fields another one of
// the same name hides. So content with a number that does not fit each integer field of T, or with a null that is not zero for each such struct of T,
// and all content of a T with another such method or with hidden fields, is converted through JSON. As with apimachinery's converter, a float
// without a fraction fits an integer field: content that a program has decoded from YAML, or that a transform has computed, may have no other
// numbers.
func (c *Converter[T]) Convert(content map[string]any) (T, error) {
	if !c.fast.never && c.fast.fit(content) {
		to := c.of.Empty()
		if err := recovered(func() error { return runtime.DefaultUnstructuredConverter.FromUnstructured(content, to) }); err == nil {
			return to, nil
		}
	}
	if to, err := c.convert(content, false); err == nil {
		return to, nil
	}
	return c.convert(content, true) // a float may be in an integer field
}

// convert converts content through JSON. If integers is set, floats without a fraction are integers.
func (c *Converter[T]) convert(content map[string]any, integers bool) (T, error) {
	var none T
	data, err := json.Marshal(exact(content, integers)) // the decoder's error names the field
	if err != nil {
		return none, WithoutValues(err)
	}
	to := c.of.Empty()
	if err := Unmarshal(data, to); err != nil {
		return none, WithoutValues(err)
	}
	return to, nil
}

// Unmarshal decodes JSON to a pointer. A panic of a method of the type is an error, which concerns one object. [WithoutValues] keeps
// where it has panicked, and the field whose type has rejected its value by a method.
func Unmarshal(data []byte, to any) error {
	err := recovered(func() error { return utiljson.Unmarshal(data, to) })
	if _, is := errors.AsType[methodError](err); err == nil || is {
		return err
	}
	return cmp.Or(rejected(data, reflect.TypeOf(to).Elem()), err)
}

// methodError is the error of a type's method that has panicked, or has rejected a value. It has no value.
type methodError struct{ error }

func recovered(decode func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = methodError{errtext.Panicked("a method of the Go type")} // r may have values of the object
		}
	}()
	return decode()
}

// limits says which content apimachinery's converter converts as the JSON decoder does.
type limits struct {
	min, max int64 // the range of integers
	nulls    bool  // a null is another value than zero
	dash     bool  // a field without a name in JSON, whose tag is "-", has that name
	never    bool
}

// narrow reduces the range to the integers that each integer field in t can have, and sets never if t has a part that apimachinery's
// converter converts in another way. It does not look into types that decode themselves.
func (l *limits) narrow(t reflect.Type, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	if itself, called := decodesItself(t); itself {
		l.leave(t, called)
		return
	}
	switch t.Kind() {
	case reflect.Map:
		l.narrow(t.Key(), seen)
		l.narrow(t.Elem(), seen)
	case reflect.Pointer:
		l.narrowPointer(t.Elem(), seen)
	case reflect.Slice, reflect.Array:
		l.narrow(t.Elem(), seen)
	case reflect.Struct:
		l.never = l.never || !sameFields(t, map[string]bool{})
		for field := range t.Fields() {
			_, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			l.never = l.never || slices.Contains(strings.Split(options, ","), "string")
			l.dash = l.dash || field.Tag.Get("json") == "-"
			l.narrow(field.Type, seen)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		bits := t.Bits()
		l.min, l.max = max(l.min, math.MinInt64>>(64-bits)), min(l.max, math.MaxInt64>>(64-bits))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		l.min = 0
		if bits := t.Bits(); bits < 64 {
			l.max = min(l.max, 1<<bits-1)
		}
	}
}

// sameFields reports whether apimachinery's converter sets the same fields of t, a struct, as the JSON decoder, except those that are called
// "-". It sets each field with a name, also those that the decoder leaves out because of another one with that name, and an embedded value
// without a name, of any type. It panics at a field that is not exported. Names are those of the fields before t.
func sameFields(t reflect.Type, names map[string]bool) bool {
	for field := range t.Fields() {
		tag := field.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		itself, _ := decodesItself(field.Type)
		switch named := cmp.Or(name, field.Name); {
		case field.Anonymous && name == "":
			if itself || field.Type.Kind() != reflect.Struct || !sameFields(field.Type, names) {
				return false
			}
		case !field.IsExported(), names[named]:
			return false
		case tag != "-":
			names[named] = true
		}
	}
	return true
}

// leave is narrow for a type that decodes itself.
func (l *limits) leave(t reflect.Type, called bool) {
	l.never = l.never || !called
	l.nulls = l.nulls || called && !zeroForNull(t)
}

// narrowPointer narrows l for a pointer to a t. With a null, it is nil.
func (l *limits) narrowPointer(t reflect.Type, seen map[reflect.Type]bool) {
	if itself, called := decodesItself(t); itself {
		l.never = l.never || !called
		return
	}
	l.narrow(t, seen)
}

// decodesItself reports whether the JSON decoder leaves t to a method of t, and whether apimachinery's converter calls it too.
func decodesItself(t reflect.Type) (itself, called bool) {
	to := reflect.PointerTo(t)
	switch {
	case to.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return true, t.Kind() == reflect.Struct
	case to.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()), t == reflect.TypeFor[json.Number]():
		return true, false
	}
	return false, false
}

// zeroForNull reports whether a type that decodes itself from JSON stays zero with a null. apimachinery's converter does not pass it a null.
func zeroForNull(t reflect.Type) bool {
	v := reflect.New(t)
	err := recovered(func() error { return v.Interface().(json.Unmarshaler).UnmarshalJSON([]byte("null")) })
	return err == nil && v.Elem().IsZero()
}

// fit reports whether all numbers in value are in the range, and nulls are zero. It reports false for a value of a type that
// JSON does not have.
func (l *limits) fit(value any) bool {
	switch value := value.(type) {
	case nil:
		return !l.nulls
	case string, bool:
		return true
	case int64:
		return l.min <= value && value <= l.max
	case float64:
		return float64(l.min) < value && value < float64(l.max) // the limits are rounded
	case map[string]any:
		for name, member := range value {
			if l.dash && name == "-" || !l.fit(member) {
				return false
			}
		}
		return true
	case []any:
		for _, element := range value {
			if !l.fit(element) {
				return false
			}
		}
		return true
	}
	return false
}

// exact returns value for the JSON encoder. A float64 gets a point or an exponent, so that it is no integer for the decoder: a field of type any
// gets a float64, too. If integers is set, only one beyond int64 gets it: the object had an integer with other digits, or a float.
func exact(value any, integers bool) any {
	switch value := value.(type) {
	case float64:
		if integers && math.Abs(value) < 1<<63 {
			return value
		}
		text := strconv.FormatFloat(value, 'g', -1, 64)
		if !strings.ContainsAny(text, ".e") {
			text += ".0"
		}
		return json.Number(text)
	case map[string]any:
		members := make(map[string]any, len(value))
		for key, member := range value {
			members[key] = exact(member, integers)
		}
		return members
	case []any:
		elements := make([]any, len(value))
		for n, element := range value {
			elements[n] = exact(element, integers)
		}
		return elements
	}
	return value
}
