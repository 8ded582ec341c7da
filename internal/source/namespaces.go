package source

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Namespaces is a set of namespaces that may change while sources list and watch it. A source has its own. It is
// safe for concurrent use, and no method blocks.
type Namespaces struct {
	mu      sync.Mutex
	names   []string // sorted; replaced as a whole
	changed chan struct{}
	failing map[string]*NamespaceFailure // by name, also of names that have left the set, until forgetFailures

	run         func(ctx context.Context, set *Namespaces, result func(verb string, err error)) // nil: Set is called by users
	followed    func()                                                                          // called after a change by Follow; nil: nothing
	terminating map[string]bool                                                                 // by name
	gone        map[string]bool                                                                 // names that have left the set because the server does not have them any more
	unused      bool                                                                            // the source has no objects of the namespaces: gone stays empty
	unknown     error                                                                           // why the names are not known; nil: no request has failed
	unnamed     error                                                                           // why requests for the names fail; nil: they do not
	allowed     bool                                                                            // only those that are not forbidden
	everywhere  atomic.Bool                                                                     // requests are for all namespaces
	namesKnown  chan struct{}                                                                   // closes when the names are known
	runs        atomic.Bool
}

// NamespaceFailure is the failure of requests in one namespace. It lasts until a request of the same kind succeeds;
// a watch also ends the failure of a list, since it continues from the cache.
type NamespaceFailure struct {
	// Verb is the verb of the request that failed last, and Err its error.
	Verb string
	Err  error
	// Since is the time of the first failure, and Attempts the number of failures since then.
	Since    time.Time
	Attempts int

	forbidden bool
}

// Namespace is the state of one namespace of a set.
type Namespace struct {
	Name string
	// Listed says that the reflector has a whole list of the namespace. It stays true while the list is not current.
	Listed bool
	// Version is the resourceVersion up to which the reflector has everything of the namespace; empty if it has no list.
	Version string
	// Terminating says that the namespace is being deleted; only of a set that follows Namespace objects.
	Terminating bool
	// Failure is why requests fail; zero if they do not.
	Failure NamespaceFailure
}

// NewNamespaces returns the set of names.
func NewNamespaces(names ...string) *Namespaces {
	n := NewFollowedNamespaces(nil)
	n.Set(names...)
	return n
}

// NewFollowedNamespaces returns a set whose names are not known. A source calls run in a goroutine when it lists
// first. Run calls [Namespaces.Follow] until ctx ends, and result with the result of each of its requests. Until the
// first call of Follow, the source waits.
func NewFollowedNamespaces(run func(ctx context.Context, set *Namespaces, result func(verb string, err error))) *Namespaces {
	return &Namespaces{run: run, changed: make(chan struct{}), namesKnown: make(chan struct{}), failing: map[string]*NamespaceFailure{}}
}

// Allowed limits the set to the namespaces whose lists are not forbidden, and returns it. If everywhere is true, the
// source requests all namespaces at once, and uses the names only after such a list was forbidden. Allowed must be
// called before the source lists.
func (n *Namespaces) Allowed(everywhere bool) *Namespaces {
	n.allowed = true
	n.everywhere.Store(everywhere)
	return n
}

// named records the result of a request for the names. It reports whether the names are not known, and whether such requests failed and do not
// any more, or the reverse. Failures leave known names as they are.
func (n *Namespaces) named(err error) (unknown, changed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	unknown, changed = !isClosed(n.namesKnown), (n.unnamed == nil) != (err == nil)
	n.unnamed = err
	if unknown && err != nil {
		n.unknown = err
	}
	return unknown, changed
}

// failure returns why requests for the names fail; nil if they do not.
func (n *Namespaces) failure() error {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.unnamed
}

// isHidden reports whether a namespace is left out of the set.
func (n *Namespaces) isHidden(forbidden, listed bool) bool {
	return n.allowed && !listed && forbidden
}

// hides is isHidden for a namespace with that name.
func (n *Namespaces) hides(name string, listed bool) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	failure := n.failing[name]
	return n.isHidden(failure != nil && failure.forbidden, listed)
}

// Follow sets the names to the keys of terminating, whose values say whether a namespace is being deleted. Gone are
// names that leave the set because the server does not have such a namespace any more.
func (n *Namespaces) Follow(terminating map[string]bool, gone ...string) {
	terminating = maps.Clone(terminating)
	n.mu.Lock()
	followed := n.followed
	if maps.Equal(n.terminating, terminating) {
		followed = nil
	}
	n.terminating = terminating
	for _, name := range gone {
		if n.unused {
			break
		}
		if n.gone == nil {
			n.gone = map[string]bool{}
		}
		n.gone[name] = true
	}
	n.mu.Unlock()
	n.Set(slices.Collect(maps.Keys(terminating))...)
	if followed != nil {
		followed()
	}
}

// onFollow sets the function that is called after Follow has changed the names, or which of them are being deleted.
func (n *Namespaces) onFollow(followed func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.followed = followed
}

// isGone reports whether a name has left the set because the server does not have such a namespace any more.
func (n *Namespaces) isGone(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.gone[name]
}

// use records whether the source has, or will have, objects of the namespaces. If not, the set does not store why names leave it. N may be nil.
func (n *Namespaces) use(is bool) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.unused = !is
	if n.unused {
		n.gone = nil
	}
}

// forgetGone forgets why names have left the set, except the keys of kept: the objects of the others have been deleted.
func forgetGone[T any](n *Namespaces, kept map[string]T) {
	n.mu.Lock()
	defer n.mu.Unlock()
	forgetOthers(n.gone, kept)
}

// forgetFailures forgets the failures in namespaces that are not the keys of kept: no list or watch of the others is in progress, and the next one
// begins anew. Until then, a name that has left the set may be back before anything has noticed that.
func (n *Namespaces) forgetFailures(kept map[string]bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	forgetOthers(n.failing, kept)
}

// forgetOthers deletes the keys of m that are not in kept.
func forgetOthers[V, T any](m map[string]V, kept map[string]T) {
	maps.DeleteFunc(m, func(name string, _ V) bool {
		_, is := kept[name]
		return !is
	})
}

// unique returns names sorted, and each of them once.
func unique(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// keySet returns names as the keys of a map.
func keySet(names []string) map[string]bool {
	keys := make(map[string]bool, len(names))
	for _, name := range names {
		keys[name] = true
	}
	return keys
}

// Set replaces the names. A source lists a new namespace and adds its objects, and deletes the objects of a
// namespace that is no longer in the set: they are [Moved], unless the namespace is gone. It lists no other namespace again.
func (n *Namespaces) Set(names ...string) {
	names = unique(names)
	n.mu.Lock()
	defer n.mu.Unlock()
	if !isClosed(n.namesKnown) {
		close(n.namesKnown)
	}
	if slices.Equal(names, n.names) {
		return
	}
	n.names = names
	for _, name := range names {
		delete(n.gone, name)
	}
	close(n.changed)
	n.changed = make(chan struct{})
}

// Current returns the names, sorted and read-only, and a channel that closes when they change.
func (n *Namespaces) Current() ([]string, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.names, n.changed
}

// has reports whether name is in the set.
func (n *Namespaces) has(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hasLocked(name)
}

func (n *Namespaces) hasLocked(name string) bool {
	_, has := slices.BinarySearch(n.names, name)
	return has
}

// working returns the name of a namespace whose requests do not fail, any name if all fail, and empty if the set is
// empty.
func (n *Namespaces) working() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, name := range n.names {
		if n.failing[name] == nil {
			return name
		}
	}
	if len(n.names) == 0 {
		return ""
	}
	return n.names[0]
}

// failed records a failure, and reports whether requests fail in all namespaces.
func (n *Namespaces) failed(name, verb string, err error) (all bool) {
	forbidden := apierrors.IsForbidden(err) // may call methods of the error: not under mu
	n.mu.Lock()
	defer n.mu.Unlock()
	failure := n.failing[name]
	if failure == nil {
		failure = &NamespaceFailure{Since: time.Now()}
		n.failing[name] = failure
	}
	failure.Verb, failure.Err, failure.forbidden = verb, err, forbidden
	failure.Attempts++
	return n.hasLocked(name) && n.allLocked(func(*NamespaceFailure) bool { return true })
}

// allLocked reports whether requests fail in all namespaces, and each failure is such. The caller holds mu.
func (n *Namespaces) allLocked(such func(*NamespaceFailure) bool) bool {
	return !slices.ContainsFunc(n.names, func(name string) bool {
		failure := n.failing[name]
		return failure == nil || !such(failure)
	})
}

// forbidden reports whether only allowed namespaces count, and all of them are forbidden. If so, replaced closes when there are other names.
func (n *Namespaces) forbidden() (replaced <-chan struct{}, all bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	all = n.allowed && len(n.names) > 0 && n.allLocked(func(failure *NamespaceFailure) bool { return failure.forbidden })
	return n.changed, all
}

// succeeded ends the failure of requests with verb. That of a watch, or of a list that replaces one, ends any failure.
func (n *Namespaces) succeeded(name, verb string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if failure := n.failing[name]; failure != nil && (verb == VerbWatch || failure.Verb == verb) {
		delete(n.failing, name)
	}
}

// states returns the namespaces without their lists, sorted by name.
func (n *Namespaces) states() []Namespace {
	n.mu.Lock()
	defer n.mu.Unlock()
	states := make([]Namespace, len(n.names))
	for i, name := range n.names {
		states[i].Name, states[i].Terminating = name, n.terminating[name]
		if failure := n.failing[name]; failure != nil {
			states[i].Failure = *failure
		}
	}
	return states
}

// namespacesLocked returns the state of each namespace of Config.Namespaces, sorted by name; nil if there is no set, or the
// type is cluster-scoped. The caller holds the lock of k.
func (s *Source) namespacesLocked(k *known) []Namespace {
	set, states := s.eachNamespaceLocked(k)
	return slices.DeleteFunc(states, func(n Namespace) bool { return set.isHidden(n.Failure.forbidden, n.Listed) })
}

// eachNamespaceLocked returns the state of each namespace, also of those that are left out because they are forbidden.
// The caller holds the lock of k.
func (s *Source) eachNamespaceLocked(k *known) (*Namespaces, []Namespace) {
	t, _ := s.gate.available.Current()
	set := s.gate.set(t)
	if set == nil {
		return nil, nil
	}
	states := set.states()
	k.describeLocked(states)
	return set, states
}

// HasSet reports whether there is Config.Namespaces.
func (s *Source) HasSet() bool { return s.gate.cfg.Namespaces != nil }

// ListsEach reports whether there is a set of namespaces, and each of them is listed and watched on its own.
func (s *Source) ListsEach() bool {
	t, _ := s.gate.available.Current()
	return s.gate.set(t) != nil
}

// Unlisted returns the state of namespace if it is in the set and the reflector's store does not have its list, or left out because it is
// forbidden; of all such namespaces if namespace is empty. If the reflector has no list because the names of the set are not known,
// known is false, and err is why, if a request for them has failed. Unlisted waits for the store's lock, which an index function may delay.
func (s *Source) Unlisted(namespace string) (unlisted []Namespace, known bool, err error) {
	t, _ := s.gate.available.Current()
	set := s.gate.set(t)
	if set == nil {
		return nil, true, nil
	}
	if !isClosed(set.namesKnown) && !s.gate.known.filledWith(t) {
		set.mu.Lock()
		defer set.mu.Unlock()
		return nil, false, set.unknown
	}
	names, _ := set.Current()
	if namespace != "" {
		names = []string{namespace}
	}
	k := &s.gate.known
	missing := k.unstored(names, s.gate.lookUp())
	if len(missing) == 0 {
		return nil, true, nil
	}
	k.mu.Lock()
	_, states := s.eachNamespaceLocked(k)
	k.mu.Unlock()
	for _, state := range states {
		if missing[state.Name] {
			state.Listed = false
			unlisted = append(unlisted, state)
		}
	}
	return unlisted, true, nil
}

// SetNamespaces replaces the names of Config.Namespaces, as [Namespaces.Set] does, and ends pauses before retries. It
// reports false, and has no effect, if there is no set, or the set has its names from elsewhere. It does not block.
func (s *Source) SetNamespaces(names ...string) bool {
	if set := s.gate.cfg.Namespaces; set == nil || set.run != nil {
		return false
	}
	s.gate.cfg.Namespaces.Set(names...)
	s.gate.retries.Broadcast()
	return true
}

// NamespaceError is the error of a request in one namespace of a set. It has the text of the error.
type NamespaceError struct {
	Namespace string
	Err       error
}

func (e *NamespaceError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *NamespaceError) Unwrap() error { return e.Err }

// RequestNamespace returns the namespace. A status finds it with this method.
func (e *NamespaceError) RequestNamespace() string { return e.Namespace }

// namespaceObserver gets the results of requests in one namespace. If requests fail in only some namespaces, that
// is no failure of the source.
type namespaceObserver struct {
	Observer
	set  *Namespaces
	name string
}

// Failed implements Observer.
func (o namespaceObserver) Failed(verb string, err error) {
	if o.set.failed(o.name, verb, err) {
		o.Observer.Failed(verb, &NamespaceError{o.name, err})
		return
	}
	if apierrors.IsNotFound(err) {
		o.Doubted()
	}
	o.Completed()
}

// Succeeded implements Observer.
func (o namespaceObserver) Succeeded(verb string) {
	o.set.succeeded(o.name, verb)
	o.Observer.Succeeded(verb)
}
