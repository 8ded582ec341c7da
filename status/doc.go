// Package status has the values that describe one informer at one moment.
//
//   - [Informer] is the status of an informer. [Owner], [Traffic], [Handler], [Namespace], [Quarantine] and [Shard]
//     are parts of it.
//   - [State] and [Reason] are the state of the informer and the reason for it, in one word each.
//   - [NotSyncedError] is the error that reports why an informer has not synced, [VersionError] why a cache does not
//     have a resourceVersion, and [IncompleteError] which namespaces it does not have.
//   - [HealthPolicy] decides whether informers are healthy. [HealthError] has their problems.
//   - [Explanation] describes the informers on one resource in sentences.
//   - [Follow] is the status of a call of a factory's Follow, [Budget] that of its memory budget, and [DiscoverySource]
//     that of one source of discovery.
//
// The values hold no connection, and do not change when the informer changes. Only this package has
// texts that describe a state. The values also have a stable JSON form.
//
// The package knows nothing of factories, requests and caches.
package status
