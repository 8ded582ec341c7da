package source

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/undecodable"
	"github.com/gvrkit/gvrkit/sharding"
)

// A watch-list (KEP-3157) is a watch that sends the initial list as events. The reflector has two problems with it. It waits without end for the
// bookmark that ends the initial events (kubernetes#140890). After 429, refused connections and expired versions, it retries and ignores its
// context. Therefore the source sends the watch-list itself, when the reflector requests its first list. The list that the reflector gets consists
// of the initial events. The watch that it requests next is the rest of the stream. If the watch-list fails, the source sends a LIST.
const (
	// stallAfter is the maximum time between initial events of a watch-list. After it, the
	// watch-list has stalled.
	stallAfter = 10 * time.Second
	// answerAfter is the maximum time until the response to a watch-list request. It is
	// longer, since the client may have its own queue.
	answerAfter = time.Minute
	// The maximum duration of a watch-list is streamAfter, and perObject for each object. If a
	// server ignores the request for initial events, the watch is an ordinary watch, and new
	// objects look like initial ones. A watch-list that is slower is also ended, and a LIST
	// follows.
	streamAfter = time.Minute
	perObject   = 50 * time.Millisecond
	// stallMemory is how long watch-lists are not used after a stall.
	stallMemory = time.Hour
)

var (
	// ErrBookmarkMissing is the error of a watch-list that did not send the bookmark
	// that ends its initial events.
	ErrBookmarkMissing = errors.New("the initial-events-end bookmark is missing")

	errListed   = errors.New("the source sends the watch-list when the list is requested")
	errNotTried = errors.New("watch-list is not used: its bookmark was missing less than an hour ago")
	errTweaked  = errors.New("watch-list is not used: TweakListOptions removes sendInitialEvents")
)

// streams reports whether the first list of t is a watch-list.
func (g *gate) streams(t Type) bool {
	switch {
	case g.cfg.NoWatchList, g.polls(t):
		return false
	case t.Aggregated && !g.cfg.WatchListAnywhere:
		return false
	case g.set(t) != nil: // each namespace has its own watch
		return false
	}
	// With a budget, the first page of a LIST shows the size of the list.
	return !g.cfg.Queue.hasBudget() && g.account == nil || g.known.filledWith(t)
}

// streamList sends a watch-list for t, and returns the list that its initial events are. The next watch of the reflector continues with the rest
// of the stream. The error says why the list is not complete.
func (g *gate) streamList(ctx context.Context, t Type, changed <-chan struct{}, opts metav1.ListOptions, turn *turn) (*response, error) {
	defer turn.leave()
	s, err := g.openWatchList(ctx, t, changed, opts)
	if err != nil {
		return nil, err
	}
	handedOver := false
	defer func() { // also if a transform panics
		if !handedOver {
			s.close()
		}
	}()
	events := initialEvents{gate: g, turn: turn, converts: g.transform.isSet()}
	g.sizes.begin(0, 0)
	for {
		switch s.run(ctx, events.take, changed) {
		case completed:
			handedOver = true
			g.handOver(ctx, s, t)
			return events.response(s.requests.view), nil
		case altered:
			var now Type
			if now, changed = g.available.Current(); !t.follows(now) {
				return nil, errGaveWay
			}
		case unwanted:
			return nil, ctx.Err()
		default:
			return nil, s.failure
		}
	}
}

// openWatchList opens a watch-list. The end of ctx cancels the request, and later not the stream, whose owner closes it: otherwise the watch of the
// reflector could report the error of a stream that was canceled before that watch ended.
func (g *gate) openWatchList(ctx context.Context, t Type, changed <-chan struct{}, opts metav1.ListOptions) (*stream, error) {
	opts.ResourceVersion = "" // the list must be consistent
	request, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, cancel)()
	return g.watch(request, t, news{changed: changed}, opts)
}

// initialEvents are the initial events of a watch-list, as the items of a list. Almost all are additions of different objects. Only when there is
// another event, the items are indexed.
type initialEvents struct {
	*gate
	turn      *turn
	items     []runtime.Object // nil: the object was deleted
	places    map[string]int   // the places of the items, by original keys; nil: they have not been needed
	nameless  int              // the number of objects without a name. Their items are converted, and have their keys
	converts  bool             // all items are converted
	converted bool             // at least one item is converted
	version   string
}

// take implements deliver. Objects are converted as they arrive, since a transform may make them smaller.
func (e *initialEvents) take(event watch.Event) bool {
	obj, err := meta.Accessor(event.Object)
	switch {
	case err != nil:
		return true // the stream has checked all objects
	case event.Type == watch.Bookmark:
		e.version = obj.GetResourceVersion()
		return true
	case event.Type == watch.Added:
		e.turn.progress()
	case e.places == nil:
		e.index()
	}
	_, bad := event.Object.(*undecodable.Object)
	nameless := isNameless(obj)
	if nameless {
		e.nameless++
	}
	converts := e.converts || bad || nameless
	if !converts && e.places == nil {
		e.items = append(e.items, event.Object)
		return true
	}
	own := originalKey(obj, e.nameless)
	if event.Type == watch.Deleted {
		e.remove(own)
		return true
	}
	item := event.Object
	if converts {
		made := e.transform.listed(item, e.identityIn(obj), own, &e.sizes)
		item, e.converted = &made, true
	}
	e.put(own, item)
	return true
}

func (e *initialEvents) put(own string, item runtime.Object) {
	if at, there := e.places[own]; there {
		e.items[at] = item
		return
	}
	if e.places != nil {
		e.places[own] = len(e.items)
	}
	e.items = append(e.items, item)
}

func (e *initialEvents) remove(own string) {
	if at, there := e.places[own]; there {
		e.items[at] = nil
	}
}

// index sets the places of the items.
func (e *initialEvents) index() {
	e.places = make(map[string]int, len(e.items))
	for at, item := range e.items {
		if c, is := item.(*converted); is {
			e.places[c.own] = at
		} else if obj, err := meta.Accessor(item); err == nil {
			e.places[keyOf(obj)] = at
		}
	}
}

// response returns the list of the items. View has its slots.
func (e *initialEvents) response(view *sharding.View) *response {
	list := &internalversion.List{Items: slices.DeleteFunc(e.items, func(item runtime.Object) bool { return item == nil })}
	list.ResourceVersion = e.version
	return &response{list: list, identity: e.identityIn, view: view, streamed: true, converted: e.converted}
}

// opened is a watch-list whose initial events the reflector has got as a list.
type opened struct {
	stream *stream
	of     Type
	keep   func() bool // prevents that the end of the reflector's context closes the stream
}

// handOver stores s, a watch-list for t, until the reflector watches, or ctx ends.
func (g *gate) handOver(ctx context.Context, s *stream, t Type) {
	o := &opened{stream: s, of: t}
	g.opened.Store(o)
	o.keep = context.AfterFunc(ctx, func() {
		if g.opened.CompareAndSwap(o, nil) {
			s.close()
		}
	})
}

// discard closes the watch-list with which no watch begins.
func (g *gate) discard() {
	if s, _ := g.takeOver(); s != nil {
		s.close()
	}
}

// takeOver returns the watch-list with which the watch of the reflector begins; nil if there is none.
func (g *gate) takeOver() (*stream, Type) {
	o := g.opened.Swap(nil)
	if o == nil {
		return nil, Type{}
	}
	o.keep()
	return o.stream, o.of
}

// errorEvent returns an ERROR event with the text of err.
func errorEvent(err error) watch.Event {
	return watch.Event{Type: watch.Error, Object: &metav1.Status{
		Status:  metav1.StatusFailure,
		Reason:  metav1.StatusReasonUnknown,
		Message: err.Error(),
	}}
}

// Stalls records the types whose watch-lists have stalled, for all sources that share it. A type
// that was created again is another type. It is safe for concurrent use. Its zero value is empty.
type Stalls struct {
	mu    sync.Mutex
	until map[stalled]time.Time
}

type stalled struct {
	gvr        schema.GroupVersionResource
	uid        string
	generation int // if there is no uid
}

func stalledOf(t Type) stalled {
	if t.UID != "" {
		return stalled{gvr: t.GVR, uid: t.UID}
	}
	return stalled{gvr: t.GVR, generation: t.Generation}
}

func (s *Stalls) stalled(t Type, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.until == nil {
		s.until = map[stalled]time.Time{}
	}
	maps.DeleteFunc(s.until, func(_ stalled, until time.Time) bool { return !now.Before(until) })
	s.until[stalledOf(t)] = now.Add(stallMemory)
}

func (s *Stalls) stalledLately(t Type, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Before(s.until[stalledOf(t)])
}

// silence measures the time since the last initial event of a stream, and the duration of all
// initial events. It does not count the time in which events are converted.
type silence struct {
	timer    *time.Timer // fires at the earlier time, or before; nil: there is no measurement
	deadline time.Time   // of the next initial event
	limit    time.Time   // of the last initial event
	live     bool        // the stream has sent an event that is not initial
}

func newSilence(measure bool) *silence {
	if !measure {
		return &silence{}
	}
	now := time.Now()
	return &silence{timer: time.NewTimer(stallAfter), deadline: now.Add(stallAfter), limit: now.Add(streamAfter)}
}

// elapsed returns a channel that receives a value when the time may be exceeded. It is nil if there
// is no measurement.
func (s *silence) elapsed() <-chan time.Time {
	if s.timer == nil {
		return nil
	}
	return s.timer.C
}

// exceeded is called when elapsed has a value, and reports whether the time is exceeded.
func (s *silence) exceeded() bool {
	left := min(time.Until(s.deadline), time.Until(s.limit))
	if left <= 0 {
		return true
	}
	s.timer.Reset(left)
	return false
}

// received is called for each event among the initial ones, with the time of its arrival, after it has been converted. Initial events are added
// objects. After another event, only the bookmark can follow: further events do not extend the deadline.
func (s *silence) received(event watch.EventType, arrived time.Time) {
	now := time.Now()
	took := now.Sub(arrived)
	s.deadline = s.deadline.Add(took)
	s.limit = s.limit.Add(took + perObject)
	if !s.live {
		s.live = event != watch.Added
		s.deadline = now.Add(stallAfter)
	}
}

// reason returns the error for the exceeded time.
func (s *silence) reason() error {
	if s.limit.Before(s.deadline) {
		return fmt.Errorf("the initial events have not ended after %v and %v for each: %w", streamAfter, perObject, ErrBookmarkMissing)
	}
	return fmt.Errorf("no initial event for %v: %w", stallAfter, ErrBookmarkMissing)
}

func (s *silence) stop() {
	if s.timer != nil {
		s.timer.Stop()
		s.timer = nil
	}
}
