package leases

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gvrkit/gvrkit/test/churn"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// scope is what a watch may select: the objects of a type in a namespace, or in all namespaces if it is empty.
type scope struct{ typ, namespace string }

// scopes returns the scopes of the watches that a lease may have: of all namespaces, or of those of its set.
func (l *lease) scopes(w *churn.World) []scope {
	i, n := w.Incarnation(l.view.Type)
	if l.view.Sets == nil || n >= 0 && !i.Namespaced {
		return []scope{{l.view.Type, ""}}
	}
	var scopes []scope
	for _, namespace := range l.view.Sets.Current() {
		scopes = append(scopes, scope{l.view.Type, namespace})
	}
	return scopes
}

// watched returns the number of leases, also of those of Follow, by the scopes of their watches.
func (s *subject) watched() map[scope]int {
	leases := s.all()
	for _, f := range s.allFollowing() {
		leases = slices.AppendSeq(leases, maps.Values(f.now()))
	}
	counts := map[scope]int{}
	for _, l := range leases {
		for _, scope := range l.scopes(s.env.World) {
			counts[scope]++
		}
	}
	return counts
}

// excess returns a violation for each scope that has more open watches than leases.
func excess(open, leases map[scope]int) (found []churn.Violation) {
	for at, n := range open {
		if n > leases[at] {
			found = append(found, churn.Violation{Invariant: churn.Released, Text: fmt.Sprintf("%s in namespace %q has %d leases, and %d watches", at.typ, at.namespace, leases[at], n)})
		}
	}
	return found
}

// open returns the numbers of open watches.
func (s *subject) open() map[scope]int {
	counts := map[scope]int{}
	for _, typ := range s.env.World.Types() {
		gvr := s.env.World.Resource(typ, "")
		s.env.Proxy.OpenWatches(faultproxy.All(faultproxy.Resource(gvr.Group, gvr.Resource), func(req faultproxy.Request) bool {
			counts[scope{typ, req.Namespace}]++
			return true
		}))
	}
	return counts
}
