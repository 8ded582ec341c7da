package informermetrics

import (
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// Identities are the identities of all GVRs under one name. A GVR keeps its identity for ever, as
// it does in client-go. A nil *Identities stands for no metrics. Safe for concurrent use.
type Identities struct {
	name     *cache.InformerName
	provider cache.InformerMetricsProvider // nil: client-go's process-wide one

	mu    sync.Mutex
	byGVR map[schema.GroupVersionResource]*identity
}

// New returns the identities under name, whose metrics provider makes; nil, if name is nil. A nil
// provider means the one that was given to cache.SetInformerMetricsProvider. A provider with the
// method ForgetInformer(cache.InformerNameAndResource) is told when no informer with an identity
// runs any more. Provider is not called by two goroutines at a time for one GVR.
func New(name *cache.InformerName, provider cache.InformerMetricsProvider) *Identities {
	if name == nil {
		return nil
	}
	return &Identities{name: name, provider: provider, byGVR: map[schema.GroupVersionResource]*identity{}}
}

// Relay returns the metrics of one informer on gvr; nil, if there are none.
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

// identity is what the informers on one GVR are published as.
type identity struct {
	id       cache.InformerNameAndResource
	provider cache.InformerMetricsProvider

	// The fields below are guarded by mu, which is not held while provider is called.
	mu        sync.Mutex
	running   []*Relay // in the order in which they began
	published *Relay   // the one that is published, or is about to be
	switching bool     // a goroutine is making the first of running the published one

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

// update publishes the first running relay. If another goroutine is already switching, that one
// does this too, so that provider is not called by two at a time.
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

// switchTo connects the metrics of provider to next in place of last; nil means none.
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
