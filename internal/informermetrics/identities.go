package informermetrics

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Identities has the identities of all GVRs under one name. A GVR keeps its identity, as in client-go.
// A nil *Identities means that there are no metrics. It is safe for concurrent use.
type Identities struct {
	name     *cache.InformerName
	provider cache.InformerMetricsProvider // nil: client-go's process-wide one

	mu    sync.Mutex
	byGVR map[schema.GroupVersionResource]*identity
}

// New returns the identities under name, with metrics from provider. It returns nil if name is nil. If
// provider is nil, it is the provider of cache.SetInformerMetricsProvider. If provider has the method
// ForgetInformer(cache.InformerNameAndResource), the method is called when the last informer with an
// identity has ended. Provider is not called concurrently for one GVR.
func New(name *cache.InformerName, provider cache.InformerMetricsProvider) *Identities {
	if name == nil {
		return nil
	}
	return &Identities{name: name, provider: provider, byGVR: map[schema.GroupVersionResource]*identity{}}
}

// Relay returns the metrics of one informer on gvr, or nil if there are none.
func (all *Identities) Relay(gvr schema.GroupVersionResource) *Relay {
	if all == nil {
		return nil
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	own := all.byGVR[gvr]
	if own == nil {
		own = &identity{id: all.name.WithResource(gvr), provider: all.provider}
		all.byGVR[gvr] = own
	}
	return &Relay{identity: own}
}

// identity is the identity of the informers on one GVR.
type identity struct {
	id       cache.InformerNameAndResource
	provider cache.InformerMetricsProvider

	// The fields below are guarded by mu, which is not held while provider is called.
	mu        sync.Mutex
	running   []*Relay // in the order in which they began
	published *Relay   // the relay that is published, or will be
	switching bool     // a goroutine is publishing the first of running

	// The metrics of provider, while there is a published relay. Only the goroutine that is
	// switching uses them.
	queued, version cache.GaugeMetric
	latency         cache.HistogramMetric
}

func (i *identity) add(r *Relay) {
	i.mu.Lock()
	i.running = append(i.running, r)
	i.mu.Unlock()
	i.update()
}

func (i *identity) remove(r *Relay) {
	i.mu.Lock()
	i.running = slices.DeleteFunc(i.running, func(other *Relay) bool { return other == r })
	i.mu.Unlock()
	i.update()
}

// update publishes the first running relay. If another goroutine is already switching, that goroutine
// does it, so that provider is not called concurrently.
func (i *identity) update() {
	for {
		i.mu.Lock()
		var next *Relay
		if len(i.running) > 0 {
			next = i.running[0]
		}
		last := i.published
		if i.switching || next == last {
			i.mu.Unlock()
			return
		}
		i.switching, i.published = true, next
		i.mu.Unlock()
		i.switchTo(last, next)
		i.mu.Lock()
		i.switching = false
		i.mu.Unlock()
	}
}

// switchTo connects the metrics of provider to next instead of last. Either may be nil.
func (i *identity) switchTo(last, next *Relay) {
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
	if provider, forgets := i.provider.(interface {
		ForgetInformer(id cache.InformerNameAndResource)
	}); forgets {
		provider.ForgetInformer(i.id)
	} else {
		i.queued.Set(0)
		i.version.Set(0)
	}
	i.queued, i.version, i.latency = nil, nil, nil
}
