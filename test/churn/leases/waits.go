package leases

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/churn"
)

// This file has the waits that a lease and its handlers begin when they are acquired and added. Each ends with them.

// result is what a cache or a handler had when a wait returned.
type result struct {
	name     string // of the wait
	expected churn.Expected
	at       time.Time // after has was read
	has      map[string]churn.Observation
	without  []string // namespaces that the cache says it does not have
}

// informers returns the IDs of the informers of the factory.
func (s *subject) informers() map[uint64]bool {
	ids := map[uint64]bool{}
	for _, at := range s.factory.Status() {
		ids[at.ID] = true
	}
	return ids
}

// awaitSync waits in another goroutine until WaitForSync returns, or the lease ends: the lister must then have the expected objects. It is for the
// first lease on an informer. The informer of another lease, which has synced before, may be out of date.
func (s *subject) awaitSync(l *lease) {
	l.during(func(ctx context.Context) {
		if err := l.WaitForSync(ctx); err != nil {
			if ctx.Err() == nil {
				s.report(churn.Status, "%s: WaitForSync, whose context has not ended, returns %v", l.name, err)
			}
			return
		}
		has, err := l.read()
		if incomplete, is := errors.AsType[*status.IncompleteError](err); is && len(incomplete.Namespaces) == 0 {
			return
		}
		s.keep(result{l.name + ": WaitForSync has returned, and the lister", l.expected, time.Now(), has, lacking(err)})
	})
}

// Wrote implements [churn.Observer]: each lease on the type waits in another goroutine until its cache has the last written object, or the lease ends,
// unless it waits for another one. The namespaces of a set have several versions: a lease on them must refuse to wait.
func (s *subject) Wrote(_ context.Context, typ string) {
	i, _ := s.env.World.Incarnation(typ)
	for _, l := range s.all() {
		if l.view.Type != typ {
			continue
		}
		view, await := l.view, s.awaitVersion
		switch {
		case l.hasSeveralVersions(i):
			view, await = churn.View{Type: typ}, s.awaitNoVersion // also not for a namespace that is not in the set, or can't be listed
		case l.view.Sets != nil && !l.isOneList(i):
			continue
		}
		version, expected := s.env.World.Written(view)
		if version == "" || version == l.awaited || !l.awaits.CompareAndSwap(false, true) {
			continue
		}
		l.awaited = version
		l.during(func(ctx context.Context) {
			defer l.awaits.Store(false)
			await(ctx, l, version, expected)
		})
	}
}

// hasSeveralVersions reports whether the cache of the lease has several versions, if its type is i: one of each namespace of a set.
func (l *lease) hasSeveralVersions(i churn.Incarnation) bool {
	return l.view.Sets != nil && i.Namespaced
}

// isOneList reports whether the lease, which has a set of namespaces, says that it has listed the type i, which has no namespaces. Before that, it
// may not know this.
func (l *lease) isOneList(i churn.Incarnation) bool {
	res := l.Resource()
	return l.Status().State == status.StateSynced && res.CRDUID == i.UID && !res.Namespaced
}

// awaitNoVersion calls AtLeast for a lease whose cache has several versions: that must be an error.
func (s *subject) awaitNoVersion(ctx context.Context, l *lease, version string, expected churn.Expected) {
	if err := l.AtLeast(ctx, version); ctx.Err() == nil && !errors.Is(err, status.ErrSeveralVersions) {
		s.lose(lost{fmt.Sprintf("%s: AtLeast, for a set of namespaces, returns: %v", l.name, err), expected})
	}
}

// awaitVersion waits until the cache of a lease has a version: the lister must then have the expected object.
func (s *subject) awaitVersion(ctx context.Context, l *lease, version string, expected churn.Expected) {
	err := l.AtLeast(ctx, version)
	has, incomplete := l.read()
	at := time.Now()
	switch {
	case err == nil && incomplete == nil:
		s.keep(result{l.name + ": AtLeast has returned, and the lister", expected, at, has, nil})
	case err != nil && ctx.Err() == nil:
		s.lose(lost{fmt.Sprintf("%s: AtLeast: %v", l.name, err), expected})
	}
}

// lost is a result of AtLeast, which is wrong unless versions are those of something else since then.
type lost struct {
	text     string
	expected churn.Expected
}

// lose keeps a result until the world has all writes before it.
func (s *subject) lose(result lost) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = append(s.lost, result)
}

// lacking returns the namespaces that an error of a lister names.
func lacking(err error) (names []string) {
	if incomplete, is := errors.AsType[*status.IncompleteError](err); is {
		for _, ns := range incomplete.Namespaces {
			names = append(names, ns.Name)
		}
	}
	return names
}

// awaitHandler waits in another goroutine until the registration of a handler has synced, or until lease or handler end: the handler
// must then have got the objects that the lister had when it was added, and the expected ones of the lease.
func (s *subject) awaitHandler(l *lease, h *handler, had map[string]churn.Observation) {
	s.waits.Go(func() {
		checker := h.registration.HasSyncedChecker()
		early := h.registration.HasSynced() && !cache.IsDone(checker)
		if !early {
			select {
			case <-checker.Done():
			case <-l.ended:
			case <-h.ended:
			}
		}
		_, err := l.read()
		events, has := h.History(), h.Has()
		at := time.Now()
		now, _ := l.read()
		if closed(l.ended) || closed(h.ended) {
			return
		}
		if early {
			s.report(churn.Status, "%s: HasSynced returns true, and its checker is not done", h.View.Name)
		}
		s.keep(result{h.View.Name + ": HasSynced is true, and the handler", l.expected, at, has, lacking(err)})
		for key, o := range had {
			if now[key].UID == o.UID && !churn.Got(events, o.UID) {
				s.report(churn.Status, "%s: HasSynced is true, the lister had %v when the handler was added and has it now, and the handler has not got it", h.View.Name, o)
			}
		}
	})
}

// inBoth returns the objects that are in one state in both reads of a lister.
func inBoth(one, other map[string]churn.Observation) map[string]churn.Observation {
	both := map[string]churn.Observation{}
	for key, o := range one {
		if other[key] == o {
			both[key] = o
		}
	}
	return both
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// keep keeps a result until the world has all writes before it.
func (s *subject) keep(r result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.results = append(s.results, r)
}

// judge compares the results since the last call with the world, which must have all writes.
func (s *subject) judge() {
	s.mu.Lock()
	results, all := s.results, s.lost
	s.results, s.lost = nil, nil
	s.mu.Unlock()
	for _, l := range all {
		if !s.env.World.Replaced(l.expected) {
			s.report(churn.Status, "%s", l.text)
		}
	}
	for _, r := range results {
		for _, object := range s.env.World.Missing(r.expected, r.at, r.has, r.without...) {
			s.report(churn.Status, "%s does not have %s", r.name, object)
		}
	}
}

// awaitWaits waits until the waits of leases and handlers, which have ended, have returned.
func (s *subject) awaitWaits() {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		s.waits.Wait()
	}()
	select {
	case <-returned:
	case <-time.After(20 * time.Second):
		s.report(churn.Released, "WaitForSync of a lease that has been released has not returned after 20 s")
	}
}
