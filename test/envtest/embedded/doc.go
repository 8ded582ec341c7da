// Package embedded starts an API server in a box, for tests, demonstrations and
// benchmarks that need a real one and have no cluster: k8s.io/apiextensions-apiserver
// on an embedded etcd, as a child process on loopback ports.
//
//	server, err := embedded.Start(ctx)
//	if err != nil { … }
//	defer server.Stop()
//	err = server.InstallCRDs(ctx, crd)
//	client, err := dynamic.NewForConfig(server.Config())
//
// The server is built from the source that this package carries, the first time
// it is needed, into the user's cache directory. That takes the Go command and
// some minutes; Start says so on standard error. From then on a server is there in
// a second. Package inprocess, next door, tells what it serves and what it does
// not.
//
// The child ends when its parent does, however that happens: it reads a pipe
// whose other end goes with the parent.
package embedded
