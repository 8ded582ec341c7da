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

// measureBack returns a function that measures an informer whose type is created, deleted and
// created again.
func (s size) measureBack(open informers.Open) measure {
	return func(ctx context.Context, job harness.Job, server cluster.Connection) (harness.Figures, error) {
		crd, err := server.TemporaryCRD(ctx, cluster.NewDefinition(0), 300)
		if err != nil {
			return nil, err
		}
		defer crd.Stop()
		var times []float64
		if err := open.Use(ctx, server.Config(), func(ctx context.Context, set *informers.Set) error {
			if _, err := set.Add(ctx, crd.Types[0].GVR); err != nil {
				return err
			}
			set.Start()
			for i := range s.forRound(job.Round).cycles + 1 {
				took, err := cycle(ctx, set, crd)
				if err != nil {
					return fmt.Errorf("cycle %d: %w", i, err)
				}
				if i > 0 { // in the first cycle, the type is new
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

// cycle creates and deletes the type. It returns the time from the event in which the CRD is Established until the informer has synced.
func cycle(ctx context.Context, set *informers.Set, crd *cluster.TemporaryCRD) (time.Duration, error) {
	const timeout, pause = time.Minute, 200 * time.Millisecond // until the informer has stopped
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("timeout after %v", timeout))
	defer cancel()
	ended, end := context.WithCancel(ctx)
	end()
	for set.Wait(ended) == nil { // the informer has not noticed yet that its type was deleted
		if err := usage.Sleep(ctx, pause); err != nil {
			return 0, fmt.Errorf("synced without the type: %w", err)
		}
	}
	established, err := crd.Create(ctx)
	if err != nil {
		return 0, err
	}
	if err := set.Wait(ctx); err != nil {
		return 0, err
	}
	took := time.Since(established)
	_, err = crd.Delete(ctx)
	return took, errors.Join(err, usage.Sleep(ctx, pause))
}

// restarted is the solution of client-go's users: an informer on a CRD stops the informer on its
// type when the CRD is deleted, and starts another one when it is created again. The fields are
// used by the handler on the CRD, and after its end by Stop.
type restarted struct {
	client dynamic.Interface
	gvr    schema.GroupVersionResource
	ctx    context.Context //nolint:containedctx // of the set, for informers that are started later

	uid    types.UID              // of the CRD whose objects the informer has
	end    func()                 // ends the informer, if there is one
	starts chan cache.DoneChecker // gets the HasSyncedChecker of each informer that starts
}

func openRestarted(ctx context.Context, cfg *rest.Config) (*informers.Set, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return newRestarted(ctx, client), nil
}

// newRestarted returns a set with one restarted informer. Wait returns nil once after each creation of the type.
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
			select {
			case informer := <-r.starts:
				select {
				case <-informer.Done():
					return nil
				case <-ctx.Done():
				}
			case <-ctx.Done():
			}
			return context.Cause(ctx)
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
	startIfEstablished := func(obj any) {
		if crd, ok := obj.(*unstructured.Unstructured); ok && crd.GetDeletionTimestamp() == nil && cluster.Established(crd) {
			r.start(crd.GetUID())
		}
	}
	return cache.ResourceEventHandlerFuncs{AddFunc: startIfEstablished, UpdateFunc: func(_, obj any) { startIfEstablished(obj) }, DeleteFunc: func(any) { r.end() }}
}

// start starts an informer on the type of the CRD with this UID, unless it runs.
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
