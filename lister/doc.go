// Package lister reads a cache of unstructured objects. It is the lister of an informer on a type
// that is not known at compile time. Its exported names and behaviour are those of
// k8s.io/client-go/dynamic/dynamiclister, except for the differences that the comments of [NewRuntimeObjectShim] and [New] describe. A
// [Reader] also iterates over objects, and reads them by an index and by fields ([Query]). [NewTyped] reads the same cache as objects of a
// Go type, and [NewMetadata] reads any cache as metadata. With a packed cache, readers select packed objects, and unpack only those that they
// return; [AllCached] and [GetCached] return them as they are cached.
//
// The objects that a lister returns are those of the cache. All readers and event handlers share
// them. They are read-only: call DeepCopy before the first write. The returned slices belong to the
// caller.
//
// A lister returns what is in the cache. It does not wait for the informer to sync, and an empty
// result before that is no error. With a shard, the objects of other processes are not found, although
// they exist. Listers are safe for concurrent use, also while the informer writes to the cache.
package lister
