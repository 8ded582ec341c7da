package dynamicinformer

import (
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/status"
)

// idleAfter is how long a handler is not called, at least, that has nothing waiting.
const idleAfter = time.Second

// meters are those of one informer's handlers.
type meters struct {
	source *source.Source

	mu  sync.Mutex
	all []*meter // in the order in which they were added
}

// meter is a handler whose calls are counted. client-go makes one at a time.
type meter struct {
	handler cache.ResourceEventHandler
	name    string // client-go's for it
	holder  string // the name of the lease that it is of
	of      *meters

	mu        sync.Mutex
	before    uint64 // events that it does not get, modulo 2^64
	taken     uint64 // of those that it does get
	delivered uint64 // all calls
	running   time.Time
	last      time.Time // the end of the last call; before the first, when it was added
	behind    time.Time // since when more was waiting whenever a call ended; zero: it was not
}

// add adds handler by way of to, and counts its calls from the first one on.
func (m *meters) add(handler cache.ResourceEventHandler, to func(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)) (cache.ResourceEventHandlerRegistration, error) {
	metered := m.newMeter(handler)
	r, err := to(metered)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, metered)
	return &registration{ResourceEventHandlerRegistration: r, metered: metered}, nil
}

func (m *meters) newMeter(handler cache.ResourceEventHandler) *meter {
	metered := &meter{handler: handler, of: m, last: time.Now()}
	if leased, is := handler.(*leaseHandler); is {
		handler, metered.holder = leased.handler, leased.holder
	}
	metered.name = nameOf(handler)
	// It gets an addition for each object that is there, and each event from now on.
	metered.before = m.given() - uint64(m.source.State().Objects) //nolint:gosec // modulo 2^64
	return metered
}

// given returns how many events the informer has been given for its handlers.
func (m *meters) given() uint64 { return m.source.Events() }

func (m *meters) remove(one *meter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = slices.DeleteFunc(m.all, func(other *meter) bool { return other == one })
}

// statuses returns those of all handlers, in the order in which they were added.
func (m *meters) statuses(now time.Time) []status.Handler {
	var few [4]*meter
	m.mu.Lock()
	all := append(few[:0], m.all...)
	m.mu.Unlock()
	if len(all) == 0 {
		return nil
	}
	statuses := make([]status.Handler, len(all))
	given, last := m.given(), m.source.LastEvent()
	for i, metered := range all {
		statuses[i] = metered.status(now, given, last)
	}
	return statuses
}

// String returns the name of the handler, for client-go's texts.
func (m *meter) String() string { return m.name }

// OnAdd implements cache.ResourceEventHandler.
func (m *meter) OnAdd(obj any, isInInitialList bool) {
	m.begin()
	defer m.end(1)
	m.handler.OnAdd(obj, isInInitialList)
}

// OnUpdate implements cache.ResourceEventHandler. A resync, which no event has caused, has
// one object twice.
func (m *meter) OnUpdate(oldObj, newObj any) {
	events := uint64(1)
	if old := reflect.ValueOf(oldObj); old.Kind() == reflect.Pointer && oldObj == newObj {
		events = 0
	}
	m.begin()
	defer m.end(events)
	m.handler.OnUpdate(oldObj, newObj)
}

// OnDelete implements cache.ResourceEventHandler.
func (m *meter) OnDelete(obj any) {
	m.begin()
	defer m.end(1)
	m.handler.OnDelete(obj)
}

func (m *meter) begin() {
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running = now
}

func (m *meter) end(events uint64) {
	given := m.of.given()
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running, m.last = time.Time{}, now
	m.delivered++
	m.taken += events
	switch waiting := m.waitingLocked(given); {
	case waiting == 0:
		m.behind = time.Time{}
	case m.behind.IsZero():
		m.behind = now
	}
}

// waitingLocked returns how many events the handler is still to get, of those given to the
// informer. The caller holds mu.
func (m *meter) waitingLocked(given uint64) int {
	return int(max(0, int64(given-m.before-m.taken))) //nolint:gosec // a difference of counters
}

// status returns how m does, whose informer was given so many events, the last one then.
func (m *meter) status(now time.Time, given uint64, lastEvent time.Time) status.Handler {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := status.Handler{
		Handler: m.name, Lease: m.holder, Delivered: m.delivered, RunningSince: m.running, BehindSince: m.behind,
		Backlog: m.waitingLocked(given),
	}
	switch {
	case m.running.IsZero() && now.Sub(m.last) > idleAfter && now.Sub(lastEvent) > idleAfter:
		// Nothing waits for who is not called. The informer was in the middle of
		// something when the handler was added, or has dropped what was no news.
		m.before = given - m.taken
		m.behind = time.Time{}
		s.Backlog, s.BehindSince = 0, time.Time{}
	case s.Backlog > 0 && s.BehindSince.IsZero() && !m.running.IsZero():
		s.BehindSince = m.running
	}
	return s
}
