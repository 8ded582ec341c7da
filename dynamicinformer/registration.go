package dynamicinformer

import (
	"strings"

	"k8s.io/client-go/tools/cache"
)

// registration is client-go's of a metered handler, by the name of the handler itself.
type registration struct {
	cache.ResourceEventHandlerRegistration
	metered *meter
}

// HasSyncedChecker implements cache.ResourceEventHandlerRegistration.
func (r *registration) HasSyncedChecker() cache.DoneChecker {
	return &namedChecker{DoneChecker: r.ResourceEventHandlerRegistration.HasSyncedChecker(), metered: r.metered}
}

// ShutdownChan closes when the handler, which has been removed, is not called any more:
// cache.ShutDownEventHandler waits for it.
func (r *registration) ShutdownChan() <-chan struct{} {
	return r.ResourceEventHandlerRegistration.(interface{ ShutdownChan() <-chan struct{} }).ShutdownChan()
}

type namedChecker struct {
	cache.DoneChecker
	metered *meter
}

// Name implements cache.DoneChecker.
func (c *namedChecker) Name() string {
	return strings.Replace(c.DoneChecker.Name(), nameOf(c.metered), c.metered.name, 1)
}
