// Package cluster is an API server as far as discovery goes: the aggregated documents
// with ETag, the legacy ones, and the collections of CustomResourceDefinitions and
// APIServices with list, pages and watch. It answers over HTTP/1.1 from JSON that was
// encoded beforehand, and counts what it is asked and what it sends.
//
// What is built in are the groups and resources of a Kubernetes server of 2026. The
// CRDs are made up, each from its number: their names are much like real ones, and
// their schemas are random, so that none is a copy of another.
//
// It has no objects of the types that it lists, no gzip, no TLS, no permissions, no
// bookmarks and no compaction: a watch may begin at any version since the server did.
package cluster
