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
	path, kind string
	status     *SourceStatus
	// rule says whether what was heard decides, and current whether it is followed at
	// this moment.
	rule, current *bool
	all           func(items []T, now time.Time) (differs, ask bool)
	one           func(kind watch.EventType, item T, now time.Time) (differs, ask bool)
}

func (l *live) crdSource() source[*crd] {
	k := &l.known
	return source[*crd]{
		path: crdPath, kind: "CustomResourceDefinitionList",
		status: &l.crds, rule: &k.crdsRule, current: &k.crdsCurrent,
		all: func(items []*crd, now time.Time) (differs, ask bool) {
			k.learnCRDs(items, now)
			return true, k.ghosts
		},
		one: func(kind watch.EventType, item *crd, now time.Time) (differs, ask bool) {
			if kind == watch.Deleted {
				gone := k.forgetCRD(item, now)
				return gone, gone
			}
			return k.learnCRD(item, now), k.ghosts
		},
	}
}

func (l *live) apiSource() source[*apiService] {
	k := &l.known
	return source[*apiService]{
		path: apiServicePath, kind: "APIServiceList",
		status: &l.apis, rule: &k.apisRule, current: &k.apisCurrent,
		all: func(items []*apiService, _ time.Time) (differs, ask bool) {
			return true, k.learnAPIs(items)
		},
		one: func(kind watch.EventType, item *apiService, _ time.Time) (differs, ask bool) {
			if kind == watch.Deleted {
				return true, k.forgetAPI(item)
			}
			return k.learnAPI(item)
		},
	}
}

// feedOf returns the feed of a source. What it hears is learned at once, and counts once
// the watch is open: where only that is forbidden, it would be out of date by then.
func feedOf[T slim](l *live, endpoint *endpoint, s source[T]) *feed[T] {
	heard := sync.OnceFunc(func() { l.heard <- struct{}{} })
	return &feed[T]{
		endpoint: endpoint,
		path:     s.path,
		kind:     s.kind,
		pace:     l.resolver.options.feedPace,
		list: func(items []T) {
			l.resolver.update(l, func(now time.Time) (differs, ask bool) { return s.all(items, now) })
		},
		event: func(kind watch.EventType, item T) {
			l.resolver.update(l, func(now time.Time) (differs, ask bool) { return s.one(kind, item, now) })
		},
		state: func(state feedState) {
			var changed bool
			l.resolver.update(l, func(now time.Time) (differs, ask bool) {
				changed = s.status.become(SourceState(state.phase), state.verb, state.err, now)
				return s.enter(state.phase, now)
			})
			if changed {
				l.tell(s.path, state)
			}
			if state.phase != feedConnecting && state.phase != feedFailing {
				heard()
			}
		},
	}
}

// enter takes a new state. Caller holds the resolver's lock.
func (s source[T]) enter(phase feedPhase, now time.Time) (differs, ask bool) {
	switch phase {
	case feedWatching:
		differs = !*s.rule || !*s.current
		*s.rule, *s.current = true, true
	case feedAbsent:
		*s.rule, *s.current = true, true
		return s.all(nil, now)
	case feedForbidden:
		differs, ask = *s.rule, true
		*s.rule, *s.current = false, false
	case feedFailing: // what is known stands, and documents may add to it
		differs, ask = *s.current, true
		*s.current = false
	}
	return differs, ask
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
