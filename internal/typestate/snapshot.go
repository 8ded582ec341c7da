package typestate

import (
	"cmp"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/sharding"
	"github.com/gvrkit/gvrkit/status"
)

// Snapshot is the state of a type at one moment. It is a value and does not change.
type Snapshot struct {
	record
	// At is the time of the snapshot.
	At time.Time
	// LeftOut are the objects that are not in the cache or in an index.
	LeftOut LeftOut
	// Source is the state of the source, and Listed whether the informer has synced once.
	Source source.State
	Listed bool
}

// record is the part of a snapshot that a State stores.
type record struct {
	// GVR is the requested resource, or the one that the requested name means.
	GVR schema.GroupVersionResource
	// Namespace is the namespace of requests; empty means all namespaces.
	Namespace string
	// resource is the type as it was last served, and read-only; nil if it was never served.
	resource *discovery.Resource
	// Serving determines the action of the source: wait, send requests, probe, or delete.
	Serving source.Serving
	// Evidence is the evidence of the resolver that the type is gone or not served; its Kind is empty if there is none.
	// Last is the evidence of the previous generation.
	Evidence, Last discovery.Evidence
	// Generation is the number of earlier types with this name.
	Generation int
	// Begun is the time of the informer's start, ServedSince the time since when its type is served,
	// and SyncedSince since when nothing fails and the source has passed on everything. Each is zero
	// if that is not the case.
	Begun, ServedSince, SyncedSince time.Time
	// Discovery, List and Watch are the failures of discovery and of the two requests.
	Discovery, List, Watch Condition
	// Traffic counts requests, bytes and events.
	Traffic status.Traffic

	disputed bool // the type is served and its name does not mean it alone; Discovery has the error

	denied time.Time // since when discovery says that a served type is not served, without evidence
	doubt  time.Time // the time of the last NotFound, wrong scope or first refused watch
	expiry time.Time // the time when a watch last expired
	stored int       // the number of the last first list that is in the store

	// unsettled is when another server has begun to serve the type, or a type of that name with the other scope has ended; zero: long ago, or never.
	unsettled time.Time

	// relocated says that the resolver has an event of another backing, and that of resource is not known.
	relocated bool
	// undecided is since when discovery can't tell what serves the type, which is served; zero: it can. There is no event when it can again.
	undecided time.Time
}

// Condition is a failure that lasts until its opposite is observed.
type Condition struct {
	// Err is the last failure; nil if nothing fails.
	Err error
	// Reason is the reason for Err.
	Reason status.Reason
	// Since is the time of the first failure, and Attempts the number of failures since then.
	Since    time.Time
	Attempts int
}

// failed returns the condition after one more failure.
func (c Condition) failed(err error, reason status.Reason, now time.Time) Condition {
	if c.Err == nil {
		c = Condition{Since: now}
	}
	c.Err, c.Reason = err, reason
	c.Attempts++
	return c
}

// Synced reports whether a whole list of this generation is in the store, and the type is not gone, nor its CRD deleted. Only this function
// decides that.
func (s *Snapshot) Synced() bool {
	return s.Listed && s.hasList() && s.stored >= s.Source.FirstLists
}

// Ended reports whether the type has ended with that evidence. Another type may have its name now.
func (s *Snapshot) Ended(end discovery.Evidence) bool {
	known := s.uid()
	return s.Serving == source.Gone || s.Last.Kind == discovery.CRDDeleted && s.Last.CRDUID == end.CRDUID && !s.Last.At.Before(end.At) ||
		end.CRDUID != "" && known != "" && end.CRDUID != known
}

// hasList reports whether the reflector has got a whole list of this generation.
func (s *Snapshot) hasList() bool {
	return s.Serving != source.Gone && s.Evidence.Kind != discovery.CRDDeleted &&
		s.Source.Complete && s.Source.Generation == s.Generation
}

// AwaitsStore returns the number of a first list that the reflector has got and that may not be in
// the store yet; zero if there is none. For the list with number 1, HasSynced reports that.
func (s *Snapshot) AwaitsStore() int {
	if s.hasList() && s.Source.FirstLists > max(1, s.stored) {
		return s.Source.FirstLists
	}
	return 0
}

// Flushing reports whether the cache still has objects of an earlier generation.
func (s *Snapshot) Flushing() bool {
	return s.Source.Objects > 0 && s.Source.Generation != s.Generation
}

// Failing returns the verb and the condition of a failure; the verb of discovery is empty. It reports
// false if nothing fails. A failure of discovery comes first, since no request is sent then. Next is
// the request that the cache waits for: a list until there is a version to watch from. If both requests
// fail, Since and Attempts cover both.
func (s *Snapshot) Failing() (verb string, c Condition, failing bool) {
	if s.Discovery.Err != nil {
		return "", s.Discovery, true
	}
	verb, c = source.VerbList, s.List
	if other := s.Watch; other.Err != nil {
		if c.Err == nil || s.Source.Complete && s.Source.Version != "" {
			verb, c, other = source.VerbWatch, s.Watch, s.List
		}
		if other.Err != nil {
			c.Attempts += other.Attempts
			if other.Since.Before(c.Since) {
				c.Since = other.Since
			}
		}
	}
	if c.Err == nil {
		return "", Condition{}, false
	}
	return verb, c, true
}

// fails reports whether discovery or requests fail.
func (s *record) fails() bool {
	return s.Discovery.Err != nil || s.List.Err != nil || s.Watch.Err != nil
}

// NotSynced returns the failure or, if nothing fails, that the list is not complete. NotRunning is that of Status.
func (s *Snapshot) NotSynced(notRunning status.Reason) status.NotSyncedError {
	e := status.NotSyncedError{GVR: s.GVR, Namespace: s.Namespace, Reason: s.starting(), Since: s.startingSince(), At: s.At}
	if verb, c, failing := s.Failing(); failing {
		e.Verb, e.Reason, e.Since, e.Attempts, e.Err = verb, c.Reason, c.Since, c.Attempts, c.Err
		e.Namespace = namespaceOf(c.Err, e.Namespace)
	}
	e.Reason = cmp.Or(notRunning, e.Reason)
	if e.Reason == status.ReasonStopped {
		e.Since = time.Time{}
	}
	return e
}

// starting returns the reason of an informer that is not synced although nothing fails.
func (s *Snapshot) starting() status.Reason {
	if s.Source.Queued.IsZero() {
		return status.ReasonSyncing
	}
	return status.ReasonQueued
}

// startingSince returns the time since when the informer can list, or waits for its turn.
func (s *Snapshot) startingSince() time.Time {
	if !s.Source.Queued.IsZero() {
		return s.Source.Queued
	}
	if s.ServedSince.After(s.Begun) {
		return s.ServedSince
	}
	return s.Begun
}

// Lasting reports whether the informer will not sync unless a person or a program changes something.
// A failed watch is not lasting, since a LIST follows. A NotFound for a type that discovery lists is
// not lasting, since requests for a new type get it for some seconds.
func (s *Snapshot) Lasting() bool {
	verb, c, failing := s.Failing()
	switch {
	case !failing, verb == source.VerbWatch:
		return false
	case c.Reason == status.ReasonNotFound && verb != "" && s.Serving == source.Served:
		return false
	}
	return c.Reason.Lasting()
}

// shardOf returns the status of the part of a source.
func shardOf(shard *source.ShardState) *status.Shard {
	held := shard.Slots.Intersect(shard.View)
	loading := shard.View.Minus(held)
	s := &status.Shard{Held: held.String(), Slots: held.Len(), Loading: loading.String(), Waiting: loading.Len(), Moved: shard.Moved, ByClient: shard.ByClient}
	if shard.Group != nil {
		inGroup(s, shard.Group())
	}
	return s
}

// inGroup sets the fields of s that a group has.
func inGroup(s *status.Shard, group sharding.Status) {
	s.Member, s.Pending, s.Awaited, s.Reason = group.Identity, group.Pending.String(), group.Pending.Len(), string(group.Reason)
	s.LettingGo, s.WaitsFor = group.LettingGo.String(), group.WaitsFor
	if group.Err != nil {
		s.Err = group.Err.Error()
	}
	for _, other := range group.Members {
		if !other.Expired && !other.Claims.Intersect(group.Pending).Empty() {
			s.Owners = append(s.Owners, other.Identity)
		}
	}
}

// Status returns the fields of the informer's status that the snapshot has. NotRunning is why the
// informer does not run; empty means that it runs.
func (s *Snapshot) Status(notRunning status.Reason) status.Informer {
	i := status.Informer{
		GVR: s.GVR, Resource: s.Resource(), Namespace: s.Namespace, Listed: s.Listed,
		Evidence: s.Evidence, Generation: s.Generation, Flushing: s.Flushing(),
		Objects: s.Source.Objects, CacheBytes: s.Source.Bytes, ResourceVersion: s.Source.Version, Traffic: s.Traffic, PollPeriod: s.Source.Polling,
	}
	if shard := s.Source.Shard; shard != nil {
		i.Shard = shardOf(shard)
	}
	i.Reason = s.reason(notRunning)
	i.State = s.state(i.Reason)
	verb, failing, fails := s.Failing()
	switch left := s.LeftOut; {
	case i.State == status.StateStopped: // so has its failure
	case i.State == status.StateSynced:
		i.Since = s.SyncedSince
	case fails:
		i.Since = failing.Since
	case !s.Synced():
		i.Since = s.startingSince()
	case left.Count > 0 && i.Reason == left.Reason:
		i.Since, i.Err, i.FailedObjects, i.LastFailed = left.Since, left.Err, uint64(left.Count), left.Key //nolint:gosec // not negative
	}
	if !fails {
		return i
	}
	i.Verb, i.Err, i.Attempts = verb, failing.Err, failing.Attempts
	if s.isStale(verb) {
		i.StaleSince = failing.Since
	}
	if verb != "" && i.State != status.StateStopped && s.Source.Due.After(s.At) {
		i.NextRetry = s.Source.Due
	}
	return i
}

// isStale reports whether the cache may be out of date, because a request with that verb fails, or discovery if it is empty.
func (s *Snapshot) isStale(verb string) bool {
	return s.Listed && (s.Serving != source.Gone || s.Source.Objects > 0) && (!s.disputed || verb != "")
}

// reason returns why an informer is not synced or is degraded; empty means that there is no problem.
func (s *Snapshot) reason(notRunning status.Reason) status.Reason {
	_, failing, fails := s.Failing()
	switch {
	case notRunning != "":
		return notRunning
	case fails:
		return failing.Reason
	case !s.Synced():
		return s.starting()
	case s.LeftOut.Count > 0:
		return s.LeftOut.Reason
	}
	return ""
}

// state returns the state of an informer with reason. An empty reason means that there is no problem.
func (s *Snapshot) state(reason status.Reason) status.State {
	served := s.Serving == source.Served
	switch {
	case reason == status.ReasonStopped:
		return status.StateStopped
	case reason == status.ReasonNotStarted:
		return status.StateUnknown
	case s.Serving == source.Gone:
		return status.StateNotServed
	case reason == "":
		return status.StateSynced
	case served && (reason == status.ReasonSyncing || reason == status.ReasonQueued):
		return status.StateStarting
	case served && !s.Listed && (reason == status.ReasonNotFound || reason == status.ReasonThrottled):
		return status.StateStarting // requests for a new type get these responses for some seconds
	case served, s.Listed, reason == status.ReasonVerbNotSupported: // the type is served
		return status.StateDegraded
	case reason == status.ReasonSyncing, s.inconclusive():
		return status.StateUnknown
	}
	return status.StateNotServed
}

// inconclusive reports whether discovery can't tell whether the type is served, for example because the
// server rejects the user, or which type it is.
func (s *Snapshot) inconclusive() bool {
	_, failing, _ := s.Failing()
	return errors.Is(failing.Err, discovery.ErrInconclusive) || errors.Is(failing.Err, discovery.ErrAmbiguous)
}

// sourceType returns the state of the type for the source.
func (s *record) sourceType() source.Type {
	t := source.Type{Serving: s.Serving, GVR: s.GVR, Namespaced: true, Generation: s.Generation}
	if res := s.resource; res != nil {
		t.GVR, t.Kind, t.Namespaced = res.GVR, res.GVK.Kind, res.Namespaced
		t.Unwatchable = len(res.Verbs) > 0 && !res.Supports("watch")
		t.Aggregated = res.Backing == discovery.BackingAggregated
		t.UID, t.Since = string(res.CRDUID), s.ServedSince
		t.Unsettled = !s.unsettled.IsZero()
	}
	return t
}

// Resource returns the type as it was last served. If it was never served, only its GVR is set.
func (s *record) Resource() discovery.Resource {
	if s.resource == nil {
		return discovery.Resource{GVR: s.GVR}
	}
	return *s.resource
}

// uid returns the UID of the CRD that served the type last, or "" if it is not known.
func (s *record) uid() types.UID {
	if s.resource == nil {
		return ""
	}
	return s.resource.CRDUID
}

// servedElsewhere reports whether something else than a CRD served the type last.
func (s *record) servedElsewhere() bool {
	return s.resource != nil && s.resource.Backing != discovery.BackingUnknown && s.resource.Backing != discovery.BackingCRD
}

// everServed reports whether the type has been served.
func (s *record) everServed() bool { return !s.ServedSince.IsZero() }

// movedTo reports whether res is served by another kind of server or by another service, as far as both are known or an event says so.
func (s *record) movedTo(res discovery.Resource) bool {
	old := s.resource
	return old != nil && (s.relocated || old.Backing != res.Backing && old.Backing != discovery.BackingUnknown && res.Backing != discovery.BackingUnknown ||
		old.Service != "" && res.Service != "" && old.Service != res.Service)
}

// mayHaveMovedTo reports whether another server serves res, and it was not known what served the type before. If that was a CRD, the watches
// of its objects go on: the API server does not end them. Lists tell, and the generation stays: the type may be the same.
func (s *record) mayHaveMovedTo(res discovery.Resource) bool {
	old := s.resource
	return old != nil && res.Backing == discovery.BackingAggregated && (old.Backing == discovery.BackingUnknown || old.Backing == discovery.BackingAggregated && old.Service == "" && res.Service != "")
}

// rescopedTo reports whether res has another scope than the type had.
func (s *record) rescopedTo(res discovery.Resource) bool {
	old := s.resource
	return old != nil && old.GVR.GroupResource() == res.GVR.GroupResource() && old.Namespaced != res.Namespaced
}

// decide records whether discovery can tell what serves res.
func (s *Snapshot) decide(res discovery.Resource) {
	switch {
	case res.Backing != discovery.BackingUnknown:
		s.undecided = time.Time{}
	case s.undecided.IsZero(), s.Serving != source.Served: // it may be another type now
		s.undecided = s.At
	}
}

// settleFor is how long API servers may send requests for a type to the server that served it before, or serve it with its earlier scope: they
// then respond with a list without objects. It is longer than they need to notice a change of an APIService or a CRD.
const settleFor = 15 * time.Second

// settles returns when to ask again what serves the type: after a move or a change of the scope, and once after discovery could not tell. If it is
// zero, an event is awaited.
func (s *record) settles(now time.Time) (at time.Time) {
	if !s.unsettled.IsZero() {
		at = s.unsettled.Add(settleFor)
	}
	if decided := s.undecided.Add(settleFor); now.Before(decided) && (at.IsZero() || decided.Before(at)) {
		at = decided
	}
	return at
}

// replacedBy reports whether res is another type with the same name: the old type was gone in
// between, or res has another CRD, another server or another scope.
func (s *record) replacedBy(res discovery.Resource) bool {
	old := s.resource
	switch {
	case old == nil:
		return false
	case old.GVR.GroupResource() != res.GVR.GroupResource():
		return true
	case s.Serving == source.Gone, s.Evidence.Kind == discovery.CRDDeleted, s.rescopedTo(res), s.movedTo(res):
		return true
	}
	return old.CRDUID != "" && res.CRDUID != "" && old.CRDUID != res.CRDUID
}

// completed returns res with the earlier values of fields that are not known at the moment. It
// removes the UID if the type is not served by a CRD.
func (s *record) completed(res discovery.Resource) *discovery.Resource {
	old := s.Resource()
	if res.Backing == discovery.BackingUnknown {
		res.Backing = old.Backing
	}
	if res.Service == "" && res.Backing == discovery.BackingAggregated {
		res.Service = old.Service
	}
	if res.CRDUID == "" && s.Evidence.Kind == "" {
		res.CRDUID = old.CRDUID
	}
	if res.Backing != discovery.BackingUnknown && res.Backing != discovery.BackingCRD {
		res.CRDUID = ""
	}
	return &res
}
