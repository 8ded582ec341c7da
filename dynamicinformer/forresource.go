package dynamicinformer

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"

	"github.com/gvrkit/gvrkit/internal/form"
)

// ForResource returns the shared informer for gvr, creating it on first use. Calls with an equal gvr
// return the same informer. If that informer has been stopped, they return a new one, whose lister
// reads the old cache until it has synced. ForResource does no I/O. The informer runs when the
// factory has been started, until the factory ends. An informer that is first requested after the end
// of the factory never runs. Leases share the informer if they have the factory's options.
//
// With discovery, no list or watch is sent before the resource has been resolved and validated. Until
// then the informer waits, and [Factory.WaitForSync] returns the reason.
func (f *Factory) ForResource(gvr schema.GroupVersionResource) informers.GenericInformer {
	e := f.forResource(gvr, f.options.form)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx != nil {
		f.startLocked(f.ctx, e)
	}
	return e.informer
}

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
