package typestate

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

// Snapshot is all that is known of a type at one moment. It is a value: it does not change.
type Snapshot struct {
	// At is when the snapshot was taken.
	At time.Time
	// GVR is the resource as it was asked for.
	GVR schema.GroupVersionResource
	// Namespace is where requests go; empty means everywhere.
	Namespace string
	// resource is the type as it was last served, and not written to; nil if it never was.
	resource *discovery.Resource
	// Serving says what is to be done about the type: wait, request, probe, or delete.
	Serving source.Serving
	// Evidence says why the type is taken to be gone; its Kind is empty if it is not. Last is
	// that of the generation before this one.
	Evidence, Last discovery.Evidence
	// Generation counts the types that were served one after the other under this name.
	Generation int
	// Begun is when the informer was started, ServedSince since when its type is served, and
	// SyncedSince since when nothing fails and the source has all. Each is zero if that is not so.
	Begun, ServedSince, SyncedSince time.Time
	// Discovery, List and Watch are what fails: discovery's answer and the two requests.
	Discovery, List, Watch Condition
	// Rejected are the objects that are not in the cache.
	Rejected Rejected
	// Given is what the source has passed on, and Listed whether the informer has synced once.
	Given  source.State
	Listed bool
	// Traffic counts requests and what they brought.
	Traffic status.Traffic

	denied time.Time // since when discovery denies what was served, without evidence
	doubt  time.Time // when a request was last answered NotFound
	expiry time.Time // when a watch last expired
	stored int       // the number of the last first list that is known to be in the store
}

// Condition is something that fails until its opposite is observed.
type Condition struct {
	// Err is the last failure; nil if nothing fails.
	Err error
	// Reason is what Err stands for.
	Reason status.Reason
	// Since is when it failed first, and Attempts how often it has failed since.
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

// Synced reports whether the cache has all that was listed of the type as it is now: a whole
// list of this generation is in the store, and nothing says that the type is another or gone.
// It is the only place where that is decided.
func (s *Snapshot) Synced() bool {
	return s.Listed && s.given() && s.stored >= s.Given.FirstLists
}

// Ended reports whether the type is known to have ended by that evidence, whatever serves its
// name now.
func (s *Snapshot) Ended(end discovery.Evidence) bool {
	known := s.uid()
	return s.Serving == source.Gone || s.Last.Kind == discovery.CRDDeleted && s.Last.CRDUID == end.CRDUID && !s.Last.At.Before(end.At) ||
		end.CRDUID != "" && known != "" && end.CRDUID != known
}

// given reports whether the reflector has been given a whole list of the type as it is now.
func (s *Snapshot) given() bool {
	return s.Serving != source.Gone && s.Evidence.Kind != discovery.CRDDeleted &&
		s.Given.Complete && s.Given.Generation == s.Generation
}

// AwaitsStore returns the number of a first list that the reflector has been given and that is
// not known to be in the store; zero if there is none. HasSynced says so of the very first.
func (s *Snapshot) AwaitsStore() int {
	if s.given() && s.Given.FirstLists > max(1, s.stored) {
		return s.Given.FirstLists
	}
	return 0
}

// Flushing reports whether the cache still has objects of an earlier generation.
func (s *Snapshot) Flushing() bool {
	return s.Given.Objects > 0 && s.Given.Generation != s.Generation
}

// Failing returns the verb and the condition of what fails; the verb of discovery is empty. It
// reports false if nothing fails. Discovery comes first: what it denies is not requested. Then
// comes the request that the cache waits for, which is a list until there is a version to watch
// from. If both requests fail, Since and Attempts are those of both.
func (s *Snapshot) Failing() (verb string, c Condition, failing bool) {
	if s.Discovery.Err != nil {
		return "", s.Discovery, true
	}
	verb, c = source.VerbList, s.List
	if other := s.Watch; other.Err != nil {
		if c.Err == nil || s.Given.Complete && s.Given.Version != "" {
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

// NotSynced describes what fails, or that the list is under way if nothing does.
func (s *Snapshot) NotSynced() status.NotSyncedError {
	e := status.NotSyncedError{GVR: s.GVR, Namespace: s.Namespace, Reason: status.ReasonSyncing, Since: s.startingSince(), At: s.At}
	if verb, c, failing := s.Failing(); failing {
		e.Verb, e.Reason, e.Since, e.Attempts, e.Err = verb, c.Reason, c.Since, c.Attempts, c.Err
	}
	return e
}

// startingSince returns since when the informer could have listed.
func (s *Snapshot) startingSince() time.Time {
	if s.ServedSince.After(s.Begun) {
		return s.ServedSince
	}
	return s.Begun
}

// Lasting reports whether the informer is not going to sync unless a person or a program
// changes something. A refused watch is no such reason: a LIST follows. That a type is not
// found which discovery serves is none either: a new type answers so for some seconds.
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

// Status returns the status of the informer, as far as the snapshot has it. NotRunning says why the
// informer does not run; empty means that it runs.
func (s *Snapshot) Status(notRunning status.Reason) status.Informer {
	i := status.Informer{
		GVR: s.GVR, Resource: s.Resource(), Namespace: s.Namespace, Listed: s.Listed,
		Evidence: s.Evidence, Generation: s.Generation, Flushing: s.Flushing(),
		Objects: s.Given.Objects, ResourceVersion: s.Given.Version, Traffic: s.Traffic,
	}
	i.Reason = s.reason(notRunning)
	i.State = s.state(i.Reason)
	verb, failing, fails := s.Failing()
	switch r := s.Rejected; {
	case i.State == status.StateSynced:
		i.Since = s.SyncedSince
	case fails:
		i.Since = failing.Since
	case !s.Synced():
		i.Since = s.startingSince()
	case r.Count > 0 && i.Reason == r.Reason:
		i.Since, i.Err, i.FailedObjects, i.LastFailed = r.Since, r.Err, uint64(r.Count), r.Key //nolint:gosec // not negative
	}
	if !fails {
		return i
	}
	i.Verb, i.Err, i.Attempts = verb, failing.Err, failing.Attempts
	if s.Listed && (s.Serving != source.Gone || s.Given.Objects > 0) {
		i.StaleSince = failing.Since
	}
	if verb != "" && s.Given.Due.After(s.At) {
		i.NextRetry = s.Given.Due
	}
	return i
}

// reason returns why an informer is not synced or is degraded; empty means that nothing is wrong.
func (s *Snapshot) reason(notRunning status.Reason) status.Reason {
	_, failing, fails := s.Failing()
	switch {
	case notRunning != "":
		return notRunning
	case fails:
		return failing.Reason
	case !s.Synced():
		return status.ReasonSyncing
	case s.Rejected.Count > 0:
		return s.Rejected.Reason
	}
	return ""
}

// state returns the state of an informer with reason; empty means that nothing is wrong.
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
	case reason == status.ReasonSyncing && served:
		return status.StateStarting
	case served && !s.Listed && (reason == status.ReasonNotFound || reason == status.ReasonThrottled):
		return status.StateStarting // a server that has just begun to serve a type answers so for some seconds
	case served, s.Listed:
		return status.StateDegraded
	case reason == status.ReasonSyncing, reason == status.ReasonDiscoveryFailed:
		return status.StateUnknown
	}
	return status.StateNotServed
}

// sourceType is what the source has to know.
func (s *Snapshot) sourceType() source.Type {
	t := source.Type{Serving: s.Serving, GVR: s.GVR, Namespaced: true, Generation: s.Generation}
	if res := s.resource; res != nil {
		t.GVR, t.Kind, t.Namespaced = res.GVR, res.GVK.Kind, res.Namespaced
		t.Aggregated = res.Backing == discovery.BackingAggregated
		t.UID = string(res.CRDUID)
	}
	return t
}

// Resource returns the type as it was last served; only its GVR is set if it never was.
func (s *Snapshot) Resource() discovery.Resource {
	if s.resource == nil {
		return discovery.Resource{GVR: s.GVR}
	}
	return *s.resource
}

// uid returns the UID of the CRD that the type was last served from, if that is known.
func (s *Snapshot) uid() types.UID {
	if s.resource == nil {
		return ""
	}
	return s.resource.CRDUID
}

// known reports whether the type has been served.
func (s *Snapshot) known() bool { return !s.ServedSince.IsZero() }

// replacedBy reports whether res is another type than the one that was served before, under
// the same name: that was gone in between, its CRD is another one, another server is behind it,
// or its objects have moved into namespaces or out of them.
func (s *Snapshot) replacedBy(res discovery.Resource) bool {
	old := s.resource
	switch {
	case old == nil:
		return false
	case s.Serving == source.Gone, s.Evidence.Kind == discovery.CRDDeleted, old.Namespaced != res.Namespaced:
		return true
	case old.Backing != res.Backing && old.Backing != discovery.BackingUnknown && res.Backing != discovery.BackingUnknown:
		return true
	}
	return old.CRDUID != "" && res.CRDUID != "" && old.CRDUID != res.CRDUID
}

// completed returns res with what was known of the same type and is not known at the moment. A
// UID counts only while a CRD may be what serves the type.
func (s *Snapshot) completed(res discovery.Resource) *discovery.Resource {
	old := s.Resource()
	if res.Backing == discovery.BackingUnknown {
		res.Backing = old.Backing
	}
	if res.CRDUID == "" && s.Evidence.Kind == "" {
		res.CRDUID = old.CRDUID
	}
	if res.Backing != discovery.BackingUnknown && res.Backing != discovery.BackingCRD {
		res.CRDUID = ""
	}
	return &res
}
