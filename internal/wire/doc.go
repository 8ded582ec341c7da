// Package wire turns the JSON that a Kubernetes API server sends into
// unstructured objects, in one pass over the bytes where client-go takes up to
// ten. It knows list bodies, single objects and watch streams.
//
// What comes out is what client-go's decoder makes of the same bytes, values and
// errors alike: only what is plain is decoded here, and whatever is unusual (a
// Status, a number beyond float64, a syntax error, nesting deeper than any real
// object) goes to client-go's own decoder, on the same bytes. The fuzz tests hold
// the two against each other.
//
// Three things make the objects smaller than client-go's. Maps and slices have
// the size they need. Keys and short strings that have been met before are mostly
// interned: equal ones are one string. And, where the caller promises that nobody
// writes to the objects, so are equal subtrees: they are one map or slice ([Tables]).
// Both tables are bounded, and forget.
//
// It knows nothing of informers, caches or resources.
package wire
