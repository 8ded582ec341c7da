// Package fakecluster is an API server in memory, for tests that run in
// testing/synctest bubbles, where a socket can't be. It serves the dynamic client
// and discovery, and does what client-go's fakes leave out: label and field
// selectors and namespaces count for lists and watches alike, watches resume from
// a resourceVersion, watch-list streams end their initial events with a bookmark,
// requests are counted, and a test can make any of them fail or hang.
//
// What it does not do: patches, server-side apply and subresources, which get
// MethodNotSupported; schemas, tables and pages, which it knows nothing of.
package fakecluster
