package types

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/stub"
	"github.com/gvrkit/gvrkit/bench/usage"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// system is one way to start.
type system struct {
	harness.Contestant

	// start makes informers on types and starts them. They run until ctx ends.
	start func(ctx context.Context, cfg *rest.Config, types []schema.GroupVersionResource) (*started, error)
}

// started is a system at work.
type started struct {
	informers []cache.SharedIndexInformer
	// wait waits until all have synced, and stop until all have ended.
	wait, stop func(ctx context.Context) error
}

func systems() []system {
	return []system{
		{harness.Contestant{Name: "client-go", About: "dynamicinformer: ForResource of each type, Start, WaitForCacheSync, which polls each 0.1 s"}, startClientGo},
		{harness.Contestant{Name: "Acquire", About: "gvrkit's NewForConfig: Start, Acquire of each type, WaitForSync", Target: true}, startGVRKit(true)},
		{harness.Contestant{Name: "ForResource", About: "gvrkit's NewForConfig: ForResource of each type, Start, WaitForSync", Target: true}, startGVRKit(false)},
		{harness.Contestant{Name: "no discovery", About: "the same with WithDiscovery(nil)"}, startGVRKit(false, dynamicinformer.WithDiscovery(nil))},
	}
}

func startClientGo(ctx context.Context, cfg *rest.Config, types []schema.GroupVersionResource) (*started, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	factory := upstream.NewDynamicSharedInformerFactory(client, 0)
	s := &started{
		wait: func(ctx context.Context) error {
			for gvr, synced := range factory.WaitForCacheSync(ctx.Done()) {
				if !synced {
					return fmt.Errorf("%v has not synced: %w", gvr, context.Cause(ctx))
				}
			}
			return nil
		},
		stop: func(context.Context) error {
			factory.Shutdown()
			return nil
		},
	}
	for _, gvr := range types {
		s.informers = append(s.informers, factory.ForResource(gvr).Informer())
	}
	factory.Start(ctx.Done())
	return s, nil
}

// startGVRKit returns what starts a factory of gvrkit, with leases or without.
func startGVRKit(leases bool, opts ...dynamicinformer.Option) func(context.Context, *rest.Config, []schema.GroupVersionResource) (*started, error) {
	return func(ctx context.Context, cfg *rest.Config, types []schema.GroupVersionResource) (*started, error) {
		factory, err := dynamicinformer.NewForConfig(cfg, opts...)
		if err != nil {
			return nil, err
		}
		s := &started{wait: func(ctx context.Context) error { return factory.WaitForSync(ctx) }, stop: factory.Shutdown}
		if leases {
			factory.Start(ctx)
		}
		for _, gvr := range types {
			if !leases {
				s.informers = append(s.informers, factory.ForResource(gvr).Informer())
				continue
			}
			lease, err := factory.Acquire(ctx, gvr)
			if err != nil {
				return nil, errors.Join(err, factory.Shutdown(ctx))
			}
			s.informers = append(s.informers, lease.Informer())
		}
		factory.Start(ctx)
		return s, nil
	}
}

func measure(ctx context.Context, job harness.Job) (figures harness.Figures, err error) {
	var params Params
	if err := job.Decode(&params); err != nil {
		return nil, err
	}
	system, err := harness.Find(systems(), job.Contestant, func(s system) string { return s.Name })
	if err != nil {
		return nil, err
	}
	var types []schema.GroupVersionResource
	for _, d := range stub.Definitions(params.Types) {
		types = append(types, d.Types[0].GVR)
	}
	cfg := params.Server.Config()
	traffic := usage.Count(cfg)
	ctx, end := context.WithCancel(ctx)
	defer end()

	begin, cpu := time.Now(), usage.CPU()
	s, err := system.start(ctx, cfg, types)
	if err != nil {
		return nil, err
	}
	defer func() {
		end()
		err = errors.Join(err, s.stop(context.WithoutCancel(ctx)))
	}()
	last := s.whenSynced(ctx)
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	figures = harness.Figures{returned: harness.Millis(time.Since(begin)), returnedCPU: harness.Millis(usage.CPU() - cpu)}
	figures[synced] = harness.Millis((<-last).Sub(begin))
	if err := traffic.Rest(ctx, params.Rest); err != nil {
		return nil, fmt.Errorf("it is not at rest: %w", err)
	}
	figures[restCPU] = harness.Millis(usage.CPU() - cpu)
	counts := traffic.Counts()
	figures[documents], figures[definitions], figures[lists] = float64(counts.Documents), float64(counts.Definitions), float64(counts.Objects)
	figures[beforeList], figures[bytesRead] = float64(counts.First), float64(counts.Bytes)/1e3
	for i, informer := range s.informers {
		if got := len(informer.GetStore().ListKeys()); got != params.Objects {
			return nil, fmt.Errorf("%v has %d objects, want %d", types[i], got, params.Objects)
		}
	}
	return figures, nil
}

// whenSynced returns a channel that gets the time at which the last informer had synced, or ctx
// ended.
func (s *started) whenSynced(ctx context.Context) <-chan time.Time {
	at := make(chan time.Time, 1)
	go func() {
		for _, informer := range s.informers {
			select {
			case <-informer.HasSyncedChecker().Done():
			case <-ctx.Done():
			}
		}
		at <- time.Now()
	}()
	return at
}
