// Package typestate keeps what one informer knows of its type, in one value behind one lock.
//
//   - [State] takes what happens: discovery's answers and events, requests that fail or
//     succeed, lists that are complete.
//   - [Snapshot] is all that follows from it at one moment: whether the type is served, by what
//     evidence it is gone, of which generation it is, what fails since when, and whether the
//     cache is synced.
//   - [Condition] is something that fails until its opposite is observed.
//   - [Classify] turns an error into a reason.
//
// A State also asks discovery, as long as [State.Run] runs, and writes a line to the log for
// each change.
//
// The package knows nothing of factories, leases, caches and handlers.
package typestate
