// Package wire decodes the JSON of a Kubernetes API server to unstructured objects: list bodies,
// single objects and watch streams. It reads the bytes once; client-go reads them up to ten times.
//
// A [Struct] decodes the same input to objects of a Go type.
//
// The results are those of client-go's decoder for the same bytes, both values and errors. The
// package decodes only ordinary input. All other input (a Status, a number beyond float64, a syntax
// error, deep nesting) goes to client-go's own decoder. The fuzz tests compare the two decoders, and those of
// Go types with util/json.
//
// Objects are smaller than client-go's for three reasons. Maps and slices have the size they need.
// Most keys and short strings that have been decoded before are interned: equal strings share
// memory. If the caller promises that its program does not write to objects, equal subtrees share one
// map or slice too ([Tables]). Both tables have a fixed size, and replace old entries.
//
// The package knows nothing of informers, caches or resources.
package wire
