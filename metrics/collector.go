package metrics

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

// Option configures a collector. Every combination is valid. If an option is given twice, the last
// one counts. A nil Option has no effect.
type Option interface{ apply(*collector) }

type optionFunc func(*collector)

func (f optionFunc) apply(c *collector) { f(c) }

// WithResourceLimit limits the number of resources that have series. These are the first resources by
// name. gvrkit_informers counts the informers of all resources, and gvrkit_resources_omitted the
// resources without series. If resources is zero or less, the default, there is no limit.
func WithResourceLimit(resources int) Option {
	return optionFunc(func(c *collector) { c.limit = max(0, resources) })
}

// errNoFactory is the error of each scrape of a collector without a factory.
var errNoFactory = errors.New("metrics: the factory of NewCollector is nil")

// NewCollector returns a collector of the status of f's informers and of its discovery. It reads the
// state at the time of a scrape. It has no goroutine, sends no requests, and does not wait for an
// informer that is busy. It may be registered before f is started. After f has been shut down, there
// are no series of resources. The collector is safe for concurrent use.
//
// Several informers on one resource have common series: counts and sizes are sums, the state is the
// worst state, and ages are the highest ages. If one of them ends while others continue, its counts of
// the last scrape are kept, so that counters do not decrease.
//
// If f is nil, each scrape has an error.
func NewCollector(f *dynamicinformer.Factory, opts ...Option) prometheus.Collector {
	c := &collector{factory: f}
	for _, opt := range opts {
		if opt != nil {
			opt.apply(c)
		}
	}
	return c
}

type collector struct {
	factory *dynamicinformer.Factory
	limit   int // of resources; 0: no limit
	carry   carry
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range all {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	if c.factory == nil {
		to <- prometheus.NewInvalidMetric(informersDesc, errNoFactory)
		return
	}
	statuses, resources := c.look()
	informers := map[status.State]int{}
	for i := range statuses {
		informers[statuses[i].State]++
	}
	for _, state := range states {
		gauge(to, informersDesc, float64(informers[state]), string(state))
	}
	shown := len(resources)
	if c.limit > 0 {
		shown = min(shown, c.limit)
	}
	gauge(to, omittedDesc, float64(len(resources)-shown))
	for _, r := range resources[:shown] {
		r.collect(to)
	}
	if b := c.factory.MemoryBudget(); b.Limit > 0 {
		gauge(to, budgetDesc, float64(b.Limit))
		gauge(to, memoryDesc, float64(b.Caches), "caches")
		gauge(to, memoryDesc, float64(b.Lists), "lists")
	}
	if resolver := c.factory.Resolver(); resolver != nil {
		collectDiscovery(to, resolver.Status())
	}
}

// look returns the statuses of all informers, and all resources. Concurrent scrapes call it one after
// another, so that counters do not decrease.
func (c *collector) look() ([]status.Informer, []*resource) {
	c.carry.mu.Lock()
	defer c.carry.mu.Unlock()
	statuses := c.factory.Status()
	resources := summarize(statuses, time.Now())
	c.carry.addLocked(resources, statuses)
	return statuses, resources
}

// collect sends the series of one resource.
func (r *resource) collect(to chan<- prometheus.Metric) {
	send := func(send sender, desc *prometheus.Desc, value float64, more ...string) {
		send(to, desc, value, append([]string{r.group, r.version, r.resource}, more...)...)
	}
	for _, state := range liveStates {
		send(gauge, stateDesc, oneIf(r.state == state), string(state))
	}
	if r.reason != "" {
		send(gauge, reasonDesc, 1, string(r.reason))
	}
	for reason, objects := range r.failed {
		send(gauge, failedDesc, float64(objects), string(reason))
	}
	for reason, failures := range r.failures {
		send(counter, failuresDesc, float64(failures), string(reason))
	}
	send(counter, listsDesc, float64(r.lists))
	send(counter, watchesDesc, float64(r.watches))
	send(counter, bytesDesc, float64(r.bytes))
	send(counter, eventsDesc, float64(r.events))
	send(gauge, objectsDesc, float64(r.objects))
	send(gauge, cacheDesc, float64(r.cache))
	if r.slots.any || r.moved > 0 { // the informers with a shard may have ended
		send(counter, movedDesc, float64(r.moved))
	}
	if r.slots.any {
		send(gauge, slotsDesc, float64(r.slots.held), "held")
		send(gauge, slotsDesc, float64(r.slots.loading), "loading")
		send(gauge, slotsDesc, float64(r.slots.pending), "pending")
		send(gauge, byClientDesc, oneIf(r.slots.byClient))
	}
	send(gauge, leasesDesc, float64(r.leases))
	send(gauge, handlersDesc, float64(r.handlers))
	send(gauge, backlogDesc, float64(r.backlog))
	send(gauge, backlogMaxDesc, float64(r.backlogMax))
	send(gauge, lagDesc, r.lag.Seconds())
	send(gauge, callDesc, r.call.Seconds())
	send(gauge, staleDesc, r.stale.Seconds())
	if !r.lastEvent.IsZero() {
		send(gauge, lastEventDesc, float64(r.lastEvent.UnixMilli())/1000)
	}
}

func collectDiscovery(to chan<- prometheus.Metric, s discovery.Status) {
	gauge(to, runningDesc, oneIf(s.Running))
	gauge(to, typesDesc, float64(s.Types))
	counter(to, requestsDesc, float64(s.Requests))
	counter(to, answersDesc, float64(s.Answers.Served), "served")
	counter(to, answersDesc, float64(s.Answers.NotServed), "not_served")
	counter(to, answersDesc, float64(s.Answers.Inconclusive), "inconclusive")
	counter(to, answersDesc, float64(s.Answers.Ambiguous), "ambiguous")
	source := func(name string, source discovery.SourceStatus) {
		for _, state := range sourceStates {
			gauge(to, sourceDesc, oneIf(source.State == state), name, string(state))
		}
	}
	source("crds", s.CRDs)
	source("apiservices", s.APIServices)
	source("documents", s.Documents)
}

// sender sends one sample. Label values are valid UTF-8 and as many as desc has.
type sender func(to chan<- prometheus.Metric, desc *prometheus.Desc, value float64, labels ...string)

func gauge(to chan<- prometheus.Metric, desc *prometheus.Desc, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

func counter(to chan<- prometheus.Metric, desc *prometheus.Desc, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value, labels...)
}

func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}
