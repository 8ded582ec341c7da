// Package status has the values that describe one informer at one moment.
//
//   - [Informer] is the status of an informer, with [Owner], [Traffic] and [Handler] as parts.
//   - [State] and [Reason] are what it does and why, in one word each.
//   - [NotSyncedError] is why an informer has not synced, as an error.
//   - [Explanation] is why the informers on one resource do what they do, in sentences.
//
// The values are inert: they hold no connection, and they do not change when the informer does.
// This is the only package that describes a state in words. The values also have a stable JSON.
//
// The package knows nothing of factories, requests and caches.
package status
