package wire

import "reflect"

// ofPointer returns the fill of pointers of type t.
func (p *planner) ofPointer(t reflect.Type) fill {
	elem := p.of(t.Elem())
	switch t.Elem().Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if !t.Implements(unmarshaler) && !t.Implements(textUnmarshaler) {
			return fillIntegerPointer(t, elem)
		}
	}
	return fillPointer(elem)
}

// fillPointer fills pointers to values of another fill.
func fillPointer(elem fill) fill {
	return func(b *builder, v reflect.Value) bool {
		to := reflect.New(v.Type().Elem())
		v.Set(to)
		return elem(b, to.Elem())
	}
}

// smallIntegers is how many integers, from zero, have one pointer each that objects have in common. An int8 can hold them all.
const smallIntegers = 128

// fillIntegerPointer is fillPointer for t, a pointer to integers. If objects may have parts in common, all their pointers
// to one small integer are equal.
func fillIntegerPointer(t reflect.Type, elem fill) fill {
	own, pointers := fillPointer(elem), make([]reflect.Value, smallIntegers)
	integers := reflect.MakeSlice(reflect.SliceOf(t.Elem()), smallIntegers, smallIntegers)
	for i := range pointers {
		integers.Index(i).SetInt(int64(i))
		pointers[i] = integers.Index(i).Addr()
	}
	return func(b *builder, v reflect.Value) bool {
		if b.sharing == Own {
			return own(b, v)
		}
		b.next()
		begin := b.pos
		if n, ok := b.number(); ok {
			if i, ok := n.integer(b.data); ok && 0 <= i && i < smallIntegers {
				v.Set(pointers[i])
				return true
			}
		}
		b.pos = begin
		return own(b, v)
	}
}
