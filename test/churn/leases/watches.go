package leases

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/churn"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// scope is what a watch may select: the objects of a type in a namespace, or in all namespaces if it is empty.
type scope struct{ typ, namespace string }

// bounds are the fewest and the most open watches that a scope may have at rest.
type bounds struct{ least, most int }

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

// isServed reports whether the server can send the objects of a lease, unless that is forbidden.
func (l *lease) isServed(w *churn.World) bool {
	i, n := w.Incarnation(l.view.Type)
	if n < 0 || w.Down() || l.version != "" && !slices.Contains(i.Served, l.version) {
		return false
	}
	return !w.ConversionFails(l.view.Type, cmp.Or(l.version, i.Served[0]))
}

// watched returns the bounds of the scopes of all leases, also of those of Follow.
func (s *subject) watched() map[scope]bounds {
	leases := s.all()
	for _, f := range s.allFollowing() {
		leases = slices.AppendSeq(leases, maps.Values(f.now()))
	}
	w := s.env.World
	informers := informers{}
	for _, l := range leases {
		now := l.Status()
		informers.add(now, l.scopes(w), func(at scope) bool {
			return l.isServed(w) && !isForbidden(now, at.namespace, w.Forbidden(at.typ, at.namespace, "list"), w.Forbidden(at.typ, at.namespace, "watch"))
		})
	}
	return informers.bounds()
}

// informers has the scopes of each informer, by its ID. The value says whether the informer must watch the scope.
type informers map[uint64]map[scope]bool

// add adds the informer of a lease. It may watch each of the scopes, and must do so if it says that it is synced and does not list in place of
// watches, and served says that the server can send the objects.
func (i informers) add(at status.Informer, scopes []scope, served func(scope) bool) {
	if i[at.ID] == nil {
		i[at.ID] = map[scope]bool{}
	}
	for _, of := range scopes {
		i[at.ID][of] = at.State == status.StateSynced && at.PollPeriod == 0 && served(of)
	}
}

// bounds returns the bounds of all scopes: each informer has one watch.
func (i informers) bounds() map[scope]bounds {
	all := map[scope]bounds{}
	for _, scopes := range i {
		for at, must := range scopes {
			b := all[at]
			b.most++
			if must {
				b.least++
			}
			all[at] = b
		}
	}
	return all
}

// excess returns a violation for each scope that has more open watches than informers with leases.
func excess(open map[scope]int, wanted map[scope]bounds) (found []churn.Violation) {
	for at, n := range open {
		if most := wanted[at].most; n > most {
			found = append(found, churn.Violation{Invariant: churn.Released, Text: fmt.Sprintf("%s in namespace %q has %d informers with leases, and %d watches", at.typ, at.namespace, most, n)})
		}
	}
	return found
}

// deficit returns a violation for each scope that has fewer open watches than informers that say they are synced.
func deficit(open map[scope]int, wanted map[scope]bounds) (found []churn.Violation) {
	for at, b := range wanted {
		if n := open[at]; n < b.least {
			found = append(found, churn.Violation{Invariant: churn.Status, Text: fmt.Sprintf("%s in namespace %q has %d informers that are synced, and %d watches", at.typ, at.namespace, b.least, n)})
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
