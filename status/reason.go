package status

// Reason says in one word why an informer is not synced or is degraded. The strings are
// stable: programs may compare, count and show them.
type Reason string

// The reasons.
const (
	// ReasonNotFound: the server does not serve the resource.
	ReasonNotFound Reason = "NotFound"
	// ReasonVersionNotServed: the server serves the resource in other versions only.
	ReasonVersionNotServed Reason = "VersionNotServed"
	// ReasonNotEstablished: the CustomResourceDefinition exists and is not served yet.
	ReasonNotEstablished Reason = "NotEstablished"
	// ReasonNamesNotAccepted: the CustomResourceDefinition exists, and another one has its
	// names already.
	ReasonNamesNotAccepted Reason = "NamesNotAccepted"
	// ReasonDiscoveryFailed: discovery cannot tell whether the resource is served.
	ReasonDiscoveryFailed Reason = "DiscoveryFailed"
	// ReasonForbidden: the user may not list or watch the resource, or may not read discovery.
	ReasonForbidden Reason = "Forbidden"
	// ReasonUnauthorized: the server does not accept the credentials.
	ReasonUnauthorized Reason = "Unauthorized"
	// ReasonVerbNotSupported: the type supports no list or no watch.
	ReasonVerbNotSupported Reason = "VerbNotSupported"
	// ReasonTransformFailed: the informer's transform fails for some objects, which are left
	// out of the cache.
	ReasonTransformFailed Reason = "TransformFailed"
	// ReasonIndexFailed: an index function of the informer fails for some objects, which are
	// left out of that index.
	ReasonIndexFailed Reason = "IndexFailed"
	// ReasonConversionFailed: the CRD's conversion webhook failed.
	ReasonConversionFailed Reason = "ConversionFailed"
	// ReasonDecodeFailed: the answer of the server cannot be decoded.
	ReasonDecodeFailed Reason = "DecodeFailed"
	// ReasonBadRequest: the request itself is wrong, such as a selector by a field that the type
	// does not have, or no request can be made with the options or the client.
	ReasonBadRequest Reason = "BadRequest"
	// ReasonTLS: there is no secure connection: the server's certificate is not trusted, or one
	// side speaks HTTPS and the other HTTP.
	ReasonTLS Reason = "TLS"
	// ReasonUnavailable: the server did not answer, or answered with a server error.
	ReasonUnavailable Reason = "Unavailable"
	// ReasonThrottled: the server asked to wait.
	ReasonThrottled Reason = "Throttled"
	// ReasonBookmarkMissing: a watch-list stream did not end its initial events.
	ReasonBookmarkMissing Reason = "BookmarkMissing"
	// ReasonNotStarted: the informer has not been started, or was never asked for.
	ReasonNotStarted Reason = "NotStarted"
	// ReasonSyncing: nothing has failed; the list is under way.
	ReasonSyncing Reason = "Syncing"
	// ReasonStopped: the informer ended before it had synced.
	ReasonStopped Reason = "Stopped"
)

// Lasting reports whether the cause stays until a person or a program removes it: waiting alone
// does not help. That is what WithFailFast gives up on.
func (r Reason) Lasting() bool {
	switch r {
	case ReasonNotFound, ReasonVersionNotServed, ReasonNamesNotAccepted, ReasonForbidden, ReasonUnauthorized,
		ReasonVerbNotSupported, ReasonBadRequest, ReasonTLS, ReasonNotStarted, ReasonStopped:
		return true
	}
	return false
}
