// Package fakecluster is an API server in memory, for tests that run in testing/synctest bubbles,
// which can't use sockets. It has a dynamic client and a discovery client. Unlike client-go's
// fakes, it applies label and field selectors and namespaces to lists and to watches, resumes a
// watch from a resourceVersion, ends the initial events of a watch-list with a bookmark, and counts
// requests. A test can make any request fail or hang.
//
// The package does not support patches, server-side apply or subresources: they return
// MethodNotSupported. It has no schemas and tables.
package fakecluster
