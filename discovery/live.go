package discovery

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"github.com/gvrkit/gvrkit/internal/typefacts"
)

// pace has the intervals of a running resolver.
type pace struct {
	// awaited is the interval of requests for documents while they are expected to change, or a
	// caller waits for a type that no watch reports.
	awaited time.Duration
	// patient is the same interval after the time hurry.
	patient time.Duration
	// settled is the interval while no change is expected. The resources of an APIService may change
	// without a change of any object.
	settled time.Duration
	// legacy is the factor of the intervals for a server without aggregated discovery, which needs a
	// request for each group version. They do not exceed settled.
	legacy time.Duration
	// hurry is how long the interval is awaited before it is patient.
	hurry time.Duration
	// persist is how long a change is expected before the interval is settled.
	persist time.Duration
	// doubted is how long a resource counts as served that documents do not list any more.
	doubted time.Duration
	// batch is how long a change waits for other changes, so that they are published together.
	batch time.Duration
	// gap is the minimum time between two requests in a long series. At the start of a series, it is a tenth of that.
	gap time.Duration
	// readAfter is the time after which a new CRD is read if no resource of it is served.
	readAfter time.Duration
	// first is how long the first snapshot waits for the lists of CRDs and APIServices, which have the
	// backings, after the documents.
	first time.Duration
	// questions is how long questions wait for the first snapshot before they send requests of their own.
	questions time.Duration
	// next is how long a narrow run waits before its requests for another type.
	next time.Duration
}

var usualPace = pace{
	awaited:   2 * time.Second,
	patient:   10 * time.Second,
	settled:   time.Minute,
	legacy:    5,
	hurry:     time.Minute,
	persist:   5 * time.Minute,
	doubted:   doubtFor,
	batch:     20 * time.Millisecond,
	gap:       500 * time.Millisecond,
	readAfter: time.Second,
	first:     time.Second,
	questions: 2 * time.Second,
	next:      5 * time.Millisecond,
}

// of returns the interval of requests for documents such as doc, the last one: it is longer if doc is in the legacy format.
func (p pace) of(doc *document, interval time.Duration) time.Duration {
	if doc != nil && doc.named.legacy {
		return min(interval*p.legacy, max(interval, p.settled))
	}
	return interval
}

// backoff returns the back-off of requests for documents: 2, 4, 8 … 30 s. The success of another request that had failed
// ends a pause. If no request was sent, because the path was paused, the next one follows at the end of that pause.
func (p pace) backoff() wait.Backoff {
	longest := min(30*time.Second, 16*p.awaited)
	return newBackoff(min(2*time.Second, longest), longest)
}

// ErrRunning is the error of Run if the resolver runs already.
var ErrRunning = errors.New("discovery: the resolver runs already")

// Run keeps the resolver current until ctx ends, and then returns nil. While it runs, the resolver
// answers from memory, [Resolver.Subscribe] reports changes, and answers that a resource is not
// served are stored until the next change, or for 2 s while CRDs or APIServices can't be watched.
//
// The discovery documents have the served resources. The metadata of CustomResourceDefinitions and
// APIServices, which Run watches, has the backings, and shows when the documents have to be requested
// again. Run starts with requests for both documents and both lists at the same time. The first snapshot
// has all four, or, after a second, those that were received. Run reads a whole CRD or APIService only if
// the metadata and the documents do not decide: after 300 reads in quick succession, at most five a second.
//
// Run requests the documents once a minute, and at once after a change of an object or a failed watch; in a
// long series, requests are at least 500 ms apart. While the documents are expected to change, while they lack
// the resources of a group version, and while a caller waits for a type that no watch reports, it requests them
// every 2 to 10 s. The first two end after five minutes without a change. A server without aggregated discovery
// needs a request for each group version: there, it is every 10 to 50 s. A request for an unchanged document
// costs a few hundred bytes.
//
// Failed requests are repeated after pauses that grow to 30 s, and lists and watches that are denied after
// pauses that grow to 5 minutes. [Resolver.Status] has the state of each source, and the logger in ctx logs its
// changes. A server may have no CRDs or no APIServices.
//
// Without APIServices, Run can't tell that another server serves a type; without CRDs, that another CRD does:
// a type that is deleted and created again between two documents is then not noticed as another type.
//
// The resolver of a factory of package dynamicinformer begins with a narrow run, which
// [Status.Narrow] reports: it requests only the types that informers of the factory are or have been
// on, while these are at most four. For each type it reads the document of the group version, once a
// minute, and lists and watches the metadata of the type's CRD and APIService. The run widens to what is
// described above, and stays wide, when an informer is on a fifth type or another version, or has
// another [VersionPolicy] than [Exact], when the program asks the resolver a question or subscribes, and when
// a type is not served, has just been created, changes, or can't be read within a second.
//
// Run uses the permissions get, list and watch on customresourcedefinitions.apiextensions.k8s.io and
// apiservices.apiregistration.k8s.io. A narrow run uses list and watch with a field selector for
// metadata.name, which RBAC also allows by a rule with resourceNames.
//
// Run returns [ErrRunning] if the resolver runs already. It can be called again after it has returned.
// The resolver of [NewFromDiscovery] has no watches: it polls.
func (r *Resolver) Run(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("discovery: run: %w", errNilContext)
	}
	l := &live{
		resolver:  r,
		pace:      r.options.pace,
		kick:      make(chan struct{}, 1),
		news:      make(chan struct{}, 1),
		reads:     make(chan struct{}, 1),
		published: make(chan struct{}),
		knowledge: knowledge{doubtFor: r.options.pace.doubted},
		logger:    klog.FromContext(ctx).WithName("discovery"),
	}
	s, watches := r.server.(*restServer)
	l.knowledge.crdsResponded, l.knowledge.apisResponded = !watches, !watches
	if watches && typefacts.ForInformers(ctx) {
		l.narrow = newNarrow(l, s)
	}
	n := l.narrow
	if err := r.begin(l); err != nil {
		if !typefacts.ForInformers(ctx) {
			r.widen()
		}
		return err
	}
	var wg sync.WaitGroup
	defer r.end()
	defer wg.Wait()
	if n != nil && !n.run(ctx) {
		return nil
	}
	wg.Go(func() { l.publishNews(ctx) })
	if watches {
		wg.Go(func() { l.readObjects(ctx, s) })
		wg.Go(func() { l.watch(ctx, s, l.crdSource()) })
		wg.Go(func() { l.watch(ctx, s, l.apiSource()) })
	}
	l.poll(ctx)
	return nil
}

// Running returns a channel that is closed when Run runs. From then on, questions wait at most 2 s
// for the first snapshot of Run before they send requests. After Run has returned, Running returns
// another channel.
func (r *Resolver) Running() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.running
}

// live is one run of a resolver.
type live struct {
	resolver  *Resolver
	pace      pace
	logger    klog.Logger
	kick      chan struct{} // has a value if documents are to be requested now
	news      chan struct{} // has a value if there are changes to publish
	reads     chan struct{} // has a value if an object may have to be read
	published chan struct{} // closed after the first snapshot

	// mu guards the fields below. It is not held during requests. It is locked before the resolver's
	// lock, never after it: questions do not wait for it.
	mu        sync.Mutex
	knowledge knowledge
	overdue   bool // the first snapshot does not wait any longer
	// unsettled reports whether the documents were expected to change at the last snapshot.
	unsettled bool

	// These are guarded by the resolver's lock.
	crds  SourceStatus
	apis  SourceStatus
	docs  SourceStatus
	begun bool // there is a first snapshot, or the request for documents has failed

	// narrow is the first phase of a run for informers; nil: it has ended, or there was none. It is
	// written with both locks held.
	narrow *narrow
}

// watch watches the metadata of a source until ctx ends.
func (l *live) watch(ctx context.Context, s *restServer, src source) {
	opened := false
	w := &metadataWatch{
		getter: s.metadata.Resource(src.resource), endpoint: s.endpoint, path: src.path, pace: l.resolver.options.watchPace, jitter: l.resolver.options.jitter,
		filled: l.recalls(src),
		before: func(ctx context.Context) {
			if !opened { // callers wait for the first snapshot; a later watch gets the same events
				sleep(ctx, l.pace.first, l.published)
				sleep(ctx, l.pace.batch, nil)
			}
			opened = true
		},
		list: func(list metaList) {
			number := l.resolver.askedSoFar()
			l.updateObjects(func(now time.Time) (differs, ask bool) { return src.listed(list, number, now) })
		},
		event: func(kind watch.EventType, item *slimMeta) {
			number := l.resolver.askedSoFar()
			l.updateObjects(func(now time.Time) (differs, ask bool) { return src.one(kind, item, number, now) })
		},
		state: func(state SourceState, verb string, err error) { l.enter(src, state, verb, err) },
		served: func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.knowledge.refutesAbsence(src)
		},
	}
	w.run(ctx)
}

// recalls reports whether the run knew objects of a source when it was narrow.
func (l *live) recalls(src source) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return src.resource == crdResource && len(l.knowledge.before) > 0
}

// refutesAbsence reports whether the server may have the resource of a source, though it has responded NotFound: the last document lists
// the resource, lacks the named groups, or lacks resources of the group. Before the first document, the response is not refuted, and has no effect.
func (k *knowledge) refutesAbsence(src source) bool {
	gr := src.resource.GroupResource()
	return k.doc != nil && k.namedAt == 0 || k.lists(gr) || k.illegible(gr)
}

// refuteAbsencesLocked ends the belief that the server does not have the resource of a source, if the last document refutes it: the
// response NotFound may be that of a wrong server, or of one that starts. Caller holds mu.
func (l *live) refuteAbsencesLocked(now time.Time) {
	for _, src := range []source{l.crdSource(), l.apiSource()} {
		if !*src.absent || !l.knowledge.refutesAbsence(src) {
			continue
		}
		l.resolver.mu.Lock()
		src.status.become(SourceFailing, src.status.Verb, src.status.Err, now)
		l.resolver.mu.Unlock()
		src.enter(SourceFailing, src.status.Err, l.knowledge.docAt, now)
		l.knowledge.all, l.knowledge.builtIn = true, nil
	}
}

// updateObjects is update for changes of objects: if documents are to be requested, they are expected to change
// from now on.
func (l *live) updateObjects(change func(now time.Time) (differs, ask bool)) {
	l.update(func(now time.Time) (differs, ask bool) {
		if differs, ask = change(now); ask {
			l.knowledge.lastReason = now
		}
		return differs, ask
	})
}

// update calls change, which changes the knowledge. Change reports whether the knowledge differs, and
// whether documents are to be requested.
func (l *live) update(change func(now time.Time) (differs, ask bool)) {
	l.mu.Lock()
	differs, ask := change(time.Now())
	l.mu.Unlock()
	if differs || ask {
		l.resolver.forgetDenials()
		signal(l.news)
	}
	if ask {
		l.ask()
	}
	signal(l.reads)
}

// publishNews publishes changes until ctx ends. Changes in quick succession are published together.
func (l *live) publishNews(ctx context.Context) {
	var last time.Time
	first := time.NewTimer(l.pace.first)
	defer first.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-first.C:
			l.mu.Lock()
			l.overdue = true
			l.mu.Unlock()
		case <-l.news:
		}
		if since := time.Since(last); since < l.pace.batch {
			if !sleep(ctx, l.pace.batch-since, nil) {
				return
			}
			select {
			case <-l.news: // its change is published now
			default:
			}
		}
		last = time.Now()
		l.mu.Lock()
		l.publishLocked(time.Now())
		l.mu.Unlock()
		signal(l.reads)
	}
}

// poll requests documents until ctx ends, as often as needed.
func (l *live) poll(ctx context.Context) {
	var (
		backoff = l.pace.backoff()
		gap     time.Duration // after the last request
		asked   time.Time
	)
	for {
		select {
		case <-l.kick: // its request is sent now
		default:
		}
		if gap = min(2*gap, l.pace.gap); gap == 0 || time.Since(asked) > 2*l.pace.gap {
			gap = l.pace.gap / 10
		}
		_, _, err := l.resolver.requestDocuments(ctx, allGroups, nil)
		asked = time.Now()
		delay := l.interval(asked)
		if err != nil {
			delay = backoff.Step()
			l.begin() // questions send requests
		}
		delay = l.jittered(delay)
		if until, paused := pausedUntil(cmp.Or(err, l.missing())); paused {
			delay = min(delay, l.jittered(max(until.Sub(asked), 0)*10/9))
		}
		if err != nil { // events do not end the pause, but the success of another request does
			if !sleep(ctx, delay, l.resolver.server.failed()) {
				return
			}
			continue
		}
		backoff = l.pace.backoff()
		if !l.awaitPoll(ctx, gap, delay) {
			return
		}
	}
}

// awaitPoll waits for the time gap, and then until delay has passed since the call or a request is needed earlier. It reports false if ctx
// ends before.
func (l *live) awaitPoll(ctx context.Context, gap, delay time.Duration) bool {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	if !sleep(ctx, gap, nil) {
		return false
	}
	select {
	case <-ctx.Done():
		return false
	case <-l.kick:
		return sleep(ctx, l.pace.batch, nil)
	case <-timer.C:
		return true
	}
}

// missing returns the error of the last document's roots; nil if it has both.
func (l *live) missing() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.knowledge.doc == nil {
		return nil
	}
	return joined(l.knowledge.doc.core.err, l.knowledge.doc.named.err)
}

// begin ends the wait of questions for the first snapshot.
func (l *live) begin() {
	r := l.resolver
	r.mu.Lock()
	defer r.mu.Unlock()
	if !l.begun {
		l.begun = true
		r.signalLocked()
	}
}

// jittered returns a duration that differs from d by at most a tenth, so that many programs do not send
// their requests at the same time.
func (l *live) jittered(d time.Duration) time.Duration {
	return spread(d, 0.1, l.resolver.options.jitter)
}

// ask makes poll request documents now. It does not block.
func (l *live) ask() { signal(l.kick) }

// signal puts a value into c, unless c has one. It does not block.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// errNoWatch is the error of the watches of a resolver of NewFromDiscovery.
var errNoWatch = errors.New("client-go's DiscoveryInterface has no watch")

// publishLocked publishes a snapshot of the knowledge, and the events. The first snapshot waits for the
// documents and both lists, so that each type has its backing, but not longer than pace.first. Caller
// holds l.mu.
func (l *live) publishLocked(now time.Time) {
	if l.knowledge.doc == nil || !l.overdue && !l.knowledge.isComplete() {
		return
	}
	l.overdue = true
	last := l.resolver.lastKnown()
	c := l.knowledge.snapshot(last, now)
	l.resolver.replace(l, c, l.knowledge.events(last, c, now))
	select {
	case <-l.published:
	default:
		close(l.published)
	}
	if unsettled := l.knowledge.unsettled(now); unsettled != l.unsettled {
		l.unsettled = unsettled
		if unsettled {
			l.ask() // the last request was before the change
		}
	}
}

// interval returns the time until the next request for documents, after one that succeeded:
//
//   - awaited while they are expected to change, for example after a change, or while a CRD is not established; patient after
//     the time hurry without changes, settled after the time persist;
//   - awaited while a caller waits for a type and CRDs or APIServices can't be watched; patient after the time hurry;
//   - patient while they lack the resources of a group version, for example of an APIService whose server does not respond;
//     settled after the time persist without changes;
//   - patient while one of the two documents could not be read;
//   - settled otherwise.
func (l *live) interval(now time.Time) time.Duration {
	l.mu.Lock()
	expected, quiet := l.knowledge.unsettled(now) || l.knowledge.awaited(), now.Sub(l.knowledge.lastReason)
	hurry := expected && quiet < l.pace.hurry
	expected = (expected || l.knowledge.stale()) && quiet < l.pace.persist || l.knowledge.partial()
	doc := l.knowledge.doc
	l.mu.Unlock()
	if l.resolver.polls(l) {
		waits, since := l.resolver.awaitedSince()
		expected = expected || waits
		hurry = hurry || waits && now.Sub(since) < l.pace.hurry
	}
	interval := l.pace.settled
	switch {
	case hurry:
		interval = l.pace.awaited
	case expected:
		interval = l.pace.patient
	}
	return l.pace.of(doc, interval)
}

// source is a resource whose metadata a run watches. The functions are called with the run's lock held.
// They report whether the knowledge differs, and whether documents are to be requested.
type source struct {
	resource schema.GroupVersionResource
	path     string
	status   *SourceStatus
	// rule reports whether the list of objects is complete, and current whether the watch is open.
	rule, current *bool
	responded     *bool // there was a list, or a failure
	absent        *bool // the server does not have the resource
	all           func(list metaList, number uint64, now time.Time) (differs, ask bool)
	one           func(kind watch.EventType, item *slimMeta, number uint64, now time.Time) (differs, ask bool)
}

func (l *live) crdSource() source {
	k := &l.knowledge
	return source{
		resource: crdResource, path: crdPath, status: &l.crds, responded: &k.crdsResponded, rule: &k.crdsRule, current: &k.crdsCurrent, absent: &k.crdsAbsent,
		all: func(list metaList, number uint64, now time.Time) (differs, ask bool) {
			k.all = true
			if k.before != nil { // also after a failure, so that what was known is compared with it
				k.crdsRule, k.crdsCurrent = true, true
			}
			return true, k.replaceCRDs(list, number, now)
		},
		one: func(kind watch.EventType, item *slimMeta, number uint64, now time.Time) (differs, ask bool) {
			if k.isBehind(item) {
				return false, false
			}
			if kind == watch.Deleted {
				gone := k.forgetCRD(item, number, now)
				return gone, gone
			}
			ask = k.putCRD(item, number, now)
			return len(k.dirty) > 0, ask
		},
	}
}

func (l *live) apiSource() source {
	k := &l.knowledge
	return source{
		resource: apiServiceResource, path: apiServicePath, status: &l.apis, responded: &k.apisResponded, rule: &k.apisRule, current: &k.apisCurrent, absent: &k.apisAbsent,
		all: func(list metaList, _ uint64, _ time.Time) (differs, ask bool) {
			return true, k.replaceAPIs(list.items)
		},
		one: func(kind watch.EventType, item *slimMeta, _ uint64, _ time.Time) (differs, ask bool) {
			if kind == watch.Deleted {
				return true, k.forgetAPI(item)
			}
			ask = k.putAPI(item)
			return true, ask
		},
	}
}

// enter records the state of a source.
func (l *live) enter(src source, state SourceState, verb string, err error) {
	var changed bool
	l.update(func(now time.Time) (differs, ask bool) {
		l.resolver.mu.Lock()
		changed = src.status.become(state, verb, err, now)
		l.resolver.mu.Unlock()
		differs, ask = src.enter(state, err, l.resolver.askedSoFar(), now)
		l.knowledge.all = l.knowledge.all || differs
		return differs, ask
	})
	switch {
	case !changed:
	case state == SourceForbidden:
		l.logger.Info("The server refuses the request; polling discovery documents instead", "path", src.path, "verb", verb, "err", err)
	case state == SourceFailing:
		l.logger.V(2).Info("Watch has failed; trying again", "path", src.path, "verb", verb, "err", err)
	default:
		l.logger.V(2).Info("Watch has another state", "path", src.path, "state", state)
	}
}

// listed records a complete list. The first list counts at once, later lists when the watch is open: if
// only the watch is forbidden, the list is out of date.
func (s source) listed(list metaList, number uint64, now time.Time) (differs, ask bool) {
	if !*s.responded {
		*s.responded, *s.rule, *s.current = true, true, true
	}
	*s.absent = false
	return s.all(list, number, now)
}

// enter records a state. It has no effect if the state is the last one.
func (s source) enter(state SourceState, err error, number uint64, now time.Time) (differs, ask bool) {
	first, absent := !*s.responded, *s.absent
	*s.responded, *s.absent = true, state == SourceAbsent
	switch {
	case state == SourceCurrent:
		differs = !*s.rule || !*s.current
		*s.rule, *s.current = true, true
	case state == SourceAbsent && absent:
	case state == SourceAbsent:
		*s.rule, *s.current = true, true
		return s.all(metaList{}, number, now)
	case state == SourceForbidden && !apierrors.IsUnauthorized(err):
		differs, ask = *s.rule, *s.rule
		*s.rule, *s.current = false, false
	default: // the known objects stay, and documents may add resources; that there are none is not known any more
		differs, ask = *s.current, *s.current
		*s.current, *s.rule = false, *s.rule && !absent
	}
	return differs || first, ask
}

// become sets the state, and reports whether it has changed.
func (s *SourceStatus) become(state SourceState, verb string, err error, now time.Time) (changed bool) {
	changed = s.State != state
	s.State, s.Verb, s.Err = state, verb, err
	if changed {
		s.Since = now
	}
	return changed
}

// noteDocumentsLocked records the result of a request for documents, and reports whether it is to be
// logged. Caller holds the resolver's lock.
func (l *live) noteDocumentsLocked(doc *document, err error, now time.Time) (failing bool) {
	if err == nil && (doc.core.err != nil || doc.named.err != nil) {
		err = joined(doc.core.err, doc.named.err)
	}
	switch {
	case err == nil:
		l.docs.become(SourceCurrent, "", nil, now)
		return false
	case errors.Is(err, context.Canceled): // the callers have left
		return false
	}
	return l.docs.become(SourceFailing, "get", err, now)
}

// begin registers l as the run. A narrow run widens at once if it has to compare what it finds with an
// earlier run, or if a program waits for its results.
func (r *Resolver) begin(l *live) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live != nil {
		return ErrRunning
	}
	if l.narrow != nil && (r.last != nil || r.observedLocked()) {
		close(l.narrow.widened)
		l.narrow = nil
	}
	r.live, r.plainSnapshot, r.plainDoc = l, nil, nil
	close(r.running)
	l.connectLocked()
	if _, rest := r.server.(*restServer); !rest {
		l.crds = SourceStatus{State: SourceForbidden, Err: errNoWatch}
		l.apis = l.crds
	}
	return nil
}

// connectLocked sets all sources to SourceConnecting. Caller holds the resolver's lock.
func (l *live) connectLocked() {
	connecting := SourceStatus{State: SourceConnecting}
	l.crds, l.apis, l.docs = connecting, connecting, connecting
}

// liveRun returns the current run, or nil.
func (r *Resolver) liveRun() *live {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live
}

// observedLocked reports whether a caller waits for a type, or a program subscribes. Caller holds
// r.mu.
func (r *Resolver) observedLocked() bool {
	for _, w := range r.wanted {
		if w.callers > 0 {
			return true
		}
	}
	for queue := range r.queues {
		if !queue.informers {
			return true
		}
	}
	return false
}

// rememberNarrow takes what a narrow run knows.
func (r *Resolver) rememberNarrow(c *snapshot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.unreported = c, true
}

// end ends the run: its snapshot is not current any more.
func (r *Resolver) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live, r.running = nil, make(chan struct{})
	r.current.Store(nil)
	r.denied = nil
	r.signalLocked()
}

// lastKnown returns the last snapshot of a run, which may have ended; nil if there was none.
func (r *Resolver) lastKnown() *snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// askedSoFar returns the number of requests for documents so far.
func (r *Resolver) askedSoFar() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// replace makes c the snapshot of l, and sends events to the subscribers. Caller holds l.mu.
func (r *Resolver) replace(l *live, c *snapshot, events []Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live != l || r.current.Load() == c && len(events) == 0 {
		return // c stays, with its memo
	}
	l.begun = true
	r.last = c
	r.current.Store(c)
	r.denied = nil
	r.noteEndsLocked(events, time.Now())
	for _, event := range events { // removed versions are denied
		was := event.Old
		if event.Type == Removed {
			was = event.Resource
		}
		if l.knowledge.isRecreated(was.GVR.GroupResource()) {
			continue
		}
		for _, version := range was.Versions {
			gvr := was.GVR.GroupResource().WithVersion(version)
			if c.served(gvr) == nil {
				r.denyLocked(questionOfGVR(gvr), nil)
			}
		}
	}
	others := events
	if r.unreported {
		r.unreported, others = false, added(c)
	}
	for queue := range r.queues {
		if queue.informers {
			queue.put(events)
		} else {
			queue.put(others)
		}
	}
	r.signalLocked()
}

func (r *Resolver) signalLocked() {
	close(r.changed)
	r.changed = make(chan struct{})
}
