// Package typefacts gives the informers of this module access to facts of a resolver that package
// discovery does not export. [Of] returns the [Facts] of a resolver, and [WithInformers] marks the
// calls of informers. The package does not know how a resolver finds the facts.
package typefacts

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Facts are the facts about types that one resolver has. All methods may be called at any time.
type Facts interface {
	// Pending returns a *discovery.NotEstablishedError if the CustomResourceDefinition of gr
	// exists and is not served. It returns nil if there is no CustomResourceDefinition, if it is
	// served, or if the resolver does not know. It sends no request.
	Pending(gr schema.GroupResource) error

	// Expect tells the resolver that the caller waits for gr until stop is called: as Await does,
	// or because requests for gr are NotFound, or its watches are refused, although it is served. If the resolver runs and can't
	// watch CRDs or APIServices, it requests the discovery documents at once, then every 2 s, and
	// after a minute every 10 s. If it can watch them, it reads the CRD of gr after each change,
	// until the documents list gr. Expect has no effect on a resolver that does not run. Neither
	// function blocks.
	Expect(gr schema.GroupResource) (stop func())

	// CRDUID requests the UID of the CustomResourceDefinition of gr from the server. It sends one
	// request, for the CRD's metadata. If it is another CRD than the resolver knows, the resolver
	// knows it when CRDUID returns, also if its watch of CRDs is behind. If there is no such CRD, the error is a
	// *discovery.NotServedError. If the request fails, or for a resolver of NewFromDiscovery, the
	// error is a *discovery.InconclusiveError.
	CRDUID(ctx context.Context, gr schema.GroupResource) (types.UID, error)

	// ScopeEnded returns when the resolver has last seen the end of a type gr that was namespaced, or was not: the type was removed, or has the
	// other scope since then. The time is zero if the resolver does not know of such an end, or forgets it: it remembers each at least for a
	// minute. It sends no request.
	ScopeEnded(gr schema.GroupResource, namespaced bool) time.Time
}

// Of returns the facts of resolver, a *discovery.Resolver that is not nil. Package discovery sets
// it during initialisation. It must not be changed later.
var Of func(resolver any) Facts

// Few is the largest number of types for which a resolver requests only these types.
const Few = 4

type informers struct{}

// WithInformers returns a context for the calls of a factory and its informers to a resolver: Run,
// Subscribe and ValidateVersion. While these are the only calls, and are about few types, the
// resolver requests only these types.
func WithInformers(ctx context.Context) context.Context {
	return context.WithValue(ctx, informers{}, true)
}

// ForInformers reports whether ctx is derived from a context of WithInformers.
func ForInformers(ctx context.Context) bool { return ctx.Value(informers{}) != nil }
