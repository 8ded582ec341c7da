package typestate

import (
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

// eventsSoFar returns a value with which answered decides whether an answer is out of date.
func (s *State) eventsSoFar() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.events
}

// answered handles discovery's answer. Seen is the result of eventsSoFar before the question. An answer
// that is out of date has no effect; discovery must be asked again. Replaced is the result of hasSuccessor.
func (s *State) answered(seen uint64, res discovery.Resource, err error, replaced bool) {
	reason := status.Reason("")
	if err != nil {
		reason = Classify(err) // may call methods of the error: not under mu
	}
	rescoped := s.facts().ScopeEnded(res.GVR.GroupResource(), !res.Namespaced)
	s.mu.Lock()
	if seen != s.events {
		s.mu.Unlock()
		return
	}
	unsure := err != nil && errors.Is(err, discovery.ErrInconclusive) && s.now.everServed() && s.now.Evidence.Kind != discovery.CRDDeleted
	now := s.changeLocked(func(next *Snapshot) {
		if unsure {
			return // an inconclusive answer changes nothing, and requests continue
		}
		next.disputed = err != nil && res.GVK.Kind != ""
		if err != nil && !next.disputed {
			next.refuse(err, reason, replaced)
			return
		}
		next.serve(res, s.cfg.Namespace, rescoped)
		if s.cfg.Named {
			next.GVR = res.GVR
		}
		if next.disputed {
			next.Discovery = s.now.Discovery.failed(err, reason, next.At)
		}
	})
	s.mu.Unlock()
	switch {
	case unsure:
		return
	case err != nil:
		s.log.refused(&now, reason, err)
		return
	}
	s.log.healed(s.fails)
}

// serve records that discovery lists the type as res. Rescoped is when a type of that name with the other scope has ended; zero: none is known.
func (s *Snapshot) serve(res discovery.Resource, namespace string, rescoped time.Time) {
	switch {
	case s.movedTo(res), s.mayHaveMovedTo(res), s.rescopedTo(res):
		s.unsettled = s.At
	case rescoped.After(s.unsettled) && s.At.Sub(rescoped) < settleFor:
		s.unsettled = rescoped
	}
	s.decide(res)
	if s.replacedBy(res) {
		s.Generation++
		s.Last = s.Evidence
		s.ServedSince = s.At
		s.List, s.Watch = Condition{}, Condition{} // they are of another type
		s.resource = (&record{}).completed(res)
	} else {
		if !s.everServed() || s.Serving != source.Served {
			s.ServedSince = s.At
			s.ended(status.ReasonNotFound)
		}
		s.resource = s.completed(res)
	}
	s.Serving = source.Served
	s.Evidence, s.denied, s.Discovery, s.relocated = discovery.Evidence{}, time.Time{}, Condition{}, false
	s.Namespace = metav1.NamespaceAll
	if res.Namespaced {
		s.Namespace = namespace
	}
}

// ended ends the conditions of requests with that reason.
func (s *Snapshot) ended(reason status.Reason) {
	if s.List.Reason == reason {
		s.List = Condition{}
	}
	if s.Watch.Reason == reason {
		s.Watch = Condition{}
	}
}

// absentFor is how long discovery must not list a type before that is evidence, if the resolver has no
// other evidence. It is longer than the interval of a resolver that polls.
const absentFor = 15 * time.Second

// refuse records that discovery does not list the type. If its CRD was deleted and is replaced, the next list decides what is gone.
func (s *Snapshot) refuse(err error, reason status.Reason, replaced bool) {
	s.Discovery = s.Discovery.failed(err, reason, s.At)
	denied := errors.Is(err, discovery.ErrNotServed) && !elsewhere(err)
	if denied && s.everServed() && s.Evidence.Kind == "" {
		// A resolver that began to run after the end of the type has no event for it. Then two
		// answers of discovery are the evidence, and a list of the type is also required.
		switch {
		case s.denied.IsZero():
			s.denied = s.At
		case s.At.Sub(s.denied) >= absentFor:
			s.Evidence = discovery.Evidence{Kind: discovery.NotListed, At: s.At}
		}
	}
	switch {
	case s.Evidence.Kind == discovery.CRDDeleted && !replaced:
		s.Serving = source.Gone
	case s.Evidence.Kind != discovery.NotListed || !denied:
		s.Serving = source.Held
	case s.Serving != source.Gone: // no list of the type was NotFound yet
		s.Serving = source.Missing
	}
}

// elsewhere reports whether err says that the objects exist, in another version or with a CRD that is not served.
func elsewhere(err error) bool {
	notServed, is := errors.AsType[*discovery.NotServedError](err)
	return errors.Is(err, discovery.ErrNotEstablished) || is && len(notServed.Versions) > 0
}
