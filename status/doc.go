// Package status has the values that describe one informer at one moment: its [State], the
// [Reason] for that, and [NotSyncedError], which puts both into words.
//
// The values are inert: they hold no connection, and they do not change when the informer does.
//
// The package knows nothing of factories, requests and caches.
package status
