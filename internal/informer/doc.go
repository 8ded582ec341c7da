// Package informer has the [Informer]: client-go's shared informer on one resource, with a source
// (internal/source), counted event handlers (internal/handlers) and a lister. It does not know factories,
// leases or types that come and go.
package informer
