// Package packed has a compact, read-only form of objects of any type. An [Object] takes about a quarter of the memory of the
// JSON that it was made from, and the garbage collector has no pointers to follow in it. The package has:
//
//   - [Object]: one object. Most controllers need only its name, labels, owners or a few fields, and reading these
//     does not unpack the rest.
//   - [Packer]: packs the objects of one type.
//   - [As]: unpacks an object to a Go type.
//
// The package knows nothing of informers and caches.
package packed
