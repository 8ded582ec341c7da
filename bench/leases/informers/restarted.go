package informers

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

// errHandled says that there is a handler already.
var errHandled = errors.New("by hand there is one handler, before the type is there")

// restarted is one informer after the other on a type. Its handler takes them for one.
type restarted struct {
	client dynamic.Interface
	gvr    schema.GroupVersionResource
	life   context.Context //nolint:containedctx // what Open was given, for informers that come later

	end func() // of the informer that there is; only for start and stop

	// mu guards the fields below, which change with the CRD. It is never held over a wait.
	mu      sync.Mutex
	handler *remembering
	uid     types.UID // of the CRD whose objects are followed; empty: none is
	list    cache.DoneChecker
	changed chan struct{} // closed and replaced when it is started or stopped
}

func newRestarted(ctx context.Context, client dynamic.Interface, gvr schema.GroupVersionResource) *restarted {
	return &restarted{client: client, gvr: gvr, life: ctx, changed: make(chan struct{})}
}

// handle takes the handler that each informer is to have.
func (r *restarted) handle(handler cache.ResourceEventHandler) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.handler != nil || r.uid != "" {
		return errHandled
	}
	r.handler = &remembering{ResourceEventHandler: handler, known: map[cache.ObjectName]any{}}
	return nil
}

// start starts an informer on the type of a CRD, unless there is one. Only one of start
// and stop is called at a time.
func (r *restarted) start(uid types.UID) {
	r.mu.Lock()
	same, handler := r.uid == uid, r.handler
	r.mu.Unlock()
	if same || r.life.Err() != nil {
		return
	}
	r.stop()
	ctx, cancel := context.WithCancel(r.life)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(r.client, 0)
	informer := factory.ForResource(r.gvr).Informer()
	if handler != nil {
		_, _ = informer.AddEventHandler(handler) // it is fresh: it takes handlers
	}
	factory.Start(ctx.Done())
	r.end = func() {
		cancel()
		factory.Shutdown()
		if handler != nil {
			handler.forget()
		}
	}
	r.become(uid, informer.HasSyncedChecker())
}

// stop stops the informer, waits for it, and tells its handler that nothing is left.
func (r *restarted) stop() {
	if r.end != nil {
		r.end()
		r.end = nil
		r.become("", nil)
	}
}

// become notes which informer there is, and tells those who wait.
func (r *restarted) become(uid types.UID, list cache.DoneChecker) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uid, r.list = uid, list
	close(r.changed)
	r.changed = make(chan struct{})
}

// synced waits until there is an informer, and it has synced.
func (r *restarted) synced(ctx context.Context) error {
	for {
		r.mu.Lock()
		list, changed := r.list, r.changed
		r.mu.Unlock()
		var listed <-chan struct{}
		if list != nil {
			listed = list.Done()
		}
		select {
		case <-listed:
			return nil
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// gone waits until there is no informer.
func (r *restarted) gone(ctx context.Context) error {
	for {
		r.mu.Lock()
		uid, changed := r.uid, r.changed
		r.mu.Unlock()
		if uid == "" {
			return nil
		}
		if err := await(ctx, changed); err != nil {
			return err
		}
	}
}
