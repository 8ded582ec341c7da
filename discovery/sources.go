package discovery

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

// source is a collection that a run watches, and what it does with what it hears. The
// functions are called with the resolver's lock held. They report whether anything
// that is known differs, and whether documents are to be asked for.
type source[T slim] struct {
	path   string
	status *SourceStatus
	all    func(items []T, now time.Time) (differs, ask bool)
	one    func(kind watch.EventType, item T, now time.Time) (differs, ask bool)
	// counts says whether what was heard is kept up to date, and is to be believed.
	counts func(bool) (differs bool)
}

func (l *live) crdSource() source[*crd] {
	return source[*crd]{
		path:   crdPath,
		status: &l.crds,
		all: func(items []*crd, now time.Time) (differs, ask bool) {
			l.known.learnCRDs(items, now)
			return true, l.known.ghosts
		},
		one: func(kind watch.EventType, item *crd, now time.Time) (differs, ask bool) {
			if kind == watch.Deleted {
				gone := l.known.forgetCRD(item, now)
				return gone, gone
			}
			return l.known.learnCRD(item), false
		},
		counts: func(yes bool) (differs bool) {
			differs = l.known.crdsRule != yes
			l.known.crdsRule = yes
			return differs
		},
	}
}

func (l *live) apiSource() source[*apiService] {
	return source[*apiService]{
		path:   apiServicePath,
		status: &l.apis,
		all: func(items []*apiService, _ time.Time) (differs, ask bool) {
			return true, l.known.learnAPIs(items)
		},
		one: func(kind watch.EventType, item *apiService, _ time.Time) (differs, ask bool) {
			if kind == watch.Deleted {
				return true, l.known.forgetAPI(item)
			}
			return l.known.learnAPI(item)
		},
		counts: func(yes bool) (differs bool) {
			differs = l.known.apisRule != yes
			l.known.apisRule = yes
			return differs
		},
	}
}

// feedOf returns the feed of a source. A list counts once the watch that goes on from
// it is open: where only that is forbidden, the list would be out of date at once.
func feedOf[T slim](l *live, endpoint *endpoint, s source[T]) *feed[T] {
	said := sync.OnceFunc(func() { l.heard <- struct{}{} })
	var listed func(now time.Time) (differs, ask bool)
	follows := func() bool { return s.status.State == SourceCurrent }
	return &feed[T]{
		endpoint: endpoint,
		path:     s.path,
		pace:     l.resolver.options.feedPace,
		list: func(items []T) {
			l.resolver.update(l, func(now time.Time) (differs, ask bool) {
				if follows() {
					return s.all(items, now)
				}
				listed = func(now time.Time) (differs, ask bool) { return s.all(items, now) }
				return false, false
			})
		},
		event: func(kind watch.EventType, item T) {
			l.resolver.update(l, func(now time.Time) (differs, ask bool) { return s.one(kind, item, now) })
		},
		state: func(state feedState) {
			var changed bool
			l.resolver.update(l, func(now time.Time) (differs, ask bool) {
				changed = s.status.become(SourceState(state.phase), state.verb, state.err, now)
				switch state.phase {
				case feedWatching, feedAbsent:
					differs = s.counts(true)
					if listed != nil {
						differs, ask = listed(now)
						listed = nil
					}
				case feedForbidden:
					differs, ask = s.counts(false), true
				}
				return differs, ask
			})
			if changed {
				l.tell(s.path, state)
			}
			if state.phase != feedConnecting {
				said()
			}
		},
	}
}

// become changes the state, and reports whether it is another one.
func (s *SourceStatus) become(state SourceState, verb string, err error, now time.Time) (changed bool) {
	changed = s.State != state
	s.State, s.Verb, s.Err = state, verb, err
	if changed {
		s.Since = now
	}
	return changed
}

// tell logs a state that a feed has come into.
func (l *live) tell(path string, state feedState) {
	switch state.phase {
	case feedForbidden:
		l.logger.Info("Not allowed to watch; asking for discovery documents instead", "path", path, "verb", state.verb, "err", state.err)
	case feedFailing:
		l.logger.V(2).Info("The watch does not work; trying again", "path", path, "verb", state.verb, "err", state.err)
	default:
		l.logger.V(2).Info("The watch has changed its state", "path", path, "state", state.phase)
	}
}

// noteDocumentsLocked takes how a request for documents went, and reports whether that
// is worth a line. Caller holds the resolver's lock.
func (l *live) noteDocumentsLocked(doc *document, err error, now time.Time) (failing bool) {
	if err == nil && (doc.core.err != nil || doc.named.err != nil) {
		err = joined(doc.core.err, doc.named.err)
	}
	switch {
	case err == nil:
		l.docs.become(SourceCurrent, "", nil, now)
		return false
	case errors.Is(err, context.Canceled): // nobody wanted them any more
		return false
	}
	return l.docs.become(SourceFailing, "get", err, now)
}
