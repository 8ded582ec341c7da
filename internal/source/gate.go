package source

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	"github.com/gvrkit/gvrkit/internal/broadcast"
	"github.com/gvrkit/gvrkit/internal/budget"
	"github.com/gvrkit/gvrkit/internal/inflight"
	"github.com/gvrkit/gvrkit/internal/undecodable"
	"github.com/gvrkit/gvrkit/sharding"
)

// gate is the ListerWatcher of the reflector. Its type may be absent, installed, removed and
// changed. For the reflector, these are a slow list, and events in one watch that never
// ends. The back-off of the reflector is never used.
type gate struct {
	cfg       Config
	available *Availability
	calls     inflight.Counter
	retries   broadcast.Broadcaster // ends pauses
	asked     broadcast.Broadcaster // Retry was called
	known     known
	sizes     sizes
	polling   polling
	due       atomic.Pointer[time.Time]          // the time of the next attempt after a failure
	initial   atomic.Pointer[metav1.ListOptions] // with which the reflector has requested a watch-list; nil: it has not, or the source has sent it
	opened    atomic.Pointer[opened]             // the watch-list with which the next watch begins
	watched   atomic.Bool                        // the server has responded to a watch
	traffic   traffic
	transform transform
	account   *budget.Account           // its part of a memory budget; nil: none
	queued    atomic.Pointer[time.Time] // since when a list waits for its turn; nil: it does not
	bookmarks atomic.Bool               // the server sends bookmarks, other than those that end initial events
	slots     atomic.Bool               // slots of the shard have been awaited
	moved     atomic.Uint64             // the number of objects that have left with the slots of the shard
	strays    atomic.Bool               // the server has sent objects that were not requested, since the last whole list

	mu    sync.Mutex
	stage *requests
	store lookUp
	asks  *asking // the last call of Config.WhileWaiting; nil: there was none
}

var _ cache.ListerWatcherWithContext = (*gate)(nil)

// ListWithContext waits until the type is served, and lists until a list succeeds. It returns
// an error only if ctx or the source ends. The list is complete and consistent: the first list
// of a type does not come from an outdated cache of the server.
func (g *gate) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	if g.cfg.Invalid != nil {
		g.cfg.Observer.Failed(VerbList, g.cfg.Invalid)
		g.report(ctx, &ListError{Err: g.cfg.Invalid})
		<-ctx.Done() // there is no other attempt
		return nil, ctx.Err()
	}
	g.transform.seal()
	first := firstList{gate: g, limit: opts.Limit, initial: g.initial.Swap(nil)}
	for {
		g.discard()
		list, err := first.attempt(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err() // if there is a stream, it closes
		case g.calls.Closed():
			g.discard()
			return nil, errClosed
		case err == nil:
			return list, nil
		}
	}
}

// firstList is the list that a reflector requests. It is a watch-list if possible, and if that one fails, a LIST.
type firstList struct {
	*gate
	limit   int64               // the number of objects in a page; 0: there are no pages
	initial *metav1.ListOptions // of a watch-list, which has not been tried; nil: there is none
	pace    pace
	had     bool // a watch-list had its turn, and no LIST since
}

// attempt waits until a list is possible, and lists. It returns an error if there must be another attempt.
func (f *firstList) attempt(ctx context.Context) (runtime.Object, error) {
	t, changed, err := f.served(ctx)
	if err != nil {
		return nil, err
	}
	f.awaitSlots(ctx, changed)
	f.pace.forGeneration(t.Generation)
	if !f.pause(ctx, &f.pace, t, news{changed: changed}) {
		return nil, errGaveWay
	}
	turn := f.joinQueue(t, f.had)
	f.had = false
	if t, changed, err = f.awaitTurn(ctx, turn, t, news{changed: changed}); err != nil {
		return nil, err // the type has changed, or ctx has ended
	}
	initial := f.initial
	if f.initial = nil; initial == nil || !f.streams(t) {
		response, err := f.list(ctx, f.requests(t), changed, f.limit, turn)
		return f.accept(ctx, response, t, err)
	}
	response, err := f.streamList(ctx, t, changed, *initial, turn)
	if err != nil {
		f.had = turn != nil
		f.fellBack(err)
		return nil, err
	}
	return f.accept(ctx, response, t, nil)
}

// fellBack is called when a watch-list has failed with err: a LIST follows. There is a pause before it only if the server has requested one, and
// not if the server does not have a resourceVersion yet, since a list does not require the version.
func (f *firstList) fellBack(err error) {
	var p pace
	if p.failed(time.Now(), err); p.requested && !apierrors.IsTimeout(err) {
		f.pace = p
		f.due.Store(&p.until)
	}
}

// accept returns the list for the reflector if err, with which the request for t has ended, is nil, and the list can be used.
func (f *firstList) accept(ctx context.Context, r *response, t Type, err error) (runtime.Object, error) {
	switch {
	case ctx.Err() != nil, f.calls.Closed():
		r.end(false)
		return nil, errClosed
	case f.changed(t, err):
		r.end(false)
		f.putOff(&f.pace, err)
		return nil, errGaveWay
	}
	var list runtime.Object
	if err == nil {
		if list, err = f.keep(r, t); err != nil {
			f.cfg.Observer.Failed(VerbList, err)
		}
	}
	r.end(err == nil)
	if err != nil {
		f.putOff(&f.pace, err)
		f.report(ctx, &ListError{Err: err})
		return nil, err
	}
	f.traffic.add(meta.LenList(list))
	if !r.streamed {
		f.accepted()
		return list, nil
	}
	f.watched.Store(true)
	f.accepted()
	f.cfg.Observer.Succeeded(VerbWatch)
	f.verify(ctx, list)
	return list, nil
}

// WatchWithContext returns a watch that continues through all changes of the type. It returns an error for a watch-list: the reflector then requests
// a list, which the source sends as a watch-list. As with any client, the server has responded to the first request when it returns: fake clients
// send only later events, whatever resourceVersion the watch begins with.
func (g *gate) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	if opts.SendInitialEvents != nil && *opts.SendInitialEvents {
		g.initial.Store(&opts)
		return nil, errListed
	}
	ctx, cancel := context.WithCancel(ctx) // ends before that of the first request, whose error is then not reported
	s := &resumableWatch{gate: g, opts: opts}
	s.pace.begins(g)
	first, t := g.takeOver()
	if first == nil {
		first, t = s.open(ctx)
	}
	g.answered()
	out, err := openPipe(ctx, cancel, &g.calls, func(ctx context.Context, send func(watch.Event) bool) {
		s.out = send
		if first == nil || s.forward(ctx, first, t) {
			s.run(ctx)
		}
	})
	if err != nil {
		if first != nil {
			first.close()
		}
		return nil, err // out is a nil pointer, which would be a non-nil interface
	}
	return out, nil
}

// keep replaces the known objects by those of a list, and returns the list for the reflector.
func (g *gate) keep(r *response, t Type) (runtime.Object, error) {
	if !g.transform.isSet() && len(r.undecodable) == 0 && !r.isConverted() {
		if done, err := g.known.replace(r, t, g.transform.strict, &g.sizes); done || err != nil {
			g.placed(r)
			return r.list, err
		}
	}
	content, err := newListed(r, &g.transform, &g.sizes)
	if err != nil {
		return nil, err
	}
	g.known.replaceBy(content, t)
	g.placed(r)
	return content.list(), nil
}

// placed records what the first list of the reflector is of.
func (g *gate) placed(r *response) {
	g.known.locate(r.positions, false)
	g.known.hold(r)
}

// accepted is called when the reflector has got a whole list, or will get it next.
func (g *gate) accepted() {
	g.account.Update()
	g.cfg.Observer.Succeeded(VerbList)
	g.cfg.Observer.Completed()
	g.listedView()
}

// answered records that the server has responded to a watch.
func (g *gate) answered() {
	g.watched.Store(true)
	g.cfg.Observer.Completed()
}

// served waits until the type is served.
func (g *gate) served(ctx context.Context) (Type, <-chan struct{}, error) {
	t, changed := g.available.Current()
	if t.Serving != Served {
		defer g.whileWaiting(ctx, changed)()
	}
	for t.Serving != Served {
		if err := await(ctx, changed); err != nil {
			return t, nil, err
		}
		t, changed = g.available.Current()
	}
	return t, changed, nil
}

// asking is a call of Config.WhileWaiting. It is for all requests that wait for the same change.
type asking struct {
	changed <-chan struct{}
	waiting int // guarded by the gate's mu
	stop    func()
}

// whileWaiting calls Config.WhileWaiting in a goroutine, unless a request that waits for changed has done so. The returned function must be
// called once. It ends the context of the call when no request waits.
func (g *gate) whileWaiting(ctx context.Context, changed <-chan struct{}) (stop func()) {
	if g.cfg.WhileWaiting == nil {
		return func() {}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	asks := g.asks
	if asks == nil || asks.changed != changed || asks.waiting == 0 {
		if !g.calls.Begin() {
			return func() {}
		}
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // others may still wait when ctx ends
		asks = &asking{changed: changed, stop: stop}
		g.asks = asks
		go func() {
			defer g.calls.End()
			g.cfg.WhileWaiting(ctx)
		}()
	}
	asks.waiting++
	return func() { g.waited(asks) }
}

// waited is called when a request that waited for the change of asks does not wait any more.
func (g *gate) waited(asks *asking) {
	g.mu.Lock()
	asks.waiting--
	last := asks.waiting == 0
	g.mu.Unlock()
	if last {
		asks.stop()
	}
}

// awaitChange waits until the state of the type changes, or the view of the shard, for which reviewed closes. A goroutine of
// Config.WhileWaiting runs meanwhile, one for all requests that wait.
func (g *gate) awaitChange(ctx context.Context, changed, reviewed <-chan struct{}) error {
	defer g.whileWaiting(ctx, changed)()
	select {
	case <-reviewed:
		return nil
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// await waits for changed, or returns the error of ctx.
func await[T any](ctx context.Context, changed <-chan T) error {
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// current reports whether the result of a request for t is still valid.
func (g *gate) current(t Type) bool {
	now, _ := g.available.Current()
	return t.follows(now)
}

// changed reports whether the result of a request for t is no longer valid, or err is only the
// consequence of a change of the type.
func (g *gate) changed(t Type, err error) bool {
	now, _ := g.available.Current()
	return errors.Is(err, errGaveWay) || !t.isStill(now) && (err != nil || !t.follows(now))
}

// After emptyPages pages in a row without objects, each further page waits for emptyPause: there may be no end of them.
const (
	emptyPages = 20
	emptyPause = 200 * time.Millisecond
)

// response is the response to a list, of all pages.
type response struct {
	list        runtime.Object
	undecodable []*undecodable.Object // the objects that are not in list
	positions   map[string]position   // of a set of namespaces; nil: there is no set
	unavailable error                 // of a namespace that could not be listed, and is not forbidden
	identity    func(metav1.Object) identity
	view        *sharding.View // the slots of the objects; nil: all objects
	streamed    bool           // it is a watch-list, whose stream is open
	converted   bool           // some objects of the watch-list have been converted
	// arrivals has the lists that are limited, by namespaces. Without a set, the only key is empty. Their objects are converted.
	arrivals map[string]*arrivals
}

// isConverted reports whether objects have been converted and measured as they arrived: these are items of type *converted.
func (r *response) isConverted() bool { return r.converted || len(r.arrivals) > 0 }

// moved records that the object under key is in the cache now. The response may be nil.
func (r *response) moved(key string, item listedItem) {
	if r == nil {
		return
	}
	if a := r.arrivals[namespaceOf(key)]; a != nil {
		a.room.Move(int64(item.bytes))
	}
}

// end ends the part of the response, which may be nil, in a memory budget. Complete says that the reflector has its objects.
func (r *response) end(complete bool) {
	if r == nil {
		return
	}
	for _, a := range r.arrivals {
		a.end(complete)
	}
}

// list lists all objects, in pages of limit objects if limit is not 0, unless the type changes
// meanwhile. At its end, it leaves turn.
func (g *gate) list(ctx context.Context, from *requests, changed <-chan struct{}, limit int64, turn *turn) (r *response, err error) {
	defer turn.leave()
	defer func() {
		g.account.Abandon()
		if err != nil {
			g.dropCommon()
		}
	}()
	g.strays.Store(false)
	from = from.selecting(g.view())
	if set := g.set(from.of); set != nil {
		return g.listSet(ctx, set, from, changed, limit, turn)
	}
	arrivals, err := g.room(from.of, "", g.arriving(from.of), func(_ context.Context, do func() error) error { return do() })
	if err != nil {
		return nil, err
	}
	r, err = g.listPages(ctx, from, changed, limit, turn, arrivals)
	if set := g.fallBack(from.of, err); set != nil {
		g.known.expired() // no namespace has a version to watch from, also if this list fails
		return g.listSet(ctx, set, from, changed, limit, turn)
	}
	return r, err
}

// listPages is list with the requests of one stage. If it fails or panics, it ends arrivals.
func (g *gate) listPages(ctx context.Context, from *requests, changed <-chan struct{}, limit int64, turn *turn, arrivals *arrivals) (*response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer cancelOn(news{changed: changed}, cancel)()
	from = from.reporting(turn)
	r := response{identity: g.identityIn, view: from.view}
	defer arrivals.settle(&r)
	empty := 0 // the number of pages in a row without objects
	pages := pager.New(func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
		if empty >= emptyPages {
			_ = await(ctx, time.After(emptyPause)) // the request has the error of ctx
		}
		page, err := from.list(ctx, opts)
		if opts.Continue == "" { // also if the pager begins again
			r.undecodable = nil
		}
		bad := undecodable.Take(page)
		if err == nil {
			if bad, err = from.own(page, bad); err != nil {
				from.failed(ctx, VerbList, err)
			}
		}
		r.undecodable = append(r.undecodable, bad...)
		if empty++; err == nil && meta.LenList(page)+len(bad) > 0 {
			empty = 0
		}
		if err == nil {
			err = g.awaitRest(ctx, turn, page)
		}
		if err == nil && arrivals != nil {
			if page, err = arrivals.take(ctx, page, opts.Continue == ""); err != nil {
				from.failed(ctx, VerbList, err)
			}
		}
		return page, err
	})
	pages.PageSize = cmp.Or(g.cfg.PageSize, limit)
	if g.cfg.Queue.hasBudget() || arrivals != nil {
		pages.PageSize = cmp.Or(pages.PageSize, pageSize)
	}
	var err error
	r.list, err = listAllOf(ctx, pages)
	return &r, causeOf(ctx, err)
}

// listAllOf returns the list of all pages. If the version of the first page expires before the last one, the list begins again, without a limit.
func listAllOf(ctx context.Context, pages *pager.ListPager) (runtime.Object, error) {
	opts := metav1.ListOptions{}
	pages.FullListIfExpired = false // the pager would return the first page of a list that the server or the tweak limits
	list, later, err := pages.ListWithAlloc(ctx, opts)
	if later && apierrors.IsResourceExpired(err) {
		pages.PageSize = 0
		list, _, err = pages.ListWithAlloc(ctx, opts)
	}
	return list, err
}

// watch opens a stream, unless there is news meanwhile.
func (g *gate) watch(ctx context.Context, t Type, n news, opts metav1.ListOptions) (*stream, error) {
	return openUnless(ctx, n, func(ctx context.Context) (*stream, error) { return g.openStream(ctx, t, opts) })
}

// requests returns the stage that sends requests for t.
func (g *gate) requests(t Type) *requests {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stage == nil || g.stage.of != t {
		namespace, unscoped := g.cfg.Namespace, false
		if !t.Namespaced {
			namespace, unscoped = metav1.NamespaceAll, true
		}
		kind := ""
		if g.cfg.Client.KeepsKind() {
			kind = t.Kind
		}
		g.stage = &requests{
			gate:     g,
			next:     &client{g.cfg.Client, t.GVR, namespace},
			observer: g.cfg.Observer,
			of:       t,
			kind:     kind,
			unscoped: unscoped,
		}
	}
	if set := g.set(t); set != nil { // the request is about the type, not about a namespace
		about := *g.stage
		about.next = &client{g.cfg.Client, t.GVR, set.working()}
		return &about
	}
	return g.stage
}

// putOff sets the time of the next attempt, which State.Due returns, and reports whether err is the ordinary end of a watch. A list that waits for
// names has no pause.
func (g *gate) putOff(pace *pace, err error) (ordinary bool) {
	if errors.Is(err, errUnnamed) {
		return false
	}
	ordinary = pace.failed(time.Now(), err)
	t, _ := g.available.Current()
	if set := g.set(t); set != nil && apierrors.IsForbidden(err) {
		if replaced, all := set.forbidden(); all && pace.slow() {
			pace.forbidden(time.Now(), replaced)
		}
	}
	until := pace.until
	g.due.Store(&until)
	return ordinary
}

// report calls the informer's watch error handler.
func (g *gate) report(ctx context.Context, err error) {
	if g.cfg.Report != nil {
		g.cfg.Report(ctx, err)
	}
}

// lookUp returns the function that reads the informer's store.
func (g *gate) lookUp() lookUp {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.store
}
