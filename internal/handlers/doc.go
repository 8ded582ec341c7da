// Package handlers wraps the event handlers of an informer: it counts their calls, and ends those
// of one owner without waiting.
//
//   - [Set] are the handlers of one informer. It adds and removes them, and returns the status of each.
//   - [Group] are the handlers of one owner, such as a lease. Once it is closed no call of them
//     begins any more, and it knows when the last call has returned.
//
// A panic of a handler is not recovered: it ends the process, as in client-go.
//
// The package knows nothing of factories, leases and types.
package handlers
