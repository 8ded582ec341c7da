package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/status"
)

// WaitForSync waits until all informers of the factory, or the informers on the resources of [WithResources], have listed their resources,
// or until ctx ends. It returns nil, or an error that joins the [*status.NotSyncedError] of each informer that has not synced, in the order of
// [WithResources] or sorted by name. After the list, it waits at most 100 ms for the first watch.
//
// If there is evidence that the type of an informer is gone, the informer is not synced until the type is served and listed again, although its
// HasSynced stays true. A synced informer whose requests fail later stays synced: [Factory.Status] reports the failure.
//
// If a type can't be listed, WaitForSync waits until ctx ends, and the error has the reason. With [WithFailFast], it returns earlier if the reason lasts. If a
// named resource has no informer, it returns an error at once. It does not wait for an informer that ended before it had synced. It does not start informers.
func (f *Factory) WaitForSync(ctx context.Context, opts ...WaitOption) error {
	o := newWaitOptions(opts)
	waiting, unknown := f.entriesOf(o.of)
	if unknown != nil {
		return errors.Join(unknown...)
	}
	return f.waitFor(ctx, waiting, o)
}

// entriesOf returns the entries of gvrs, or all entries sorted by name if gvrs is empty. It returns an error for each GVR without an entry.
func (f *Factory) entriesOf(gvrs []schema.GroupVersionResource) (entries []*entry, unknown []error) {
	all := f.all()
	if len(gvrs) == 0 {
		return all, nil
	}
	byGVR := make(map[schema.GroupVersionResource][]*entry, len(all))
	for _, e := range all {
		of := e.resource()
		byGVR[of] = append(byGVR[of], e)
	}
	for _, gvr := range gvrs {
		if byGVR[gvr] == nil {
			unknown = append(unknown, &status.NotSyncedError{GVR: gvr, Namespace: f.options.namespace, Reason: status.ReasonNotStarted})
		}
		entries = append(entries, byGVR[gvr]...)
	}
	return entries, unknown
}

// WaitOption configures one call of WaitForSync. Every combination is valid. If an option is given twice, the last one counts. A nil WaitOption has no effect.
type WaitOption interface{ applyToWait(*waitOptions) }

type waitOptionFunc func(*waitOptions)

func (f waitOptionFunc) applyToWait(o *waitOptions) { f(o) }

// waitOptions are the values of WaitOptions.
type waitOptions struct {
	of       []schema.GroupVersionResource // empty: all
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

// WithFailFast makes WaitForSync return early if an informer is not synced for a reason that lasts until a person or a program removes the
// cause, such as [status.ReasonForbidden] or [status.ReasonNotFound]: [status.Reason.Lasting] is true for such a reason.
func WithFailFast() WaitOption {
	return waitOptionFunc(func(o *waitOptions) { o.failFast = true })
}

// ResourcesOption is an option of waiting and of health checks.
type ResourcesOption interface {
	WaitOption
	HealthOption
}

// WithResources limits [Factory.WaitForSync] or a [HealthCheck] to informers on gvrs, which must exist. If gvrs is empty, there is no
// limit. It has no effect on [Lease.WaitForSync].
func WithResources(gvrs ...schema.GroupVersionResource) ResourcesOption {
	return resources(slices.Clone(gvrs))
}

type resources []schema.GroupVersionResource

func (r resources) applyToWait(o *waitOptions) { o.of = r }

func (r resources) applyToHealth(o *healthOptions) { o.Resources = r }

// waitFor waits for entries, and returns the errors of those that are not synced.
func (f *Factory) waitFor(ctx context.Context, entries []*entry, o *waitOptions) error {
	if err := checkContext(ctx); err != nil {
		return fmt.Errorf("dynamicinformer: wait: %w", err)
	}
	errs := make([]error, len(entries))
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	for i, e := range entries {
		all.Go(func() {
			if err := f.wait(waiting, e, o); err != nil {
				errs[i] = err
				if o.failFast {
					stop()
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// wait waits until e has synced or has ended, until ctx ends or, with fail-fast, for a lasting reason. It returns the reason why e has not synced.
func (f *Factory) wait(ctx context.Context, e *entry, o *waitOptions) (reason *status.NotSyncedError) {
	for lasting := false; ; {
		e.await(ctx, func() bool {
			reason, lasting = f.notSynced(e)
			return reason == nil || o.failFast && lasting
		})
		if ctx.Err() != nil { // the reason may be an old one
			reason, _ = f.notSynced(e)
		}
		if reason != nil {
			return reason
		}
		if e.awaitWatch(ctx); e.state.Synced() { // the type may be replaced meanwhile
			return nil
		}
	}
}

// waitListed waits until e has listed once or has ended, or until ctx ends.
func (f *Factory) waitListed(ctx context.Context, e *entry) {
	e.await(ctx, e.hasSynced)
	if e.hasSynced() {
		e.awaitWatch(ctx)
	}
}

// await waits until met returns true, the entry has ended, or ctx ends. Met is called whenever the status of e may have changed, also after
// the entry has ended.
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

// watchGrace is the maximum wait for the first watch after a list. It is the interval at which client-go polls its informers.
const watchGrace = 100 * time.Millisecond

// awaitWatch waits for a short time until the informer, which has listed, also watches. Servers do not require this. But client-go's fake
// clients lose events between a list and a watch, and many tests write objects as soon as their informers have synced.
func (e *entry) awaitWatch(ctx context.Context) {
	watches := func() bool { return e.informer.Source().State().Watched }
	if watches() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, watchGrace)
	defer cancel()
	e.await(ctx, watches)
}

// awaitStore makes the state know when the informer's store has the first list of a generation, after the reflector has got it.
func (e *entry) awaitStore() {
	now := e.state.Snapshot()
	e.informer.AwaitStore(now.AwaitsStore(), &e.pending, e.state.Stored)
}

// firstList returns a channel that closes with the first list. It is nil if the informer has listed: a closed channel would end every later wait.
func (e *entry) firstList() <-chan struct{} {
	if e.hasSynced() {
		return nil
	}
	return e.informer.Listed()
}

// notSynced returns an error with the reason why e has not synced, and whether that lasts; or nil if it has.
func (f *Factory) notSynced(e *entry) (err *status.NotSyncedError, lasting bool) {
	now := e.state.Snapshot()
	if now.Synced() {
		return nil, false
	}
	reason := f.notRunning(e)
	why := now.NotSynced(reason)
	return &why, now.Lasting() || reason.Lasting()
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
