package status

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

// Informer is the status of one informer at one moment. [Informer.MarshalJSON] documents its JSON.
type Informer struct {
	// GVR is the requested resource, and VersionPolicy selects the version that the informer reads. If the lease
	// was acquired by name, Ref is the name, and GVR the resource that it meant last; before that, GVR has the parts
	// of the name.
	GVR           schema.GroupVersionResource `json:"-"`
	Ref           string                      `json:"ref,omitempty"`
	VersionPolicy discovery.VersionPolicy     `json:"versionPolicy,omitzero"`
	// Form is the form of the objects: empty for *unstructured.Unstructured, "metadata" for metadata
	// only, or a Go type.
	Form string `json:"form,omitempty"`
	// ID is the number of the informer. It is unique in a factory.
	ID uint64 `json:"id"`
	// Resource is the last result of discovery for GVR. If there was none, only its GVR is set.
	Resource discovery.Resource `json:"-"`
	State    State              `json:"state"`
	// Reason is why the informer is not synced or is degraded; empty if there is no problem.
	Reason Reason `json:"reason,omitempty"`
	// Namespace is the namespace of requests; empty means all namespaces.
	Namespace string `json:"namespace,omitempty"`
	// Namespaces are the namespaces of an informer on a set of namespaces, sorted by name; nil if it has no set. If
	// requests fail in only some of them, that does not change State and Reason.
	Namespaces []Namespace `json:"namespaces,omitempty"`
	// Shard is the informer's part of the objects; nil if it has no shard. It is read-only.
	Shard *Shard `json:"shard,omitempty"`
	// Verb is the verb of the failed request, and Err its error; empty and nil if no request fails.
	// Err without Verb is an error of discovery, or of a transform or index function.
	Verb string `json:"verb,omitempty"`
	Err  error  `json:"-"`
	// PollPeriod is the mean time between lists of a type that can't be watched; zero if it can be watched.
	PollPeriod time.Duration `json:"-"`
	// Listed reports whether the informer has listed its resource once. As HasSynced, it stays true.
	Listed bool `json:"listed"`
	// Since is when the failure began, or when the informer became synced. It is zero if the informer has ended.
	Since time.Time `json:"since,omitzero"`
	// Attempts is the number of failed attempts since then, and NextRetry the time of the next
	// attempt; zero if it is not known.
	Attempts  int       `json:"attempts,omitempty"`
	NextRetry time.Time `json:"nextRetry,omitzero"`
	// FailedObjects is the number of objects that Reason concerns, and LastFailed the key,
	// namespace/name, of the last one. They are zero if Reason concerns a request or the type.
	FailedObjects uint64 `json:"failedObjects,omitempty"`
	LastFailed    string `json:"lastFailed,omitempty"`
	// Quarantine has the objects that are left out of the cache or of an index. Reason concerns them only if no
	// request fails.
	Quarantine Quarantine `json:"quarantine,omitzero"`
	// StaleSince is the time since when the cache may be out of date. It is zero if the cache is up
	// to date, or has never been filled.
	StaleSince time.Time `json:"staleSince,omitzero"`
	// Evidence is the evidence that the type is gone. Its Kind is empty if the type is not gone.
	Evidence discovery.Evidence `json:"-"`
	// Generation is the number of earlier types with this name that the informer has seen. While
	// Flushing is true, the cache still has objects of an earlier generation.
	Generation int  `json:"generation"`
	Flushing   bool `json:"flushing,omitempty"`
	// Objects is the number of objects that the source has passed to the informer, and
	// ResourceVersion their version.
	Objects         int    `json:"objects"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// CacheBytes is the memory of the cache, about: the objects in the informer's form, what a packed cache stores once for all of them, and
	// the maps that have them by key. Memory that several objects of the cache share counts once. Tables that informers share, indexes of the
	// program, and objects that the program keeps don't count.
	CacheBytes int64 `json:"cacheBytes,omitempty"`
	// Packed reports whether the cache is packed: with WithPackedCache, or to fit into a memory budget.
	Packed bool `json:"packed,omitempty"`
	// Traffic counts requests, bytes and events.
	Traffic Traffic `json:"traffic"`
	// Pinned reports whether ForResource has requested the informer. Leases is the number of
	// leases, and Owners their owners, sorted by name.
	Pinned bool    `json:"pinned,omitempty"`
	Leases int     `json:"leases"`
	Owners []Owner `json:"owners,omitempty"`
	// Handlers are its event handlers, in the order in which they were added.
	Handlers []Handler `json:"handlers,omitempty"`
	// MoreOwners and MoreHandlers are the numbers of owners and handlers that are left out, and MoreNamespaces those of
	// namespaces: the status page leaves some out if there are very many. A factory leaves out none.
	MoreOwners     int             `json:"moreOwners,omitempty"`
	MoreHandlers   int             `json:"moreHandlers,omitempty"`
	MoreNamespaces NamespaceCounts `json:"moreNamespaces,omitzero"`
}

// Owner is an owner of leases on an informer.
type Owner struct {
	// Name is the name of the leases; empty for leases without a name.
	Name string `json:"name"`
	// Leases is the number of leases with that name. Since is the time since when the owner has at
	// least one.
	Leases int       `json:"leases"`
	Since  time.Time `json:"since"`
}

// Traffic counts the requests, bytes and events of one informer since it was created. The counts
// only increase.
type Traffic struct {
	// Lists is the number of successful lists. All pages of a list count as one; a watch-list counts
	// as a list. Watches is the number of successful watches.
	Lists   uint64 `json:"lists"`
	Watches uint64 `json:"watches"`
	// Failures is the number of lists and watches that failed or broke, by reason. It includes
	// attempts that client-go retries internally, if the client reports them. Failures in some
	// namespaces of a set are not counted: Namespaces has them. It is read-only, and nil if there were no failures.
	Failures map[Reason]uint64 `json:"failures,omitempty"`
	// Bytes is the number of bytes of response bodies, uncompressed. It is zero if the client does
	// not count them.
	Bytes uint64 `json:"bytes"`
	// Events is the number of objects that the informer has got in lists, changes and deletions,
	// and LastEvent the time of the last one; zero if there was none.
	Events    uint64    `json:"events"`
	LastEvent time.Time `json:"lastEvent,omitzero"`
}

// Handler is the status of one event handler.
type Handler struct {
	// Handler is client-go's name of the handler: its Go type or, for ResourceEventHandlerFuncs, the
	// function or package of the functions. Lease is the name of its lease.
	Handler string `json:"handler"`
	Lease   string `json:"lease,omitempty"`
	// Delivered is the number of calls. Merged is the number of events without a call of their own,
	// because a later event of the same object came before the call.
	Delivered uint64 `json:"delivered"`
	Merged    uint64 `json:"merged,omitempty"`
	// Backlog is the number of events that wait for the handler, including the event in progress.
	// It is computed from the events of the informer. It is an estimate if the handler was added
	// during a burst of events, or if a transform fails for objects. It is zero for a handler that
	// has been idle for a second.
	Backlog int `json:"backlog"`
	// RunningSince is the start of the call in progress; zero if there is none.
	RunningSince time.Time `json:"runningSince,omitzero"`
	// BehindSince is the time since when events have been waiting at the end of each call; zero if
	// no events were waiting.
	BehindSince time.Time `json:"behindSince,omitzero"`
	// Panics is the number of calls whose panic was recovered, and LastPanic the text of the last one.
	Panics    uint64 `json:"panics,omitempty"`
	LastPanic string `json:"lastPanic,omitempty"`
	// Reason is ReasonHandlerPanicked while there are objects for which the last call has panicked.
	// FailedObjects is their number, at most 1,000, and LastFailed the key of the last one. A deleted
	// object is no longer one of them.
	Reason        Reason `json:"reason,omitempty"`
	FailedObjects int    `json:"failedObjects,omitempty"`
	LastFailed    string `json:"lastFailed,omitempty"`
}

// LateAfter is how long a handler may be in one call, or behind, before it is [Handler.Late].
const LateAfter = 10 * time.Second

// slowCall is how long a call may last before [Handler.Delay] describes it. Health checks may
// have a limit that is little longer.
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

// Backlog returns the sum of the backlogs of all handlers.
func (i Informer) Backlog() (n int) {
	for _, h := range i.Handlers {
		n += h.Backlog
	}
	return n
}

// Name returns the resource as a reference: plural, version and group.
func (i Informer) Name() string { return discovery.RefOf(i.GVR).String() }
