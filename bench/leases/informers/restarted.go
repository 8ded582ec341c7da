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

	// mu guards the fields below, which change with the CRD. It is held while an informer
	// is stopped, as the handler on CRDs has nothing better to do.
	mu      sync.Mutex
	handler *remembering
	uid     types.UID // of the CRD whose objects are followed; empty: none is
	list    cache.DoneChecker
	end     func()
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

// start starts an informer on the type of a CRD, unless there is one.
func (r *restarted) start(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.uid == uid || r.life.Err() != nil {
		return
	}
	r.stopLocked()
	ctx, cancel := context.WithCancel(r.life)
	factory := dynamicinformer.NewDynamicSharedInformerFactory(r.client, 0)
	informer := factory.ForResource(r.gvr).Informer()
	if r.handler != nil {
		_, _ = informer.AddEventHandler(r.handler) // it is fresh: it takes handlers
	}
	factory.Start(ctx.Done())
	r.uid, r.list = uid, informer.HasSyncedChecker()
	r.end = func() {
		cancel()
		factory.Shutdown()
	}
	r.ringLocked()
}

// stop stops the informer, and tells its handler that nothing is left.
func (r *restarted) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopLocked()
}

func (r *restarted) stopLocked() {
	if r.uid == "" {
		return
	}
	r.end()
	if r.handler != nil {
		r.handler.forget()
	}
	r.uid, r.list = "", nil
	r.ringLocked()
}

func (r *restarted) ringLocked() {
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
