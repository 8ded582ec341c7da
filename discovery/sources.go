package discovery

import (
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/watch"
)

func (l *live) crdFeed(endpoint *endpoint) *feed[*crd] {
	said := sync.OnceFunc(func() { l.heard <- struct{}{} })
	return &feed[*crd]{
		endpoint: endpoint,
		path:     crdPath,
		list: func(items []*crd) {
			l.resolver.update(l, func(now time.Time) (differs, ask bool) {
				l.known.learnCRDs(items, now)
				return true, l.known.unsettled()
			})
		},
		event: func(kind watch.EventType, item *crd) {
			l.resolver.update(l, func(now time.Time) (differs, ask bool) {
				if kind == watch.Deleted {
					gone := l.known.forgetCRD(item, now)
					return gone, gone
				}
				return l.known.learnCRD(item), false
			})
		},
		state: func(state feedState) {
			l.resolver.update(l, func(now time.Time) (differs, ask bool) {
				l.crds = l.note(l.crds, crdPath, state, now)
				if state.phase == feedForbidden && l.known.crdsRule {
					l.known.crds, l.known.crdsRule = nil, false
					return true, true
				}
				return false, state.phase == feedForbidden
			})
			if state.phase != feedConnecting {
				said()
			}
		},
	}
}

func (l *live) apiFeed(endpoint *endpoint) *feed[*apiService] {
	said := sync.OnceFunc(func() { l.heard <- struct{}{} })
	return &feed[*apiService]{
		endpoint: endpoint,
		path:     apiServicePath,
		list: func(items []*apiService) {
			l.resolver.update(l, func(now time.Time) (differs, ask bool) {
				return true, l.known.learnAPIs(items)
			})
		},
		event: func(kind watch.EventType, item *apiService) {
			l.resolver.update(l, func(now time.Time) (differs, ask bool) {
				if kind == watch.Deleted {
					return true, l.known.forgetAPI(item)
				}
				return l.known.learnAPI(item)
			})
		},
		state: func(state feedState) {
			l.resolver.update(l, func(now time.Time) (differs, ask bool) {
				l.apis = l.note(l.apis, apiServicePath, state, now)
				if state.phase == feedForbidden && l.known.apis != nil {
					l.known.apis = nil
					return true, true
				}
				return false, state.phase == feedForbidden
			})
			if state.phase != feedConnecting {
				said()
			}
		},
	}
}

// note returns the status of a source in its new state, and logs what has changed.
func (l *live) note(old SourceStatus, path string, state feedState, now time.Time) SourceStatus {
	status := SourceStatus{State: SourceState(state.phase), Verb: state.verb, Since: now, Err: state.err}
	if old.State == status.State {
		status.Since = old.Since
		return status
	}
	switch state.phase {
	case feedForbidden:
		l.logger.Info("Not allowed to watch; asking for discovery documents instead", "path", path, "verb", state.verb, "err", state.err)
	case feedFailing:
		l.logger.V(2).Info("The watch does not work; trying again", "path", path, "verb", state.verb, "err", state.err)
	default:
		l.logger.V(2).Info("The watch has changed its state", "path", path, "state", status.State)
	}
	return status
}

// noteDocuments takes how a request for documents went. Caller holds the resolver's lock.
func (l *live) noteDocuments(doc *document, err error, now time.Time) {
	status := SourceStatus{State: SourceCurrent, Since: now}
	switch {
	case err != nil:
		status.State, status.Err = SourceFailing, err
	case doc.core.err != nil || doc.named.err != nil:
		status.State, status.Err = SourceFailing, errors.Join(doc.core.err, doc.named.err)
	}
	if status.State == l.docs.State {
		status.Since = l.docs.Since
	} else if status.Err != nil {
		l.logger.Info("Discovery documents can't be had; what was known stands", "err", status.Err)
	}
	l.docs = status
}
