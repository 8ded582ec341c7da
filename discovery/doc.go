// Package discovery answers what a Kubernetes API server serves: it turns a
// reference that a person types into the resource it means, says before an informer is
// made whether a resource can be listed and watched, and tells when types come, change
// and go.
//
// There are three answers, never two:
//
//   - served: a [Resource], an inert value that the caller may keep;
//   - not served: an error that matches [ErrNotServed]. The server was asked and
//     said no. meta.IsNoMatchError holds for it;
//   - cannot tell: an error that matches [ErrInconclusive]. The server, or the part
//     of it that would know, could not be asked. It never means absence.
//
// A [Resolver] asks the server each time, which makes an answer true at the time it was
// given. While [Resolver.Run] runs it need not ask: it watches
// CustomResourceDefinitions and APIServices, polls where it may not, and answers from
// memory. Then [Resolver.Subscribe] tells of changes, [Resolver.Await] waits for a type,
// and [Resolver.RESTMapper] is a mapper that is never out of date.
//
// What a group version last told stands while it can't be asked, or while the server
// marks what it says of it as stale. That a type is gone needs evidence: its CRD was
// deleted, or the server has left it out twice. A request that fails is none.
//
// A resolver starts no goroutine that outlives the call that needs it, holds no lock
// over a request and is safe for concurrent use.
//
// The package knows nothing of informers, nor of the objects of the resources.
package discovery
