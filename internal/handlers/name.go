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
	case *packedHandler:
		return funcs.String()
	case cache.ResourceEventHandlerFuncs:
		return nameOfFuncs(funcs, funcs.AddFunc, funcs.UpdateFunc, funcs.DeleteFunc)
	case *cache.ResourceEventHandlerFuncs:
		if funcs != nil {
			return nameOfFuncs(*funcs, funcs.AddFunc, funcs.UpdateFunc, funcs.DeleteFunc)
		}
	}
	return nameOfType(reflect.TypeOf(handler))
}

func nameOfType(of reflect.Type) string {
	whole := of.String()
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Name() == "" {
		return whole
	}
	if of.PkgPath() == "" {
		return of.Name()
	}
	return of.PkgPath() + "." + of.Name()
}

// nameOfFuncs returns the name of the function or package of all functions of a handler. If these
// differ, it returns the names of the functions.
func nameOfFuncs(handler any, functions ...any) string {
	var names []string
	for _, f := range functions {
		if value := reflect.ValueOf(f); !value.IsNil() {
			names = append(names, runtime.FuncForPC(value.Pointer()).Name())
		}
	}
	if names == nil {
		return fmt.Sprintf("%T", handler)
	}
	within := names[0][:max(0, strings.LastIndexByte(names[0], '.'))]
	for _, name := range names {
		if name[:max(0, strings.LastIndexByte(name, '.'))] != within {
			return strings.Join(names, "+")
		}
	}
	return within
}
