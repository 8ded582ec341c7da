package soak_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/packed"
)

// view is what a lease selects, and in which form.
type view struct {
	name    string
	of      *ledger
	example any    // of its objects
	color   string // empty: all
	// set means that it has a set of namespaces, which may change.
	set bool
	// merged means that events of an object are merged while they wait.
	merged bool
}

// handler is an event handler that compares each event with those before it and with the ledger, and then calls
// its call.
type handler struct {
	view   view
	result *result
	status func() string // describes the informer
	call   func(n int)   // n is the number of the call; may be nil

	mu      sync.Mutex
	has     map[string]seen
	ended   map[int]bool // the objects that were deleted
	calls   int
	removed bool     // no call may begin
	recent  []string // the last events
}

// maxRecent is how many events of a handler are kept for the report of a violation.
const maxRecent = 12

func newHandler(v view, r *result, status func() string) *handler {
	return &handler{view: v, result: r, status: status, has: map[string]seen{}, ended: map[int]bool{}}
}

var _ cache.ResourceEventHandler = (*handler)(nil)

// OnAdd implements [cache.ResourceEventHandler].
func (h *handler) OnAdd(obj any, _ bool) { h.handle("add", seen{}, h.observe(obj), h.added) }

// OnUpdate implements [cache.ResourceEventHandler].
func (h *handler) OnUpdate(old, obj any) {
	h.handle("update", h.observe(old), h.observe(obj), h.updated)
}

// OnDelete implements [cache.ResourceEventHandler].
func (h *handler) OnDelete(obj any) { h.handle("delete", seen{}, h.observe(obj), h.deleted) }

// OnMoved is called for an object whose namespace has left the set.
func (h *handler) OnMoved(obj any) { h.handle("move", seen{}, h.observe(obj), h.moved) }

func (h *handler) observe(obj any) seen { return observe(obj, h.view.example) }

// handle compares an event, whose old object is that of an update.
func (h *handler) handle(kind string, old, s seen, compare func(report func(string, ...any), f fact, old, s seen)) {
	h.result.events.Add(1)
	report := func(format string, args ...any) {
		h.result.report("%s: %s %v: %s\n%s, after the events\n%s", h.view.name, kind, s, fmt.Sprintf(format, args...), h.status(), strings.Join(h.recent, "\n"))
	}
	f, known := h.view.of.fact(s.number)
	h.mu.Lock()
	h.calls++
	n := h.calls
	switch {
	case h.removed:
		report("the handler has been removed")
	case s.problem != "" && (kind == "add" || kind == "update"):
		report("%s", s.problem)
	case !known || s.revision > f.revision:
		report("this was never written")
	default:
		compare(report, f, old, s)
	}
	h.recent = append(h.recent[max(0, len(h.recent)-maxRecent+1):], fmt.Sprintf("%s %s %v", time.Now().Format(clock), kind, s))
	h.mu.Unlock()
	if h.call != nil {
		h.call(n)
	}
}

func (h *handler) added(report func(string, ...any), f fact, _, s seen) {
	if have, present := h.has[s.key]; present {
		report("the handler has %v", have)
	}
	if h.ended[s.number] && h.view.color == "" && !h.view.set {
		report("it was deleted before")
	}
	for _, other := range h.has {
		if of, known := h.view.of.fact(other.number); known && of.typ != f.typ {
			report("it is of CRD %d, and the handler has %v of CRD %d", f.typ, other, of.typ)
			break
		}
	}
	h.put(report, s)
}

func (h *handler) updated(report func(string, ...any), _ fact, old, s seen) {
	have, present := h.has[s.key]
	switch {
	case !present:
		report("the handler does not have it")
	case have.number != s.number || have.uid != s.uid:
		report("the handler has %v, UID %s", have, have.uid)
	case old.version != have.version || old.revision != have.revision:
		report("the old object is revision %d at %d, and the handler has %v", old.revision, old.version, have)
	case s.revision < have.revision || s.revision == have.revision && h.view.of.calm: // a fault duplicates events
		report("the handler has %v", have)
	case h.view.of.calm && !h.view.merged && s.revision > have.revision+1:
		report("the handler has %v, and no fault could hide the update after it", have)
	}
	h.put(report, s)
}

func (h *handler) put(report func(string, ...any), s seen) {
	if h.view.color != "" && s.color != h.view.color {
		report("it is not selected")
	}
	h.has[s.key] = s
}

func (h *handler) deleted(report func(string, ...any), f fact, _, s seen) {
	have, present := h.has[s.key]
	switch {
	case !present || have.number != s.number || have.uid != s.uid:
		report("the handler has %v, UID %s", have, have.uid)
	case s.revision < have.revision:
		report("the handler has %v", have)
	case !f.deleted && (h.view.color == "" || !hadAnotherColor(h.view.color, s.number, have.revision, f.revision)):
		report("it exists and is selected, at revision %d", f.revision)
	}
	delete(h.has, s.key)
	h.ended[s.number] = true
}

func (h *handler) moved(report func(string, ...any), _ fact, _, s seen) {
	if have, present := h.has[s.key]; !present || have.number != s.number || !h.view.set {
		report("the handler has %v", have)
	}
	delete(h.has, s.key)
}

// remove records that no call may begin any more.
func (h *handler) remove() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removed = true
}

// differences compares what the handler has with what it must have.
func (h *handler) differences(want map[string]seen) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return differences("a handler of "+h.view.name, want, h.has)
}

// differences compares objects by key. The name says who has them.
func differences(name string, want, has map[string]seen) (found []string) {
	for key, s := range want {
		if got, present := has[key]; !present {
			found = append(found, fmt.Sprintf("%s does not have %v", name, s))
		} else if got.problem != "" || got.number != s.number || got.revision != s.revision || got.version != s.version || got.uid != s.uid {
			found = append(found, strings.TrimSpace(fmt.Sprintf("%s has %v, and the server %v %s", name, got, s, got.problem)))
		}
	}
	for key, s := range has {
		if _, present := want[key]; !present {
			found = append(found, fmt.Sprintf("%s has %v, and must not", name, s))
		}
	}
	slices.Sort(found)
	return found
}

// packedHandler is a handler of packed objects.
type packedHandler struct{ *handler }

var _ cache.TypedResourceEventHandler[*packed.Object] = packedHandler{}

// OnAdd implements [cache.TypedResourceEventHandler].
func (h packedHandler) OnAdd(obj *packed.Object, initial bool) { h.handler.OnAdd(obj, initial) }

// OnUpdate implements [cache.TypedResourceEventHandler].
func (h packedHandler) OnUpdate(old, obj *packed.Object) { h.handler.OnUpdate(old, obj) }

// OnDelete implements [cache.TypedResourceEventHandler].
func (h packedHandler) OnDelete(obj cache.DeletedObject[*packed.Object]) { h.handler.OnDelete(obj) }
