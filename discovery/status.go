package discovery

import (
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
)

// Status says where a resolver's answers come from.
type Status struct {
	// Running says whether Run runs; otherwise each question goes to the server, and
	// of the other fields only the counts are set.
	Running bool
	// CRDs and APIServices are the watches.
	CRDs, APIServices SourceStatus
	// Documents are the discovery documents, which are asked for.
	Documents SourceStatus
	// Types is how many group resources are known to be served.
	Types int
	// Requests is how many requests have been sent so far, watches included.
	Requests uint64
	// Answers is how questions have been answered so far.
	Answers Answers
}

// SourceStatus is the state of one source of what is known.
type SourceStatus struct {
	State SourceState
	// Since is when the source came into that state.
	Since time.Time
	// Verb is what was tried, list or watch, where it is not allowed or fails.
	Verb string
	// Err is why, then.
	Err error
}

// SourceState is how one source of a running resolver does.
type SourceState string

// How a source can do.
const (
	// SourceConnecting: it has not said anything yet.
	SourceConnecting SourceState = "Connecting"
	// SourceCurrent: a watch is open; or, for documents, the last answer was whole.
	SourceCurrent SourceState = "Watching"
	// SourceAbsent: the server has no such objects, and so there are none.
	SourceAbsent SourceState = "Absent"
	// SourceForbidden: the user may not; the documents are polled instead.
	SourceForbidden SourceState = "Forbidden"
	// SourceFailing: it is tried again and again; what was known stands.
	SourceFailing SourceState = "Failing"
)

// Status returns where answers come from at present. It does not wait for anything.
func (r *Resolver) Status() Status {
	s := Status{Requests: r.server.requests(), Answers: r.answers.soFar()}
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.live; l != nil {
		s.Running, s.CRDs, s.APIServices, s.Documents = true, l.crds, l.apis, l.docs
		if r.last != nil {
			s.Types = r.last.types
		}
	}
	return s
}

// certain reports whether what nobody has told of does not exist.
func (l *live) certain() bool {
	told := func(s SourceStatus) bool {
		return s.State == SourceCurrent || s.State == SourceAbsent || s.State == SourceForbidden
	}
	return told(l.crds) && told(l.apis) && l.docs.State == SourceCurrent
}

// polls reports whether a watch of l is missing.
func (r *Resolver) polls(l *live) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return l.crds.State != SourceCurrent && l.crds.State != SourceAbsent ||
		l.apis.State != SourceCurrent && l.apis.State != SourceAbsent
}

// Answers is how often questions about single resources have been answered, by outcome: those
// of [Resolver.Resolve], of the methods like it and of the RESTMapper. What can't be the name of any is no question. The
// counts only grow.
type Answers struct {
	// Served: the resource is served.
	Served uint64
	// NotServed: it is not; see [ErrNotServed].
	NotServed uint64
	// Inconclusive: the server could not be asked, or the caller did not wait; see
	// [ErrInconclusive].
	Inconclusive uint64
	// Ambiguous: the name fits several resources; see [ErrAmbiguous].
	Ambiguous uint64
}

// answers counts them. What is known is counted, too, so that it costs one addition, and no
// line of memory that others read.
type answers struct {
	_                                          [64]byte
	served, notServed, inconclusive, ambiguous atomic.Uint64
	_                                          [32]byte
}

// count counts an answer with err.
func (a *answers) count(err error) {
	switch {
	case err == nil:
		a.served.Add(1)
	case errors.Is(err, ErrNotServed):
		a.notServed.Add(1)
	case errors.Is(err, ErrInconclusive):
		a.inconclusive.Add(1)
	case meta.IsAmbiguousError(err): // client-go's mapper has one of its own
		a.ambiguous.Add(1)
	}
}

// counted counts the answer that it returns.
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
