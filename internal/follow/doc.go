// Package follow holds a lease on each type that a selector selects, for as long as the type is
// there and selected.
//
//   - [Run] follows until its context ends. [Config] says which types, and what to call.
//   - [Lease] is what a type is held with. The package knows no more of it than when it has its
//     first list, and how far the deletion of its objects is.
//
// A type has a goroutine while there is something to do for it, and none otherwise.
//
// The package knows nothing of factories, informers and handlers.
package follow
