package dynamicinformer

import (
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/informermetrics"
)

// InformerMetricsForgetter is a cache.InformerMetricsProvider that is told when informers end.
type InformerMetricsForgetter interface {
	cache.InformerMetricsProvider
	// ForgetInformer is called when no informer with the identity id runs any more. Its
	// metrics are not used after that; when there is one again, new ones are asked for.
	ForgetInformer(id cache.InformerNameAndResource)
}

// WithInformerMetrics lets provider publish client-go's own metrics of each informer, under name
// and the GVR: how many events are queued, how long they take, and the resourceVersion of the
// store. A nil provider means the one that was given to cache.SetInformerMetricsProvider. A nil
// name, the default, means no metrics.
//
// Client-go accepts a name once for each GVR; an informer that comes second has no metrics. So the
// factory uses one identity for all informers on a GVR, the first and those that come after it.
// If two of them run at the same time, since one has not ended yet, has another version policy, or
// is that of [WithSeparateInformer], only the one that began first is published. When it has
// ended, the next one is published, with its last gauge values; earlier latencies are not observed
// again. Provider is asked for metrics when an informer begins to run, which is when its type is
// served. When the last informer on a GVR has ended, ForgetInformer is called if provider is an
// [InformerMetricsForgetter]; otherwise its gauges are set to zero. That has been done when
// Shutdown returns nil.
//
// This does not hold for client-go's process-wide provider, which this package can't call: it is
// asked when an informer is made, all informers on a GVR publish at the same time, so that gauges
// have the value that was set last, and nothing is forgotten before name is released.
//
// Factories can share a name only if they are given the same Option. The owner of name releases
// it, after Shutdown. An informer that its user runs by hand has metrics only if the factory is
// started, too; they then end with the factory.
func WithInformerMetrics(name *cache.InformerName, provider cache.InformerMetricsProvider) Option {
	identities := informermetrics.New(name, provider)
	return optionFunc(func(o *options) { o.identities = identities })
}
