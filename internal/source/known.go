package source

import (
	"errors"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/sharding"
)

// known has the objects of the reflector: their keys, and the identity of each object. One
// goroutine at a time gives objects to the reflector, and writes which objects and versions it has. Other goroutines write what
// they read of the shard, the sizes of objects, and the states of the children of a set. Any goroutine may read it.
type known struct {
	mu      sync.Mutex
	objects identities
	// version is the resourceVersion up to which the reflector has everything, if current is
	// true; a watch starts there. Otherwise everything must be listed. It is empty for servers
	// without versions.
	version string
	current bool
	// of is the type of the objects at the time of the request.
	of Type
	// former is the version up to which the reflector had everything of the previous generation.
	former string
	// listed is the version of the first complete list of this generation, or a later smaller
	// version; complete says whether there is such a list.
	listed     string
	complete   bool
	firstLists int // the number of complete first lists
	rewinds    int // how often version has decreased for one generation
	// suspicion is that against the server's versions. Disorders is the number of events of this generation below version after which a
	// list was not below version.
	suspicion suspicion
	disorders int
	rejected  rejections
	// renamed has the keys of objects whose key a transform has changed, by their original keys.
	renamed map[string]string
	// positions has what the reflector has of each namespace of a set; nil: there is no set, or nothing is listed.
	positions map[string]position
	// everywhere says that the last list was of all namespaces at once. It is set with positions, which are set after a list is complete.
	everywhere bool
	// covered has the names of a set when it replaced all namespaces, after that list: only these are in it. Nil: no set has.
	covered map[string]bool
	// children has the states of the children of the last watch of a set, by their namespaces. The children write them.
	children map[string]*childState
	// holdings has what the reflector has of a shard, by the namespaces of positions or, without a set, under the empty name. Viewed is
	// the generation of the last view of which it had everything, and seen the last view that the source has read.
	holdings map[string]holding
	viewed   uint64
	seen     sharding.View
	// lastGained is the key of the last object in the last list of gained slots.
	lastGained string
	// gainedAt is the version before a list of gained slots that was of an earlier version, and repeated has the keys of events between the two,
	// which come after the list.
	gainedAt string
	repeated map[string]struct{}
	// hides reports whether a namespace of a set is left out; nil: there is no set. It may be called under mu.
	hides func(name string, listed bool) bool
}

// identity distinguishes an object from other objects with the same key, and its states.
type identity struct {
	uid     types.UID
	version string
	hash    uint64 // of the content, in poll mode, of an object without a version; otherwise zero
	bytes   uint32 // the estimated size, which says nothing about the identity
}

// equals reports whether both are the same state of the same object.
func (i identity) equals(other identity) bool {
	return i.same(other) && i.version == other.version && i.hash == other.hash
}

// versionless reports whether version is no usable version.
func versionless(version string) bool { return version == "" || version == "0" }

func identityOf(obj metav1.Object) identity {
	return identity{uid: obj.GetUID(), version: obj.GetResourceVersion()}
}

// same reports whether both are states of the same object.
func (i identity) same(other identity) bool { return i.uid == other.uid }

func keyOf(obj metav1.Object) string {
	return cache.MetaObjectToName(obj).String()
}

// listed is the content of a list.
type listed struct {
	keys     []string // in order
	items    map[string]listedItem
	version  string
	rejected rejections
	renamed  map[string]string
	// positions has the namespaces of a set, with those that could not be listed; nil: there is no set.
	positions map[string]position
	response  *response      // nil if it is not known
	suspicion suspicion      // that before the list
	doubted   bool           // the list replaces a comparison after an outage, and the server may have passed the version before it
	view      *sharding.View // that of response
}

// needsContent reports whether objects may have other states with equal versions: the list is compared by content.
func (l *listed) needsContent() bool { return l.doubted || l.suspicion >= incomparable }

// list returns the list of transformed objects for the reflector.
func (l listed) list() runtime.Object {
	list := &internalversion.List{Items: make([]runtime.Object, len(l.keys))}
	list.ResourceVersion = l.version
	for i, key := range l.keys {
		list.Items[i] = l.items[key].object
	}
	return list
}

type listedItem struct {
	identity
	object runtime.Object
}

// newListed reads the objects of a list and transforms them. If two objects have the same key, the
// last one counts, as in a cache.
func newListed(r *response, transform *transform, sizes *sizes) (listed, error) {
	accessor, err := meta.ListAccessor(r.list)
	if err != nil {
		return listed{}, err
	}
	l := listed{items: make(map[string]listedItem, meta.LenList(r.list)), version: accessor.GetResourceVersion(), positions: r.positions, view: r.view}
	if !r.isConverted() {
		sizes.begin(meta.LenList(r.list), fewSampled)
	}
	defer sizes.end()
	nameless := 0
	read := func(item runtime.Object) error {
		c, done := item.(*converted)
		if !done {
			obj, err := meta.Accessor(item)
			if err != nil {
				return err
			}
			if isNameless(obj) {
				nameless++
			}
			made := transform.listed(item, r.identity(obj), originalKey(obj, nameless), sizes)
			c = &made
		}
		switch {
		case c.err != nil && transform.strict && errors.Is(c.err, ErrDecode):
			return c.err
		case c.err != nil:
			l.rejected.add(c.own, c.uid, c.err)
			return nil
		}
		if c.key != c.own {
			if l.renamed == nil {
				l.renamed = map[string]string{}
			}
			l.renamed[c.own] = c.key
		}
		if _, again := l.items[c.key]; !again {
			l.keys = append(l.keys, c.key)
		}
		l.items[c.key] = c.listedItem
		return nil
	}
	for _, object := range r.undecodable {
		if err := read(object); err != nil {
			return l, err
		}
	}
	return l, meta.EachListItemWithAlloc(r.list, read)
}

// converted is an object of a list after conversion and transform.
type converted struct {
	listedItem
	own, key string // its original key, and that in the cache
	err      error  // why it is left out
}

var _ runtime.Object = (*converted)(nil)

// GetObjectKind implements runtime.Object.
func (c *converted) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. It is not called.
func (c *converted) DeepCopyObject() runtime.Object { return c }

// listed applies t to an object of a list, which has an identity and an original key.
func (t *transform) listed(item runtime.Object, id identity, own string, sizes *sizes) converted {
	object, key, err := t.apply(item)
	if err == nil {
		id.bytes = sizes.of(object, id.uid)
	}
	return converted{listedItem: listedItem{id, object}, own: own, key: key, err: err}
}

// byVersion returns the keys sorted by the versions of their objects, so that a cache at the version
// of the list has the whole list. If versions can't be compared, keys are in the order of the list.
func (l listed) byVersion() []string {
	keys := slices.Clone(l.keys)
	slices.SortStableFunc(keys, func(a, b string) int {
		order, err := resourceversion.CompareResourceVersion(l.items[a].version, l.items[b].version)
		if err != nil {
			return 0
		}
		return order
	})
	return keys
}

// replace replaces the known objects by those of a list. It reports false, and has no effect, if two objects have the same key, or if
// an object has no name and strict is false.
func (k *known) replace(r *response, of Type, strict bool, sizes *sizes) (done bool, err error) {
	list := r.list
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return false, err
	}
	done = true
	objects := newIdentities(meta.LenList(list))
	sizes.begin(meta.LenList(list), fewSampled)
	defer sizes.end()
	err = meta.EachListItem(list, func(item runtime.Object) error {
		obj, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		name := cache.MetaObjectToName(obj)
		done = done && (strict || name.Name != "")
		id := r.identity(obj)
		id.bytes = sizes.of(item, id.uid)
		objects.put(name.String(), id)
		return nil
	})
	if err != nil || !done || objects.len() < meta.LenList(list) {
		return false, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.objects, k.rejected = objects, rejections{}
	k.completeLocked(accessor.GetResourceVersion(), of)
	return true, nil
}

// replaceBy is replace for the content of a list.
func (k *known) replaceBy(content listed, of Type) {
	objects := newIdentities(len(content.items))
	for key, item := range content.items {
		objects.put(key, item.identity)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.objects, k.rejected, k.renamed = objects, content.rejected.after(&k.rejected), content.renamed
	k.completeLocked(content.version, of)
}

// reject records that the object with the original key own is left out.
func (k *known) reject(own string, uid types.UID, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rejected.add(own, uid, err)
}

// rename records the key that the transform has given to the object with the original key own.
func (k *known) rename(own, key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.renameLocked(own, key)
}

func (k *known) renameLocked(own, key string) {
	if own == key {
		delete(k.renamed, own)
		return
	}
	if k.renamed == nil {
		k.renamed = map[string]string{}
	}
	k.renamed[own] = key
}

// keyOf returns the key of the object with the original key own.
func (k *known) keyOf(own string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if key, renamed := k.renamed[own]; renamed {
		return key
	}
	return own
}

// rejects reports whether the object with the original key own is left out. If UIDs are known, it has that one: the deletion of an earlier object may
// arrive later than a list that has another one with its name.
func (k *known) rejects(own string, uid types.UID) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	rejected, is := k.rejected.objects[own]
	return is && (rejected.uid == uid || rejected.uid == "" || uid == "")
}

// admit records that the object under key is no longer left out, and reports whether it was.
func (k *known) admit(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rejected.admit(key)
}

// settled records the results of the transform for a whole list: which objects are left out, and which have other keys. Kept says that the
// reflector keeps the objects of namespaces that could not be listed: what is known of them stays.
func (k *known) settled(content listed, kept bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if content.positions != nil {
		k.settleLocked(content, func(namespace string) bool {
			at, is := content.positions[namespace]
			return !kept || !is || at.listed
		})
		return
	}
	for own, rejected := range content.rejected.objects {
		if key, is := k.earlierLocked(own, rejected.uid); is {
			if content.renamed == nil {
				content.renamed = map[string]string{}
			}
			content.renamed[own] = key
		}
	}
	k.rejected, k.renamed = content.rejected.after(&k.rejected), content.renamed
}

// settleLocked is settled for the namespaces for which of reports true. The caller holds mu.
func (k *known) settleLocked(content listed, of func(namespace string) bool) {
	k.clearLocked(of, &content.rejected)
	k.addLocked(content)
}

// addLocked records the results of the transform for a list of some of the objects. The caller holds mu.
func (k *known) addLocked(content listed) {
	k.rejected.addAll(&content.rejected)
	for own, key := range content.renamed {
		k.renameLocked(own, key)
	}
}

// earlierLocked returns the key by a transform of an object with the original key own that is left out, if the cache has an earlier state of
// it under that key. The caller holds mu.
func (k *known) earlierLocked(own string, uid types.UID) (key string, is bool) {
	key, renamed := k.renamed[own]
	id, there := k.objects.get(key)
	return key, renamed && there && id.uid == uid
}

// reset removes all objects. The next objects are of type of.
func (k *known) reset(of Type) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.endLocked()
	if k.of.Generation != of.Generation {
		k.disorders = 0
	}
	k.objects, k.version, k.current, k.of = identities{}, "", false, of
	k.listed, k.complete, k.everywhere, k.covered = "", false, false, nil
	k.suspicion = unsuspected
	k.gainedAt, k.repeated = "", nil
	k.rejected, k.renamed, k.positions, k.holdings = rejections{}, nil, nil, nil
}

// outdated records that the objects belong to a type that is gone, or to the previous type.
// They stay until another list is complete.
func (k *known) outdated() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current, k.listed, k.complete = false, "", false
	k.everywhere, k.covered = false, nil
}

// completed records that the reflector has a whole list, and so everything up to version.
func (k *known) completed(version string, of Type) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.completeLocked(version, of)
}

func (k *known) completeLocked(version string, of Type) {
	if k.of.Generation != of.Generation {
		k.endLocked()
		k.version = "" // versions of different generations can't be compared
		k.suspicion, k.disorders = unsuspected, 0
	}
	k.judgeLocked(k.suspicion, version)
	k.suspicion = unsuspected
	if k.of.Generation != of.Generation || before(version, k.gainedAt) { // otherwise the store may be at gainedAt, without what the list has repeated
		k.gainedAt, k.repeated = "", nil
	}
	if !k.complete || k.of.Generation != of.Generation {
		k.listed, k.complete = version, true
		k.firstLists++
	}
	k.current, k.of = true, of
	k.advanceLocked(version)
}

// endLocked stores the version up to which the reflector had everything of a type that is gone or
// replaced. The caller holds mu.
func (k *known) endLocked() {
	if k.version != "" { // empty: it has been stored before
		k.former = k.version
	}
}

// advanceLocked sets the version up to which the reflector has everything. After a restore of
// etcd, versions are smaller: a wait for the version of the list would never end. The caller
// holds mu.
func (k *known) advanceLocked(version string) {
	if before(version, k.version) {
		k.rewinds++
	}
	k.version = version
	if before(version, k.listed) {
		k.listed = version
	}
}

// before reports whether version a is smaller than b. It reports false if they can't be compared.
func before(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}

// upTo returns the version up to which the reflector has everything.
func (k *known) upTo() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.version
}

// put records an object that the reflector has got.
func (k *known) put(key string, id identity) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.objects.put(key, id)
	k.repeatedLocked(key)
}

// resize sets the size of an object, unless the reflector has got another state of it.
func (k *known) resize(key, version string, bytes uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if id, there := k.objects.get(key); there && id.version == version {
		id.bytes = bytes
		k.objects.put(key, id)
	}
}

// reached records that the reflector has everything up to version, in namespace if there is a set of namespaces.
func (k *known) reached(namespace, version string) {
	if version == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.positions != nil {
		k.reachedLocked(namespace, version)
		return
	}
	k.advanceLocked(version)
}

func (k *known) remove(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.objects.remove(key)
	k.repeatedLocked(key)
}

// expired records that no watch can start at the version of the reflector.
func (k *known) expired() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current = false
}

func (k *known) get(key string) (identity, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.objects.get(key)
}

// has reports whether the reflector has the object of id under key.
func (k *known) has(key string, id identity) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	same, there := k.objects.isSame(key, id)
	return there && same
}

// hasOther reports whether the reflector has another object under key than that of id.
func (k *known) hasOther(key string, id identity) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	same, there := k.objects.isSame(key, id)
	return there && !same
}

// keys returns the keys of all objects, sorted.
func (k *known) keys() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(k.objects.keys())
}

// place returns the version to watch from, whether it is current, and the type.
func (k *known) place() (version string, current bool, of Type) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.version, k.current, k.of
}

// filledWith reports whether the reflector has a whole list of the generation of t.
func (k *known) filledWith(t Type) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.complete && k.of.Generation == t.Generation
}

// size returns the number of objects.
func (k *known) size() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.objects.len()
}

// isEmpty reports whether there are no objects.
func (k *known) isEmpty() bool { return k.size() == 0 }
