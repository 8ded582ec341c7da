package handlers

import (
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// shortestResync is client-go's minimum for a resync period.
const shortestResync = time.Second

// resync calls a handler once in each period with an update for each object that the handler has got and
// that has not been deleted. The updates have the last state that the handler has got, and come between two
// other calls: as in client-go, a handler has one call at a time, and no state comes after a later one.
type resync struct {
	handler *handler
	period  time.Duration
	logger  klog.Logger

	// objects has the last state that the handler has got of each object. The turn of the handler guards it.
	objects map[cache.ObjectName]any
}

func newResync(h *handler, period time.Duration, logger klog.Logger) *resync {
	return &resync{
		handler: h, period: max(period, shortestResync), logger: logger,
		objects: map[cache.ObjectName]any{},
	}
}

// record stores the object of e. The caller has the turn.
func (r *resync) record(e event) {
	name, err := cache.DeletionHandlingObjectToName(e.obj)
	switch {
	case err != nil: // it gets no resync
	case e.kind == deleted:
		delete(r.objects, name)
	default:
		r.objects[name] = e.obj
	}
}

// run calls the handler until stop closes, and waits for the last call. A period that ends during the calls
// of the one before is left out.
func (r *resync) run(stop <-chan struct{}) {
	ticker := time.NewTicker(r.period)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-stop:
			return
		}
		for _, name := range r.names(stop) {
			if !r.update(name, stop) {
				return
			}
		}
		select {
		case <-ticker.C: // it ended during the calls
		default:
		}
	}
}

// names returns the names of all objects, or none if stop closes.
func (r *resync) names(stop <-chan struct{}) []cache.ObjectName {
	if !r.handler.takeTurn(stop) {
		return nil
	}
	defer r.handler.releaseTurn()
	names := make([]cache.ObjectName, 0, len(r.objects))
	for name := range r.objects {
		names = append(names, name)
	}
	return names
}

// update calls the handler for the object with that name, unless it has been deleted. It reports false if
// stop closes before. A panic has the same effect as in client-go.
func (r *resync) update(name cache.ObjectName, stop <-chan struct{}) (goesOn bool) {
	if !r.handler.takeTurn(stop) {
		return false
	}
	defer r.handler.releaseTurn()
	defer utilruntime.HandleCrashWithLogger(r.logger)
	goesOn = true // also if the call panics
	if obj, there := r.objects[name]; there && !closed(stop) {
		r.handler.call(resynced(obj))
	}
	return goesOn
}
