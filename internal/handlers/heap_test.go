package handlers

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// A handler takes 10 ms for an event, and there are 10,000 updates of 1,000 objects a second. With
// coalescing, the heap stays flat. Without, as in client-go, each update waits with its objects.
func TestSet_CoalescingKeepsTheHeapFlat(t *testing.T) {
	for _, coalescing := range []bool{false, true} {
		t.Run(fmt.Sprintf("coalescing=%v", coalescing), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { growth(t, coalescing) })
		})
	}
}

func growth(t *testing.T, coalescing bool) {
	t.Helper()
	const objects, updates = 1000, 100_000
	updateOf := func(i int) *metav1.PartialObjectMetadata {
		obj := thing(fmt.Sprint(i%objects), "a", i+1)
		obj.Annotations = map[string]string{"text": string(make([]byte, 1000))}
		return obj
	}
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for i := range objects {
		list.Items = append(list.Items, *updateOf(i))
	}
	stream := watch.NewFake()
	informer := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (kruntime.Object, error) { return list, nil },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return stream, nil
		},
	}, noWatchLists{}), nil, 0, nil)
	s := NewSet(informer, &feed{}, nil)
	calls, last := 0, 0
	handler := cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, obj any) {
		calls++
		_, _ = fmt.Sscan(obj.(metav1.Object).GetResourceVersion(), &last)
		time.Sleep(10 * time.Millisecond)
	}}
	if _, err := s.Add(handler, cache.HandlerOptions{}, NewGroup("", Options{Coalescing: coalescing}), 0); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		running, stop := s.Start(ctx)
		defer stop()
		informer.RunWithContext(running)
		s.Wait()
	}()
	synctest.Wait()
	list.Items = nil
	var heap [10]uint64 // after each tenth of the updates
	for i := range updates {
		stream.Modify(updateOf(objects + i))
		if i%10 == 9 {
			time.Sleep(time.Millisecond)
		}
		if i%(updates/10) == updates/10-1 {
			synctest.Wait()
			runtime.GC()
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			heap[i/(updates/10)] = stats.HeapAlloc
		}
	}
	t.Logf("heap in MB: %.1f after %d updates, %.1f after %d; calls: %d, the last one for update %d",
		float64(heap[0])/1e6, updates/10, float64(heap[9])/1e6, updates, calls, last)
	grown := int64(heap[9]) - int64(heap[0]) //nolint:gosec // less than 2^63
	if flat := grown < 2e6; flat != coalescing {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	cancel()
	<-ended
}

// noWatchLists is client-go's marker of clients without watch-lists.
type noWatchLists struct{}

func (noWatchLists) IsWatchListSemanticsUnSupported() bool { return true }
