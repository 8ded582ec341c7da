// Package inprocess runs the API server in the process of the caller: the real
// k8s.io/apiextensions-apiserver on an embedded etcd. The API server listens on a free
// loopback port. etcd, which requires no credentials, listens on a Unix domain socket
// in a directory that only the current user may enter (mode 0700).
//
// It serves CustomResourceDefinitions, the resources they define, discovery
// (aggregated and legacy) and OpenAPI, and its own requests on [ResetPath] and
// [BackupPath]. With the bearer token of [Server.Config], every request is allowed.
// Without the token, the response is 401 on every path, including /healthz and /version.
//
// An import of this package links about 1,500 packages into the binary. Most callers
// should use the launcher in the parent directory, which runs the same server as a
// child process. The server shares klog, the feature gates of k8s.io/apiserver and its
// metrics registry with the rest of the process, since these are global variables. A
// process may run several servers, one after the other or at the same time; they have
// one set of feature gates.
//
// The server is not kube-apiserver: it has no core types, namespaces, RBAC, admission
// plugins, garbage collection or API aggregation. It accepts any namespace name.
// Admission has one check: it rejects a custom resource with a top-level field "items",
// since the API server can't serve watches of a type that has such an object.
package inprocess
