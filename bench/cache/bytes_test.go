package cache

import (
	"context"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/stub"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// heap returns the bytes of the objects in the heap that are in use.
func heap() int64 {
	for range 3 { // a pool keeps its objects for two collections
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // it is small
}

// tables is about the memory of the tables of a decoder.
const tables = 1 << 20

// number is the number of objects of the server.
const number = 5000

// measured returns the bytes of a cache of all objects in the status, as a part of those by which the heap grows.
func measured(
	t *testing.T, url string, policy dynamicinformer.WatchListPolicy, hasTables bool, acquire func(context.Context, *dynamicinformer.Factory) (*dynamicinformer.Lease, error),
) float64 {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	before := heap()
	if hasTables { // client-go decodes metadata
		before += tables
	}
	f, err := dynamicinformer.NewForConfig(&rest.Config{Host: url, QPS: -1}, dynamicinformer.WithDiscovery(nil), dynamicinformer.WithWatchListPolicy(policy))
	if err != nil {
		t.Fatal(err)
	}
	f.Start(ctx)
	defer func() {
		if err := f.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	}()
	lease, err := acquire(ctx, f)
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.WaitForSync(ctx); err != nil {
		t.Fatal(err)
	}
	now, took := lease.Status(), heap()-before
	if now.Objects != number {
		t.Fatalf("%d objects", now.Objects)
	}
	t.Logf("the status has %d bytes, the heap grew by %d", now.CacheBytes, took)
	return float64(now.CacheBytes) / float64(took)
}

func TestStatus_CacheBytesAreThoseOfTheHeap(t *testing.T) {
	if testing.Short() {
		t.Skip("the heap is the same without the race detector: make test runs it without -short")
	}
	forms := map[string]func(ctx context.Context, f *dynamicinformer.Factory, kind objects.Kind) (*dynamicinformer.Lease, error){
		"unstructured": func(ctx context.Context, f *dynamicinformer.Factory, kind objects.Kind) (*dynamicinformer.Lease, error) {
			return f.Acquire(ctx, kind.GVR)
		},
		"packed": func(ctx context.Context, f *dynamicinformer.Factory, kind objects.Kind) (*dynamicinformer.Lease, error) {
			return f.Acquire(ctx, kind.GVR, dynamicinformer.WithPackedCache())
		},
		"metadata": func(ctx context.Context, f *dynamicinformer.Factory, kind objects.Kind) (*dynamicinformer.Lease, error) {
			return f.Acquire(ctx, kind.GVR, dynamicinformer.WithMetadataOnly())
		},
		"typed": func(ctx context.Context, f *dynamicinformer.Factory, kind objects.Kind) (*dynamicinformer.Lease, error) {
			if kind.Name == "mix" {
				lease, err := dynamicinformer.AcquireTyped[*objects.Widget](ctx, f, kind.GVR)
				return lease.Lease, err
			}
			lease, err := dynamicinformer.AcquireTyped[*objects.IPAMBlock](ctx, f, kind.GVR)
			return lease.Lease, err
		},
	}
	for _, kind := range objects.All() {
		handler, err := stub.New(t.Context(), stub.Config{Kind: kind.Name, Objects: number})
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(handler)
		defer server.Close()
		for name, acquire := range forms {
			for _, policy := range []dynamicinformer.WatchListPolicy{dynamicinformer.WatchListNever, dynamicinformer.WatchListAnywhere} {
				if policy == dynamicinformer.WatchListAnywhere && kind.Name != "mix" {
					continue
				}
				t.Run(kind.Name+"/"+name+"/"+policy.String(), func(t *testing.T) {
					// On a busy machine, connections of an earlier factory may keep memory for a while, which then counts for this one.
					var ratio float64
					for range 4 {
						if ratio = measured(t, server.URL, policy, name != "metadata", func(ctx context.Context, f *dynamicinformer.Factory) (*dynamicinformer.Lease, error) {
							return acquire(ctx, f, kind)
						}); ratio > .85 && ratio < 1.15 {
							return
						}
					}
					t.Errorf("the status has %.2f times the bytes of the heap", ratio)
				})
			}
		}
	}
}
