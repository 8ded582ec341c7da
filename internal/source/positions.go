package source

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// This file has what is known of each namespace of a set. Each has its own resourceVersion. The version of the whole
// is the smallest of them: the reflector has everything up to it. No request is sent with it.

// position is what the reflector has of one namespace.
type position struct {
	version string // a watch starts there; if it can't, the namespace must be listed
	listed  bool   // the reflector has a whole list
	kept    bool   // the objects are of an earlier list, since the last one of all namespaces lacks this one
	storing *storing
}

// storing is how much of the first list of a namespace the reflector's store has. The lock of known guards it.
type storing struct {
	done    bool
	missing string // a key that the store did not have; empty: none is known
}

// after returns that of a list after before, which the store may have already.
func (before position) after() *storing {
	if before.listed && before.storing != nil {
		return before.storing
	}
	return &storing{}
}

// locate sets the positions after a list of all namespaces. Those that could not be listed have an empty one. Kept says
// that the reflector keeps their objects: it had a whole list of this generation, of namespaces with positions or of all at
// once.
func (k *known) locate(positions map[string]position, kept bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, now := range positions {
		before := k.positions[name]
		if !now.listed && kept && (before.listed || k.hasAllLocked(name)) {
			now = position{listed: true, kept: true}
		}
		now.storing = before.after()
		positions[name] = now
	}
	k.positions, k.everywhere, k.covered = positions, positions == nil, nil
	maps.DeleteFunc(k.children, func(name string, _ *childState) bool { _, is := positions[name]; return !is })
	for name, at := range positions {
		if state := k.children[name]; state != nil && !at.kept {
			k.children[name] = state.afterList()
		}
		if at.kept || !at.listed {
			k.doubtLocked(name)
		}
	}
}

// doubtLocked records that the version of the namespace with that name is not known any more: its next list is compared by content. The caller
// holds mu.
func (k *known) doubtLocked(name string) {
	doubtful := childState{listed: true}
	if state := k.children[name]; state != nil {
		doubtful = *state
	}
	doubtful.comparison.doubtful = true
	if k.children == nil {
		k.children = map[string]*childState{}
	}
	k.children[name] = &doubtful
}

// beginChild returns the version and the state with which a child of namespace begins, and where it saves its state. Earlier children, which
// may end later, save theirs elsewhere.
func (k *known) beginChild(namespace string) (version string, state childState, saved *childState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	version, state = k.positions[namespace].version, childState{listed: true}
	if last := k.children[namespace]; last != nil {
		state = *last
	}
	state.listed = state.listed && version != ""
	saved = new(state)
	if k.children == nil {
		k.children = map[string]*childState{}
	}
	k.children[namespace] = saved
	return version, state, saved
}

// saveChild stores the state of a child.
func (k *known) saveChild(saved *childState, state childState) {
	k.mu.Lock()
	defer k.mu.Unlock()
	*saved = state
}

// retainChildren removes the states of the children of other namespaces.
func (k *known) retainChildren(names map[string]bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.children, func(name string, _ *childState) bool { return !names[name] })
}

// suspicionFor returns the suspicion before content: the strongest of those of the children in the namespaces that content has lists of, and
// that of the source. Doubted says that one of these children has a doubt that no comparison has ended.
func (k *known) suspicionFor(content *listed) (strongest suspicion, doubted bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	strongest = k.suspicion
	for name, at := range content.positions {
		if state := k.children[name]; at.listed && state != nil {
			strongest, doubted = max(strongest, state.suspicion), doubted || state.comparison.doubtful
		}
	}
	return strongest, doubted
}

// afterList returns the state of a child when the reflector has got another list of its namespace than that of the child. A pause goes on.
func (s *childState) afterList() *childState { return &childState{pace: s.pace, listed: true} }

// namespaces returns the names of the namespaces of which the reflector may have objects, sorted.
func (k *known) namespaces() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	names := make([]string, 0, len(k.positions))
	for name := range k.positions {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// versionIn returns the version to watch namespace from; empty: it must be listed.
func (k *known) versionIn(namespace string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.positions[namespace].version
}

// versionFor returns the version up to which the reflector has everything of the namespace of key.
func (k *known) versionFor(key string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if at, is := k.positions[namespaceOf(key)]; is && at.version != "" {
		return at.version
	}
	return k.version
}

// unstored returns those of names of which the reflector has no whole list, or the store does not have the first one. Events that the reflector
// got after that list may be in the store later. The caller holds no lock, since the store may wait for index functions.
func (k *known) unstored(names []string, store lookUp) map[string]bool {
	unstored, pending, missing := map[string]bool{}, map[string]*storing{}, map[string]string{}
	k.mu.Lock()
	for _, name := range names {
		switch at := k.positions[name]; {
		case !at.listed && !k.hasAllLocked(name):
			unstored[name] = true
		case at.storing != nil && !at.storing.done && store != nil:
			pending[name], missing[name] = at.storing, at.storing.missing
		}
	}
	k.mu.Unlock()
	if len(pending) == 0 {
		return unstored
	}
	k.updateMissing(missing, store)
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, storing := range pending {
		storing.missing, storing.done = missing[name], storing.done || missing[name] == ""
		if !storing.done {
			unstored[name] = true
		}
	}
	return unstored
}

// updateMissing sets the values of missing, whose keys are names of namespaces, to the key of an object that the store lacks; empty: there is
// none. It visits the objects of all namespaces at most once.
func (k *known) updateMissing(missing map[string]string, store lookUp) {
	lacks := func(key string) bool {
		_, there := store(key)
		_, exists := k.get(key) // the object may have been deleted
		return !there && exists
	}
	unknown := map[string]bool{}
	for name, key := range missing {
		if key == "" || !lacks(key) {
			missing[name], unknown[name] = "", true
		}
	}
	for name, keys := range k.keysEach(unknown) {
		if first := slices.IndexFunc(keys, lacks); first >= 0 {
			missing[name] = keys[first]
		}
	}
}

// hasAllLocked reports whether the reflector has a list of all namespaces at once that the one with that name is in. The caller holds mu.
func (k *known) hasAllLocked(name string) bool {
	return k.positions == nil && k.everywhere && (k.covered == nil || k.covered[name])
}

// cover records the names of a set that is about to be listed. If the last list was of all namespaces at once, it does not have later names:
// these are of namespaces that were created after it.
func (k *known) cover(names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.covered != nil || !k.everywhere {
		return
	}
	k.covered = keySet(names)
}

// lists reports whether the reflector has a whole list of each of names, or of all namespaces.
func (k *known) lists(names []string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, name := range names {
		if !k.positions[name].listed && !k.hasAllLocked(name) {
			return false
		}
	}
	return true
}

// describeLocked completes the states of namespaces. The caller holds mu.
func (k *known) describeLocked(states []Namespace) {
	for i, state := range states {
		at := k.positions[state.Name]
		states[i].Listed, states[i].Version = at.listed || k.hasAllLocked(state.Name), at.version
	}
}

// keysIn returns the keys of the objects that the server has in namespace, sorted. A transform may have
// given them other keys.
func (k *known) keysIn(namespace string) []string {
	keys := k.keysEach(map[string]bool{namespace: true})[namespace]
	slices.Sort(keys)
	return keys
}

// keysEach returns the keys as keysIn does, in no order, by those of namespaces that have objects.
func (k *known) keysEach(namespaces map[string]bool) map[string][]string {
	if len(namespaces) == 0 {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := map[string][]string{}
	renamed := make(map[string]bool, len(k.renamed)) // keys by a transform
	for own, key := range k.renamed {
		renamed[key] = true
		namespace := namespaceOf(own)
		if _, there := k.objects.get(key); there && namespaces[namespace] {
			keys[namespace] = append(keys[namespace], key)
		}
	}
	for key := range k.objects.keys() {
		if namespace := namespaceOf(key); namespaces[namespace] && !renamed[key] {
			keys[namespace] = append(keys[namespace], key)
		}
	}
	return keys
}

// namespaceOf returns the namespace of key.
func namespaceOf(key string) string {
	namespace, _, is := strings.Cut(key, "/")
	if !is {
		return metav1.NamespaceNone
	}
	return namespace
}

// reachedLocked records that the reflector has everything of namespace up to version. The caller holds mu.
func (k *known) reachedLocked(namespace, version string) {
	at, is := k.positions[namespace]
	if !is || !at.listed {
		return
	}
	former := at.version
	at.version = version
	k.positions[namespace] = at
	if former == k.version || before(version, k.version) {
		k.advanceLocked(k.smallestLocked(version))
	}
}

// smallestLocked returns the smallest version of all positions or, if they can't be compared, version. The caller
// holds mu.
func (k *known) smallestLocked(version string) string {
	smallest := ""
	for _, at := range k.positions {
		if versionless(at.version) {
			continue
		}
		if smallest == "" {
			smallest = at.version
			continue
		}
		order, err := resourceversion.CompareResourceVersion(at.version, smallest)
		if err != nil {
			return version
		}
		if order < 0 {
			smallest = at.version
		}
	}
	return smallest
}

// completedIn records that the reflector has the whole list of namespace.
func (k *known) completedIn(namespace string, content listed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.settleLocked(content, only(namespace))
	if k.positions == nil {
		k.positions = map[string]position{}
	}
	k.positions[namespace] = position{version: content.version, listed: true, storing: k.positions[namespace].after()}
	version := k.smallestLocked(content.version)
	k.judgeLocked(content.suspicion, version)
	k.advanceLocked(version)
}

// removed records that the reflector has no objects of namespace, which has left the set.
func (k *known) removed(namespace string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.clearLocked(only(namespace), &rejections{})
	delete(k.positions, namespace)
	delete(k.holdings, namespace)
	k.advanceLocked(k.smallestLocked(k.version))
}

// only returns a function that reports whether a namespace is the one with that name.
func only(name string) func(namespace string) bool {
	return func(namespace string) bool { return namespace == name }
}

// clearLocked removes what is known of objects with other keys, and of those that are left out, in the namespaces for which of reports true.
// Those in kept stay left out, and keep their key if the cache has an earlier state. The caller holds mu.
func (k *known) clearLocked(of func(namespace string) bool, kept *rejections) {
	for own := range k.renamed {
		rejected, stays := kept.objects[own]
		if stays {
			_, stays = k.earlierLocked(own, rejected.uid)
		}
		if of(namespaceOf(own)) && !stays {
			delete(k.renamed, own)
		}
	}
	var outdated []string
	for own := range k.rejected.objects {
		if _, is := kept.objects[own]; of(namespaceOf(own)) && !is {
			outdated = append(outdated, own)
		}
	}
	for _, own := range outdated {
		k.rejected.admit(own)
	}
}

// mergedVersion returns the smallest of versions, or the first one that can't be compared.
func mergedVersion(versions []string) string {
	smallest := ""
	for _, version := range versions {
		if smallest == "" || before(version, smallest) {
			smallest = version
		}
	}
	return smallest
}
