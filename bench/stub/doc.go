// Package stub answers list and watch requests for one resource as kube-apiserver
// does, from JSON that was encoded beforehand, so that a benchmark of clients spends
// no time waiting for a server.
//
// Like kube-apiserver it serves a list from version 0 as a whole, whatever its limit
// is, lists from no version in pages, replays the events since a version, and sends
// initial events with a bookmark at their end when asked to. It keeps two thousand
// events and answers 410 to who wants older ones.
//
// It has no other resources, no single objects, selectors, namespaces or writes, no
// compression and no TLS. Changes are made by a request of its own; see [Change].
package stub
