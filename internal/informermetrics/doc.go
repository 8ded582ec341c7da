// Package informermetrics gives the informers on one GVR one identity in client-go's metrics of
// informers. Client-go accepts a name and a GVR once; an informer that comes later with the same
// ones has no metrics.
//
//   - [Identities] are the identities of all GVRs under one name.
//   - [Relay] is the metrics provider of one informer. It passes values on while that informer is
//     the published one of its GVR.
//
// The package knows nothing of factories, leases and resources.
package informermetrics
