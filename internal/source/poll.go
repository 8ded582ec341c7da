package source

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// watchAgain is the time after which a watch is tried again, if the server has refused one and discovery does not
// say that the type can't be watched.
const watchAgain = time.Hour

// polling is what the requests of a gate have shown about watches of its type. If the type can be listed and
// not watched, and Config.Polling is set, lists with a pause between them replace the watch, and their
// differences are the events.
type polling struct {
	refusal atomic.Pointer[refusal] // nil: no watch was refused
}

// refusal is the refusal of a watch by the server.
type refusal struct {
	generation int
	until      time.Time
}

// refused records that the server has refused a watch of t with err, and reports whether that is so.
func (p *polling) refused(t Type, err error) bool {
	if !apierrors.IsMethodNotSupported(err) {
		return false
	}
	p.refusal.Store(&refusal{t.Generation, time.Now().Add(watchAgain)})
	return true
}

// polls reports whether lists replace watches of t.
func (g *gate) polls(t Type) bool {
	if g.cfg.Polling <= 0 {
		return false
	}
	r := g.polling.refusal.Load()
	return t.Unwatchable || r != nil && r.generation == t.Generation && time.Now().Before(r.until)
}

// awaitPoll waits until it is time for the next list of t. It reports false if changed closes before, or if ctx ends.
func (s *resumableWatch) awaitPoll(ctx context.Context, t Type, changed <-chan struct{}) bool {
	if s.nextPoll.IsZero() {
		s.schedule()
	}
	if s.isReviewed() {
		return ctx.Err() == nil
	}
	pause := time.Until(s.nextPoll)
	if pause <= 0 {
		return !isClosed(changed) && ctx.Err() == nil
	}
	retry, asked := s.retries.Next(), s.asked.Next()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-retry:
		s.retryRefused(t, asked)
	case <-s.reviewed:
	case <-changed:
		return false
	case <-ctx.Done():
		return false
	}
	s.pace.begins(s.gate)
	return ctx.Err() == nil
}

// polled records that the reflector has a list of t. After a list that replaces a watch, the next failure is the first.
func (s *resumableWatch) polled(t Type) {
	if s.polls(t) {
		s.pace.reset()
	}
	s.schedule()
}

// schedule sets the time of the next list in poll mode, with 10 % jitter.
func (s *resumableWatch) schedule() {
	s.nextPoll = time.Now().Add(wait.Jitter(s.cfg.Polling-s.cfg.Polling/10, 0.2))
}

// poll lists when it is time to do so, and reports whether to continue.
func (s *resumableWatch) poll(ctx context.Context, t Type, changed <-chan struct{}) (goOn bool) {
	if !s.awaitPoll(ctx, t, changed) {
		return ctx.Err() == nil
	}
	return s.relist(ctx, t, changed)
}

// seed is the seed of content hashes, which are only compared within one process.
var seed = maphash.MakeSeed()

// identityIn returns the identity of an object in a list. In poll mode, an object without a version has the hash of
// its content instead, with which equal states are recognized.
func (g *gate) identityIn(obj metav1.Object) identity {
	id := identityOf(obj)
	if g.cfg.Polling <= 0 || !versionless(id.version) {
		return id
	}
	if text, err := json.Marshal(obj); err == nil {
		id.hash = maphash.Bytes(seed, text)
	}
	return id
}

// isKnownState reports whether id says which state of the object it is of.
func (i identity) isKnownState() bool { return !versionless(i.version) || i.hash != 0 }
