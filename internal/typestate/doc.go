// Package typestate keeps what one informer knows of its type.
//
// The package knows nothing of factories, leases and caches.
package typestate
