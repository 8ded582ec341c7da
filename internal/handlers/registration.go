package handlers

import (
	"strings"

	"k8s.io/client-go/tools/cache"
)

// registration is client-go's of a wrapped handler. It has the name of the handler itself.
type registration struct {
	cache.ResourceEventHandlerRegistration
	handler *handler
}

// HasSyncedChecker implements cache.ResourceEventHandlerRegistration.
func (r *registration) HasSyncedChecker() cache.DoneChecker {
	return &namedChecker{DoneChecker: r.ResourceEventHandlerRegistration.HasSyncedChecker(), handler: r.handler}
}

// ShutdownChan closes when a handler that was removed is not called any more:
// cache.ShutDownEventHandler waits for it.
func (r *registration) ShutdownChan() <-chan struct{} {
	return r.ResourceEventHandlerRegistration.(interface{ ShutdownChan() <-chan struct{} }).ShutdownChan()
}

type namedChecker struct {
	cache.DoneChecker
	handler *handler
}

// Name implements cache.DoneChecker.
func (c *namedChecker) Name() string {
	return strings.Replace(c.DoneChecker.Name(), nameOf(c.handler), c.handler.name, 1)
}
