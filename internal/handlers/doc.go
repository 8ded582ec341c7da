// Package handlers wraps the event handlers of an informer. It counts their calls, and ends the
// calls of all handlers of one owner without waiting.
//
//   - [Set] is the handlers of one informer. It adds and removes them, and returns the status of each.
//   - [Group] is the handlers of one owner, such as a lease. After it is closed, no call of its
//     handlers begins. It reports when the last call has returned.
//   - [Options] are the options of a group's handlers. With coalescing, events of one object that wait
//     for a handler are merged, and a goroutine of the set calls the handler.
//   - [Owner] says on which objects the process may act. No handler is called for another object.
//
// # Ownership
//
// A call begins only if the process owns the object. Otherwise its event is parked in the handler: the parked events of
// an object are merged as with coalescing, and later events of the object are parked too. After
// [Set.OwnershipChanged], a goroutine of the set delivers the parked events whose objects are owned, in the order of
// parking. [Set.Quiesce] waits for the calls in progress for objects that are no longer owned, and not for parked or waiting
// events.
//
// When an object leaves the cache because the view no longer has it, its parked event is removed, and a [MovedHandler]
// gets OnMoved, which needs no ownership. A handler that has never got the object is not called. A deletion is
// delivered as a move if the object is neither owned nor in the view: the handler would get no later event of it.
//
// While an event is parked, it counts neither as a call, as merged, nor as waiting: a handler is not behind because the
// process may not act. A parked addition of the initial list counts as delivered for the registration's HasSynced, and is
// later delivered as an addition that is not part of the initial list. A resync of an object that is not owned is dropped.
// The events that are parked when the handler is removed, or when the informer ends, are lost, as those that wait.
//
// A handler may have a resync, which is its own: its informer has none.
//
// Without the option Recovery, a panic of a handler is not recovered: it ends the process, as in
// client-go.
//
// The package knows nothing of factories, leases and types.
package handlers
