// Package lister reads a cache of unstructured objects: the lister half of an
// informer on a type that is not known at compile time. Its exported names and
// behaviour are those of k8s.io/client-go/dynamic/dynamiclister, with the
// differences that [NewRuntimeObjectShim] and [New] name.
//
// Every object that a lister returns is the cache's own, shared with all other
// readers and with event handlers. It is read-only: call DeepCopy before the
// first write. The slices around the objects belong to the caller.
//
// A lister is as fresh as its cache and says nothing about that: it does not wait
// for the informer to sync, and an empty answer before then is no error. Listers
// are safe for concurrent use, also while the informer writes.
package lister
