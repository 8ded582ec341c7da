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
// Lifecycle. Asking for an informer does no I/O, but for discovery's. It runs when the
// factory has been started, waits while its type is not served, and ends with the context
// it was started on, with Shutdown, or with the release of its last [Lease]. Asked for after
// that, a resource gets a fresh informer, unless the factory is closing.
//
// Types. With discovery an informer outlives its type. NotFound alone means nothing; when
// there is evidence that the type is gone, handlers get the deletion of each object, or the
// cache is kept: see [RemovalPolicy]. When the type is back the informer goes on. If it is
// another type of the same name, by its CRD's UID or its scope, each handler gets all
// deletions of the old one's objects before the first addition of the new one's. Requests
// that fail are tried again after 0.25 s to 36 s, or on [Lease.Retry], and not before the
// server wants that.
//
// Isolation. No lock is held over I/O, a wait or user code: a resource that hangs,
// is forbidden or has a handler that blocks does not affect the others.
//
// Logging. Lines go to the logger in the context that Start was given, a line for each change
// and none for each retry, ten a minute for one informer at most. At the default verbosity they
// tell what is wrong, with its reason, and that it is over; at 2 also what is ordinary: that an
// informer begins, has listed, has ended; at 4 each retry. [Factory.Status] and
// [Factory.Explain] tell the same at any time, and [Factory.Readyz] what of it is a problem.
//
// Differences from client-go's package, all of which the README's table has: a
// stopped informer is not handed out again; waiting does not poll, nor go on for
// what has ended; a failed Get of a generic lister returns a nil object; a
// watch-list that stalls, fails or is throttled is followed by a LIST; what is no
// list does not empty a cache; the first list is consistent; after a gap handlers get what
// has changed, an object in another's place as a deletion and an addition; Shutdown waits
// for requests too; a factory logs a failing resource when the reason changes, not at each
// retry. With discovery, nothing is asked of a resource that is not served or can't be
// watched, the objects of a type that is gone are deleted, and a cluster-scoped one ignores
// the factory's namespace.
//
// The package does not know what the objects mean, and never writes to the server.
package dynamicinformer
