package discovery

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
)

// pace is how often a running resolver asks for documents.
type pace struct {
	// awaited: they are expected to change, or a type is waited for that no watch tells of.
	awaited time.Duration
	// patient: the same, after a minute of it.
	patient time.Duration
	// settled: nothing is expected, or no longer. What is behind an APIService may change
	// without any object changing.
	settled time.Duration
	// legacy is how much slower a server is asked that has no aggregated discovery and
	// answers each group version by itself; never slower than settled.
	legacy time.Duration // a factor
	// hurry is how long it is asked at the pace of awaited before that of patient.
	hurry time.Duration
	// persist is how long documents are expected to change before the pace is settled.
	persist time.Duration
	// doubted is how long what a document no longer lists is taken to be served.
	doubted time.Duration
	// batch is how long news wait for more.
	batch time.Duration
	// gap is how long it is at least between two requests in the long run.
	gap time.Duration
	// late is how long after a CRD has come it is read if nothing is served of it.
	late time.Duration
	// first is how long the first answer waits for the lists of CRDs and APIServices, which
	// say what serves a type, once the documents are there.
	first time.Duration
}

var usualPace = pace{
	awaited: 2 * time.Second,
	patient: 10 * time.Second,
	settled: time.Minute,
	legacy:  5,
	hurry:   time.Minute,
	persist: 5 * time.Minute,
	doubted: doubtFor,
	batch:   20 * time.Millisecond,
	gap:     500 * time.Millisecond,
	late:    time.Second,
	first:   time.Second,
}

// ErrRunning is what Run returns for a resolver that runs already.
var ErrRunning = errors.New("discovery: the resolver runs already")

// Run keeps the resolver up to date until ctx ends, and then returns nil. While it
// runs, questions are answered from memory, [Resolver.Subscribe] tells of changes, and
// that a type is not served is known until the next change.
//
// What is served comes from the discovery documents. What serves it comes from the metadata of
// CustomResourceDefinitions and APIServices, which is watched: it says what is created and
// deleted, and when to ask for documents again. Run begins with both documents and both lists at
// the same time, and its first answer has all of them; after a second it has what has come by
// then. A CRD itself is read only while its type is waited for ([Resolver.Await],
// an informer) and the documents do not list it, and to learn why a CRD is not served. An
// APIService is read if the server has not made it itself.
//
// [Resolver.Status] says how each source does, and the logger in ctx logs when that
// changes. A server that has no CRDs or no APIServices has none.
//
// The documents are asked for
//
//   - once a minute;
//   - at once, if an object has changed or a watch has failed: requests are at least 50 ms
//     apart, and 500 ms if that goes on;
//   - every 2 s while they are expected to change, as after a change, or while a CRD is not
//     established; after a minute without news every 10 s, after five minutes once a minute;
//   - every 10 s while they can't say what a group version serves, as of an APIService whose
//     server is gone; after five minutes without news once a minute;
//   - every 2 s while a type is waited for and CRDs or APIServices can't be watched, after
//     a minute every 10 s. A type that is deleted and created again between two answers is
//     then not noticed as another;
//   - 2, 4, 8 … 30 s after a request that failed, or as soon as another that had failed
//     succeeds; within a second of a question that failed, at the end of that second.
//
// Where nothing has changed a request costs some hundred bytes. On a server without
// aggregated discovery, where each group version is a request, 2 s are 10 s and 10 s are
// 50 s.
//
// The permissions that it can use are get, list and watch on
// customresourcedefinitions.apiextensions.k8s.io and
// apiservices.apiregistration.k8s.io. It returns an error if the resolver runs already.
// It can be run again after it has returned. A resolver that was made with
// [NewFromDiscovery] has no watches, and asks.
func (r *Resolver) Run(ctx context.Context) error {
	l := &live{
		resolver:  r,
		pace:      r.options.pace,
		kick:      make(chan struct{}, 1),
		news:      make(chan struct{}, 1),
		reads:     make(chan struct{}, 1),
		published: make(chan struct{}),
		known:     knowledge{doubtFor: r.options.pace.doubted},
		logger:    klog.FromContext(ctx).WithName("discovery"),
	}
	s, watches := r.server.(*restServer)
	l.known.crdsHeard, l.known.apisHeard = !watches, !watches
	if err := r.begin(l); err != nil {
		return err
	}
	var wg sync.WaitGroup
	defer r.end()
	defer wg.Wait()
	wg.Go(func() { l.publishNews(ctx) })
	if watches {
		wg.Go(func() { l.readObjects(ctx, s) })
		wg.Go(func() { l.watch(ctx, s, l.crdSource()) })
		wg.Go(func() { l.watch(ctx, s, l.apiSource()) })
	}
	l.poll(ctx)
	return nil
}

// Running returns a channel that is closed if Run runs, and otherwise as soon as it does. From
// then on questions wait for what Run learns, for a second or two, before they are put to the
// server. Once Run has returned, another call returns another channel.
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
	kick      chan struct{} // has one if documents are to be asked for now
	news      chan struct{} // has one if something was learned that is not published
	reads     chan struct{} // has one if it may be that an object is to be read
	published chan struct{} // closed when there is a first answer

	// mu guards what follows. It is not held over a request, and taken before the
	// resolver's, never after it: questions do not wait for it.
	mu    sync.Mutex
	known knowledge
	late  bool // the first answer waits no longer
	// unsettled is whether the documents were expected to change when the last answer was
	// made known.
	unsettled bool

	// These are guarded by the resolver's lock.
	crds  SourceStatus
	apis  SourceStatus
	docs  SourceStatus
	begun bool // there is a first answer, or documents could not be had
}

// watch watches the metadata of a source until ctx ends.
func (l *live) watch(ctx context.Context, s *restServer, src source) {
	opened := false
	w := &metadataWatch{
		getter: s.metadata.Resource(src.resource), endpoint: s.endpoint, path: src.path, pace: l.resolver.options.watchPace, jitter: l.resolver.options.jitter,
		before: func(ctx context.Context) {
			if !opened { // whoever waits for the first answer goes first: a watch loses nothing by it
				wait(ctx, l.pace.first, l.published)
				wait(ctx, l.pace.batch, nil)
			}
			opened = true
		},
		list: func(items []*slimMeta) {
			number := l.resolver.askedSoFar()
			l.hear(func(now time.Time) (differs, ask bool) { return src.listed(items, number, now) })
		},
		event: func(kind watch.EventType, item *slimMeta) {
			number := l.resolver.askedSoFar()
			l.hear(func(now time.Time) (differs, ask bool) { return src.one(kind, item, number, now) })
		},
		state: func(state SourceState, verb string, err error) { l.enter(src, state, verb, err) },
	}
	w.run(ctx)
}

// hear is update for news of objects: if they are a reason to ask for documents, these are
// expected to change from now on.
func (l *live) hear(learn func(now time.Time) (differs, ask bool)) {
	l.update(func(now time.Time) (differs, ask bool) {
		if differs, ask = learn(now); ask {
			l.known.stirred = now
		}
		return differs, ask
	})
}

// update lets a source say what it has learned: whether anything that is known differs by
// it, and whether documents are to be asked for. It does not wait for questions.
func (l *live) update(learn func(now time.Time) (differs, ask bool)) {
	l.mu.Lock()
	differs, ask := learn(time.Now())
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

// publishNews makes known what was learned, until ctx ends. What is learned in quick
// succession is made known together.
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
			l.late = true
			l.mu.Unlock()
		case <-l.news:
		}
		if since := time.Since(last); since < l.pace.batch {
			if !pause(ctx, l.pace.batch-since) {
				return
			}
			select {
			case <-l.news: // what it is for is made known now
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

// poll asks for documents until ctx ends, as often as needed.
func (l *live) poll(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var (
		failures int
		gap      time.Duration // after the last request
		asked    time.Time
	)
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.kick:
			if !pause(ctx, l.pace.batch) {
				return
			}
		case <-timer.C:
		}
		select {
		case <-l.kick: // what it is for is asked for now
		default:
		}
		if gap = min(2*gap, l.pace.gap); gap == 0 || time.Since(asked) > 2*l.pace.gap {
			gap = l.pace.gap / 10
		}
		_, _, err := l.resolver.ask(ctx, allGroups, nil)
		if err != nil {
			failures++
			l.begin() // questions are put to the server
		} else {
			failures = 0
		}
		asked = time.Now()
		wait := l.jittered(l.pause(failures, asked))
		if until, paused := pausedUntil(cmp.Or(err, l.missing())); paused {
			wait = min(wait, l.jittered(max(until.Sub(asked), 0)*10/9))
		}
		if failures > 0 { // news do not make the server answer, but it may answer other requests again
			if !pauseUntil(ctx, wait, l.resolver.server.failed()) {
				return
			}
			timer.Reset(0)
			continue
		}
		timer.Reset(wait)
		if !pause(ctx, gap) {
			return
		}
	}
}

// missing returns why the last document lacks the core group, or all others; nil if it has both.
func (l *live) missing() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known.doc == nil {
		return nil
	}
	return joined(l.known.doc.core.err, l.known.doc.named.err)
}

// begin lets questions wait no longer for a first answer.
func (l *live) begin() {
	r := l.resolver
	r.mu.Lock()
	defer r.mu.Unlock()
	if !l.begun {
		l.begun = true
		r.signalLocked()
	}
}

// pause waits for d, and reports whether ctx lasted for so long.
func pause(ctx context.Context, d time.Duration) bool { return pauseUntil(ctx, d, nil) }

// pauseUntil is pause that early ends.
func pauseUntil(ctx context.Context, d time.Duration, early <-chan struct{}) bool {
	wait(ctx, d, early)
	return ctx.Err() == nil
}

// jittered keeps many programs from asking at the same time.
func (l *live) jittered(d time.Duration) time.Duration {
	return spread(d, 0.1, l.resolver.options.jitter)
}

// ask has documents asked for now. It does not block.
func (l *live) ask() { signal(l.kick) }

// signal puts one into c unless there is one. It does not block.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// errNoWatch is why a resolver that was made with NewFromDiscovery asks.
var errNoWatch = errors.New("client-go's DiscoveryInterface has no watch")

// publishLocked puts what is known together, and tells who wants to know what has
// changed. The first time it waits until the documents and both lists have come, so that each
// type is made known with what serves it; but not for long. Caller holds l.mu.
func (l *live) publishLocked(now time.Time) {
	if l.known.doc == nil || !l.late && !l.known.heard() {
		return
	}
	l.late = true
	last := l.resolver.lastKnown()
	c := l.known.snapshot(last, now)
	l.resolver.replace(l, c, l.known.events(last, c, now))
	select {
	case <-l.published:
	default:
		close(l.published)
	}
	if unsettled := l.known.unsettled(now); unsettled != l.unsettled {
		l.unsettled = unsettled
		if unsettled {
			l.ask() // again soon, whoever has asked now
		}
	}
}

// pause returns how long to wait before the documents are asked for again, after so many
// failures in a row.
func (l *live) pause(failures int, now time.Time) time.Duration {
	if failures > 0 {
		return min(2*time.Second<<min(failures-1, 4), 30*time.Second, 16*l.pace.awaited)
	}
	l.mu.Lock()
	expected, quiet := l.known.unsettled(now) || l.known.awaited(), now.Sub(l.known.stirred)
	hurry := expected && quiet < l.pace.hurry
	expected = (expected || l.known.stale()) && quiet < l.pace.persist || l.known.partial()
	legacy := l.known.doc != nil && l.known.doc.named.legacy
	l.mu.Unlock()
	if l.resolver.polls(l) {
		waits, since := l.resolver.awaitedSince(now)
		expected = expected || waits
		hurry = hurry || waits && now.Sub(since) < l.pace.hurry
	}
	wait := l.pace.settled
	switch {
	case hurry:
		wait = l.pace.awaited
	case expected:
		wait = l.pace.patient
	}
	if legacy {
		wait = min(wait*l.pace.legacy, max(wait, l.pace.settled))
	}
	return wait
}

// source is a resource whose metadata a run watches, and what it does with what it hears.
// The functions are called with the run's lock held. They report whether anything that is
// known differs, and whether documents are to be asked for.
type source struct {
	resource schema.GroupVersionResource
	path     string
	status   *SourceStatus
	// rule says whether what was heard decides, and current whether it is followed at
	// this moment.
	rule, current *bool
	heard         *bool // it has listed, or can't
	all           func(items []*slimMeta, number uint64, now time.Time) (differs, ask bool)
	one           func(kind watch.EventType, item *slimMeta, number uint64, now time.Time) (differs, ask bool)
}

func (l *live) crdSource() source {
	k := &l.known
	return source{
		resource: crdResource, path: crdPath, status: &l.crds, heard: &k.crdsHeard, rule: &k.crdsRule, current: &k.crdsCurrent,
		all: func(items []*slimMeta, number uint64, now time.Time) (differs, ask bool) {
			k.all = true
			return true, k.learnCRDs(items, number, now)
		},
		one: func(kind watch.EventType, item *slimMeta, number uint64, now time.Time) (differs, ask bool) {
			if kind == watch.Deleted {
				gone := k.forgetCRD(item, number, now)
				return gone, gone
			}
			ask = k.learnCRD(item, number, now)
			return len(k.dirty) > 0, ask
		},
	}
}

func (l *live) apiSource() source {
	k := &l.known
	return source{
		resource: apiServiceResource, path: apiServicePath, status: &l.apis, heard: &k.apisHeard, rule: &k.apisRule, current: &k.apisCurrent,
		all: func(items []*slimMeta, _ uint64, _ time.Time) (differs, ask bool) {
			return true, k.learnAPIs(items)
		},
		one: func(kind watch.EventType, item *slimMeta, _ uint64, _ time.Time) (differs, ask bool) {
			if kind == watch.Deleted {
				return true, k.forgetAPI(item)
			}
			ask = k.learnAPI(item)
			return true, ask
		},
	}
}

// enter takes a new state of a source.
func (l *live) enter(src source, state SourceState, verb string, err error) {
	var changed bool
	l.update(func(now time.Time) (differs, ask bool) {
		l.resolver.mu.Lock()
		changed = src.status.become(state, verb, err, now)
		l.resolver.mu.Unlock()
		differs, ask = src.enter(state, err, l.resolver.askedSoFar(), now)
		l.known.all = l.known.all || differs
		return differs, ask
	})
	switch {
	case !changed:
	case state == SourceForbidden:
		l.logger.Info("Not allowed to watch; asking for discovery documents instead", "path", src.path, "verb", verb, "err", err)
	case state == SourceFailing:
		l.logger.V(2).Info("The watch does not work; trying again", "path", src.path, "verb", verb, "err", err)
	default:
		l.logger.V(2).Info("The watch has changed its state", "path", src.path, "state", state)
	}
}

// listed takes a complete list. The first one counts at once, later ones when the watch is
// open: where only that is refused, a list would be out of date by then.
func (s source) listed(items []*slimMeta, number uint64, now time.Time) (differs, ask bool) {
	if !*s.heard {
		*s.heard, *s.rule, *s.current = true, true, true
	}
	return s.all(items, number, now)
}

// enter takes a new state.
func (s source) enter(state SourceState, err error, number uint64, now time.Time) (differs, ask bool) {
	first := !*s.heard
	*s.heard = true
	switch {
	case state == SourceCurrent:
		differs = !*s.rule || !*s.current
		*s.rule, *s.current = true, true
	case state == SourceAbsent:
		*s.rule, *s.current = true, true
		return s.all(nil, number, now)
	case state == SourceForbidden && !apierrors.IsUnauthorized(err):
		differs, ask = *s.rule, *s.rule
		*s.rule, *s.current = false, false
	default: // what is known stands, and documents may add to it
		differs, ask = *s.current, *s.current
		*s.current = false
	}
	return differs || first, ask
}

// become changes the state, and reports whether it is another one.
func (s *SourceStatus) become(state SourceState, verb string, err error, now time.Time) (changed bool) {
	changed = s.State != state
	s.State, s.Verb, s.Err = state, verb, err
	if changed {
		s.Since = now
	}
	return changed
}

// noteDocumentsLocked takes how a request for documents went, and reports whether that
// is worth a line. Caller holds the resolver's lock.
func (l *live) noteDocumentsLocked(doc *document, err error, now time.Time) (failing bool) {
	if err == nil && (doc.core.err != nil || doc.named.err != nil) {
		err = joined(doc.core.err, doc.named.err)
	}
	switch {
	case err == nil:
		l.docs.become(SourceCurrent, "", nil, now)
		return false
	case errors.Is(err, context.Canceled): // nobody wanted them any more
		return false
	}
	return l.docs.become(SourceFailing, "get", err, now)
}
