// Package typestate keeps what one informer knows of its type, in one value behind one lock.
//
//   - [State] receives the inputs: discovery's answers and events, failed and successful requests,
//     complete lists.
//   - [Snapshot] is the result at one moment: whether the type is served, the evidence that it is
//     gone, its generation, what fails and since when, and whether the cache is synced.
//   - [Condition] is a failure that lasts until its opposite is observed.
//   - [Classify] returns the reason for an error.
//
// While [State.Run] runs, a State also asks discovery, and logs each change.
//
// The package knows nothing of factories, leases, caches and handlers.
package typestate
