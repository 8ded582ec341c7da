// Package leases is the [churn.Subject] of package dynamicinformer: a factory whose leases and
// handlers a script acquires, adds, removes and releases.
//
// At rest, it compares each lease with the model: the lister and each handler have the objects
// that the lease selects, and state, reason and WaitForSync are those of a type that is served,
// absent, served in another version, or forbidden. Each informer has one watch in each of its namespaces: if it is not
// synced, at most one.
//
// At any time, WaitForSync of the first lease on an informer must not return before the lister has the objects that existed before,
// a registration must not have synced before its handler has got them, and AtLeast must not return before the lister has the object of a write
// with that version. On a set of namespaces, which have several versions, AtLeast must return an error. Follow must not call Stopped for a CRD that exists.
package leases
