// Package informermetrics gives the informers on one GVR one identity in client-go's metrics of
// informers. client-go accepts a name and a GVR only once: a later informer with the same name and
// GVR has no metrics.
//
//   - [Identities] has the identities of all GVRs under one name.
//   - [Relay] is the metrics provider of one informer. It passes values on while that informer is
//     the published informer of its GVR.
//
// The package knows nothing of factories, leases and resources.
package informermetrics
