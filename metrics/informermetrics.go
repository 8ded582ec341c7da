package metrics

import (
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// InformerMetrics collects client-go's own metrics of informers. Pass it to a factory with
// [dynamicinformer.WithInformerMetrics], and register it as a collector. Its series also have the
// informer name of that option as a label. The series of a resource exist while an informer on it
// runs, at most until the name is released. It is safe for concurrent use.
//
// If it is passed to cache.SetInformerMetricsProvider instead, it collects the metrics of all named
// informers of the process. These series end when their name is released.
type InformerMetrics struct {
	mu  sync.Mutex // not held while metrics are sent
	all map[cache.InformerNameAndResource]*series
}

var (
	_ dynamicinformer.InformerMetricsForgetter = (*InformerMetrics)(nil)
	_ prometheus.Collector                     = (*InformerMetrics)(nil)
)

// NewInformerMetrics returns an InformerMetrics without series.
func NewInformerMetrics() *InformerMetrics {
	return &InformerMetrics{all: map[cache.InformerNameAndResource]*series{}}
}

// NewQueuedItemMetric implements cache.InformerMetricsProvider.
func (m *InformerMetrics) NewQueuedItemMetric(id cache.InformerNameAndResource) cache.GaugeMetric {
	return &m.of(id).queued
}

// NewStoreResourceVersionMetric implements cache.InformerMetricsProvider.
func (m *InformerMetrics) NewStoreResourceVersionMetric(id cache.InformerNameAndResource) cache.GaugeMetric {
	return &m.of(id).stored
}

// NewProcessingLatencyMetric implements cache.InformerMetricsProvider.
func (m *InformerMetrics) NewProcessingLatencyMetric(id cache.InformerNameAndResource) cache.HistogramMetric {
	return &m.of(id).latency
}

// ForgetInformer implements dynamicinformer.InformerMetricsForgetter.
func (m *InformerMetrics) ForgetInformer(id cache.InformerNameAndResource) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.all, id)
}

func (m *InformerMetrics) of(id cache.InformerNameAndResource) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	own := m.all[id]
	if own == nil {
		if m.all == nil {
			m.all = map[cache.InformerNameAndResource]*series{}
		}
		own = &series{names: namesOf(id.GroupVersionResource()), name: label(id.Name())}
		m.all[id] = own
	}
	return own
}

// Describe implements prometheus.Collector.
func (m *InformerMetrics) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range informerDescs {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (m *InformerMetrics) Collect(to chan<- prometheus.Metric) {
	for _, s := range m.reserved() {
		s.collect(to)
	}
}

// reserved returns the series whose names have not been released, and removes the others. If several
// series have equal labels, it returns one of them.
func (m *InformerMetrics) reserved() []*series {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.all, func(id cache.InformerNameAndResource, _ *series) bool { return !id.Reserved() })
	type labels struct {
		names
		name string
	}
	found := make(map[labels]*series, len(m.all))
	for _, s := range m.all {
		found[labels{s.names, s.name}] = s
	}
	return slices.Collect(maps.Values(found))
}

// series are the series of one identity.
type series struct {
	names
	name    string
	queued  number
	stored  number // its resourceVersion
	latency histogram
}

func (s *series) collect(to chan<- prometheus.Metric) {
	labels := []string{s.name, s.group, s.version, s.resource}
	gauge(to, queuedDesc, s.queued.value(), labels...)
	gauge(to, storeVersionDesc, s.stored.value(), labels...)
	to <- s.latency.metric(labels)
}

// number is a gauge.
type number struct{ bits atomic.Uint64 }

// Set implements cache.GaugeMetric.
func (n *number) Set(value float64) { n.bits.Store(math.Float64bits(value)) }

func (n *number) value() float64 { return math.Float64frombits(n.bits.Load()) }

// bounds are the upper bounds of the buckets, in seconds.
var bounds = [...]float64{1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10}

// histogram counts observed values.
type histogram struct {
	mu     sync.Mutex
	counts [len(bounds)]uint64 // of each bucket alone
	count  uint64
	sum    float64
}

// Observe implements cache.HistogramMetric.
func (h *histogram) Observe(value float64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i, _ := slices.BinarySearch(bounds[:], value); i < len(bounds) {
		h.counts[i]++
	}
	h.count++
	h.sum += value
}

func (h *histogram) metric(labels []string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(bounds))
	h.mu.Lock()
	var below uint64
	for i, bound := range bounds {
		below += h.counts[i]
		buckets[bound] = below
	}
	count, sum := h.count, h.sum
	h.mu.Unlock()
	return prometheus.MustNewConstHistogram(latencyDesc, count, sum, buckets, labels...)
}
