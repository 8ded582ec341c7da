// Package dynamicinformer makes and runs shared informers on resources that are
// known by schema.GroupVersionResource only, such as those of a CRD. It takes the
// place of k8s.io/client-go/dynamic/dynamicinformer: the same names with the same
// signatures are here, and [Factory], which they are a view of, adds discovery
// before the first request, reasons for what does not sync, and a shutdown that
// can be waited for with a deadline.
//
// Sharing. A factory has one informer a resource, whose cache and watch all users
// share. Cached objects are *unstructured.Unstructured and read-only, in handlers
// and listers alike: call DeepCopy before the first write. In a factory of
// [NewForConfig] equal parts of objects are one in memory, so that a write reaches
// other objects, too.
//
// Ordering. The informers are client-go's own, so what cache.SharedInformer
// promises holds: a handler gets the events of one object in order, one at a time;
// nothing is promised between objects, nor between handlers.
//
// Lifecycle. Asking for an informer does no I/O. It runs when the factory has been
// started, is parked while discovery refuses its resource, and ends with the
// context it was started on or with Shutdown. Asked for after that, a resource gets
// a fresh informer, unless the factory is closing.
//
// Isolation. No lock is held over I/O, a wait or user code, so a resource that
// hangs, is forbidden or has a handler that blocks is nobody else's trouble.
//
// Differences from client-go's package, all of which the README's table has: a
// stopped informer is not handed out again; waiting does not poll, nor go on for
// what has ended; a failed Get of a generic lister returns a nil object; a
// watch-list that stalls, fails or is throttled is followed by a LIST; what is no
// list does not empty a cache; Shutdown waits for requests too; a factory logs a
// failing resource when the reason changes, not at each retry. With discovery,
// nothing is asked of a resource that is not served or can't be watched, and a
// cluster-scoped one ignores the factory's namespace.
//
// The package does not know what the objects mean, and never writes to the server.
package dynamicinformer
