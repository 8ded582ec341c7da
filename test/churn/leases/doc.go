// Package leases is the [churn.Subject] of package dynamicinformer: a factory whose leases and
// handlers a script acquires, adds, removes and releases.
//
// At rest, it compares each lease with the model: the lister and each handler have the objects
// that the lease selects, and state, reason and WaitForSync are those of a type that is served,
// absent, served in another version, or forbidden.
package leases
