package dynamicinformer

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/form"
)

// key identifies an entry.
type key struct {
	gvr      schema.GroupVersionResource // of an entry by name: the parts of the name
	ref      string                      // the name; empty: the entry is by GVR
	versions discovery.VersionPolicy
	form     form.Form
	separate uint64 // 0: the entry is shared
}

// compare orders keys by name: group, version, resource.
func (k *key) compare(other *key) int {
	return cmp.Or(
		strings.Compare(k.gvr.Group, other.gvr.Group), strings.Compare(k.gvr.Version, other.gvr.Version),
		strings.Compare(k.gvr.Resource, other.gvr.Resource), strings.Compare(k.ref, other.ref),
		strings.Compare(k.versions.String(), other.versions.String()),
		strings.Compare(k.form.String(), other.form.String()), cmp.Compare(k.separate, other.separate),
	)
}

// ofForResource is the value of key.separate for an entry that ForResource has created beside an entry with other options.
const ofForResource = ^uint64(0)

// ofForResourceLocked returns the entry that ForResource has created beside the shared one under k, or nil. The caller holds f.mu.
func (f *Factory) ofForResourceLocked(k key) *entry {
	if k.separate != 0 {
		return nil
	}
	k.separate = ofForResource
	return f.entries[k]
}

// replace retires e, because a user has stopped its informer, so that another entry can replace it. It
// removes lease l from e, if l is not nil. If the factory is closing, it has no effect and reports false.
func (f *Factory) replace(e *entry, l *Lease) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if closed(f.closing) {
		return false
	}
	if l != nil {
		e.remove(l)
	}
	e.retireLocked()
	return true
}

// putLocked stores e under its key. If the factory is closing, it ends e, which never runs. The caller holds f.mu.
func (f *Factory) putLocked(e *entry) {
	if closed(f.closing) {
		e.endLocked()
	}
	f.entries[e.key] = e
	f.changes++
	f.order = nil
}

// dropLocked removes e, unless its key has another entry. The caller holds f.mu.
func (f *Factory) dropLocked(e *entry) {
	if f.entries[e.key] == e {
		delete(f.entries, e.key)
		f.changes++
		f.order = nil
	}
}

// all returns all entries, sorted. The slice is read-only.
func (f *Factory) all() []*entry {
	f.mu.Lock()
	all, changes := f.order, f.changes
	if all != nil {
		f.mu.Unlock()
		return all
	}
	all = slices.AppendSeq(make([]*entry, 0, len(f.entries)), maps.Values(f.entries))
	f.mu.Unlock()
	sorted(all) // not under f.mu: there may be thousands
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.changes == changes {
		f.order = all
	}
	return all
}

// versionsOf returns the entries on gr in any version, sorted.
func (f *Factory) versionsOf(gr schema.GroupResource) (entries []*entry) {
	f.mu.Lock()
	for _, e := range f.entries {
		if e.resource().GroupResource() == gr {
			entries = append(entries, e)
		}
	}
	f.mu.Unlock()
	return sorted(entries)
}

func sorted(entries []*entry) []*entry {
	slices.SortFunc(entries, func(a, b *entry) int { return a.compare(&b.key) })
	return entries
}
