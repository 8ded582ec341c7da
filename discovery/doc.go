// Package discovery answers what a Kubernetes API server serves: it turns a
// reference that a person types into the resource it means, and says before an
// informer is made whether a resource can be listed and watched.
//
// There are three answers, never two:
//
//   - served: a [Resource], an inert value that the caller may keep;
//   - not served: an error that matches [ErrNotServed]. The server was asked and
//     said no. meta.IsNoMatchError holds for it;
//   - cannot tell: an error that matches [ErrInconclusive]. The server, or the part
//     of it that would know, could not be asked. It never means absence.
//
// A [Resolver] keeps no answers: each question goes to the server, which makes
// the answer true at the time it was given and no longer. It starts no goroutine
// that outlives the call, holds no lock over a request and is safe for concurrent
// use.
//
// The package knows nothing of informers, nor of the objects of the resources.
package discovery
