package leases

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

// system is one way to have informers on types that may not be served.
type system struct {
	harness.Contestant

	cases []string
	// open makes a set of informers, which run until ctx ends.
	open func(ctx context.Context, cfg *rest.Config) (*set, error)
}

// set is a system at work.
type set struct {
	// add makes an informer on a type, and starts it.
	add func(ctx context.Context, gvr schema.GroupVersionResource) (*informer, error)
	// stop waits until nothing runs, once the context of open has ended.
	stop func(ctx context.Context) error
}

// informer is one informer. Its functions are nil if the system lacks them.
type informer struct {
	handle func(handler cache.ResourceEventHandler) error
	// synced waits until the type, which is served, has been listed.
	synced func(ctx context.Context) error
	// gone waits until the informer knows that its type is not served.
	gone func(ctx context.Context) error
}

func systems() []system {
	add := func(name, about string, open func(context.Context, *rest.Config) (*set, error), cases ...string) system {
		return system{harness.Contestant{Name: name, About: about, Target: name == "gvrkit"}, cases, open}
	}
	return []system{
		add("client-go", "client-go's dynamicinformer: ForResource and Start", openClientGo, absentCase),
		add("restarted", "client-go's dynamicinformer, stopped and started by an informer on CRDs", openRestarted, backCase),
		add("gvrkit", "gvrkit's NewForConfig: Acquire with WithAllowAbsent", openGVRKit, costCase, absentCase, backCase),
	}
}

// handle returns what adds a handler to a client-go informer.
func handle(of cache.SharedIndexInformer) func(cache.ResourceEventHandler) error {
	return func(handler cache.ResourceEventHandler) error {
		_, err := of.AddEventHandler(handler)
		return err
	}
}

// await waits until done is closed.
func await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// openClientGo opens client-go's factory, which does not know whether a type is served.
func openClientGo(ctx context.Context, cfg *rest.Config) (*set, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	factory := upstream.NewDynamicSharedInformerFactory(client, 0)
	return &set{
		add: func(_ context.Context, gvr schema.GroupVersionResource) (*informer, error) {
			shared := factory.ForResource(gvr).Informer()
			factory.Start(ctx.Done())
			return &informer{
				handle: handle(shared),
				synced: func(ctx context.Context) error { return await(ctx, shared.HasSyncedChecker().Done()) },
			}, nil
		},
		stop: func(context.Context) error {
			factory.Shutdown()
			return nil
		},
	}, nil
}

// openGVRKit opens gvrkit's factory, with discovery.
func openGVRKit(ctx context.Context, cfg *rest.Config) (*set, error) {
	factory, err := dynamicinformer.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	factory.Start(ctx)
	return &set{
		add: func(ctx context.Context, gvr schema.GroupVersionResource) (*informer, error) {
			lease, err := factory.Acquire(ctx, gvr, dynamicinformer.WithAllowAbsent())
			if err != nil {
				return nil, err
			}
			return &informer{
				handle: func(handler cache.ResourceEventHandler) error {
					_, err := lease.AddEventHandler(handler)
					return err
				},
				synced: func(ctx context.Context) error { return lease.WaitForSync(ctx) },
				gone:   func(ctx context.Context) error { return notServed(ctx, lease) },
			}, nil
		},
		stop: factory.Shutdown,
	}, nil
}

// notServed waits until the type of lease is not served.
func notServed(ctx context.Context, lease *dynamicinformer.Lease) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for s := range lease.Watch(ctx) {
		if s.State == status.StateNotServed {
			return nil
		}
	}
	return fmt.Errorf("the type is still served: %w", context.Cause(ctx))
}
