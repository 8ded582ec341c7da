// Package dynamicinformer creates and runs shared informers on resources that are known only by schema.GroupVersionResource, such as custom
// resources. It replaces k8s.io/client-go/dynamic/dynamicinformer: it has the same names with the same signatures. These names are a view of
// [Factory], which adds discovery before the first request, reasons for informers that do not sync, and a shutdown with a deadline.
//
// Sharing. A factory has one informer per resource. All users share its cache and its watch. Cached objects are *unstructured.Unstructured and
// read-only, in handlers and in listers: call DeepCopy before the first write. In a factory of [NewForConfig], equal parts of objects share
// memory, so that a write also changes other objects.
//
// Ordering. The informers are client-go's, with the guarantees of cache.SharedInformer: a handler gets the events of one object in order and one
// at a time. There is no order between objects, and none between handlers.
//
// Lifecycle. A request for an informer does no I/O except that of discovery. The informer runs when the factory has been started, and waits
// while its type is not served. It ends with the context of Start, with Shutdown, or with the release of its last [Lease]. A later request for
// the same resource returns a new informer, unless the factory is closing.
//
// Types. With discovery, an informer outlives its type. A NotFound response alone is no evidence that the type is gone. With evidence, handlers
// get the deletion of each object, or the cache is kept: see [RemovalPolicy]. When the type is served again, the informer continues. If its CRD
// has another UID or another scope, it is another type with the same name: each handler gets all deletions of the old type's objects before the
// first addition of a new one. Failed requests are retried after 0.25 s to 36 s, or on [Lease.Retry], and not before the time that the server
// requests. With [WithAllowedNamespaces], a forbidden namespace is retried after about five minutes.
//
// Isolation. No lock is held during I/O, a wait or user code. A resource that hangs, is forbidden or has a handler that blocks does not affect the others.
//
// Logging. Lines go to the logger in the context of Start: one line for each change of state and none for a retry, at most ten lines a minute for each informer.
// At the default verbosity, lines report the beginnings of failures with their reasons, their ends, and the first object that is left out of the cache. At
// verbosity 2, lines also report that an informer starts, has listed, or has ended, and at 4, each retry. client-go itself logs at 4 that it sends no watch-list,
// also if the informer sends one. [Factory.Status] and [Factory.Explain] return the same information at any time, and [Factory.Readyz] reports problems.
//
// Differences from client-go's package, which docs/migration.md lists: a stopped informer is not returned again. Waiting does not poll, and does
// not wait for stopped informers. A failed Get of a generic lister returns a nil object. If a watch-list stalls, fails or is throttled, a LIST
// follows. A response that is not a list does not empty a cache. The first list is consistent. After a gap, handlers get only changes; a
// replaced object is a deletion and an addition. Shutdown also waits for requests. A factory logs a failing resource when the reason changes,
// and not at each retry. With discovery, no list or watch is sent for a resource that is not served or can't be watched, the objects of a type
// that is gone are deleted, and cluster-scoped resources ignore the namespace.
//
// The package does not interpret objects, and never writes to the server.
package dynamicinformer
