// Package typefacts lets the informers of this module ask a resolver of package discovery what it
// does not tell everyone. Its nouns are Facts and Of. It knows nothing of how they are found out.
package typefacts

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Facts are the facts about types that one resolver has. All methods may be called at any time.
type Facts interface {
	// Pending returns why the CustomResourceDefinition of gr is not served, which is there: a
	// *discovery.NotEstablishedError. It returns nil if there is none, if it is served, or if
	// the resolver does not know. It asks nobody.
	Pending(gr schema.GroupResource) error

	// Expect lets the resolver know that the caller waits for gr, until stop is called: as
	// Await does, or because requests for it are answered NotFound though it is served. While
	// the resolver runs it asks for the discovery documents at once where it can't watch CRDs or
	// APIServices, and then every 2 s, after a minute every 10 s. Where it can, it reads the CRD
	// of gr each time that it changes, until the documents list gr. It makes no difference to a
	// resolver that does not run. Neither function blocks.
	Expect(gr schema.GroupResource) (stop func())

	// CRDUID asks the server for the UID of the CustomResourceDefinition of gr, whatever is known
	// of it. It is one request, for the CRD's metadata. If there is no such CRD the error is a
	// *discovery.NotServedError, and if that can't be told a *discovery.InconclusiveError, as
	// always of a resolver that was made with NewFromDiscovery.
	CRDUID(ctx context.Context, gr schema.GroupResource) (types.UID, error)
}

// Of returns the facts of resolver, which is a *discovery.Resolver that is not nil. Package
// discovery sets it when it is initialised, and nobody changes it.
var Of func(resolver any) Facts
