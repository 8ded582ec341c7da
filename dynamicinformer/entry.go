package dynamicinformer

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// entry is the life of one informer in a factory: made, started once, ended. The
// factory makes a new entry for a resource whose informer has ended.
type entry struct {
	gvr      schema.GroupVersionResource
	informer *genericInformer
	life     *life
	trouble  *trouble

	// Set once by start, under the factory's mu; nil before.
	stop   <-chan struct{}    // closes when whoever started the informer wants its end
	cancel context.CancelFunc // ends it for the factory

	abandoned bool // run by hand, and stopped; under the factory's mu

	// done closes when the informer has ended and nothing of it runs any more.
	done chan struct{}
}

// newEntry returns an entry in place of old, which may be nil.
func newEntry(clients clients, o *options, gvr schema.GroupVersionResource, old *entry) *entry {
	e := &entry{gvr: gvr, trouble: newTrouble(gvr, o.namespace), done: make(chan struct{})}
	e.life = newLife(gvr, Exact(), o.resolver, e.trouble)
	cfg := o.config(clients.forOne(), gvr)
	cfg.Observer = e.trouble
	cfg.Availability = e.life.available
	cfg.Attend = e.life.attend
	cfg.Confirm = e.life.confirm
	e.informer = newInformer(cfg, e.trouble.log, o.resyncOf(gvr), o.allIndexers())
	if old != nil {
		e.informer.follow(old.informer)
	}
	// It can't fail before the informer runs, and may be replaced until then.
	_ = e.informer.informer.SetTransform(o.transform)
	return e
}

// run is the life of a started entry. The informer is not run before its type is served:
// a parked one is a goroutine, not six and a cache.
func (e *entry) run(ctx context.Context) {
	if e.life.resolver == nil {
		e.inform(ctx)
		return
	}
	var informer sync.WaitGroup
	defer informer.Wait()
	running := false
	e.life.follow(ctx, func() bool {
		if !running {
			running = true
			informer.Go(func() { e.inform(ctx) })
		}
		return true
	})
}

// inform runs the informer, whose type is served.
func (e *entry) inform(ctx context.Context) {
	shared := e.informer.informer
	shared.RunWithContext(ctx)
	if !shared.IsStopped() {
		// Its user runs it by hand, so that it returned at once. It is theirs to
		// end, with its requests; the entry keeps to its own time.
		<-ctx.Done()
		return
	}
	e.informer.source.Wait()
}

func (e *entry) started() bool { return e.stop != nil }

// ending reports whether the informer has ended or been told to. Someone who asks
// for the resource now gets another one. The caller holds the factory's mu.
func (e *entry) ending() bool {
	return e.abandoned || e.started() && closed(e.stop) || closed(e.done)
}

func (e *entry) synced() <-chan struct{} { return e.informer.informer.HasSyncedChecker().Done() }

func (e *entry) hasSynced() bool { return cache.IsDone(e.informer.informer.HasSyncedChecker()) }

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
