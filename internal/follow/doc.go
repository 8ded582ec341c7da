// Package follow holds a lease on each type that a selector selects, while the type exists and is
// selected.
//
//   - [Follower.Run] follows types until its context ends. [Follower.Status] has the types that can't be decided. [Config] has the selector and the callbacks.
//   - [Lease] is the package's view of a lease: whether the first list is complete, and how many
//     deletions of objects have been delivered.
//
// A type has a goroutine only while it has work to do.
//
// The package knows nothing of factories, informers and handlers.
package follow
