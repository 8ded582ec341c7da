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
	// failed has the keys of the objects for which the last call has panicked, and the numbers of these panics.
	failed map[string]uint64
}

// add adds the panic of the call for e.
func (p *panics) add(e event, key, text string) {
	p.count++
	p.text = text
	_, again := p.failed[key]
	switch {
	case e.kind == deleted:
		delete(p.failed, key)
	case p.failed == nil:
		p.failed = map[string]uint64{key: p.count}
	case again, len(p.failed) < maxFailed:
		p.failed[key] = p.count
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
	s.Reason = status.ReasonHandlerPanicked
	last := uint64(0)
	for key, number := range p.failed {
		if number > last {
			last, s.LastFailed = number, key
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
