package discovery

import (
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
)

// Status is the state of a resolver.
type Status struct {
	// Running reports whether Run runs. If not, only Requests and Answers are set.
	Running bool
	// Narrow says that the run is narrow: it requests only the few types that a factory's informers have been
	// on; see [Resolver.Run]. CRDs, APIServices, Documents and Types are then about these types. CRDs
	// and APIServices stay SourceConnecting if all types are in the core group.
	Narrow bool
	// CRDs and APIServices are the watches.
	CRDs, APIServices SourceStatus
	// Documents are the discovery documents.
	Documents SourceStatus
	// Types is the number of served types.
	Types int
	// Requests is the number of requests so far, including watches.
	Requests uint64
	// Answers are the numbers of answers so far.
	Answers Answers
}

// SourceStatus is the status of one source.
type SourceStatus struct {
	State SourceState
	// Since is the time of the last change of State.
	Since time.Time
	// Verb is the verb of the request that is forbidden or fails, list or watch.
	Verb string
	// Err is the error of that request.
	Err error
}

// SourceState is the state of one source of a running resolver.
type SourceState string

// The states of a source.
const (
	// SourceConnecting: there is no response yet.
	SourceConnecting SourceState = "Connecting"
	// SourceCurrent: the watch is open, or, for documents, the last response was complete.
	SourceCurrent SourceState = "Watching"
	// SourceAbsent: the server responds NotFound, its documents do not list the resource, and no object was known: there are no
	// objects.
	SourceAbsent SourceState = "Absent"
	// SourceForbidden: the user is not allowed to list or watch. The resolver polls the documents.
	SourceForbidden SourceState = "Forbidden"
	// SourceFailing: requests fail, and are repeated. The last known objects stay.
	SourceFailing SourceState = "Failing"
)

// Status returns the status of the resolver. It does not wait.
func (r *Resolver) Status() Status {
	s := Status{Requests: r.server.requests(), Answers: r.answers.soFar()}
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.live; l != nil {
		s.Running, s.CRDs, s.APIServices, s.Documents = true, l.crds, l.apis, l.docs
		s.Narrow = l.narrow != nil
		if r.last != nil {
			s.Types = r.last.types
		}
	}
	return s
}

// conclusive reports whether an object or a resource that no source has does not exist.
func (l *live) conclusive() bool {
	decides := func(s SourceStatus) bool {
		return s.State == SourceCurrent || s.State == SourceAbsent || s.State == SourceForbidden
	}
	return decides(l.crds) && decides(l.apis) && l.docs.State == SourceCurrent
}

// polls reports whether one of the watches of l is not open. A server without CRDs has none to watch, but the response that says so
// may be wrong for a time. Many servers have no APIServices.
func (r *Resolver) polls(l *live) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return l.pollsLocked()
}

// pollsLocked is polls. Caller holds the resolver's lock.
func (l *live) pollsLocked() bool {
	return l.crds.State != SourceCurrent || l.apis.State != SourceCurrent && l.apis.State != SourceAbsent
}

// Answers are the numbers of answers to questions about single resources, by outcome: the answers of
// [Resolver.Resolve], of the similar methods and of the RESTMapper. Invalid references do not count.
type Answers struct {
	// Served: the resource is served.
	Served uint64
	// NotServed: the resource is not served; see [ErrNotServed].
	NotServed uint64
	// Inconclusive: the server did not respond, or the context of the caller ended; see
	// [ErrInconclusive].
	Inconclusive uint64
	// Ambiguous: the name matches several resources; see [ErrAmbiguous].
	Ambiguous uint64
}

// answers counts the answers. The padding keeps the counters out of the cache lines of other fields, since
// answers from memory are counted, too.
type answers struct {
	_                                          [64]byte
	served, notServed, inconclusive, ambiguous atomic.Uint64
	_                                          [32]byte
}

// count counts an answer whose error is err.
func (a *answers) count(err error) {
	switch {
	case err == nil:
		a.served.Add(1)
	case errors.Is(err, ErrNotServed):
		a.notServed.Add(1)
	case errors.Is(err, ErrInconclusive):
		a.inconclusive.Add(1)
	case meta.IsAmbiguousError(err): // the error of client-go's mapper
		a.ambiguous.Add(1)
	}
}

// counted counts an answer, and returns it.
func (a *answers) counted(res Resource, err error) (Resource, error) {
	a.count(err)
	return res, err
}

func (a *answers) soFar() Answers {
	return Answers{
		Served: a.served.Load(), NotServed: a.notServed.Load(),
		Inconclusive: a.inconclusive.Load(), Ambiguous: a.ambiguous.Load(),
	}
}
