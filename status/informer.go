package status

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

// Informer is the status of one informer at one moment. [Informer.MarshalJSON] documents its JSON.
type Informer struct {
	// GVR is the resource as it was requested, and VersionPolicy says in which version it is read.
	GVR           schema.GroupVersionResource `json:"-"`
	VersionPolicy discovery.VersionPolicy     `json:"versionPolicy,omitzero"`
	// ID is the number of the informer. Each informer that a factory makes has another one.
	ID uint64 `json:"id"`
	// Resource is what discovery resolved GVR to last. Only its GVR is set if it never did.
	Resource discovery.Resource `json:"-"`
	State    State              `json:"state"`
	// Reason is why the informer is not synced or is degraded; empty if nothing is wrong.
	Reason Reason `json:"reason,omitempty"`
	// Namespace is where requests go; empty means all namespaces.
	Namespace string `json:"namespace,omitempty"`
	// Verb is the verb of the request that failed, and Err its error; empty and nil if none did.
	// Err without Verb is an error of discovery, or of the function that FailedObjects is about.
	Verb string `json:"verb,omitempty"`
	Err  error  `json:"-"`
	// Listed reports whether the informer has listed its resource once, as HasSynced does,
	// whatever came after.
	Listed bool `json:"listed"`
	// Since is when the failure began, or when the informer became synced.
	Since time.Time `json:"since,omitzero"`
	// Attempts is how often it has failed since, and NextRetry when it is tried again; zero if
	// that is not known.
	Attempts  int       `json:"attempts,omitempty"`
	NextRetry time.Time `json:"nextRetry,omitzero"`
	// FailedObjects is the number of objects that Reason is about, and LastFailed the key,
	// namespace/name, of the last one. They are zero for a reason that is about a request or the type.
	FailedObjects uint64 `json:"failedObjects,omitempty"`
	LastFailed    string `json:"lastFailed,omitempty"`
	// StaleSince is since when the cache may be behind the server. It is zero if the cache is up
	// to date, or has never been filled.
	StaleSince time.Time `json:"staleSince,omitzero"`
	// Evidence is why the type is taken to be gone. Its Kind is empty if the type is not gone.
	Evidence discovery.Evidence `json:"-"`
	// Generation counts the types that were served one after the other under this name, from
	// zero. While Flushing, the cache still has objects of an earlier one.
	Generation int  `json:"generation"`
	Flushing   bool `json:"flushing,omitempty"`
	// Objects is how many objects the informer has been given, and ResourceVersion up to where.
	Objects         int    `json:"objects"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Traffic counts requests and what they brought.
	Traffic Traffic `json:"traffic"`
	// Pinned reports whether ForResource has requested the informer, Leases is how many leases
	// have, and Owners says whose leases these are, sorted by name.
	Pinned bool    `json:"pinned,omitempty"`
	Leases int     `json:"leases"`
	Owners []Owner `json:"owners,omitempty"`
	// Handlers are its event handlers, in the order in which they were added.
	Handlers []Handler `json:"handlers,omitempty"`
	// MoreOwners and MoreHandlers are how many are missing in Owners and Handlers: a page that
	// shows the status leaves some out if there are very many. A factory leaves out none.
	MoreOwners   int `json:"moreOwners,omitempty"`
	MoreHandlers int `json:"moreHandlers,omitempty"`
}

// Owner is who has leases on an informer.
type Owner struct {
	// Name is the name that the leases were given; empty for those without a name.
	Name string `json:"name"`
	// Leases is how many leases have that name. Since is when the first of them was acquired,
	// after a time without any.
	Leases int       `json:"leases"`
	Since  time.Time `json:"since"`
}

// Traffic counts the requests of one informer and what they brought, since it was made. The
// counts only grow.
type Traffic struct {
	// Lists is how many lists succeeded, each with all of its pages or as a watch-list, and
	// Watches how many watches did.
	Lists   uint64 `json:"lists"`
	Watches uint64 `json:"watches"`
	// Failures is how often a list or watch failed or broke, by reason. It includes attempts that
	// client-go repeats by itself, if the client reports them. It is read-only, and nil if there
	// were none.
	Failures map[Reason]uint64 `json:"failures,omitempty"`
	// Bytes is how many bytes came as bodies of responses, uncompressed. It is zero if the client
	// does not count them.
	Bytes uint64 `json:"bytes"`
	// Events is how many objects the informer was given, in lists, as changes and as deletions,
	// and LastEvent when the last one came; zero: never.
	Events    uint64    `json:"events"`
	LastEvent time.Time `json:"lastEvent,omitzero"`
}

// Handler is the status of one event handler.
type Handler struct {
	// Handler is what client-go calls it: its Go type or, for ResourceEventHandlerFuncs, where
	// the functions are. Lease is the name of its lease.
	Handler string `json:"handler"`
	Lease   string `json:"lease,omitempty"`
	// Delivered is how often it has been called.
	Delivered uint64 `json:"delivered"`
	// Backlog is how many events wait for it, the one in progress included. It is computed from
	// what the informer was given, and is an estimate if the handler was added during a burst
	// of events, or if objects can't be transformed. A handler that has been idle for a second
	// has none.
	Backlog int `json:"backlog"`
	// RunningSince is when the call began that has not returned; zero if there is none.
	RunningSince time.Time `json:"runningSince,omitzero"`
	// BehindSince is since when events have been waiting at the end of each call; zero if the
	// handler has caught up.
	BehindSince time.Time `json:"behindSince,omitzero"`
}

// LateAfter is how long a handler may be in one call, or behind, before it is [Handler.Late].
const LateAfter = 10 * time.Second

// slowCall is how long a call may last before [Handler.Delay] describes it. A health check may
// have little more patience.
const slowCall = time.Second

// Late reports whether the handler has been in one call, or behind, for [LateAfter] or longer.
func (h Handler) Late(at time.Time) bool {
	return h.runs(LateAfter, at) || !h.BehindSince.IsZero() && at.Sub(h.BehindSince) >= LateAfter
}

// runs reports whether h has been in one call for d.
func (h *Handler) runs(d time.Duration, at time.Time) bool {
	return !h.RunningSince.IsZero() && at.Sub(h.RunningSince) >= d
}

// Late reports whether one of the informer's handlers is late.
func (i Informer) Late(at time.Time) bool {
	for _, h := range i.Handlers {
		if h.Late(at) {
			return true
		}
	}
	return false
}

// Backlog is how many events wait for all handlers together.
func (i Informer) Backlog() (n int) {
	for _, h := range i.Handlers {
		n += h.Backlog
	}
	return n
}

// Name returns the resource as a reference: plural, version and group.
func (i Informer) Name() string { return discovery.RefOf(i.GVR).String() }
