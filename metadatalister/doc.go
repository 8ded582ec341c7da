// Package metadatalister reads a cache of object metadata: *metav1.PartialObjectMetadata. It is the lister of
// an informer with metadata only. Its exported names and behaviour are those of
// k8s.io/client-go/metadata/metadatalister, except for the differences that the comments of
// [NewRuntimeObjectShim] and [New] describe.
//
// The objects that a lister returns are those of the cache. All readers and event handlers share
// them. They are read-only: call DeepCopy before the first write. The returned slices belong to the
// caller.
//
// A lister returns what is in the cache. It does not wait for the informer to sync, and an empty
// result before that is no error. Listers are safe for concurrent use, also while the informer
// writes to the cache.
package metadatalister
