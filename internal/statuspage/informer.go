package statuspage

import "time"

// Informer is what is told of one informer. Its JSON is stable: what is there keeps its
// name and meaning, and more may come. Fields without a value are left out, but for those
// of which zero says something.
type Informer struct {
	// Name is the resource in full, as the parameter resource takes it, and Group,
	// Version and Resource its parts.
	Name     string `json:"name"`
	Group    string `json:"group"`
	Version  string `json:"version"`
	Resource string `json:"resource"`
	// VersionPolicy is which versions are good, if that is not the one of Name alone.
	VersionPolicy string `json:"versionPolicy,omitempty"`
	// Served is what the resource was resolved to last; nil if it has not been.
	Served *Served `json:"served,omitempty"`
	// State and Reason are words to count and compare, Message a sentence or two about
	// them, and Advice what a person can do.
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Advice  string `json:"advice,omitempty"`
	// Namespace is where requests go; none: everywhere.
	Namespace string `json:"namespace,omitempty"`
	// Verb is that of the request that failed, and Error how.
	Verb  string `json:"verb,omitempty"`
	Error string `json:"error,omitempty"`
	// Since is when it went wrong, Attempts how often it was tried since, and NextRetry
	// when it is tried again.
	Since     time.Time `json:"since,omitzero"`
	Attempts  int       `json:"attempts,omitempty"`
	NextRetry time.Time `json:"nextRetry,omitzero"`
	// FailedObjects is how many objects Reason is about, and LastFailed the key of the last
	// of them.
	FailedObjects uint64 `json:"failedObjects,omitempty"`
	LastFailed    string `json:"lastFailed,omitempty"`
	// StaleSince is since when the cache may be behind the server.
	StaleSince time.Time `json:"staleSince,omitzero"`
	// Evidence is why the type is taken to be gone; nil if it is not.
	Evidence *Evidence `json:"evidence,omitempty"`
	// Generation counts the types that had that name before. While Flushing, the cache still
	// has objects of one of them.
	Generation int  `json:"generation"`
	Flushing   bool `json:"flushing,omitempty"`
	// Objects is how many there are, and ResourceVersion up to where.
	Objects         int    `json:"objects"`
	ResourceVersion string `json:"resourceVersion,omitempty"`
	// Traffic is what was asked for and given.
	Traffic Traffic `json:"traffic"`
	// Pinned says that it is there until the end, Leases for how many others it is, and
	// Holders whose those are. MoreHolders are left out.
	Pinned      bool     `json:"pinned,omitempty"`
	Leases      int      `json:"leases"`
	Holders     []Holder `json:"holders,omitempty"`
	MoreHolders int      `json:"moreHolders,omitempty"`
	// Handlers are its event handlers, in the order in which they were added.
	// MoreHandlers are left out.
	Handlers     []Handling `json:"handlers,omitempty"`
	MoreHandlers int        `json:"moreHandlers,omitempty"`
}

// Served is what a server serves under a name.
type Served struct {
	Name        string `json:"name"`
	Kind        string `json:"kind"`
	Namespaced  bool   `json:"namespaced"`
	Backing     string `json:"backing,omitempty"`
	CRDUID      string `json:"crdUID,omitempty"`
	Terminating bool   `json:"terminating,omitempty"`
}

// Evidence is by what a type is known to be gone.
type Evidence struct {
	Kind   string    `json:"kind"`
	CRDUID string    `json:"crdUID,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// Traffic counts requests and what came of them.
type Traffic struct {
	Lists     uint64            `json:"lists"`
	Watches   uint64            `json:"watches"`
	Failures  map[string]uint64 `json:"failures,omitempty"` // by reason
	Bytes     uint64            `json:"bytes"`
	Events    uint64            `json:"events"`
	LastEvent time.Time         `json:"lastEvent,omitzero"`
}

// Holder is who has leases.
type Holder struct {
	Name   string    `json:"name"` // empty: without a name
	Leases int       `json:"leases"`
	Since  time.Time `json:"since"`
}

// Handling is how one event handler does.
type Handling struct {
	Handler      string    `json:"handler"` // its Go type
	Lease        string    `json:"lease,omitempty"`
	Delivered    uint64    `json:"delivered"`
	Backlog      int       `json:"backlog"`
	RunningSince time.Time `json:"runningSince,omitzero"` // in a call that has not returned
	BehindSince  time.Time `json:"behindSince,omitzero"`
}

// late is how long a handler may be in a call, or behind, before that is worth a mark.
const late = 10 * time.Second

// slowCall is how long a call may last before a row names its handler. A health check may have
// little more patience.
const slowCall = time.Second

// late reports whether h has been in one call, or behind, for long.
func (h *Handling) late(at time.Time) bool {
	return h.runs(late, at) || !h.BehindSince.IsZero() && at.Sub(h.BehindSince) >= late
}

// runs reports whether h has been in one call for that long.
func (h *Handling) runs(long time.Duration, at time.Time) bool {
	return !h.RunningSince.IsZero() && at.Sub(h.RunningSince) >= long
}

// late reports whether one of the handlers is.
func (i *Informer) late(at time.Time) bool {
	for n := range i.Handlers {
		if i.Handlers[n].late(at) {
			return true
		}
	}
	return false
}

// backlog is how many events wait for handlers, all of them.
func (i *Informer) backlog() (n int) {
	for _, h := range i.Handlers {
		n += h.Backlog
	}
	return n
}

// Detail is what is told of one resource. Its JSON is as stable as that of [Informer].
type Detail struct {
	// Name is the resource in full, and At the moment of which this tells.
	Name string    `json:"name"`
	At   time.Time `json:"at"`
	// Informers are those on it, and Elsewhere the resources of the same name, in other
	// versions, that have some if it has none. MoreInformers are left out, with what
	// Chain would say of them.
	Informers     []Informer `json:"informers"`
	MoreInformers int        `json:"moreInformers,omitempty"`
	Elsewhere     []string   `json:"elsewhere,omitempty"`
	// Discovery is where answers about types come from; nil without.
	Discovery *Discovery `json:"discovery,omitempty"`
	// Chain tells in sentences what is wanted, what that led to, and what is next.
	Chain []Step `json:"chain"`
}

// Step is one part of the story.
type Step struct {
	About string `json:"about"`
	Text  string `json:"text"`
}

// Discovery is where answers about types come from.
type Discovery struct {
	Running  bool              `json:"running"`
	Types    int               `json:"types"`
	Requests uint64            `json:"requests"`
	Answers  Answers           `json:"answers"`
	Sources  []DiscoverySource `json:"sources,omitempty"`
}

// Answers are how often questions about types had which outcome.
type Answers struct {
	Served       uint64 `json:"served"`
	NotServed    uint64 `json:"notServed"`
	Inconclusive uint64 `json:"inconclusive"`
	Ambiguous    uint64 `json:"ambiguous"`
}

// DiscoverySource is one source of them.
type DiscoverySource struct {
	Name  string    `json:"name"`
	State string    `json:"state"`
	Since time.Time `json:"since,omitzero"`
	Verb  string    `json:"verb,omitempty"`
	Error string    `json:"error,omitempty"`
}
