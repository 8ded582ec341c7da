package metrics_test

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/metrics"
)

// The benchmark measures a scrape of many types, and the part of the collector.
func BenchmarkCollector(b *testing.B) {
	for _, types := range []int{100, 10_000} {
		f, err := dynamicinformer.New(fakecluster.New())
		if err != nil {
			b.Fatal(err)
		}
		for i := range types {
			f.ForResource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: fmt.Sprintf("types%05d", i)})
		}
		collector := metrics.NewCollector(f)
		registry := prometheus.NewRegistry()
		registry.MustRegister(collector)
		b.Run(fmt.Sprintf("types=%d/collect", types), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				samples(collector)
			}
		})
		b.Run(fmt.Sprintf("types=%d/gather", types), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := registry.Gather(); err != nil {
					b.Fatal(err)
				}
			}
		})
		if err := f.Shutdown(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
