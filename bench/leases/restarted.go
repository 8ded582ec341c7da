package leases

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/stub"
)

// openRestarted opens what users of client-go write: an informer on CRDs stops the informer on
// a type that goes, and starts another when the type comes back.
func openRestarted(ctx context.Context, cfg *rest.Config) (*set, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return newRestarted(ctx, client), nil
}

func newRestarted(ctx context.Context, client dynamic.Interface) *set {
	crds := upstream.NewDynamicSharedInformerFactory(client, 0)
	var all []*restarted
	return &set{
		add: func(_ context.Context, gvr schema.GroupVersionResource) (*informer, error) {
			r := &restarted{client: client, gvr: gvr, ctx: ctx, changed: make(chan struct{})}
			if _, err := crds.ForResource(stub.CRDs).Informer().AddEventHandler(r.onCRDs()); err != nil {
				return nil, err
			}
			crds.Start(ctx.Done())
			all = append(all, r)
			return &informer{
				handle: r.handle,
				synced: func(ctx context.Context) error {
					return r.wait(ctx, func() <-chan struct{} { return r.synced })
				},
				gone: func(ctx context.Context) error {
					return r.wait(ctx, func() <-chan struct{} {
						if r.uid == "" {
							return closed
						}
						return nil
					})
				},
			}, nil
		},
		stop: func(context.Context) error {
			crds.Shutdown()
			for _, r := range all {
				r.stop()
			}
			return nil
		},
	}
}

var closed = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// resetter is a handler that can forget all objects: it misses the deletions of those that an
// informer has when it is stopped.
type resetter interface {
	cache.ResourceEventHandler

	Reset()
}

// restarted is one informer after the other on a type, for one handler.
type restarted struct {
	client dynamic.Interface
	gvr    schema.GroupVersionResource
	ctx    context.Context //nolint:containedctx // of the set, for informers that are started later

	end func() // ends the present informer; only for start and stop, which never run at a time

	// mu guards the fields below. It is not held while waiting.
	mu      sync.Mutex
	handler resetter
	uid     types.UID // of the CRD whose objects the informer has; empty without one
	synced  <-chan struct{}
	changed chan struct{} // closed and replaced when there is another informer, or none
}

// onCRDs is the handler on CRDs.
func (r *restarted) onCRDs() cache.ResourceEventHandler {
	see := func(obj any) {
		if crd, ok := obj.(*unstructured.Unstructured); ok && crd.GetDeletionTimestamp() == nil && established(crd) {
			r.start(crd.GetUID())
		}
	}
	return cache.FilteringResourceEventHandler{
		FilterFunc: func(obj any) bool {
			name, err := cache.DeletionHandlingObjectToName(obj)
			return err == nil && name.Name == r.gvr.GroupResource().String()
		},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: see, UpdateFunc: func(_, obj any) { see(obj) }, DeleteFunc: func(any) { r.stop() },
		},
	}
}

// established reports whether a CRD has the condition Established.
func established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
			return true
		}
	}
	return false
}

// handle takes the handler of all informers. There is one, and it is added before the first
// informer starts.
func (r *restarted) handle(handler cache.ResourceEventHandler) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	h, ok := handler.(resetter)
	if !ok || r.handler != nil || r.uid != "" {
		return errors.New("a restarted informer has one handler with Reset, added before it starts")
	}
	r.handler = h
	return nil
}

// start starts an informer on the type of a CRD, unless it runs.
func (r *restarted) start(uid types.UID) {
	r.mu.Lock()
	same, handler := r.uid == uid, r.handler
	r.mu.Unlock()
	if same || r.ctx.Err() != nil {
		return
	}
	r.stop()
	ctx, cancel := context.WithCancel(r.ctx)
	factory := upstream.NewDynamicSharedInformerFactory(r.client, 0)
	shared := factory.ForResource(r.gvr).Informer()
	if handler != nil {
		_, _ = shared.AddEventHandler(handler) // a fresh informer takes handlers
	}
	factory.Start(ctx.Done())
	r.end = func() {
		cancel()
		factory.Shutdown()
		if handler != nil {
			handler.Reset()
		}
	}
	r.set(uid, shared.HasSyncedChecker().Done())
}

// stop stops the informer, waits for it, and resets its handler.
func (r *restarted) stop() {
	if r.end != nil {
		r.end()
		r.end = nil
		r.set("", nil)
	}
}

func (r *restarted) set(uid types.UID, synced <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uid, r.synced = uid, synced
	close(r.changed)
	r.changed = make(chan struct{})
}

// wait waits until the channel that of returns is closed. It calls of with r.mu held, and again
// when there is another informer.
func (r *restarted) wait(ctx context.Context, of func() <-chan struct{}) error {
	for {
		r.mu.Lock()
		done, changed := of(), r.changed
		r.mu.Unlock()
		select {
		case <-done:
			return nil
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
