package informermetrics

import (
	"math"
	"sync/atomic"

	"k8s.io/client-go/tools/cache"
)

// Relay is the metrics provider of one informer. It keeps the last values of the gauges, and
// passes values on while its informer is the published one. A nil *Relay has no
// effect in Identify, Begin and End.
type Relay struct {
	identity        *identity
	queued, version relayedGauge
	latency         relayedHistogram
}

var _ cache.InformerMetricsProvider = (*Relay)(nil)

// Identify puts the identity and the provider into the options of the informer.
func (r *Relay) Identify(o *cache.SharedIndexInformerOptions) {
	if r == nil {
		return
	}
	o.Identifier = r.identity.id
	if r.identity.provider != nil {
		o.InformerMetricsProvider = r
	}
}

// Begin is called when the informer is about to run.
func (r *Relay) Begin() {
	if r != nil && r.identity.provider != nil {
		r.identity.add(r)
	}
}

// End is called when the informer has ended.
func (r *Relay) End() {
	if r != nil && r.identity.provider != nil {
		r.identity.remove(r)
	}
}

// NewQueuedItemMetric implements cache.InformerMetricsProvider.
func (r *Relay) NewQueuedItemMetric(cache.InformerNameAndResource) cache.GaugeMetric {
	return &r.queued
}

// NewProcessingLatencyMetric implements cache.InformerMetricsProvider.
func (r *Relay) NewProcessingLatencyMetric(cache.InformerNameAndResource) cache.HistogramMetric {
	return &r.latency
}

// NewStoreResourceVersionMetric implements cache.InformerMetricsProvider.
func (r *Relay) NewStoreResourceVersionMetric(cache.InformerNameAndResource) cache.GaugeMetric {
	return &r.version
}

// relayedGauge stores its value, and passes it on while it is connected.
type relayedGauge struct {
	last atomic.Uint64 // the bits of its value
	to   atomic.Pointer[cache.GaugeMetric]
}

// Set implements cache.GaugeMetric. client-go calls it with its own locks held.
func (g *relayedGauge) Set(value float64) {
	g.last.Store(math.Float64bits(value))
	if to := g.to.Load(); to != nil {
		(*to).Set(value)
	}
}

// connect connects g to a gauge, which gets the last value, or to none. If g is set at the same time,
// the gauge may get the older value last; so connect sets the last value again.
func (g *relayedGauge) connect(to cache.GaugeMetric) {
	if to == nil {
		g.to.Store(nil)
		return
	}
	g.to.Store(&to)
	for {
		last := g.last.Load()
		to.Set(math.Float64frombits(last))
		if g.last.Load() == last {
			return
		}
	}
}

// relayedHistogram passes observed values on while it is connected.
type relayedHistogram struct {
	to atomic.Pointer[cache.HistogramMetric]
}

// Observe implements cache.HistogramMetric.
func (h *relayedHistogram) Observe(value float64) {
	if to := h.to.Load(); to != nil {
		(*to).Observe(value)
	}
}

func (h *relayedHistogram) connect(to cache.HistogramMetric) {
	if to == nil {
		h.to.Store(nil)
		return
	}
	h.to.Store(&to)
}
