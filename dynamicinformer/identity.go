package dynamicinformer

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// InformerMetricsForgetter is a cache.InformerMetricsProvider that is told when informers go.
type InformerMetricsForgetter interface {
	cache.InformerMetricsProvider
	// ForgetInformer is called when no informer with the identity id runs any more. Its
	// metrics are not used after that; when there is one again, new ones are asked for.
	ForgetInformer(id cache.InformerNameAndResource)
}

// WithInformerMetrics lets client-go's own metrics of each informer be published by provider,
// under name and the GVR: how many events are queued, how long they take, and the
// resourceVersion of the store. Nil for provider means the one that was given to
// cache.SetInformerMetricsProvider. Nil for name, the default, means no metrics.
//
// Client-go lets name be used once for each GVR, and whoever comes second has no metrics. The
// factory uses one identity for all informers on a GVR, the first and those that come after it.
// Where two run at the same time, since one has not ended yet, or is of other versions or
// [WithSeparateInformer], the one that began first publishes alone. When it has ended the next
// one does, with its last values; what took how long is not made up for. Provider is asked
// for metrics when an informer begins to run, which is when its type is served. When the last
// one on a GVR has ended, provider forgets it if it is an [InformerMetricsForgetter], and has
// its gauges set to zero if not. That has been done when Shutdown returns nil.
//
// None of this is so with client-go's process-wide provider, which can't be had: it is
// asked when an informer is made, all informers on a GVR publish at the same time, so that gauges are
// those of the one that has changed last, and nothing is forgotten before name is released.
//
// Factories can share a name only if they are given the same Option. To release name is
// its owner's task, after Shutdown. An informer that its user runs by hand has none unless the
// factory is started, too; they then end with the factory.
func WithInformerMetrics(name *cache.InformerName, provider cache.InformerMetricsProvider) Option {
	var all *identities
	if name != nil {
		all = &identities{name: name, provider: provider, of: map[schema.GroupVersionResource]*identity{}}
	}
	return optionFunc(func(o *options) { o.identities = all })
}

// identities are those of all GVRs under one name. A GVR keeps its own for ever, as it does
// in client-go.
type identities struct {
	name     *cache.InformerName
	provider cache.InformerMetricsProvider // nil: client-go's

	mu sync.Mutex
	of map[schema.GroupVersionResource]*identity
}

// identity is what the informers on one GVR are published as.
type identity struct {
	id       cache.InformerNameAndResource
	provider cache.InformerMetricsProvider

	// The fields below are guarded by mu, which is not held while provider is called.
	mu      sync.Mutex
	running []*voice // in the order in which they began
	speaker *voice   // the one that is published, or is about to be
	passing bool     // somebody is making speaker the first of running

	// Those of provider, while there is a speaker. They are touched only by who passes.
	queued, version cache.GaugeMetric
	latency         cache.HistogramMetric
}

// voiceOf returns the part in the metrics of an informer on gvr, or nil if it has none.
func (all *identities) voiceOf(gvr schema.GroupVersionResource) *voice {
	if all == nil {
		return nil
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	own := all.of[gvr]
	if own == nil {
		own = &identity{id: all.name.WithResource(gvr), provider: all.provider}
		all.of[gvr] = own
	}
	return &voice{of: own}
}

// voice is the metrics provider of one informer. It keeps what the informer says, and passes
// it on while the informer is the one that is published.
type voice struct {
	of              *identity
	queued, version relayedGauge
	latency         relayedHistogram
}

var _ cache.InformerMetricsProvider = (*voice)(nil)

// NewQueuedItemMetric implements cache.InformerMetricsProvider.
func (v *voice) NewQueuedItemMetric(cache.InformerNameAndResource) cache.GaugeMetric {
	return &v.queued
}

// NewProcessingLatencyMetric implements cache.InformerMetricsProvider.
func (v *voice) NewProcessingLatencyMetric(cache.InformerNameAndResource) cache.HistogramMetric {
	return &v.latency
}

// NewStoreResourceVersionMetric implements cache.InformerMetricsProvider.
func (v *voice) NewStoreResourceVersionMetric(cache.InformerNameAndResource) cache.GaugeMetric {
	return &v.version
}

// identify puts v into the options of its informer. A nil v has no effect.
func (v *voice) identify(o *cache.SharedIndexInformerOptions) {
	if v == nil {
		return
	}
	o.Identifier = v.of.id
	if v.of.provider != nil {
		o.InformerMetricsProvider = v
	}
}

// begin is called when the informer is about to run. A nil v has no effect.
func (v *voice) begin() {
	if v == nil || v.of.provider == nil {
		return
	}
	v.of.mu.Lock()
	v.of.running = append(v.of.running, v)
	v.of.mu.Unlock()
	v.of.pass()
}

// end is called when it has ended. A nil v has no effect.
func (v *voice) end() {
	if v == nil || v.of.provider == nil {
		return
	}
	v.of.mu.Lock()
	v.of.running = slices.DeleteFunc(v.of.running, func(other *voice) bool { return other == v })
	v.of.mu.Unlock()
	v.of.pass()
}

// pass makes the first of those that run the one that is published, unless somebody is about
// it, who then does this, too: provider is not called by two at a time.
func (i *identity) pass() {
	for {
		i.mu.Lock()
		var next *voice
		if len(i.running) > 0 {
			next = i.running[0]
		}
		last := i.speaker
		if i.passing || next == last {
			i.mu.Unlock()
			return
		}
		i.passing, i.speaker = true, next
		i.mu.Unlock()
		i.hand(last, next)
		i.mu.Lock()
		i.passing = false
		i.mu.Unlock()
	}
}

// hand passes the metrics from one to the next; nil: there is none.
func (i *identity) hand(last, next *voice) {
	if last == nil {
		i.queued = i.provider.NewQueuedItemMetric(i.id)
		i.version = i.provider.NewStoreResourceVersionMetric(i.id)
		i.latency = i.provider.NewProcessingLatencyMetric(i.id)
	} else {
		last.queued.connect(nil)
		last.version.connect(nil)
		last.latency.connect(nil)
	}
	if next != nil {
		next.queued.connect(i.queued)
		next.version.connect(i.version)
		next.latency.connect(i.latency)
		return
	}
	if provider, forgets := i.provider.(InformerMetricsForgetter); forgets {
		provider.ForgetInformer(i.id)
	} else {
		i.queued.Set(0)
		i.version.Set(0)
	}
	i.queued, i.version, i.latency = nil, nil, nil
}

// relayedGauge passes on what it is set to, while it is connected, and keeps it.
type relayedGauge struct {
	last atomic.Uint64 // its bits
	to   atomic.Pointer[cache.GaugeMetric]
}

// Set implements cache.GaugeMetric. Client-go calls it under locks of its own.
func (g *relayedGauge) Set(value float64) {
	g.last.Store(math.Float64bits(value))
	if to := g.to.Load(); to != nil {
		(*to).Set(value)
	}
}

// connect connects it to a gauge, which gets its last value, or to none. It may be set
// meanwhile: then the gauge may get the older value last, and so gets the last one again.
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

// relayedHistogram passes on what is observed, while it is connected.
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
