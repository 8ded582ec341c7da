package informers

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// openAlone opens client-go's informers whose watches never end. They know nothing of types
// that go, and never ask again: that is the least that an informer costs which waits.
func openAlone(ctx context.Context, cfg *rest.Config) (*Set, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	return newAlone(ctx, client), nil
}

func newAlone(ctx context.Context, client dynamic.Interface) *Set {
	var ends []<-chan struct{}
	return &Set{
		Arm: func(_ context.Context, gvr schema.GroupVersionResource) (*Informer, error) {
			resource := client.Resource(gvr)
			informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
				ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
					return resource.List(ctx, opts)
				},
				WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
					events, err := resource.Watch(ctx, opts)
					if err != nil {
						return nil, err
					}
					return newEndless(events), nil
				},
			}, client), &unstructured.Unstructured{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
			ended := make(chan struct{})
			ends = append(ends, ended)
			go func() {
				defer close(ended)
				informer.RunWithContext(ctx)
			}()
			return &Informer{
				Handle: func(handler cache.ResourceEventHandler) error {
					_, err := informer.AddEventHandler(handler)
					return err
				},
				Synced: func(ctx context.Context) error { return await(ctx, informer.HasSyncedChecker().Done()) },
				Gone:   func(context.Context) error { return nil },
			}, nil
		},
		Stop: func(ctx context.Context) error {
			for _, ended := range ends {
				if err := await(ctx, ended); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// endless is a watch that goes on when its server has ended it, and says nothing more.
type endless struct {
	watch.Interface
	events  chan watch.Event
	stopped chan struct{}
	stop    func()
}

func newEndless(of watch.Interface) *endless {
	e := &endless{Interface: of, events: make(chan watch.Event), stopped: make(chan struct{})}
	e.stop = sync.OnceFunc(func() { close(e.stopped) })
	go func() {
		for event := range of.ResultChan() {
			select {
			case e.events <- event:
			case <-e.stopped:
				return
			}
		}
	}()
	return e
}

// ResultChan implements watch.Interface.
func (e *endless) ResultChan() <-chan watch.Event { return e.events }

// Stop implements watch.Interface.
func (e *endless) Stop() {
	e.stop()
	e.Interface.Stop()
}
