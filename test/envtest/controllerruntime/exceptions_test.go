package controllerruntime_test

import "slices"

// exception is a test of controller-runtime that must fail.
type exception struct {
	pkg    string
	spec   string // the end of its name
	reason string
}

const decodes = "a packed cache decodes structured objects and metadata at each read, so that two reads never share one"

// ifPacked are the exceptions with packed caches. Without packed caches, there are none.
var ifPacked = []exception{
	{"cache", "Informer Cache without global DeepCopy Cache test as a Reader with structured objects should not deep copy the object if UnsafeDisableDeepCopy is enabled", decodes},
	{"cache", "Informer Cache without global DeepCopy Cache test as a Reader with metadata-only objects should not deep copy the object if UnsafeDisableDeepCopy is enabled", decodes},
	{"cache", "using UnsafeDisableDeepCopy with GetOptions should be able to change object in informer cache", decodes},
}

// unreliable are tests that may fail, since they fail at times on controller-runtime's cache too.
var unreliable = []exception{
	{"manager", "Start with leaderelection enabled should not return runnables context.Canceled errors", "if the manager stops while client-go renews the lease, client-go logs the error"},
}

// exceptionsOf returns the exceptions of a suite.
func exceptionsOf(pkg string, packed bool) []exception {
	all := slices.Clone(unreliable)
	if packed {
		all = append(all, ifPacked...)
	}
	return slices.DeleteFunc(all, func(e exception) bool { return e.pkg != pkg })
}
