// Package inprocess runs the API server in the caller's own process: the real
// k8s.io/apiextensions-apiserver in front of an embedded etcd. The API server
// listens on a free loopback port. etcd, which asks for no credentials, listens on a
// Unix domain socket in a directory that only the current user may enter (mode 0700).
//
// It serves CustomResourceDefinitions, the resources they define, discovery
// (aggregated and legacy) and OpenAPI, and on [ResetPath] a request of its own.
// Requests need the bearer token of [Server.Config]; with it, everything is allowed.
// Without it the answer is 401 on every path, /healthz and /version included.
//
// Importing this package links some 1,500 packages into the binary. Most callers
// want the launcher in the parent directory, which runs the same server as a
// child. What it shares with the rest of the process, for want of a way to have
// two: klog, the feature gates of k8s.io/apiserver, its metrics registry. Servers
// may follow one another and may run side by side, but they have one set of
// feature gates.
//
// It does not pretend to be kube-apiserver: there are no core types, no
// namespaces, no RBAC, no admission plugins, no garbage collection, no API aggregation.
// Any namespace name is accepted. Admission is one check: a custom resource with a
// top-level field "items" is refused, since the API server can't serve watches of a
// type that has such an object.
package inprocess
