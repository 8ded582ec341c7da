package wire

import (
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
)

// Struct decodes JSON to one Go type of objects. Its results are those of apimachinery's util/json. It has a
// function for each field of the type. Values of types that decode themselves, and of unusual types, are left to
// these types or to util/json; so is a whole object that is not ordinary, for example if a field occurs twice or
// a value does not fit: then [Drop.RemoveFrom] leaves out fields. A Struct is safe for concurrent use.
type Struct struct {
	of   reflect.Type
	fill fill
}

// NewStruct returns the decoder for t, which must be a struct. Pointers to it must be objects.
func NewStruct(t reflect.Type) *Struct {
	return &Struct{of: t, fill: newPlanner().of(t)}
}

// fill sets v, which is addressable and zero, to the value at the builder's position. It returns false if the
// value is not ordinary; v is then undefined. It takes the fields to leave out of the value from the builder.
type fill func(b *builder, v reflect.Value) bool

// event implements Form. It returns false for an object without a kind, and for a Status.
func (s *Struct) event(b *builder, kind watch.EventType) (runtime.Object, bool) {
	drop := b.drop
	if kind == watch.Bookmark { // an annotation may mark the end of a list
		drop = nil
	}
	object, ok := s.object(b, drop)
	if !ok {
		return nil, false
	}
	of := object.GetObjectKind().GroupVersionKind().Kind
	return object, of != "" && of != "Status"
}

// item implements Form. The object may have no kind: structList sets it.
func (s *Struct) item(b *builder, _ metav1.TypeMeta) (runtime.Object, bool) {
	return s.object(b, b.drop)
}

// object consumes an object, without the fields of drop.
func (s *Struct) object(b *builder, drop *Drop) (runtime.Object, bool) {
	if b.next() != '{' {
		return nil, false
	}
	v := reflect.New(s.of)
	if !(place{drop: drop}).fill(b, s.fill, v.Elem()) {
		return nil, false
	}
	return reflect.TypeAssert[runtime.Object](v)
}

// List is a list of objects of a Go type.
type List struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []runtime.Object
}

// List decodes a list of objects of the settings' Struct. An item without kind and apiVersion gets those of the
// list. It returns false for data that is not ordinary.
func (s *Settings) List(data []byte) (l List, ok bool) {
	ok = s.decode(data, func(b *builder) bool { return b.structList(&l) && b.done() })
	return l, ok
}

// Object decodes one object of the settings' Struct, which may have no kind. It returns false for data that is not ordinary.
func (s *Settings) Object(data []byte) (object runtime.Object, ok bool) {
	ok = s.decode(data, func(b *builder) bool {
		object, ok = s.Into.item(b, metav1.TypeMeta{})
		return ok && b.done()
	})
	return object, ok
}

// listHead has the members of a list except its items.
type listHead struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
}

var listMembers = newPlanner().fields(reflect.TypeFor[listHead]())

// structList consumes the list at pos.
func (b *builder) structList(l *List) bool {
	var (
		head   listHead
		seen   seenFields
		listed bool
	)
	ok := b.each('{', '}', func() bool {
		name, ok := b.key()
		switch {
		case !ok:
			return false
		case string(b.content(name)) != "items":
			return listMembers.fill(b, name, reflect.ValueOf(&head).Elem(), nil, &seen)
		case listed:
			return false
		}
		listed = true
		return b.each('[', ']', func() bool {
			item, ok := b.into.item(b, head.TypeMeta)
			l.Items = append(l.Items, item)
			return ok
		})
	})
	if !ok || !listed {
		return false
	}
	l.TypeMeta, l.ListMeta = head.TypeMeta, head.ListMeta
	kind := schema.FromAPIVersionAndKind(l.APIVersion, itemKind(l.Kind))
	for _, item := range l.Items {
		if of := item.GetObjectKind(); of.GroupVersionKind().Empty() {
			of.SetGroupVersionKind(kind)
		}
	}
	return strings.HasSuffix(l.Kind, "List")
}

// planner creates fills.
type planner struct {
	known map[reflect.Type]*fill
	parts func() *metaParts
}

func newPlanner() *planner {
	return &planner{map[reflect.Type]*fill{}, sync.OnceValue(newMetaParts)}
}

// of returns the fill of type t.
func (p *planner) of(t reflect.Type) fill {
	if f := p.known[t]; f != nil {
		return func(b *builder, v reflect.Value) bool { return (*f)(b, v) } // it may not be set yet
	}
	f := new(fill)
	p.known[t] = f
	*f = p.make(t)
	return *f
}

var (
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (p *planner) make(t reflect.Type) fill {
	to := reflect.PointerTo(t)
	switch {
	case t.Name() == "" && t.Kind() == reflect.Struct && to.NumMethod() > 0:
		return unusual // whether methods of embedded fields count depends on what refers to the struct
	case t == reflect.TypeFor[metav1.Time]():
		return orNull(fillTime)
	case to.Implements(unmarshaler):
		return fillItself
	case to.Implements(textUnmarshaler), t == reflect.TypeFor[json.Number]():
		return fillByJSON
	case t.Kind() == reflect.Interface && t.NumMethod() == 0:
		return fillAny
	}
	f := p.ofKind(t)
	switch {
	case f == nil:
		return fillByJSON
	case t == reflect.TypeFor[*metav1.FieldsV1]():
		f = fillShared(f, func() *Parts[*metav1.FieldsV1] { return p.parts().fields })
	}
	return orNull(f)
}

// ofMetadata returns the fill of a field of metav1.ObjectMeta.
func (p *planner) ofMetadata(t reflect.Type) fill {
	f := p.ofKind(t)
	switch t {
	case reflect.TypeFor[map[string]string](): // labels and annotations
		f = fillShared(f, func() *Parts[map[string]string] { return p.parts().texts })
	case reflect.TypeFor[[]metav1.OwnerReference]():
		f = fillShared(f, func() *Parts[[]metav1.OwnerReference] { return p.parts().owners })
	case reflect.TypeFor[[]string](): // finalizers
		f = fillShared(f, func() *Parts[[]string] { return p.parts().finalizers })
	default:
		return p.of(t)
	}
	return orNull(f)
}

// partSlots is the number of slots of each table of metaParts. Empty, they use 32 KB.
const partSlots = 1 << 9

// metaParts are tables of parts of the metadata of objects of one type, for Shared.
type metaParts struct {
	texts      *Parts[map[string]string]
	owners     *Parts[[]metav1.OwnerReference]
	finalizers *Parts[[]string]
	fields     *Parts[*metav1.FieldsV1]
}

func newMetaParts() *metaParts {
	return &metaParts{
		texts:      NewParts[map[string]string](partSlots),
		owners:     NewParts[[]metav1.OwnerReference](partSlots),
		finalizers: NewParts[[]string](partSlots),
		fields:     NewParts[*metav1.FieldsV1](partSlots),
	}
}

// fillShared is f, or sets the value to one with the same JSON that has been decoded before, if objects may have parts in common.
func fillShared[T any](f fill, table func() *Parts[T]) fill {
	parts := &lookups{}
	return func(b *builder, v reflect.Value) bool {
		counts := b.counts()
		if b.sharing == Own || b.below != nil || parts.skip(counts) {
			return f(b, v)
		}
		b.next()
		begin := b.pos
		raw, ok := b.raw()
		if !ok {
			return false
		}
		end, into := b.pos, v.Addr().Interface().(*T)
		value, again, ok := table().get(raw, func([]byte) (value T, ok bool) {
			b.pos = begin
			ok = f(b, v)
			return *into, ok
		})
		parts.record(counts, again)
		*into = value
		b.pos = end
		return ok
	}
}

// ofKind returns the fill of a type without methods for JSON; nil if it is unusual.
func (p *planner) ofKind(t reflect.Type) fill {
	switch t.Kind() {
	case reflect.Bool:
		return fillBool
	case reflect.String:
		return fillString
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fillInt
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return fillUint
	case reflect.Float64:
		return fillFloat
	case reflect.Pointer:
		return p.ofPointer(t)
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 { // bytes are base64
			return fillSlice(t, p.of(t.Elem()))
		}
	case reflect.Map:
		return p.ofMap(t)
	case reflect.Struct:
		if fields := p.fields(t); fields != nil {
			return fillStruct(fields)
		}
	}
	return nil
}

// raw consumes a value, and returns its bytes.
func (b *builder) raw() ([]byte, bool) {
	b.next()
	start := b.pos
	ok := b.skip()
	return b.data[start:min(b.pos, len(b.data))], ok
}

// unusual leaves the whole object to util/json.
func unusual(*builder, reflect.Value) bool { return false }

// fillItself leaves the value to its type.
var fillItself = fillBy(func(raw []byte, v reflect.Value) error {
	return v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(raw)
})

// fillByJSON leaves the value to util/json.
var fillByJSON = fillBy(func(raw []byte, v reflect.Value) error { return utiljson.Unmarshal(raw, v.Addr().Interface()) })

// fillBy leaves the value to unmarshal, which may call methods of the Go type.
func fillBy(unmarshal func(raw []byte, v reflect.Value) error) fill {
	decode := func(raw []byte, v reflect.Value) (ok bool) {
		defer func() { _ = recover() }() // ok is false: the decoder of objects that are not ordinary reports the panic
		return unmarshal(raw, v) == nil
	}
	return func(b *builder, v reflect.Value) bool {
		drop := b.takeDrop()
		raw, ok := b.raw()
		if !ok || !decode(raw, v) {
			return false
		}
		if drop != nil {
			drop.removeFromValue(v)
		}
		return true
	}
}

// fill calls f for the value at p.
func (p place) fill(b *builder, f fill, v reflect.Value) bool {
	b.below = p.drop // a value of another type than the path requires does not take it
	return f(b, v)
}

// takeDrop returns the fields to leave out of the value that is filled next.
func (b *builder) takeDrop() *Drop {
	drop := b.below
	b.below = nil
	return drop
}

// orNull is f for a type with a value that null does not change.
func orNull(f fill) fill {
	return func(b *builder, v reflect.Value) bool {
		if b.next() == 'n' {
			return b.literal("null")
		}
		return f(b, v)
	}
}

func fillBool(b *builder, v reflect.Value) bool {
	switch b.next() {
	case 't':
		v.SetBool(true)
		return b.literal("true")
	case 'f':
		return b.literal("false")
	}
	return false
}

func fillString(b *builder, v reflect.Value) bool {
	s, ok := b.internedText()
	if ok {
		v.SetString(s)
	}
	return ok
}

// internedText consumes a string.
func (b *builder) internedText() (string, bool) {
	if b.next() != '"' {
		return "", false
	}
	t, ok := b.text()
	if !ok {
		return "", false
	}
	content := b.content(t)
	if len(content) <= maxInterned {
		if in, _ := b.intern(content); in != nil {
			return in.text, true
		}
	}
	return string(content), true
}

// fillTime is UnmarshalJSON of metav1.Time.
func fillTime(b *builder, v reflect.Value) bool {
	if b.next() != '"' {
		return false
	}
	t, ok := b.text()
	if !ok {
		return false
	}
	at, err := time.Parse(time.RFC3339, string(b.content(t)))
	if err != nil {
		return false
	}
	v.Addr().Interface().(*metav1.Time).Time = at.Local()
	return true
}

func fillInt(b *builder, v reflect.Value) bool {
	b.next()
	n, ok := b.number()
	if !ok {
		return false
	}
	i, ok := n.integer(b.data)
	if !ok || v.OverflowInt(i) {
		return false
	}
	v.SetInt(i)
	return true
}

func fillUint(b *builder, v reflect.Value) bool {
	b.next()
	n, ok := b.number()
	if !ok || b.data[n.start] == '-' {
		return false
	}
	i, ok := n.integer(b.data)
	if !ok || v.OverflowUint(uint64(i)) { //nolint:gosec // not negative
		return false
	}
	v.SetUint(uint64(i)) //nolint:gosec // not negative
	return true
}

func fillFloat(b *builder, v reflect.Value) bool {
	b.next()
	n, ok := b.number()
	if !ok {
		return false
	}
	f, ok := n.float(b.data)
	v.SetFloat(f)
	return ok
}

func fillAny(b *builder, v reflect.Value) bool {
	decoded, ok := b.value(place{drop: b.takeDrop()})
	if ok && decoded.any != nil {
		v.Set(reflect.ValueOf(decoded.any))
	}
	return ok
}

// each consumes the array or the object at pos, and calls one for each element or member.
func (b *builder) each(opening, closing byte, one func() bool) bool {
	if !b.take(opening) || !b.descend() {
		return false
	}
	again, ok := !b.take(closing), true
	for again {
		if !one() {
			return false
		}
		if again, ok = b.more(closing); !ok {
			return false
		}
	}
	b.ascend()
	return ok
}

// maxScratch is the maximum length of a slice whose memory is kept for the next one.
const maxScratch = 1 << 10

// scratch has slices in which elements are collected until their number is known. They are used again.
type scratch struct{ slices sync.Pool }

// scratchOf returns a scratch with slices of type t.
func scratchOf(t reflect.Type) *scratch {
	return &scratch{sync.Pool{New: func() any {
		slice := reflect.New(t).Elem()
		return &slice
	}}}
}

// elements are elements that are being collected.
type elements struct {
	from  *reflect.Value
	slice reflect.Value
	n     int
}

// begin returns elements, without any yet.
func (s *scratch) begin() elements {
	from := s.slices.Get().(*reflect.Value)
	return elements{from: from, slice: *from}
}

// add returns the next element, which is zero.
func (e *elements) add() reflect.Value {
	if e.n == e.slice.Cap() {
		e.slice.Grow(1)
	}
	e.n++
	e.slice.SetLen(e.n)
	return e.slice.Index(e.n - 1)
}

// end takes the slice back, whose elements have been copied.
func (s *scratch) end(e *elements) {
	if e.n <= maxScratch {
		e.slice.Clear()
		e.slice.SetLen(0)
		s.slices.Put(e.from)
	}
}

// fillSlice fills slices of type t, which get the capacity that they need.
func fillSlice(t reflect.Type, elem fill) fill {
	scratch := scratchOf(t)
	return func(b *builder, v reflect.Value) bool {
		b.takeDrop() // a path does not lead through arrays
		elems := scratch.begin()
		if !b.each('[', ']', func() bool { return elem(b, elems.add()) }) {
			return false
		}
		exact := reflect.MakeSlice(t, elems.n, elems.n)
		reflect.Copy(exact, elems.slice)
		v.Set(exact)
		scratch.end(&elems)
		return true
	}
}

// ofMap returns the fill of a map; nil if its keys are not plain strings.
func (p *planner) ofMap(t reflect.Type) fill {
	key, elem := t.Key(), t.Elem()
	switch {
	case key.Kind() != reflect.String, reflect.PointerTo(key).Implements(textUnmarshaler):
		return nil
	case t == reflect.TypeFor[map[string]string]():
		return fillTexts
	}
	return fillMap(t, p.of(elem))
}

// fillMap fills maps of type t, which are made for the number of their elements.
func fillMap(t reflect.Type, value fill) fill {
	scratch := scratchOf(reflect.SliceOf(t.Elem()))
	return func(b *builder, v reflect.Value) bool {
		base, drop, elems := len(b.texts), b.takeDrop(), scratch.begin()
		ok := b.each('{', '}', func() bool {
			name, hash, ok := b.name()
			if !ok {
				return false
			}
			b.lookups = b.tables.lookupsOf(hash)
			below := place{drop: drop}.below(name)
			if below.dropped() {
				return b.skip()
			}
			b.texts = append(b.texts, name)
			return below.fill(b, value, elems.add())
		})
		if !ok {
			return false
		}
		names := b.texts[base:]
		into, key := reflect.MakeMapWithSize(t, len(names)), reflect.New(t.Key()).Elem()
		for i, name := range names {
			key.SetString(name)
			into.SetMapIndex(key, elems.slice.Index(i))
		}
		clear(names)
		b.texts = b.texts[:base]
		v.Set(into)
		scratch.end(&elems)
		return true
	}
}

// fillTexts fills a map[string]string, such as labels.
func fillTexts(b *builder, v reflect.Value) bool {
	base, drop := len(b.texts), b.takeDrop()
	ok := b.each('{', '}', func() bool {
		name, hash, ok := b.name()
		switch {
		case !ok:
			return false
		case (place{drop: drop}).below(name).dropped():
			return b.skip()
		}
		b.lookups = b.tables.lookupsOf(hash)
		text := ""
		if b.next() == 'n' {
			ok = b.literal("null")
		} else {
			text, ok = b.internedText()
		}
		b.texts = append(b.texts, name, text)
		return ok
	})
	if !ok {
		return false
	}
	pairs := b.texts[base:]
	texts := make(map[string]string, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		texts[pairs[i]] = pairs[i+1]
	}
	clear(pairs)
	b.texts = b.texts[:base]
	v.Set(reflect.ValueOf(texts))
	return true
}

// structFields are the fields of a struct by their names in JSON.
type structFields map[string]*structField

// structField is a field of a struct, or of a struct that is embedded in it.
type structField struct {
	name    string
	index   []int
	at      int // the number of the field
	fill    fill
	lookups lookups
	next    atomic.Pointer[structField] // that was after this one the last time: most objects have their fields in the same order
}

func fillStruct(fields structFields) fill {
	return func(b *builder, v reflect.Value) bool {
		var seen seenFields
		drop := b.takeDrop()
		return b.each('{', '}', func() bool {
			name, ok := b.key()
			return ok && fields.fill(b, name, v, drop, &seen)
		})
	}
}

// fill fills the field with that name, unless it is in drop. It returns false if the field is in seen.
func (f structFields) fill(b *builder, name text, v reflect.Value, drop *Drop, seen *seenFields) bool {
	field := f.after(seen.last, b.content(name))
	if field == nil {
		return b.skip()
	}
	seen.last = field
	var below place
	if drop != nil {
		if below = (place{drop: drop}).below(field.name); below.dropped() {
			return b.skip()
		}
	}
	for _, i := range field.index {
		v = v.Field(i)
	}
	b.lookups = &field.lookups
	return seen.add(field.at) && below.fill(b, field.fill, v)
}

// after returns the field with that name; nil if there is none. It is after last, which may be nil, in an object.
func (f structFields) after(last *structField, name []byte) *structField {
	if last == nil {
		return f[string(name)]
	}
	if next := last.next.Load(); next != nil && next.name == string(name) {
		return next
	}
	field := f[string(name)]
	if field != nil {
		last.next.Store(field)
	}
	return field
}

// maxFields is the maximum number of fields of a struct with structFields.
const maxFields = 256

// seenFields are the fields that an object has had so far.
type seenFields struct {
	numbers [maxFields / 64]uint64
	last    *structField // also if it is left out; nil: there was none
}

// add adds the number of a field, and reports whether it is new.
func (s *seenFields) add(at int) bool {
	word, bit := &s.numbers[at/64], uint64(1)<<(at%64)
	added := *word&bit == 0
	*word |= bit
	return added
}

// candidate is a field that may have a name in JSON.
type candidate struct {
	field  reflect.StructField // its Index is relative to the outermost struct
	tagged bool                // the name is in the tag
}

// fields returns the fields of a struct by the rules of encoding/json. It returns nil for unusual structs: with
// embedded pointers, the option "string", or unusual names.
func (p *planner) fields(t reflect.Type) structFields {
	candidates := map[string][]candidate{}
	if !collect(candidates, t, nil) || len(candidates) > maxFields {
		return nil
	}
	fields := make(structFields, len(candidates))
	for name, all := range candidates {
		if field := dominant(all); field != nil {
			of := p.of
			if t == reflect.TypeFor[metav1.ObjectMeta]() {
				of = p.ofMetadata
			}
			fields[name] = &structField{name: name, index: field.Index, at: len(fields), fill: of(field.Type)}
		}
	}
	return fields
}

// collect adds the fields of t, a struct at index of the outermost struct, which is within the structs of outer. It returns false
// if t is unusual.
func collect(into map[string][]candidate, t reflect.Type, index []int, outer ...reflect.Type) (usual bool) {
	usual = true
	if slices.Contains(outer, t) { // the fields of the outer one have less depth
		return usual
	}
	for field := range t.Fields() {
		field.Index = append(slices.Clip(index), field.Index...)
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		embedded := field.Anonymous && name == ""
		of, pointer := pointee(field.Type, embedded)
		switch {
		case tag == "-", !field.IsExported() && !field.Anonymous:
			continue
		case embedded && of.Kind() == reflect.Struct:
			usual = collect(into, of, field.Index, append(slices.Clip(outer), t)...) && usual && !pointer
			continue
		case !field.IsExported():
			usual = usual && embedded && !pointer
			continue
		case pointer, unusualTag(name, options):
			usual = false
		}
		key := cmp.Or(name, field.Name)
		into[key] = append(into[key], candidate{field, name != ""})
	}
	return usual
}

// pointee returns the type that an embedded field of type t points to, and whether it is a pointer.
func pointee(t reflect.Type, embedded bool) (of reflect.Type, pointer bool) {
	if embedded && t.Kind() == reflect.Pointer {
		return t.Elem(), true
	}
	return t, false
}

func unusualTag(name, options string) bool {
	return strings.ContainsFunc(name, unusualInName) || slices.Contains(strings.Split(options, ","), "string")
}

func unusualInName(r rune) bool {
	usual := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("_-./$", r)
	return !usual
}

// dominant returns the field that has a name: the only one of the least depth or, of these, the only one with
// the name in its tag. It returns nil if there is none.
func dominant(all []candidate) *reflect.StructField {
	depth := func(c candidate) int { return len(c.field.Index) }
	least := depth(slices.MinFunc(all, func(a, b candidate) int { return cmp.Compare(depth(a), depth(b)) }))
	all = slices.DeleteFunc(all, func(c candidate) bool { return depth(c) > least })
	if len(all) > 1 {
		all = slices.DeleteFunc(all, func(c candidate) bool { return !c.tagged })
	}
	if len(all) != 1 {
		return nil
	}
	return &all[0].field
}
