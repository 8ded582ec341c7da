// Package statuspage serves the status of informers over HTTP: a table of all informers, and one
// resource in detail, as text, HTML or JSON. It is read-only, shows no objects, and escapes all
// values. It keeps no state for a client, and no goroutine outlives the requests that wait for its
// response.
//
// The cost of a request is bounded. Requests within half a second share one table. Equal requests
// share one response in memory, and a slow client does not delay the others. A table has at most 500
// rows, and the number of rows that are left out.
//
// The package knows the values of package status, but not their origin.
package statuspage
