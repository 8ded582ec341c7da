package dynamicinformer

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/source"
)

// entry is the life of one informer in a factory: made, started once, ended. The
// factory makes a new entry for a resource whose informer has ended.
type entry struct {
	gvr      schema.GroupVersionResource
	informer *genericInformer
	source   *source.Source
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
	client := clients.forOne()
	e.source = o.source(client, gvr, e.trouble)
	e.informer = newInformer(e.source.ListerWatcher(), gvr, o.resyncOf(gvr), o.allIndexers())
	e.informer.observe(client)
	if old != nil {
		e.informer.follow(old.informer)
	}
	shared := e.informer.informer
	// Neither can fail before the informer runs; both may be replaced until then.
	_ = shared.SetTransform(o.transform)
	_ = shared.SetWatchErrorHandlerWithContext(e.trouble.log)
	return e
}

// run is the life of a started entry. The informer is not run before its source
// is open: a parked one is a goroutine, not six and a cache.
func (e *entry) run(ctx context.Context) {
	if e.source.Open(ctx) != nil {
		return // ended while parked: nothing has been asked for
	}
	shared := e.informer.informer
	shared.RunWithContext(ctx)
	if !shared.IsStopped() {
		// Its user runs it by hand, so that it returned at once. It is theirs to
		// end, with its requests; the entry keeps to its own time.
		<-ctx.Done()
		return
	}
	e.source.Wait()
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
