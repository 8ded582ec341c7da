package status

// Reason is why an informer is not synced or is degraded, in one word. The strings are
// stable: programs may compare, count and display them.
type Reason string

// The reasons.
const (
	// ReasonNotFound: the server does not serve the resource.
	ReasonNotFound Reason = "NotFound"
	// ReasonVersionNotServed: the server serves the resource only in other versions.
	ReasonVersionNotServed Reason = "VersionNotServed"
	// ReasonNotEstablished: the CustomResourceDefinition exists and is not served yet.
	ReasonNotEstablished Reason = "NotEstablished"
	// ReasonNamesNotAccepted: the CustomResourceDefinition exists, and another one already has
	// the same names.
	ReasonNamesNotAccepted Reason = "NamesNotAccepted"
	// ReasonAmbiguous: the name with which the lease was acquired means several resources.
	ReasonAmbiguous Reason = "Ambiguous"
	// ReasonDiscoveryFailed: discovery could not determine whether the resource is served. If the server has no discovery
	// documents, turn discovery off: dynamicinformer.WithDiscovery(nil).
	ReasonDiscoveryFailed Reason = "DiscoveryFailed"
	// ReasonForbidden: the user may not list or watch the resource, or may not read discovery.
	ReasonForbidden Reason = "Forbidden"
	// ReasonUnauthorized: the server does not accept the credentials, or the exec plugin of the rest.Config has returned none.
	ReasonUnauthorized Reason = "Unauthorized"
	// ReasonVerbNotSupported: the type does not support list or watch.
	ReasonVerbNotSupported Reason = "VerbNotSupported"
	// ReasonTransformFailed: the informer's transform fails for some objects. They are left out
	// of the cache.
	ReasonTransformFailed Reason = "TransformFailed"
	// ReasonIndexFailed: an index function of the informer fails for some objects. They are left
	// out of that index.
	ReasonIndexFailed Reason = "IndexFailed"
	// ReasonHandlerPanicked: an event handler has panicked for some objects, and the panics were
	// recovered. It is the reason of a [Handler], not of an informer.
	ReasonHandlerPanicked Reason = "HandlerPanicked"
	// ReasonConversionFailed: the CRD's conversion webhook failed.
	ReasonConversionFailed Reason = "ConversionFailed"
	// ReasonDecodeFailed: a response can't be decoded or, with FailedObjects, some objects can't be
	// decoded to the informer's form, or have no name. These objects are left out of the cache.
	ReasonDecodeFailed Reason = "DecodeFailed"
	// ReasonBadRequest: the request is invalid, such as a selector by a field that the type does
	// not have, or no request is possible with the options or the client.
	ReasonBadRequest Reason = "BadRequest"
	// ReasonTLS: there is no secure connection: the server's certificate is not trusted, the server rejects
	// the client, for example for its certificate, or one side uses HTTPS and the other HTTP.
	ReasonTLS Reason = "TLS"
	// ReasonUnavailable: the server did not respond, broke a response off, responded with a server error,
	// or ends each watch less than a second after its beginning.
	ReasonUnavailable Reason = "Unavailable"
	// ReasonThrottled: the server requested a pause.
	ReasonThrottled Reason = "Throttled"
	// ReasonBookmarkMissing: a watch-list stream did not end its initial events.
	ReasonBookmarkMissing Reason = "BookmarkMissing"
	// ReasonRewound: the resourceVersions of the server have gone back, as after a restore of etcd. The informer lists,
	// and its handlers get the differences.
	ReasonRewound Reason = "Rewound"
	// ReasonNotStarted: the informer has not been started, or was never requested.
	ReasonNotStarted Reason = "NotStarted"
	// ReasonSyncing: no request has failed; the list is not complete yet.
	ReasonSyncing Reason = "Syncing"
	// ReasonQueued: no request has failed; the first list waits for the lists of other resources, whose
	// number or size the factory limits.
	ReasonQueued Reason = "Queued"
	// ReasonOverBudget: the cache would not fit into the factory's memory budget. Nothing is listed until memory is
	// released.
	ReasonOverBudget Reason = "OverBudget"
	// ReasonStopped: the informer has ended; in a [NotSyncedError], before it had synced.
	ReasonStopped Reason = "Stopped"
)

// Lasting reports whether the cause stays until a person or a program removes it. For such a reason,
// WaitForSync with WithFailFast returns early.
func (r Reason) Lasting() bool {
	switch r {
	case ReasonNotFound, ReasonVersionNotServed, ReasonNamesNotAccepted, ReasonAmbiguous, ReasonForbidden, ReasonUnauthorized,
		ReasonVerbNotSupported, ReasonBadRequest, ReasonTLS, ReasonOverBudget, ReasonNotStarted, ReasonStopped:
		return true
	}
	return false
}
