package dynamicinformer_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// BenchmarkStart_PeakHeap is the start of a factory with 100 types of 2,000 objects of 5 KB, whose transform
// drops most of each object. Lists are not watch-lists. The figures of docs/memory.md:
//
//	go test ./dynamicinformer -run '^$' -bench Start_PeakHeap -benchtime 1x -count 3
func BenchmarkStart_PeakHeap(b *testing.B) {
	const types, objects = 100, 2000
	server := httptest.NewServer(listsOf(objects, strings.Repeat("x", 5000)))
	defer server.Close()
	for name, limit := range map[string]dynamicinformer.Option{
		"limit=none": nil, "limit=4lists": dynamicinformer.WithListConcurrency(4), "limit=16MiB": dynamicinformer.WithListBudget(16 << 20),
	} {
		b.Run(name, func(b *testing.B) {
			var peak, after uint64
			for b.Loop() {
				f, err := dynamicinformer.NewForConfig(&rest.Config{Host: server.URL, QPS: -1}, limit, dynamicinformer.WithDiscovery(nil),
					dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever),
					dynamicinformer.WithTransform(func(obj any) (any, error) {
						delete(obj.(*unstructured.Unstructured).Object, "spec")
						return obj, nil
					}))
				if err != nil {
					b.Fatal(err)
				}
				for i := range types {
					f.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: fmt.Sprintf("w%d", i)})
				}
				runtime.GC()
				highest := heapPeak(b.Context())
				f.Start(b.Context())
				if err := f.WaitForSync(b.Context()); err != nil {
					b.Fatal(err)
				}
				peak = max(peak, highest())
				runtime.GC()
				after = heapInUse()
				if err := f.Shutdown(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(peak>>20), "peak-MB")
			b.ReportMetric(float64(after>>20), "cache-MB")
		})
	}
}

// listsOf responds to lists with objects that have text, and to watches without events.
func listsOf(objects int, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		if query.Get("watch") != "" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		from, _ := strconv.Atoi(query.Get("continue"))
		to, more := objects, ""
		if limit, _ := strconv.Atoi(query.Get("limit")); limit > 0 && from+limit < objects {
			to = from + limit
			more = fmt.Sprintf(`, "continue": "%d", "remainingItemCount": %d`, to, objects-to)
		}
		_, _ = fmt.Fprintf(w, `{"apiVersion": "example.com/v1", "kind": "WidgetList", "metadata": {"resourceVersion": "1"%s}, "items": [`, more)
		for i, comma := from, ""; i < to; i, comma = i+1, "," {
			_, _ = fmt.Fprintf(w, `%s{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"namespace": "ns", "name": "w%d", "uid": "%[2]d",
				"resourceVersion": "1"}, "spec": {"text": "%s%[2]d"}}`, comma, i, text)
		}
		_, _ = fmt.Fprint(w, "]}")
	})
}

// heapPeak returns a function that returns the highest use of the heap since then.
func heapPeak(ctx context.Context) (highest func() uint64) {
	ctx, cancel := context.WithCancel(ctx)
	result := make(chan uint64)
	go func() {
		peak := uint64(0)
		for ctx.Err() == nil {
			peak = max(peak, heapInUse())
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		result <- peak
	}()
	return func() uint64 {
		cancel()
		return <-result
	}
}

func heapInUse() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse
}
