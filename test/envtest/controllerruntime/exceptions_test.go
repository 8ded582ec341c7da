package controllerruntime_test

// exception is a test of controller-runtime that is left out.
type exception struct {
	spec   string // the end of its name
	reason string
}

const decodes = "a packed cache decodes structured objects and metadata at each read, so that two reads never share one"

// ifPacked are the exceptions with packed caches. Without packed caches, there are none.
var ifPacked = []exception{
	{"Informer Cache without global DeepCopy Cache test as a Reader with structured objects should not deep copy the object if UnsafeDisableDeepCopy is enabled", decodes},
	{"Informer Cache without global DeepCopy Cache test as a Reader with metadata-only objects should not deep copy the object if UnsafeDisableDeepCopy is enabled", decodes},
	{"using UnsafeDisableDeepCopy with GetOptions should be able to change object in informer cache", decodes},
}
