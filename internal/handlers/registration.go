package handlers

import (
	"strings"

	"k8s.io/client-go/tools/cache"
)

// registration is client-go's registration of a wrapped handler. Its checker has the names of the
// set and of the original handler.
type registration struct {
	cache.ResourceEventHandlerRegistration
	handler *handler
}

// HasSynced implements cache.ResourceEventHandlerRegistration.
func (r *registration) HasSynced() bool { return cache.IsDone(r.HasSyncedChecker()) }

// HasSyncedChecker implements cache.ResourceEventHandlerRegistration.
func (r *registration) HasSyncedChecker() cache.DoneChecker {
	return &namedChecker{DoneChecker: r.ResourceEventHandlerRegistration.HasSyncedChecker(), handler: r.handler}
}

// ShutdownChan returns a channel that closes when the last call of a removed handler has returned.
// cache.ShutDownEventHandler waits for it.
func (r *registration) ShutdownChan() <-chan struct{} {
	if r.handler.ended != nil {
		return r.handler.ended
	}
	return stopOf(r.ResourceEventHandlerRegistration)
}

type namedChecker struct {
	cache.DoneChecker
	handler *handler
}

// Name implements cache.DoneChecker.
func (c *namedChecker) Name() string {
	name := strings.Replace(c.DoneChecker.Name(), nameOf(c.handler), c.handler.name, 1)
	if s := c.handler.set; s.Name != "" {
		return s.Name + strings.TrimPrefix(name, s.informer.HasSyncedChecker().Name())
	}
	return name
}

// Done implements cache.DoneChecker.
func (c *namedChecker) Done() <-chan struct{} {
	if c := c.handler.coalescer; c != nil {
		return c.synced
	}
	return c.DoneChecker.Done()
}
