// Package page shows how informers do over HTTP: a table of them, and one resource in
// detail, as text, HTML or JSON. It is read-only, shows no objects, and escapes what it
// shows. It runs nothing by itself: no goroutine, and no state for anybody who looks.
//
// What a look costs is bounded. All who look within half a second share one table, and
// those who ask the same of it one answer in memory, which each may take as slowly as he
// likes. A table has at most 500 rows, and tells how many more there are.
//
// Where what is shown comes from, and what a resource is, it refuses to know.
package page
