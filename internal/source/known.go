package source

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// known is which objects the reflector has been given and not had taken back: their
// keys, and of each what tells it from others that have the key. It is written by one
// goroutine at a time, and read by any.
type known struct {
	mu      sync.Mutex
	objects map[string]identity
	// version is the resourceVersion up to which the reflector has everything, if that
	// is current; what is watched is watched from there. Otherwise everything must be
	// listed. Some servers have no versions: it is empty then.
	version string
	current bool
	// of is the type whose objects these are, as they were asked for.
	of Type
	// former is the version up to which the reflector had everything of the generation before.
	former string
	// listed is the version of the first list that was complete of this generation, or a
	// smaller one that came later; complete says whether there has been one.
	listed     string
	complete   bool
	firstLists int // that have been complete
	rejected   rejections
	// renamed has the keys that a transform has given to objects, by their own keys, where they
	// differ.
	renamed map[string]string
}

// identity tells an object from others of the same key, and from itself before.
type identity struct {
	uid     types.UID
	version string
}

// versionless reports whether version says nothing.
func versionless(version string) bool { return version == "" || version == "0" }

func identityOf(obj metav1.Object) identity {
	return identity{obj.GetUID(), obj.GetResourceVersion()}
}

// same reports whether both are one object, at whatever moments.
func (i identity) same(other identity) bool { return i.uid == other.uid }

func keyOf(obj metav1.Object) string {
	return cache.MetaObjectToName(obj).String()
}

// listed is what a list had.
type listed struct {
	keys     []string // in order
	items    map[string]listedItem
	version  string
	rejected rejections
	renamed  map[string]string
}

type listedItem struct {
	identity
	object runtime.Object
}

// newListed takes a list apart and transforms its objects. Of two objects with one key the last
// one counts, as in a cache.
func newListed(list runtime.Object, transform *transform) (listed, error) {
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return listed{}, err
	}
	l := listed{items: make(map[string]listedItem, meta.LenList(list)), version: accessor.GetResourceVersion()}
	err = meta.EachListItemWithAlloc(list, func(item runtime.Object) error {
		obj, err := meta.Accessor(item)
		if err != nil {
			return err
		}
		id, own := identityOf(obj), keyOf(obj) // before the transform writes to it
		item, key, err := transform.apply(item)
		if err != nil {
			l.rejected.add(own, id.uid, err)
			return nil
		}
		if key != own {
			if l.renamed == nil {
				l.renamed = map[string]string{}
			}
			l.renamed[own] = key
		}
		if _, again := l.items[key]; !again {
			l.keys = append(l.keys, key)
		}
		l.items[key] = listedItem{id, item}
		return nil
	})
	return l, err
}

// byVersion returns the keys, those of the newest objects last, so that a cache that has come
// to the version of the list has all of it. Where versions are in no order, keys are as they
// were listed.
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

// replace makes the objects of a list all that is known.
func (k *known) replace(list runtime.Object, of Type) error {
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		return err
	}
	objects := make(map[string]identity, meta.LenList(list))
	err = meta.EachListItem(list, func(item runtime.Object) error {
		obj, err := meta.Accessor(item)
		if err == nil {
			objects[keyOf(obj)] = identityOf(obj)
		}
		return err
	})
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.objects = objects
	k.completeLocked(accessor.GetResourceVersion(), of)
	return nil
}

// replaceBy is replace for a list that has been taken apart.
func (k *known) replaceBy(content listed, of Type) {
	objects := make(map[string]identity, len(content.items))
	for key, item := range content.items {
		objects[key] = item.identity
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.objects, k.rejected, k.renamed = objects, content.rejected.after(&k.rejected), content.renamed
	k.completeLocked(content.version, of)
}

// reject says that the object that is own before it is transformed is left out.
func (k *known) reject(own string, uid types.UID, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.rejected.add(own, uid, err)
}

// rename says what the transform has made of an object's own key.
func (k *known) rename(own, key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if own == key {
		delete(k.renamed, own)
		return
	}
	if k.renamed == nil {
		k.renamed = map[string]string{}
	}
	k.renamed[own] = key
}

// keyOf returns the key that the object has that is own before it is transformed.
func (k *known) keyOf(own string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if key, renamed := k.renamed[own]; renamed {
		return key
	}
	return own
}

// admit says that the object under key is not left out any more, and reports whether it was.
func (k *known) admit(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.rejected.remove(key)
}

// settled says what the transform has made of a list: which objects are left out, and which have
// other keys.
func (k *known) settled(content listed) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for own, rejected := range content.rejected.objects { // the cache may keep an earlier state
		if key, renamed := k.renamed[own]; renamed && k.objects[key].uid == rejected.uid {
			if content.renamed == nil {
				content.renamed = map[string]string{}
			}
			content.renamed[own] = key
		}
	}
	k.rejected, k.renamed = content.rejected.after(&k.rejected), content.renamed
}

// reset forgets everything. What comes is of of.
func (k *known) reset(of Type) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.endLocked()
	k.objects, k.version, k.current, k.of = nil, "", false, of
	k.listed, k.complete = "", false
	k.rejected, k.renamed = rejections{}, nil
}

// outdated says that the objects are those of a type that is gone, or of the one before.
// They stay until another list is complete.
func (k *known) outdated() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current, k.listed, k.complete = false, "", false
}

// completed says that the reflector has all of a list, and so everything up to version.
func (k *known) completed(version string, of Type) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.completeLocked(version, of)
}

func (k *known) completeLocked(version string, of Type) {
	if k.of.Generation != of.Generation {
		k.endLocked()
	}
	if !k.complete || k.of.Generation != of.Generation {
		k.listed, k.complete = version, true
		k.firstLists++
	}
	k.current, k.of = true, of
	k.advanceLocked(version)
}

// endLocked keeps the version up to which the reflector had everything of a type that another one
// replaces, or that is gone. The caller holds mu.
func (k *known) endLocked() {
	if k.version != "" { // or it has been kept
		k.former = k.version
	}
}

// advanceLocked sets the version up to which the reflector has everything. A server whose
// etcd was restored counts from a smaller one again: what waits for the version of the list
// would wait for ever. Caller holds mu.
func (k *known) advanceLocked(version string) {
	k.version = version
	if order, err := resourceversion.CompareResourceVersion(version, k.listed); err == nil && order < 0 {
		k.listed = version
	}
}

// upTo returns the version up to which the reflector has everything.
func (k *known) upTo() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.version
}

// put is told of an object that the reflector has been given.
func (k *known) put(key string, id identity) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.objects == nil {
		k.objects = map[string]identity{}
	}
	k.objects[key] = id
}

// reached is told that the reflector has everything up to version.
func (k *known) reached(version string) {
	if version == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.advanceLocked(version)
}

func (k *known) remove(key string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.objects, key)
}

// expired says that nothing can be watched from where the reflector is.
func (k *known) expired() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.current = false
}

func (k *known) get(key string) (identity, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	id, there := k.objects[key]
	return id, there
}

// keys returns those of all objects, sorted.
func (k *known) keys() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := make([]string, 0, len(k.objects))
	for key := range k.objects {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// place returns the version to watch from, whether there is one, and of what.
func (k *known) place() (version string, current bool, of Type) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.version, k.current, k.of
}

// isEmpty reports whether nothing is known.
func (k *known) isEmpty() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.objects) == 0
}
