package objectsize

import (
	"reflect"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Packed is an object that knows its size. The messages of Protocol Buffers, which have a method Size, are not.
type Packed interface {
	// Size returns the number of bytes of the object, without what it has in common with others.
	Size() int
	Unstructured() *unstructured.Unstructured
}

// packedHead is the memory of a packed object beside Size.
const packedHead = 6 * word

// Of returns the number of bytes of memory that object takes, about, if it has nothing in common with others. A part of
// the object is visited. If object is [Packed], the result is exact.
func Of(object any) int {
	w := walker{some: 3, most: 1 << 9}
	return w.object(object)
}

// walker visits the parts of an object.
type walker struct {
	some int     // how many elements of a container are visited; fields of objects near the root are visited in any case
	most int     // how many values are visited: an object of a program may contain itself
	into *Sample // gets each allocation; nil: none
}

const (
	slotOfAny  = 4 * word // a string and an interface in a map
	boxOfText  = 2 * word // the head of a string in an interface
	boxOfSlice = (3*word + 7) / 8 * 8
	boxOfWord  = 8
	nearRoot   = 3  // levels of an object on which it has fields, not elements
	fields     = 16 // visited on these levels
)

// object returns the bytes of the allocations of object.
func (w *walker) object(object any) int {
	switch object := object.(type) {
	case nil:
		return 0
	case *unstructured.Unstructured:
		if object == nil {
			return 0
		}
		return boxOfWord + w.tree(object.Object, 0, 1)
	case *metav1.PartialObjectMetadata:
		if object != nil && w.into == nil {
			return ofMetadata(object)
		}
	case Packed:
		return class(max(1, object.Size())) + packedHead
	}
	return w.any(reflect.ValueOf(object), 0, 1)
}

// note reports an allocation of size bytes at an address. It stands for times allocations. It returns size.
func (w *walker) note(at unsafe.Pointer, size int, times float64) int {
	if w.into != nil && size > 0 {
		w.into.note(uintptr(at), float64(size)*times)
	}
	return size
}

// visits returns how many of n members on a level are visited.
func (w *walker) visits(n, level int) int {
	if level < nearRoot {
		return min(n, max(fields, w.some))
	}
	return min(n, w.some)
}

// text returns the bytes of a string.
func (w *walker) text(text string, times float64) int {
	return w.note(unsafe.Pointer(unsafe.StringData(text)), withoutPointers(len(text)), times)
}

// tree returns the bytes of a value of unstructured content. The value stands for times values.
func (w *walker) tree(value any, level int, times float64) int {
	switch value := value.(type) {
	case nil, bool:
		return 0
	case string:
		if len(value) == 0 {
			return 0
		}
		at := unsafe.Pointer(unsafe.StringData(value))
		return w.note(at, boxOfText+withoutPointers(len(value)), times)
	case int64:
		if 0 <= value && value < 256 { // the runtime has these
			return 0
		}
		return w.own(boxOfWord, times)
	case float64:
		return w.own(boxOfWord, times)
	case map[string]any:
		return w.members(value, level, times)
	case []any:
		return w.elements(value, level, times)
	}
	return w.any(reflect.ValueOf(value), level, times)
}

// own returns size, and reports an allocation that no other object has.
func (w *walker) own(size int, times float64) int {
	if w.into != nil {
		w.into.unique += float64(size) * times
	}
	return size
}

func (w *walker) members(object map[string]any, level int, times float64) int {
	size := w.note(reflect.ValueOf(object).UnsafePointer(), int(mapSize(len(object), slotOfAny)), times)
	n := w.visits(len(object), level)
	if n == 0 || w.most <= 0 {
		return size
	}
	w.most -= n
	below, left, scale := 0, n, float64(len(object))/float64(n)
	for key, value := range object {
		below += w.text(key, times*scale) + w.tree(value, level+1, times*scale)
		if left--; left == 0 {
			break
		}
	}
	return size + int(float64(below)*scale)
}

func (w *walker) elements(array []any, level int, times float64) int {
	if cap(array) == 0 {
		return 0
	}
	const slot = 2 * word // an interface
	size := w.note(unsafe.Pointer(unsafe.SliceData(array)), boxOfSlice+withPointers(slot*cap(array)), times)
	n := min(len(array), w.some) // elements resemble each other more than members do
	if n == 0 || w.most <= 0 {
		return size
	}
	w.most -= n
	below, scale := 0, float64(len(array))/float64(n)
	for i := range n {
		below += w.tree(array[i*len(array)/n], level+1, times*scale)
	}
	return size + int(float64(below)*scale)
}

// any returns the bytes of the allocations to which v, of any Go type, refers.
func (w *walker) any(v reflect.Value, level int, times float64) int {
	return w.value(shapeOf(v.Type()), v, level, times)
}

// value returns the bytes of the allocations to which v refers, whose type has shape s. If v is of a type that no decoder returns, such as a
// function, it is not followed.
func (w *walker) value(s *shape, v reflect.Value, level int, times float64) int {
	if w.most--; w.most < 0 {
		return 0
	}
	switch s.kind {
	case reflect.String:
		return w.text(v.String(), times)
	case reflect.Pointer:
		if v.IsNil() {
			return 0
		}
		return w.note(v.UnsafePointer(), s.element.alone, times) + w.value(s.element, v.Elem(), level, times)
	case reflect.Interface:
		return w.boxed(v.Elem(), level, times)
	case reflect.Struct:
		return w.fields(s, v, level, times)
	case reflect.Slice:
		return w.slice(s, v, level, times)
	case reflect.Array:
		return w.elementsOf(s, v, v.Len(), level, times)
	case reflect.Map:
		return w.mapped(s, v, level, times)
	}
	return 0
}

// boxed returns the bytes of a value in an interface.
func (w *walker) boxed(v reflect.Value, level int, times float64) int {
	switch v.Kind() {
	case reflect.Invalid, reflect.Bool:
		return 0
	case reflect.Pointer, reflect.Map, reflect.Chan, reflect.Func, reflect.UnsafePointer:
		return w.any(v, level, times)
	}
	return w.own(class(max(1, int(v.Type().Size()))), times) + w.any(v, level, times)
}

func (w *walker) fields(s *shape, v reflect.Value, level int, times float64) (size int) {
	if s.isMetadata && w.into == nil && v.CanAddr() {
		return ofObjectMeta(v.Addr().Interface().(*metav1.ObjectMeta))
	}
	for _, field := range s.fields {
		size += w.value(field.shape, v.Field(field.index), level+1, times)
	}
	return size
}

func (w *walker) slice(s *shape, v reflect.Value, level int, times float64) int {
	if v.Cap() == 0 {
		return 0
	}
	size := s.element.size * v.Cap()
	if !s.element.refers {
		return w.note(v.UnsafePointer(), withoutPointers(size), times)
	}
	return w.note(v.UnsafePointer(), withPointers(size), times) + w.elementsOf(s, v, v.Len(), level, times)
}

// elementsOf returns the bytes of the elements of a slice or array.
func (w *walker) elementsOf(s *shape, v reflect.Value, length, level int, times float64) int {
	n := min(length, w.some)
	if n == 0 || !s.element.refers {
		return 0
	}
	below, scale := 0, float64(length)/float64(n)
	for i := range n {
		below += w.value(s.element, v.Index(i*length/n), level+1, times*scale)
	}
	return int(float64(below) * scale)
}

func (w *walker) mapped(s *shape, v reflect.Value, level int, times float64) int {
	if v.IsNil() {
		return 0
	}
	size := w.note(v.UnsafePointer(), int(mapSize(v.Len(), s.key.size+s.element.size)), times)
	n := w.visits(v.Len(), level)
	if !s.element.refers { // keys resemble each other more than values do
		n = min(n, w.some)
	}
	if n == 0 || !s.key.refers && !s.element.refers {
		return size
	}
	below, left, scale := 0, n, float64(v.Len())/float64(n)
	if texts, are := reflect.TypeAssert[map[string]string](v); are {
		for name, text := range texts {
			below += w.text(name, times*scale) + w.text(text, times*scale)
			if left--; left == 0 {
				break
			}
		}
		return size + int(float64(below)*scale)
	}
	name, member := s.key.follower(), s.element.follower() // reflect allocates a copy of each key and element otherwise
	for each := v.MapRange(); left > 0 && each.Next(); left-- {
		if name.IsValid() {
			name.SetIterKey(each)
			below += w.value(s.key, name, level+1, times*scale)
		}
		if member.IsValid() {
			member.SetIterValue(each)
			below += w.value(s.element, member, level+1, times*scale)
		}
	}
	return size + int(float64(below)*scale)
}
