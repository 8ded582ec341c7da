// Package handlers wraps the event handlers of an informer. It counts their calls, and ends the
// calls of all handlers of one owner without waiting.
//
//   - [Set] is the handlers of one informer. It adds and removes them, and returns the status of each.
//   - [Group] is the handlers of one owner, such as a lease. After it is closed, no call of its
//     handlers begins. It reports when the last call has returned.
//   - [Options] are the options of a group's handlers. With coalescing, events of one object that wait
//     for a handler are merged, and a goroutine of the set calls the handler.
//
// A handler may have a resync of its own, if its informer has no resync period.
//
// Without the option Recovery, a panic of a handler is not recovered: it ends the process, as in
// client-go.
//
// The package knows nothing of factories, leases and types.
package handlers
