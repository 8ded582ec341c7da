// Package discovery finds out which resources a Kubernetes API server serves. It resolves a
// reference such as "ipamblocks" to a resource, checks that a resource can be listed and watched
// before an informer is created, and reports types that are added, changed or removed.
//
// An answer has one of three outcomes:
//
//   - served: a [Resource], a value that the caller may keep;
//   - not served: an error that matches [ErrNotServed]. The server has responded, and does not
//     serve the resource. meta.IsNoMatchError holds for the error;
//   - inconclusive: an error that matches [ErrInconclusive]. The server, or the part of it that
//     would serve the resource, did not respond. It does not mean that the resource is absent.
//
// A [Resolver] sends requests for each question, so that an answer is current when it is given.
// While [Resolver.Run] runs, the resolver answers from memory, and [Resolver.Subscribe] reports changes:
// Run watches CustomResourceDefinitions and APIServices, and polls if it may not watch them.
// [Resolver.Await] waits for a type, and [Resolver.RESTMapper] returns a mapper that needs no reset.
// A [Selector] selects types, for [Resolver.ResolveAll]. A [VersionPolicy] decides which
// version an informer reads. [Resolver.Status] reports the sources of the resolver's answers.
//
// The last known resources of a group version stay valid while the server can't be asked for them,
// or marks its response as stale. A type is removed only if there is evidence: its CRD was deleted or
// serves no version, or two discovery documents (one, if its APIService was deleted) do not list the
// type. A failed request is not evidence.
//
// A resolver starts no goroutine that outlives the call that needs it, holds no lock during a
// request, and is safe for concurrent use.
//
// The package does not know informers or the objects of the resources.
package discovery
