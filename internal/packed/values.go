package packed

import (
	"slices"
	"strings"
	"sync/atomic"
)

// Values are the values of index functions for one object. They live as long as the object. The zero value is empty. It is safe for
// concurrent use.
type Values struct {
	all atomic.Pointer[[]valuesOf]
}

// valuesOf are the values of one index function.
type valuesOf struct {
	function any
	values   []string
}

// Of returns the values of a function, if they are known. They are read-only.
func (v *Values) Of(function any) (values []string, known bool) {
	if all := v.all.Load(); all != nil {
		for _, of := range *all {
			if of.function == function {
				return of.values, true
			}
		}
	}
	return nil, false
}

// Keep keeps a copy of the values of a function, which must not be known. If another goroutine keeps values meanwhile, these may be lost.
func (v *Values) Keep(function any, values []string) {
	values = slices.Clone(values)
	for i, value := range values {
		values[i] = strings.Clone(value) // it may be a part of a larger text
	}
	var all []valuesOf
	if known := v.all.Load(); known != nil {
		all = slices.Clip(*known)
	}
	all = append(all, valuesOf{function, values})
	v.all.Store(&all)
}

// ValuesOf returns the values of an object of package packed, which sets it during initialisation; nil for any other object.
// It must not be changed later.
var ValuesOf func(object any) *Values
