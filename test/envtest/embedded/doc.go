// Package embedded runs an API server for tests, demonstrations and benchmarks without
// a cluster: k8s.io/apiextensions-apiserver on an embedded etcd, as a child process on
// this host.
//
//	server, err := embedded.Start(ctx)
//	if err != nil { … }
//	defer server.Stop()
//	err = server.InstallCRDFiles(ctx, "../config/crd")
//	client, err := dynamic.NewForConfig(server.Config())
//
// # Building
//
// The first Start builds the server from the source in this package, into the user's
// cache directory. This requires the Go command and takes some minutes; Start reports
// progress on standard error. Later, a server is ready in a second.
//
// # What a test needs
//
//   - CRDs: [Server.InstallCRDFiles] for manifests, [Server.InstallCRDs] for objects.
//     Both return when the types can be listed and their objects created.
//   - A clean server for each test: [Server.Reset] deletes CRDs and objects in tens of
//     milliseconds, and [Server.ResetObjects] deletes only objects. Tests that run in
//     parallel can't use a reset: each of them uses its own namespace. A namespace
//     needs no object: the server accepts any name.
//   - The same objects for each test: [Server.Backup] once, and [Server.Reset] and
//     [Server.Restore] before each test. This is also how to test a CRD that is deleted
//     and restored with the same UID.
//   - A program under test: [Server.Kubeconfig] and [Server.WriteKubeconfig].
//
// # What the server does not have
//
// It serves only CRDs, their objects, discovery and OpenAPI. A test that
// needs built-in types such as Pods, namespaces as objects, RBAC, admission or garbage
// collection requires kube-apiserver. Package
// [github.com/gvrkit/gvrkit/test/envtest/controlplane] of this repository finds or
// builds it, and controller-runtime's envtest runs it. The functions [InstallCRDs] and
// [InstallCRDFiles] work on both servers. The comment of package inprocess describes
// the server in detail.
//
// It rejects one kind of object that kube-apiserver stores: a custom resource with a
// top-level field "items". Kubernetes decodes it as a list. An API server without this
// check responds with 500 to the creation but stores the object. Then each watch of the
// type is silent or ends, and lists and watches get 429 "storage is (re)initializing",
// for every client, until the object is deleted. Fields called items below spec are not
// affected.
//
// # Access
//
// The API server listens on a loopback port. It responds with 401 to each request
// without the token of [Server.Config], and allows every request with it. etcd, which
// requires no credentials, listens on a Unix domain socket in a directory that only the
// current user may enter.
//
// # Lifetime
//
// [Server.Stop] ends the server; open watches end at once. The child process also ends
// when this process ends for any reason, because it reads from a pipe that then closes.
package embedded
