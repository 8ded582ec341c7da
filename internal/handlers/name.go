package handlers

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"

	"k8s.io/client-go/tools/cache"
)

// nameOf returns client-go's name of handler: the full name of its type or, for
// ResourceEventHandlerFuncs, the name of the function or package of its functions.
func nameOf(handler cache.ResourceEventHandler) string {
	switch funcs := handler.(type) {
	case nil:
		return "<nil>"
	case cache.ResourceEventHandlerFuncs:
		return nameOfFuncs(funcs)
	case *cache.ResourceEventHandlerFuncs:
		if funcs != nil {
			return nameOfFuncs(*funcs)
		}
	}
	of := reflect.TypeOf(handler)
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Name() == "" {
		return fmt.Sprintf("%T", handler)
	}
	if of.PkgPath() == "" {
		return of.Name()
	}
	return of.PkgPath() + "." + of.Name()
}

// nameOfFuncs returns the name of the function or package of all functions of funcs. If these
// differ, it returns the names of the functions.
func nameOfFuncs(funcs cache.ResourceEventHandlerFuncs) string {
	var names []string
	for _, f := range []any{funcs.AddFunc, funcs.UpdateFunc, funcs.DeleteFunc} {
		if value := reflect.ValueOf(f); !value.IsNil() {
			names = append(names, runtime.FuncForPC(value.Pointer()).Name())
		}
	}
	if names == nil {
		return fmt.Sprintf("%T", funcs)
	}
	within := names[0][:max(0, strings.LastIndexByte(names[0], '.'))]
	for _, name := range names {
		if name[:max(0, strings.LastIndexByte(name, '.'))] != within {
			return strings.Join(names, "+")
		}
	}
	return within
}
