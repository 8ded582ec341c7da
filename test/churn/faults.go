package churn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// faultKinds are the values of the parameter kind of the verb fault, with the verbs of the
// requests that they change; nil: those of the operation.
var faultKinds = map[string]struct {
	does  string // N is the value of the parameter that the text names
	verbs []string
	make  func(op Op) faultproxy.Fault // nil: that of groupFaults
}{
	"fail":             {"the response is an error with status N (code=N)", nil, func(op Op) faultproxy.Fault { return faultproxy.Fail(number(op.With["code"], 503)) }},
	"retryafter":       {"the response is 503 with a Retry-After of a second", nil, func(Op) faultproxy.Fault { return faultproxy.RetryAfter(503, time.Second) }},
	"gone":             {"a watch gets an event that says 410, Gone", []string{"watch"}, func(Op) faultproxy.Fault { return faultproxy.GoneEvent() }},
	"gonestatus":       {"the response to a watch is 410, Gone", []string{"watch"}, func(Op) faultproxy.Fault { return faultproxy.GoneStatus() }},
	"html":             {"the response is a page of HTML, as proxies send them", nil, func(Op) faultproxy.Fault { return faultproxy.HTML() }},
	"hang":             {"there is no response", nil, func(Op) faultproxy.Fault { return faultproxy.Hang() }},
	"hangat":           {"the body stops after N bytes, and the connection stays open (at=N)", nil, func(op Op) faultproxy.Fault { return faultproxy.HangAt(number(op.With["at"], 100)) }},
	"cutat":            {"the connection breaks after N bytes of the body (at=N)", nil, func(op Op) faultproxy.Fault { return faultproxy.CutAt(number(op.With["at"], 100)) }},
	"truncate":         {"the body ends after N bytes, without an error (at=N)", nil, func(op Op) faultproxy.Fault { return faultproxy.Truncate(number(op.With["at"], 100)) }},
	"garble":           {"all bytes after the first N of the body are invalid (at=N)", nil, func(op Op) faultproxy.Fault { return faultproxy.Garble(number(op.With["at"], 100)) }},
	"garbleframe":      {"event N of each watch is invalid (at=N)", []string{"watch"}, func(op Op) faultproxy.Fault { return faultproxy.GarbleFrame(number(op.With["at"], 1)) }},
	"duplicateframe":   {"event N of each watch is sent twice (at=N)", []string{"watch"}, func(op Op) faultproxy.Fault { return faultproxy.DuplicateFrame(number(op.With["at"], 1)) }},
	"dropbookmarks":    {"watches send no bookmarks", []string{"watch"}, func(Op) faultproxy.Fault { return faultproxy.DropBookmarks() }},
	"noinitialend":     {"the bookmark that ends the initial events of a watch is not sent", []string{"watch"}, func(Op) faultproxy.Fault { return faultproxy.NeverInitialEventsEnd() }},
	"delaybookmarks":   {"bookmarks are sent N milliseconds later (ms=N)", []string{"watch"}, func(op Op) faultproxy.Fault { return faultproxy.DelayBookmarks(milliseconds(op)) }},
	"expirecontinue":   {"a list expires after N pages (at=N)", []string{"list"}, func(op Op) faultproxy.Fault { return faultproxy.ExpireContinue(number(op.With["at"], 1)) }},
	"bandwidth":        {"N bytes per second are sent (at=N)", nil, func(op Op) faultproxy.Fault { return faultproxy.Bandwidth(number(op.With["at"], 5000)) }},
	"breakdiscovery":   {"requests for discovery documents fail with status N (code=N)", discoveryOnly, func(op Op) faultproxy.Fault { return faultproxy.Fail(number(op.With["code"], 503)) }},
	"breakgroup":       {"requests for the discovery documents of the group fail", discoveryOnly, nil},
	"deadgroup":        {"requests for the discovery documents of the group fail, and so do those for objects of all its types", discoveryOnly, nil},
	"stalegroup":       {"discovery documents say that the group is stale", discoveryOnly, nil},
	"stalediscovery":   {"discovery documents stay as they are", discoveryOnly, func(Op) faultproxy.Fault { return faultproxy.StaleDiscovery() }},
	"breakdefinitions": {"requests for CRDs fail with status N (code=N)", definitionsOnly, func(op Op) faultproxy.Fault { return faultproxy.Fail(number(op.With["code"], 503)) }},
}

// garblingKinds are the kinds of faults that change the frames of watches.
var garblingKinds = []string{"garble", "garbleframe", "duplicateframe"}

// Marks instead of verbs.
var (
	discoveryOnly   = []string{"discovery"}
	definitionsOnly = []string{"definitions"}
)

// FaultKinds returns a description of each kind of fault, by the value of the parameter kind of the verb fault. N is the value of the parameter that
// a description names. The example has all kinds.
func FaultKinds() map[string]string {
	does := map[string]string{}
	for kind, fault := range faultKinds {
		does[kind] = fault.does
	}
	return does
}

// kindsOfFaults returns the values of the parameter kind of the verb fault, sorted.
func kindsOfFaults() []string { return slices.Sorted(maps.Keys(faultKinds)) }

// Arguments instead of a type.
const (
	everyType       = "all"         // all types of a run
	everyDefinition = "definitions" // CRDs
	everyDocument   = "discovery"   // discovery documents
	everyNamespace  = "namespaces"  // Namespace objects
)

var ofDefinitions = faultproxy.Resource(definitions.Group, definitions.Resource)

// ofType matches requests for objects of a type, for those of all types, for Namespace objects, CRDs or discovery documents.
func (r *run) ofType(typ string) faultproxy.Match {
	switch typ {
	case everyNamespace:
		return faultproxy.Resource(namespaces.Group, namespaces.Resource)
	case everyDefinition:
		return ofDefinitions
	case everyDocument:
		return faultproxy.AnyDiscovery()
	}
	return func(req faultproxy.Request) bool {
		return req.Group == r.world.Group && (typ == everyType || req.Resource == r.world.Resource(typ, "").Resource)
	}
}

// groupFaults are the kinds of faults that concern the group of a run.
var groupFaults = map[string]func(group string) faultproxy.Fault{
	"breakgroup": faultproxy.BreakGroup, "deadgroup": faultproxy.DeadGroup, "stalegroup": faultproxy.StaleGroup,
}

// match returns the match of an operation, whose requests have these verbs.
func (f *Faults) match(op Op, verbs []string) faultproxy.Match {
	hides, discovery := concerns(op)
	match := f.ofType(op.Arg("type"))
	switch {
	case op.With["kind"] == "deadgroup":
		match = faultproxy.Any(faultproxy.AnyDiscovery(), f.ofType(everyType))
	case slices.Equal(verbs, discoveryOnly):
		match = faultproxy.AnyDiscovery()
	case slices.Equal(verbs, definitionsOnly):
		match = ofDefinitions
	case verbs != nil:
		match = faultproxy.All(match, faultproxy.Verb(verbs...))
	case op.With["verb"] != "" && !discovery:
		match = faultproxy.All(match, faultproxy.Verb(op.List("verb")...))
	}
	if namespace := op.With["namespace"]; namespace != "" && !hides && !discovery {
		match = faultproxy.All(match, faultproxy.Namespace(namespace))
	}
	return match
}

// fault returns the match and the fault of an operation.
func (f *Faults) fault(op Op) (faultproxy.Match, faultproxy.Fault, error) {
	kind, known := faultKinds[op.With["kind"]]
	if !known {
		return nil, nil, fmt.Errorf("churn: %s: there is no fault of this kind; there are %v", op, kindsOfFaults())
	}
	var fault faultproxy.Fault
	if ofGroup, is := groupFaults[op.With["kind"]]; is {
		fault = ofGroup(f.group)
	} else {
		fault = kind.make(op)
	}
	if fault == nil { // of a bandwidth without limit
		fault = func(next http.Handler) http.Handler { return next }
	}
	fault = onEffect(op, fault, func() { f.effects.add(op.With["kind"]) })
	if times := number(op.With["times"], 0); times > 0 {
		fault = faultproxy.Times(times, fault)
	}
	if share, err := strconv.ParseFloat(op.With["share"], 64); err == nil {
		fault = faultproxy.Share(share, fault)
	}
	return f.match(op, kind.verbs), fault, nil
}

// onEffect returns the fault of an operation, which calls effect once for each request whose response it changes. A watch with a bookmark that is
// delayed counts.
func onEffect(op Op, fault faultproxy.Fault, effect func()) faultproxy.Fault {
	if op.With["kind"] != "delaybookmarks" {
		return faultproxy.OnEffect(fault, effect)
	}
	if milliseconds(op) <= 0 {
		return fault
	}
	return func(next http.Handler) http.Handler {
		return fault(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			once := sync.OnceFunc(effect)
			next.ServeHTTP(&bodyReader{ResponseWriter: w, frame: func(frame []byte) {
				if e, err := readEvent(frame); err == nil && e.kind == "BOOKMARK" && frame[0] == '{' { // others are not delayed
					once()
				}
			}}, r)
		}))
	}
}

// concerns reports whether the fault of an operation concerns requests for CRDs, or those for discovery documents.
func concerns(op Op) (definitions, discovery bool) {
	switch verbs := faultKinds[op.With["kind"]].verbs; {
	case slices.Equal(verbs, definitionsOnly):
		return true, false
	case slices.Equal(verbs, discoveryOnly):
		return false, true
	}
	return op.Arg("type") == everyDefinition, op.Arg("type") == everyDocument
}

func number(text string, otherwise int) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return otherwise
}

func milliseconds(op Op) time.Duration {
	return time.Duration(number(op.With["ms"], 100)) * time.Millisecond
}

// Faults are the active faults of a proxy, by name. Its methods are not safe for concurrent use.
type Faults struct {
	proxy  *faultproxy.Proxy
	group  string
	ofType func(typ string) faultproxy.Match
	active map[string]activeFault

	effects  effects
	garbling atomic.Int64 // active faults that change the frames of watches
	hiding   atomic.Int64 // active faults of requests for CRDs
}

// activeFault is a fault that has been injected.
type activeFault struct {
	remove    func()
	discovery bool // it concerns requests for discovery documents or CRDs
}

// effects are the numbers of requests whose responses faults have changed, by the kind of the fault.
type effects struct {
	mu    sync.Mutex
	kinds map[string]int
}

func (e *effects) add(kind string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.kinds == nil {
		e.kinds = map[string]int{}
	}
	e.kinds[kind]++
}

// Effects returns how many responses the faults of each kind have changed, among the requests that have ended. A delay is no change, except that
// of a bookmark.
func (f *Faults) Effects() map[string]int {
	f.effects.mu.Lock()
	defer f.effects.mu.Unlock()
	return maps.Clone(f.effects.kinds)
}

// NewFaults returns faults of a proxy. OfType selects the requests for the objects of a type that an
// operation names, and group is the API group of the faults that break or delay the discovery of a group.
func NewFaults(proxy *faultproxy.Proxy, group string, ofType func(typ string) faultproxy.Match) *Faults {
	return &Faults{proxy: proxy, group: group, ofType: ofType, active: map[string]activeFault{}}
}

// Inject injects the fault of an operation with the verb [Fault]. It replaces the fault with that name. The fault stays until [Faults.Heal],
// also after ctx has ended. The error is that of an unknown kind.
func (f *Faults) Inject(ctx context.Context, op Op) error {
	match, fault, err := f.fault(op)
	if err != nil {
		return err
	}
	f.inject(ctx, op.Arg("name"), match, fault)
	hides, discovery := concerns(op)
	if slices.Contains(garblingKinds, op.With["kind"]) {
		f.count(op.Arg("name"), &f.garbling)
	}
	if hides {
		f.count(op.Arg("name"), &f.hiding)
	}
	if hides || discovery {
		f.active[op.Arg("name")] = activeFault{f.active[op.Arg("name")].remove, true}
	}
	return nil
}

// count counts a fault in active until it is removed.
func (f *Faults) count(name string, active *atomic.Int64) {
	active.Add(1)
	remove := f.active[name].remove
	f.active[name] = activeFault{remove: func() { remove(); active.Add(-1) }}
}

// concernDiscovery reports whether an active fault concerns requests for discovery documents or CRDs.
func (f *Faults) concernDiscovery() bool {
	for _, fault := range f.active {
		if fault.discovery {
			return true
		}
	}
	return false
}

// garble reports whether an active fault changes the frames of watches. It may be called concurrently with other methods.
func (f *Faults) garble() bool { return f.garbling.Load() > 0 }

// hide reports whether an active fault concerns requests for CRDs. It may be called concurrently with other methods.
func (f *Faults) hide() bool { return f.hiding.Load() > 0 }

// inject injects a fault. When it is healed, the connections of the requests that match, which
// the fault may have changed, break: otherwise, a request that hangs would do so for ever.
func (f *Faults) inject(ctx context.Context, name string, match faultproxy.Match, fault faultproxy.Fault) {
	f.Heal(name)
	healed, cut := context.WithCancel(context.WithoutCancel(ctx)) // of all requests
	remove := f.proxy.Inject(match, func(next http.Handler) http.Handler {
		faulty := fault(next)
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			inner, cancel := context.WithCancelCause(req.Context())
			defer cancel(nil)
			defer context.AfterFunc(healed, func() { cancel(errHealed) })()
			faulty.ServeHTTP(w, req.WithContext(inner))     //nolint:contextcheck // of one request
			if errors.Is(context.Cause(inner), errHealed) { //nolint:contextcheck // of one request
				panic(http.ErrAbortHandler)
			}
		})
	})
	f.active[name] = activeFault{remove: func() { remove(); cut() }}
}

var errHealed = errors.New("churn: the fault was healed")

// Heal removes the fault with a name, or all faults if the name is empty. It breaks the connections of the
// requests that match the fault.
func (f *Faults) Heal(name string) {
	for other, fault := range f.active {
		if other == name || name == "" {
			fault.remove()
			delete(f.active, other)
		}
	}
}
