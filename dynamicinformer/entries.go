package dynamicinformer

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/internal/form"
	"github.com/gvrkit/gvrkit/status"
)

// forResource is ForResource without the start, in any form.
func (f *Factory) forResource(gvr schema.GroupVersionResource, as form.Form) *entry {
	for {
		e, fresh := f.pin(gvr, as)
		// A user may have run the informer without the factory, and stopped it. IsStopped is
		// called without f.mu, since the informer's own lock may be held for some time.
		if fresh || !e.informer.IsStopped() || !f.replace(e, nil) {
			return e
		}
	}
}

// pin returns the entry of gvr and that form with the factory's options, and keeps it until the factory ends. If
// there is none, or if the entry is ending, it creates one.
func (f *Factory) pin(gvr schema.GroupVersionResource, as form.Form) (e *entry, fresh bool) {
	k, s := key{gvr: gvr, form: as}, f.options.settings
	f.mu.Lock()
	old := f.entries[key{gvr: gvr, form: as, separate: ofForResource}]
	if old != nil {
		k.separate = ofForResource
	} else if old = f.entries[k]; old != nil && !old.pinned && conflict(gvr, &old.settings, &s) != nil {
		k.separate, old = ofForResource, nil
	}
	// A factory that is closing keeps the old entry: a new informer could not run, and the old cache
	// can still be read.
	keep := old != nil && (!old.ending() || closed(f.closing))
	if keep {
		old.pin()
	}
	f.mu.Unlock()
	if keep {
		return old, false
	}
	made := f.newEntry(k, s, old) // asks the client: not under f.mu
	f.mu.Lock()
	defer f.mu.Unlock()
	if there := f.entries[k]; there != old && there != nil {
		there.pin()
		return there, false // another goroutine has created the entry meanwhile
	}
	f.putLocked(made)
	made.pin()
	return made, true
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

// known returns the entries of gvrs, or all entries sorted by name if gvrs is empty. It returns an
// error for each GVR without an entry.
func (f *Factory) known(gvrs []schema.GroupVersionResource) (entries []*entry, unknown []error) {
	all := f.all()
	if len(gvrs) == 0 {
		return all, nil
	}
	byGVR := make(map[schema.GroupVersionResource][]*entry, len(all))
	for _, e := range all {
		byGVR[e.gvr] = append(byGVR[e.gvr], e)
	}
	for _, gvr := range gvrs {
		if byGVR[gvr] == nil {
			unknown = append(unknown, &status.NotSyncedError{GVR: gvr, Namespace: f.options.namespace, Reason: status.ReasonNotStarted})
		}
		entries = append(entries, byGVR[gvr]...)
	}
	return entries, unknown
}

// putLocked stores e under its key. If the factory is closing, it ends e, which never runs. The
// caller holds f.mu.
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
	for k, e := range f.entries {
		if k.gvr.Resource == gr.Resource && k.gvr.Group == gr.Group {
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
