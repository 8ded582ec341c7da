package discovery

import (
	"errors"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
)

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
