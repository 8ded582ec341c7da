package leases

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/informers"
	"github.com/gvrkit/gvrkit/bench/usage"
)

// measureBack returns what measures an informer whose type comes, goes and comes back.
func (s size) measureBack(open informers.Open) func(context.Context, harness.Job) (harness.Figures, error) {
	return func(ctx context.Context, job harness.Job) (harness.Figures, error) {
		var server cluster.Connection
		if err := job.Reach(&server); err != nil {
			return nil, err
		}
		visitor, err := server.Visitor(ctx, cluster.NewDefinition(0), 300)
		if err != nil {
			return nil, err
		}
		defer visitor.Stop()
		var times []float64
		if err := open.Use(ctx, server.Config(), func(ctx context.Context, set *informers.Set) error {
			if _, err := set.Add(ctx, visitor.Types[0].GVR); err != nil {
				return err
			}
			set.Start()
			for i := range s.in(job.Round).cycles + 1 {
				took, err := cycle(ctx, set, visitor)
				if err != nil {
					return fmt.Errorf("cycle %d: %w", i, err)
				}
				if i > 0 { // the first one is no return
					times = append(times, harness.Millis(took))
				}
			}
			return nil
		}); err != nil {
			return nil, err
		}
		return harness.Figures{readyToSynced: harness.Median(times), readyToSynced + worst: slices.Max(times)}, nil
	}
}

// cycle lets the type come and go. It returns how long the informer takes from the event that
// says Established until it has synced.
func cycle(ctx context.Context, set *informers.Set, visitor *cluster.Visitor) (time.Duration, error) {
	const patience, pause = time.Minute, 200 * time.Millisecond // until the informer knows that the type has gone
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("given up after %v", patience))
	defer cancel()
	established, err := visitor.Come(ctx)
	if err != nil {
		return 0, err
	}
	if err := set.Wait(ctx); err != nil {
		return 0, err
	}
	took := time.Since(established)
	_, err = visitor.Go(ctx)
	return took, errors.Join(err, usage.Sleep(ctx, pause))
}

// restarted is what users of client-go write: an informer on a CRD stops the informer on its type
// when that goes, and starts another when the type comes back. Only the handler on the CRD uses
// it, and stop once that has ended.
type restarted struct {
	client dynamic.Interface
	gvr    schema.GroupVersionResource
	ctx    context.Context //nolint:containedctx // of the set, for informers that are started later

	uid    types.UID              // of the CRD whose objects the informer has
	end    func()                 // ends the informer, if there is one
	starts chan cache.DoneChecker // gets, of each informer that starts, whether it has synced
}

func openRestarted(ctx context.Context, cfg *rest.Config) (*informers.Set, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return newRestarted(ctx, client), nil
}

// newRestarted returns a set of one restarted informer. Its Wait is called once for each time
// that the type comes.
func newRestarted(ctx context.Context, client dynamic.Interface) *informers.Set {
	r := &restarted{client: client, ctx: ctx, end: func() {}, starts: make(chan cache.DoneChecker, 100)}
	crds := upstream.NewFilteredDynamicSharedInformerFactory(client, 0, metav1.NamespaceAll, func(opts *metav1.ListOptions) {
		opts.FieldSelector = fields.OneTermEqualSelector("metadata.name", r.gvr.GroupResource().String()).String()
	})
	return &informers.Set{
		Add: func(_ context.Context, gvr schema.GroupVersionResource) (cache.SharedIndexInformer, error) {
			r.gvr = gvr
			_, err := crds.ForResource(cluster.CRDs).Informer().AddEventHandler(r.onCRD())
			return nil, err
		},
		Start: func() { crds.Start(ctx.Done()) },
		Wait: func(ctx context.Context) error {
			var synced <-chan struct{}
			for {
				select {
				case informer := <-r.starts:
					synced = informer.Done()
				case <-synced:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		},
		Stop: func(context.Context) error {
			crds.Shutdown()
			r.end()
			return nil
		},
	}
}

// onCRD is the handler on the CRD.
func (r *restarted) onCRD() cache.ResourceEventHandler {
	see := func(obj any) {
		if crd, ok := obj.(*unstructured.Unstructured); ok && crd.GetDeletionTimestamp() == nil && cluster.Established(crd) {
			r.start(crd.GetUID())
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, obj any) { see(obj) }, DeleteFunc: func(any) { r.end() }}
}

// start starts an informer on the type of a CRD, unless it runs.
func (r *restarted) start(uid types.UID) {
	if r.uid == uid || r.ctx.Err() != nil {
		return
	}
	r.end()
	ctx, cancel := context.WithCancel(r.ctx)
	factory := upstream.NewDynamicSharedInformerFactory(r.client, 0)
	informer := factory.ForResource(r.gvr).Informer()
	factory.Start(ctx.Done())
	r.uid, r.end = uid, func() {
		cancel()
		factory.Shutdown()
		r.uid, r.end = "", func() {}
	}
	r.starts <- informer.HasSyncedChecker()
}
