// Package statuspage shows the status of informers over HTTP: a table of all, and one resource in
// detail, as text, HTML or JSON. It is read-only, shows no objects, and escapes what it shows.
// It starts no goroutine and keeps no state for a client.
//
// The cost of a request is bounded. Requests within half a second share one table, and equal
// requests share one answer in memory, which each client may read as slowly as it likes. A
// table has at most 500 rows, and the number of those that it leaves out.
//
// The package knows the values of package status and not where they come from.
package statuspage
