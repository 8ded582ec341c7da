// Package embedded runs an API server for tests, demonstrations and benchmarks that
// have no cluster: k8s.io/apiextensions-apiserver on an embedded etcd, as a child
// process on this host.
//
//	server, err := embedded.Start(ctx)
//	if err != nil { … }
//	defer server.Stop()
//	err = server.InstallCRDFiles(ctx, "../config/crd")
//	client, err := dynamic.NewForConfig(server.Config())
//
// # Building
//
// The first Start builds the server from the source that this package carries, into
// the user's cache directory. That takes the Go command and some minutes; Start
// reports progress on standard error. After that a server is ready in a second.
//
// # What a test needs
//
//   - CRDs: [Server.InstallCRDFiles] for manifests, [Server.InstallCRDs] for objects.
//     Both return when the types can be listed and their objects created.
//   - A clean server for each test: [Server.Reset] deletes CRDs and objects in some
//     tens of milliseconds, [Server.ResetObjects] objects alone. Tests that run in
//     parallel can't do that; they use a namespace each. A namespace needs no object:
//     the server accepts any name.
//   - A program under test: [Server.Kubeconfig] and [Server.WriteKubeconfig].
//
// # What the server does not have
//
// It serves CRDs, their objects, discovery and OpenAPI, and nothing else. A test that
// needs built-in types such as Pods, namespaces as objects, RBAC, admission or garbage
// collection needs kube-apiserver: in this repository package
// [github.com/gvrkit/gvrkit/test/envtest/controlplane] finds or builds it for
// controller-runtime's envtest, which runs it. The functions [InstallCRDs] and
// [InstallCRDFiles] work on both. Package inprocess has more on what is served.
//
// It refuses one kind of object that kube-apiserver stores: a custom resource with a
// top-level field "items". Kubernetes takes it for a list. An API server without this
// check answers 500 to the creation but stores the object; from then on each watch of
// the type is silent or ends, and lists and watches get 429 "storage is
// (re)initializing", for every client, until the object is deleted. Fields called
// items below spec are not affected.
//
// # Access
//
// The API server listens on a loopback port and answers 401 to each request without
// the token of [Server.Config]; with it, everything is allowed. etcd, which asks for no
// credentials, listens on a Unix domain socket in a directory that no other user may
// enter.
//
// # Lifetime
//
// [Server.Stop] ends the server; open watches end at once. The child also ends when
// this process does, for whatever reason: it reads a pipe whose other end closes then.
package embedded
