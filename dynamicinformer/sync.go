package dynamicinformer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/gvrkit/gvrkit/status"
)

// WaitForSync waits until the informers that [WithResources] names, or all informers of the factory,
// have each listed their resource, or until ctx ends. It returns nil, or the
// [*status.NotSyncedError] of each that has not, joined in the order of [WithResources] or, for all,
// of name. It waits on channels, and a tenth of a second at most for the watch that follows the list.
//
// An informer whose type has gone for certain is not synced, although its HasSynced stays
// true, until the type is there again and has been listed again. One that has synced and
// whose requests fail since goes on being synced: [Factory.Status] says since when.
//
// A type that can't be listed is waited for until ctx ends, and the error has the reason. With
// [WithFailFast] it is not waited for if the reason does not go away by itself. A named resource that
// has no informer is an error at once; one whose informer ended before it had synced is not waited
// for. Waiting does not start informers.
func (f *Factory) WaitForSync(ctx context.Context, opts ...WaitOption) error {
	o := newWaitOptions(opts)
	waiting, unknown := f.known(o.of)
	if unknown != nil {
		return errors.Join(unknown...)
	}
	return f.waitFor(ctx, waiting, o)
}

// WaitOption configures one call of WaitForSync. Every combination is valid; of the same option
// given twice the last one counts; a nil WaitOption has no effect.
type WaitOption interface{ applyToWait(*waitOptions) }

type waitOptionFunc func(*waitOptions)

func (f waitOptionFunc) applyToWait(o *waitOptions) { f(o) }

// waitOptions say what to wait for.
type waitOptions struct {
	of       []schema.GroupVersionResource // none: all
	failFast bool
}

func newWaitOptions(opts []WaitOption) *waitOptions {
	var o waitOptions
	for _, opt := range opts {
		if opt != nil {
			opt.applyToWait(&o)
		}
	}
	return &o
}

// WithFailFast makes WaitForSync return early for an informer that is not synced for a reason that
// lasts until a person or a program removes it, such as [status.ReasonForbidden] or
// [status.ReasonNotFound]: those of which [status.Reason.Lasting] is true.
func WithFailFast() WaitOption {
	return waitOptionFunc(func(o *waitOptions) { o.failFast = true })
}

// ResourcesOption is an option of waiting and of health checks.
type ResourcesOption interface {
	WaitOption
	HealthOption
}

// WithResources limits [Factory.WaitForSync] or a [HealthCheck] to informers on gvrs, which must
// exist. Without gvrs, all informers count. It has no effect on [Lease.WaitForSync].
func WithResources(gvrs ...schema.GroupVersionResource) ResourcesOption {
	return resources(slices.Clone(gvrs))
}

type resources []schema.GroupVersionResource

func (r resources) applyToWait(o *waitOptions) { o.of = r }

func (r resources) applyToHealth(p *healthPolicy) { p.of = r }

// waitFor waits for entries, and returns why they are not synced.
func (f *Factory) waitFor(ctx context.Context, entries []*entry, o *waitOptions) error {
	errs := make([]error, len(entries))
	waiting, enough := context.WithCancel(ctx)
	defer enough()
	var all sync.WaitGroup
	for i, e := range entries {
		all.Go(func() {
			f.wait(waiting, e, o)
			if err := f.notSynced(e); err != nil {
				errs[i] = err
				if o.failFast {
					enough()
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// wait waits until e has synced, or never will, or for ctx.
func (f *Factory) wait(ctx context.Context, e *entry, o *waitOptions) {
	synced := false
	e.await(ctx, func() bool {
		now := e.state.Snapshot()
		synced = now.Synced()
		return synced || o.failFast && (f.notRunning(e).Lasting() || now.Lasting())
	})
	if synced {
		e.awaitWatch(ctx)
	}
}

// waitListed waits until e has listed once or never will, or for ctx.
func (f *Factory) waitListed(ctx context.Context, e *entry) {
	e.await(ctx, e.hasSynced)
	if e.hasSynced() {
		e.awaitWatch(ctx)
	}
}

// await waits until met returns true, the entry has ended, or ctx ends. Met is called whenever the
// status of e may have changed, also after the entry has ended.
func (e *entry) await(ctx context.Context, met func() bool) {
	for {
		changed, first, ended := e.changed.Next(), e.firstList(), closed(e.done) // before met looks
		if met() || ended {
			return
		}
		select {
		case <-changed:
		case <-first:
		case <-ctx.Done():
			return
		}
	}
}

// watchGrace is how long the first watch after a list is waited for: as long as client-go
// takes from one look at its informers to the next.
const watchGrace = 100 * time.Millisecond

// awaitWatch waits a little until the informer, which has listed, watches, too. To a server
// that makes no difference; the fakes of tests forget what happens between a list and a
// watch, and many a test writes as soon as its informers have synced.
func (e *entry) awaitWatch(ctx context.Context) {
	watches := func() bool { return e.informer.source.State().Watched }
	if watches() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, watchGrace)
	defer cancel()
	e.await(ctx, watches)
}

// lookAgain is how soon a store is looked at again that is about to have what its reflector
// has been given.
const lookAgain = 5 * time.Millisecond

// awaitStore waits, in a goroutine, until the informer's store has a first list that the
// reflector has been given, and reports that to the entry's state. HasSynced reports the very
// first list. The objects of later ones reach the store in the order of their versions.
func (e *entry) awaitStore() {
	now := e.state.Snapshot()
	number := int64(now.AwaitsStore())
	for {
		last := e.awaited.Load()
		if number <= last {
			return // another goroutine waits, or there is nothing to wait for
		}
		if e.awaited.CompareAndSwap(last, number) {
			break
		}
	}
	if !e.pending.Begin() {
		return
	}
	go func() {
		defer e.pending.End()
		for !e.stores(int(number)) {
			<-time.After(lookAgain)
			if e.pending.Closed() || e.informer.IsStopped() {
				return
			}
		}
		e.state.Stored(int(number))
	}()
}

// stores reports whether the store has the first list of that number, or another one has taken
// its place. It waits for the store, which an index function may hold up.
func (e *entry) stores(number int) bool {
	version := e.informer.GetStore().LastStoreSyncResourceVersion()
	given := e.informer.source.State()
	if given.FirstLists != number || version == given.Version {
		return true // a server's versions may go backwards: what was given last is there
	}
	if notOlder(given.Former, given.Listed) { // and so is what the store may still have
		return !notOlder(given.Former, version)
	}
	return notOlder(version, given.Listed)
}

// notOlder reports whether version a is not before b. What can't be compared is not: no version
// is empty, but that of the generation before the first.
func notOlder(a, b string) bool {
	if a == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order >= 0
}

// firstList returns a channel that closes with the first list; nil, if there has been one: it
// does not close twice.
func (e *entry) firstList() <-chan struct{} {
	if e.hasSynced() {
		return nil
	}
	return e.informer.listed
}

// notSynced returns why e has not synced, or nil if it has.
func (f *Factory) notSynced(e *entry) *status.NotSyncedError {
	now := e.state.Snapshot()
	if now.Synced() {
		return nil
	}
	err := now.NotSynced()
	if reason := f.notRunning(e); reason != "" {
		err.Reason = reason
	}
	return &err
}

// waitForStarted waits for the started informers and returns which have synced.
func (f *Factory) waitForStarted(ctx context.Context) map[schema.GroupVersionResource]bool {
	f.mu.Lock()
	var started []*entry
	for _, e := range f.entries {
		if e.started() && e.pinned {
			started = append(started, e)
		}
	}
	f.mu.Unlock()
	synced := make(map[schema.GroupVersionResource]bool, len(started))
	for _, e := range started {
		f.waitListed(ctx, e)
		before, again := synced[e.gvr]
		synced[e.gvr] = e.hasSynced() && (before || !again)
	}
	return synced
}
