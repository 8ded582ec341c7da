package handlers

import (
	"fmt"
	"runtime/debug"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/errtext"
	"github.com/gvrkit/gvrkit/status"
)

// maxFailed is the maximum number of objects in panics. Further objects are not counted.
const maxFailed = 1000

// panics is the recovered panics of one handler. The zero value has none.
type panics struct {
	count uint64
	text  string // of the last one
	// failed has the keys of the objects for which the last call has panicked, and last the object of
	// the last panic.
	failed map[string]struct{}
	last   string
}

// add adds the panic of the call for e.
func (p *panics) add(e event, key, text string) {
	p.count++
	p.text, p.last = text, key
	switch {
	case e.kind == deleted:
		delete(p.failed, key)
	case p.failed == nil:
		p.failed = map[string]struct{}{key: {}}
	case len(p.failed) < maxFailed:
		p.failed[key] = struct{}{}
	}
}

// returned records that the call for e has returned.
func (p *panics) returned(e event) {
	if len(p.failed) > 0 {
		delete(p.failed, keyOf(e.obj))
	}
}

// describe sets the fields of s about panics.
func (p *panics) describe(s *status.Handler) {
	s.Panics, s.LastPanic = p.count, p.text
	if s.FailedObjects = len(p.failed); s.FailedObjects == 0 {
		return
	}
	s.Reason, s.LastFailed = status.ReasonHandlerPanicked, p.last
	if _, failing := p.failed[p.last]; !failing {
		for key := range p.failed {
			s.LastFailed = key
			break
		}
	}
}

// recovered recovers the panic of the call for e, and records it. It is deferred.
func (h *handler) recovered(e event) {
	if value := recover(); value != nil {
		h.panicked(e, value)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.panics.returned(e)
}

// panicked records that the call for e has panicked with value. It is called before the stack of the call is gone.
func (h *handler) panicked(e event, value any) {
	key, text, stack := keyOf(e.obj), errtext.Text(fmt.Sprint(value)), debug.Stack()
	h.mu.Lock()
	h.panics.add(e, key, text)
	h.mu.Unlock()
	if h.set.logPanic != nil {
		h.set.logPanic(h.name, h.group.name, key, text, stack)
	}
}

// keyOf returns the key of an object, or "".
func keyOf(obj any) string {
	name, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		return ""
	}
	return name.String()
}
