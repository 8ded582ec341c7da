package dynamicinformer

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/status"
)

// known returns the entries of gvrs, or all sorted by name, and an error for each
// that nobody has asked for.
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

// putLocked makes e the one of its key. The caller holds f.mu.
func (f *Factory) putLocked(e *entry) {
	f.entries[e.key] = e
	f.changes++
	f.order = nil
}

// dropLocked forgets e, unless another one is in its place. The caller holds f.mu.
func (f *Factory) dropLocked(e *entry) {
	if f.entries[e.key] == e {
		delete(f.entries, e.key)
		f.changes++
		f.order = nil
	}
}

// all returns all entries, sorted, to read only.
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

// versionsOf returns the entries on gr, in whatever version, sorted.
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
