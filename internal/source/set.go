package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/undecodable"
	"github.com/gvrkit/gvrkit/sharding"
)

// This file presents a set of namespaces as one list and one watch. The list has the lists of all namespaces. The watch
// has a child for each namespace, with its own requests, pauses and resourceVersion. A child passes on the events of
// its watches, and whole lists as parts: of a namespace that has been added, that could not be listed before, or whose
// watch can't continue.

const (
	// atATime is the maximum number of namespaces in a set that are listed at the same time.
	atATime = 16
	// pageAfter is the maximum time of a page in the first list of a set. A namespace that takes longer is listed
	// later: it must not delay the others.
	pageAfter = time.Minute
	// answersAfter is the maximum wait for the responses to the first watches of a set.
	answersAfter = time.Second
	// remainingAfter is the maximum time of a page in the list of a namespace that is gone. Changes of the set wait for it.
	remainingAfter = 10 * time.Second
)

var errReplacedType = errors.New("the list is of another type")

// set returns the set of namespaces of a source for type t; nil if there is none, or all namespaces are requested.
func (g *gate) set(t Type) *Namespaces {
	if set := g.cfg.Namespaces; set != nil && t.Namespaced && !set.everywhere.Load() {
		return set
	}
	return nil
}

// fallsBack reports whether lists of the allowed namespaces follow if err is the result of a list of all namespaces for t. Such an error is
// no failure.
func (g *gate) fallsBack(t Type, err error) bool {
	set := g.cfg.Namespaces
	return set != nil && t.Namespaced && apierrors.IsForbidden(err) && set.everywhere.Load()
}

// fallBack returns the set of namespaces to list if err is the result of a list of all namespaces for t; nil if there
// is none.
func (g *gate) fallBack(t Type, err error) *Namespaces {
	if g.fallsBack(t, err) && g.cfg.Namespaces.everywhere.Swap(false) {
		return g.cfg.Namespaces
	}
	return nil
}

// in returns the stage of requests in namespace.
func (g *gate) in(set *Namespaces, from *requests, namespace string) *requests {
	in := *from
	in.next = &client{g.cfg.Client, from.of.GVR, namespace}
	in.observer = namespaceObserver{from.observer, set, namespace}
	return &in
}

// retain forgets the refused lists and the failures of namespaces that are not wanted, and of which no list or watch is in progress.
func (g *gate) retain(set *Namespaces, wanted map[string]bool) {
	g.account.Retain(wanted)
	set.forgetFailures(wanted)
}

// errUnnamed is the result of a list if the names of its namespaces are not known: a list of all namespaces was forbidden. The list after it
// waits for them. It is never reported.
var errUnnamed = fmt.Errorf("%w: the names of the namespaces are not known", errGaveWay)

// listSet lists all namespaces of set. It returns an error if each of them fails, and the set has not changed meanwhile.
func (g *gate) listSet(ctx context.Context, set *Namespaces, from *requests, changed <-chan struct{}, limit int64, turn *turn) (*response, error) {
	if !isClosed(set.namesKnown) {
		g.known.expired() // no watch of all namespaces follows
		return nil, errUnnamed
	}
	set.use(true)
	for {
		names, replaced := set.Current()
		g.retain(set, keySet(names))
		g.known.cover(names)
		r, err := g.listAll(ctx, set, names, from, changed, limit, turn)
		if err == nil || ctx.Err() != nil || isClosed(changed) || !isClosed(replaced) {
			return r, err
		}
	}
}

// isUnnamed reports whether the names of the namespaces of t are not known.
func (g *gate) isUnnamed(t Type) bool {
	set := g.set(t)
	return set != nil && !isClosed(set.namesKnown)
}

// awaitNames waits until the names of the namespaces of t are known. It reports false if there is news before, or if ctx ends.
func (g *gate) awaitNames(ctx context.Context, t Type, n news) bool {
	set := g.set(t)
	if set == nil {
		return true
	}
	if set.run != nil && !set.runs.Swap(true) {
		if !g.calls.Begin() {
			return false
		}
		set.onFollow(g.cfg.Observer.Completed)
		go func() { // ctx is that of the reflector
			defer g.calls.End()
			set.run(ctx, set, func(_ string, err error) { g.named(ctx, set, err) })
		}()
	}
	select {
	case <-set.namesKnown:
		return true
	case <-n.changed:
	case <-n.reviewed:
	case <-n.listed:
	case <-ctx.Done():
	}
	return false
}

// listAll lists the namespaces with these names.
func (g *gate) listAll(ctx context.Context, set *Namespaces, names []string, from *requests, changed <-chan struct{}, limit int64, turn *turn) (*response, error) {
	lists, errs := make([]*response, len(names)), make([]error, len(names))
	free := make(chan struct{}, atATime)
	if turn != nil { // the queue limits lists
		free = make(chan struct{}, 1)
	}
	together, work := g.arriving(from.of), make(chan func())
	run := func(_ context.Context, do func() error) error {
		done := make(chan error, 1)
		work <- func() { done <- do() }
		return <-done
	}
	verb := VerbList
	if g.polls(from.of) { // lists replace watches
		verb = VerbWatch
	}
	list := func(name string) (*response, error) {
		arrivals, err := g.room(from.of, name, together, run)
		if err != nil {
			return nil, err
		}
		in := g.in(set, from, name)
		in.timeout = pageAfter
		r, err := g.listPages(ctx, in, changed, cmp.Or(limit, pageSize), turn, arrivals)
		if err != nil {
			arrivals.drop(ctx) // the lists of other namespaces may take long
			return r, err
		}
		set.succeeded(name, verb)
		return r, nil
	}
	go func() {
		defer close(work)
		var all sync.WaitGroup
		for i, name := range names {
			free <- struct{}{}
			all.Go(func() {
				defer func() { <-free }()
				lists[i], errs[i] = list(name)
			})
		}
		all.Wait()
	}()
	for do := range work { // one transform at a time
		do()
	}
	r, err := merge(ctx, names, lists, errs)
	if err == nil {
		r.view = from.view // also if the set is empty
	}
	if err != nil {
		for i := range lists {
			lists[i].end(false)
		}
	}
	return r, err
}

// merge returns the lists of namespaces as one.
func merge(ctx context.Context, names []string, lists []*response, errs []error) (*response, error) {
	r := &response{positions: make(map[string]position, len(names)), arrivals: map[string]*arrivals{}}
	list := &internalversion.List{}
	var versions []string
	var failed error
	for i, name := range names {
		switch err := errs[i]; {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, errGaveWay), errors.Is(err, errClosed):
			return nil, err
		case err != nil:
			if failed == nil || apierrors.IsNotFound(err) && !apierrors.IsNotFound(failed) {
				failed = err
			}
			if !apierrors.IsForbidden(err) {
				r.unavailable = cmp.Or(r.unavailable, err)
			}
			r.positions[name] = position{}
			continue
		}
		version, err := appendList(list, lists[i])
		if err != nil {
			return nil, err
		}
		r.identity = lists[i].identity
		r.positions[name] = position{version: version, listed: true}
		r.undecodable = append(r.undecodable, lists[i].undecodable...)
		maps.Copy(r.arrivals, lists[i].arrivals)
		versions = append(versions, version)
	}
	if failed != nil && len(versions) == 0 {
		return nil, failed
	}
	list.ResourceVersion = mergedVersion(versions)
	r.list = list
	return r, nil
}

// appendList appends the objects of r to list, and returns the version of r.
func appendList(list *internalversion.List, r *response) (version string, err error) {
	content, err := meta.ListAccessor(r.list)
	if err != nil {
		return "", err
	}
	return content.GetResourceVersion(), meta.EachListItemWithAlloc(r.list, func(item runtime.Object) error {
		list.Items = append(list.Items, item)
		return nil
	})
}

// openStream opens the stream of a watch for t.
func (g *gate) openStream(ctx context.Context, t Type, opts metav1.ListOptions) (*stream, error) {
	set := g.set(t)
	if set == nil {
		view := g.held(metav1.NamespaceAll)
		if initial := opts.SendInitialEvents; initial != nil && *initial {
			g.strays.Store(false)
			view = g.view()
		}
		return g.requests(t).selecting(view).watch(ctx, opts)
	}
	m := &merged{gate: g, set: set, of: t, opts: opts, answered: make(chan struct{})}
	m.unanswered.Store(1)
	piped, cancel := context.WithCancel(ctx)
	out, err := openPipe(piped, cancel, &g.calls, m.run)
	if err != nil {
		return nil, err
	}
	m.awaitAnswers(ctx)
	return &stream{
		in: out, requests: g.requests(t), opened: time.Now(), silence: newSilence(false), overdue: &deadline{}, release: func() {}, isMerged: true,
	}, nil
}

// merged is the watch of a set of namespaces. It ends only with its context, or if lists replace watches.
type merged struct {
	*gate
	set  *Namespaces
	of   Type
	opts metav1.ListOptions
	send func(watch.Event) bool // may be called by several goroutines
	end  context.CancelFunc     // ends the watch: lists follow

	unanswered atomic.Int64  // the first watches without a response, and the start of the children
	answered   chan struct{} // closes when there are none
}

// awaitAnswers waits for a limited time until the server has responded to the first watches, or they have failed.
func (m *merged) awaitAnswers(ctx context.Context) {
	timeout := time.NewTimer(answersAfter)
	defer timeout.Stop()
	select {
	case <-m.answered:
	case <-timeout.C:
	case <-ctx.Done():
	}
}

// answer records the response to one of the first watches.
func (m *merged) answer() {
	if m.unanswered.Add(-1) == 0 {
		close(m.answered)
	}
}

// run runs the children until ctx ends.
func (m *merged) run(ctx context.Context, send func(watch.Event) bool) {
	m.send = send
	ctx, m.end = context.WithCancel(ctx)
	defer m.end()
	children := map[string]*child{}
	defer func() {
		for _, c := range children {
			<-c.ended
		}
	}()
	names, changed := m.set.Current()
	for _, name := range names {
		children[name] = m.begin(ctx, name, true)
	}
	m.answer()
	for { // the first time, there may be objects of namespaces that were removed while no watch was open
		wanted := keySet(names)
		if !m.remove(ctx, children, wanted) {
			return
		}
		var reviewed <-chan struct{}
		if len(names) == 0 {
			m.cfg.Observer.Succeeded(VerbWatch) // no request follows that would end the failures of earlier ones
			reviewed = m.viewChanged()          // no child follows the view
			m.listedView()
		}
		for _, name := range names {
			if children[name] == nil {
				children[name] = m.begin(ctx, name, false)
			}
		}
		select {
		case <-reviewed:
		case <-changed:
		case <-ctx.Done():
			return
		}
		names, changed = m.set.Current()
	}
}

// remove ends the children of namespaces that are not wanted, and deletes their objects.
func (m *merged) remove(ctx context.Context, children map[string]*child, wanted map[string]bool) bool {
	names := m.known.namespaces()
	for name, c := range children {
		if wanted[name] {
			continue
		}
		c.cancel()
		<-c.ended
		delete(children, name)
		names = append(names, name) // the reflector may be getting its first list
	}
	m.retain(m.set, wanted)
	m.known.retainChildren(wanted)
	for _, name := range unique(names) {
		if !wanted[name] && !m.drop(ctx, name, wanted) {
			return false
		}
	}
	forgetGone(m.set, wanted)
	return ctx.Err() == nil
}

// drop deletes the objects of a namespace that has left the set and whose child has ended. If the set has the name again, it is added to wanted, and
// nothing is deleted: the next child continues at the version of the last one.
func (m *merged) drop(ctx context.Context, name string, wanted map[string]bool) bool {
	p := &part{namespace: name, removed: true, gone: m.set.isGone(name)}
	if p.gone {
		p.list = m.remaining(ctx, name)
	}
	if m.set.has(name) {
		wanted[name] = true
		return true
	}
	return m.give(ctx, p) == nil
}

// remaining lists a namespace that is gone, and whose child has ended, if the reflector has objects of it. The server may have another namespace
// with that name, and the child may have passed on its objects. Remaining returns nil if there is no list.
func (m *merged) remaining(ctx context.Context, name string) *response {
	held := false
	err := m.give(ctx, &part{namespace: name, do: func() error { // after the events of the child
		held = len(m.known.keysIn(name)) > 0
		return nil
	}})
	if err != nil || !held {
		return nil
	}
	in := m.in(m.set, m.requests(m.of), name).unreported()
	in.timeout = remainingAfter
	r, err := m.listPages(ctx, in, nil, pageSize, nil, nil)
	if err != nil {
		return nil
	}
	return r
}

// give passes on p, and returns when its objects have been passed on.
func (m *merged) give(ctx context.Context, p *part) error {
	p.passed = make(chan error, 1)
	if !m.send(watch.Event{Type: watch.Bookmark, Object: p}) {
		return context.Cause(ctx)
	}
	select {
	case err := <-p.passed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// child lists and watches one namespace of a set.
type child struct {
	*merged
	namespace string
	requests  *requests
	version   string // a watch starts there
	childState
	nameless  bool        // as that of resumableWatch
	saved     *childState // the state for the next watch of the set; known owns it
	responded func()      // records the response to the first watch
	splice    *splice     // follows the view of the shard; nil: there is none
	cancel    context.CancelFunc
	ended     chan struct{}
}

// childState is what a child knows of the requests in its namespace. It survives the watch of the set: another one begins when the type was
// missing for a moment.
type childState struct {
	pace       pace
	listed     bool // a watch from the version can continue
	suspicion  suspicion
	comparison comparison
}

// begin starts the child of namespace. First says that it is one of the first children: if its first request is a watch, it is one of the first
// watches.
func (m *merged) begin(ctx context.Context, namespace string, first bool) *child {
	ctx, cancel := context.WithCancel(ctx)
	c := &child{
		merged: m, namespace: namespace, requests: m.in(m.set, m.requests(m.of), namespace),
		cancel: cancel, ended: make(chan struct{}), responded: func() {},
	}
	c.version, c.childState, c.saved = m.known.beginChild(namespace)
	c.pace.forGeneration(m.of.Generation)
	if m.cfg.Shard != nil {
		c.splice = &splice{gate: m.gate, namespace: namespace, of: m.of, requests: c.requests, give: c.splicePart, rewound: c.rewind}
	}
	if first && c.listed {
		m.unanswered.Add(1)
		c.responded = sync.OnceFunc(m.answer)
	}
	go func() {
		defer close(c.ended)
		defer cancel()
		defer c.account.Abandon(namespace)
		defer func() { c.splice.stop() }()
		defer c.responded()
		for c.ready(ctx) {
			c.step(ctx)
			c.save() // here and not at the end: the next request may not end with ctx
		}
	}()
	return c
}

// save stores the state for the next watch of the set.
func (c *child) save() { c.known.saveChild(c.saved, c.childState) }

// splicePart passes on p, which is about slots. A list of gained slots may be of an earlier version than the watch, which then begins there.
func (c *child) splicePart(ctx context.Context, p *part) error {
	if err := c.give(ctx, p); err != nil {
		return err
	}
	if at := c.known.versionIn(c.namespace); before(at, c.version) {
		c.version = at
	}
	return nil
}

// ready waits until a request may be sent. It reports false if ctx ends.
func (c *child) ready(ctx context.Context) bool {
	for {
		if c.splice.apply(ctx) != nil {
			return false
		}
		now, changed := c.available.Current()
		if now.Serving == Served && c.of.sameObjects(now) {
			n := news{changed, c.splice.reviewed(), c.splice.listed()}
			if c.pace.await(ctx, n, c.gate) && (c.listed || c.awaitRoom(ctx, false, []string{c.namespace}, nil, n, c.pace.asked)) {
				c.pace.begins(c.gate)
				return true
			}
		} else if c.awaitChange(ctx, changed, c.splice.reviewed()) != nil {
			return false
		}
		if ctx.Err() != nil {
			return false
		}
	}
}

// step sends one request, and passes on its result.
func (c *child) step(ctx context.Context) {
	if !c.listed {
		err := c.list(ctx)
		switch {
		case ctx.Err() != nil:
		case errors.Is(err, errReplacedType):
			c.pace.failed(time.Now(), nil) // the other type will be known soon
		case err != nil:
			c.failed(ctx, &ListError{Err: &NamespaceError{c.namespace, err}})
		}
		return
	}
	err := c.watch(ctx)
	switch {
	case err == nil || ctx.Err() != nil:
		return
	case c.cfg.Polling > 0 && c.polling.refused(c.of, err):
		c.end()
		return
	}
	c.failed(ctx, &NamespaceError{c.namespace, err})
	c.listed = c.listed && (!c.pace.slow() || !refused(err))
}

func (c *child) failed(ctx context.Context, err error) {
	ordinary := c.pace.failed(time.Now(), err)
	c.comparison.doubtful = c.comparison.doubtful || unreachable(err)
	forbidden := apierrors.IsForbidden(err)
	hidden := c.set.isHidden(forbidden, c.known.lists([]string{c.namespace}))
	if hidden || c.set.allowed && forbidden && isOfList(err) && c.pace.slow() { // others may be forbidden only for a moment
		c.pace.forbidden(time.Now(), nil)
	}
	if hidden {
		c.listedView()
		return
	}
	if !ordinary {
		c.report(ctx, err)
	}
}

// list lists the namespace, and passes on the list.
func (c *child) list(ctx context.Context) (err error) {
	arrivals, err := c.room(c.of, c.namespace, c.arriving(c.of), func(ctx context.Context, do func() error) error {
		return c.give(ctx, &part{namespace: c.namespace, do: do}) // the watch calls the transform
	})
	if err != nil {
		return err
	}
	c.splice.stop() // the list has the present view
	r, err := c.listPages(ctx, c.requests.selecting(c.view()), nil, pageSize, nil, arrivals)
	if err != nil {
		return err
	}
	defer func() { r.end(err == nil) }()
	content, err := meta.ListAccessor(r.list)
	if err != nil {
		return err
	}
	if !c.known.isEmpty() && !c.remains(ctx, c.of) {
		return errReplacedType
	}
	version := content.GetResourceVersion() // the list belongs to the reflector next
	if c.suspicion < rewound && before(version, c.version) {
		c.rewind(ctx, &RewoundError{Had: c.version, Has: version})
	}
	if err := c.give(ctx, &part{namespace: c.namespace, list: r, suspicion: c.suspicion, doubted: c.comparison.doubtful}); err != nil {
		c.requests.failed(ctx, VerbList, err)
		return err
	}
	c.version, c.listed, c.suspicion, c.nameless = version, true, unsuspected, false
	c.comparison.shown()
	c.requests.observer.Succeeded(VerbList)
	c.requests.observer.Completed()
	c.listedView()
	return nil
}

// watch passes on the events of one watch. It returns an error if the watch fails or is too short.
func (c *child) watch(ctx context.Context) error {
	if c.splice.follow(ctx) != nil || !c.listed {
		return nil
	}
	stream, err := openUnless(ctx, news{nil, c.splice.reviewed(), c.splice.listed()}, func(ctx context.Context) (*stream, error) {
		return c.requests.selecting(c.held(c.namespace)).watch(ctx, optionsFrom(c.opts, c.version))
	})
	c.responded()
	if err != nil {
		if errors.Is(err, errGaveWay) {
			return nil
		}
		c.listed = !expired(err) && !apierrors.IsBadRequest(err)
		return err
	}
	defer stream.close()
	var broken error
	c.comparison.begin(stream)
	stream.comparison = &c.comparison
	defer c.comparison.stop()
	take := func(event watch.Event) bool {
		if event.Type == watch.Error {
			broken = errorOf(event)
			return true
		}
		return c.pass(event)
	}
	stream.splice = c.splice
	if !c.read(ctx, stream, take) {
		c.endVersionless()
		return nil
	}
	lasted := time.Since(stream.opened)
	if ctx.Err() == nil { // otherwise the source has ended the watch
		c.comparison.ended(broken == nil && stream.isDoubtful(lasted))
	}
	if lasted >= resetAfter {
		c.pace.reset()
	}
	switch {
	case ctx.Err() != nil, c.suspicion != unsuspected:
		return nil
	case broken != nil:
		c.listed = apierrors.IsTooManyRequests(broken) || IsLost(broken)
	case lasted < brief:
		c.pace.failed(time.Now(), nil)
		c.requests.endedSoon(ctx, &c.pace, &NamespaceError{c.namespace, ErrShortWatches})
		c.listed = !c.pace.slow()
	}
	c.endVersionless()
	return broken
}

// read passes the events of stream to take. It reports false if a list or a watch of other slots follows, or if ctx has ended.
func (c *child) read(ctx context.Context, stream *stream, take deliver) bool {
	for ending := reviewed; ending == unchecked || ending == reviewed; ending = stream.run(ctx, take, nil) {
		if ending == unchecked && c.compare(ctx) {
			return false
		}
		if c.splice.follow(ctx) != nil || !stream.isWhole(&c.known) || !c.listed {
			return false
		}
	}
	return true
}

// endVersionless records that the namespace must be listed if no watch can continue.
func (c *child) endVersionless() { c.listed = c.listed && !versionless(c.version) && !c.nameless }

// pass passes on one event of a watch.
func (c *child) pass(event watch.Event) bool {
	obj, err := meta.Accessor(event.Object)
	if err != nil {
		return c.send(event)
	}
	if c.suspects(event, c.version, &c.comparison) {
		c.suspicion, c.listed = receded, false
		c.pace.failed(time.Now(), nil)
		return false
	}
	version := obj.GetResourceVersion() // the object belongs to the reflector next
	switch {
	case event.Type == watch.Bookmark:
		event.Object = &part{namespace: c.namespace, version: version}
	case isNameless(obj):
		c.nameless = true
		if obj.GetNamespace() == "" && !c.requests.gate.cfg.Strict { // it is left out until the list of the namespace
			event.Object = &undecodable.Object{PartialObjectMetadata: metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Namespace: c.namespace, UID: obj.GetUID(), ResourceVersion: version,
			}}, Err: errNameless}
		}
	}
	if !c.send(event) {
		return false
	}
	c.version = cmp.Or(version, c.version)
	return true
}

// part is the content of an event about one namespace of a set: a whole list, the removal of the namespace, a function that the watch
// calls or, if it is none of them, a bookmark.
type part struct {
	namespace string
	slots     *sharding.Slots // it is only about the objects in these slots; nil: about all objects in the namespace
	list      *response
	removed   bool
	gone      bool      // it was removed because the server does not have it any more; list, if any, is of another one with its name
	suspicion suspicion // that of the child, before the list
	doubted   bool      // by the child, as that of listed
	do        func() error
	version   string
	passed    chan error // receives the result for a list, a removal or a function; it has room for it
}

var _ runtime.Object = (*part)(nil)

// GetObjectKind implements runtime.Object.
func (p *part) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object. It is not called.
func (p *part) DeepCopyObject() runtime.Object { return p }

// passPart passes on p: the differences between the reflector's objects and a list, for example. Other namespaces are not affected.
func (s *resumableWatch) passPart(ctx context.Context, p *part) bool {
	version, _, t := s.known.place()
	switch {
	case p.do != nil:
		p.passed <- p.do()
		return true
	case p.list == nil && !p.removed:
		s.known.reached(p.namespace, p.version)
		now := s.known.upTo()
		return now == version || s.send(bookmark(s.cfg.Client, now, t))
	}
	content := listed{}
	if p.list != nil {
		var err error
		if content, err = newListed(p.list, &s.transform, &s.sizes); err != nil && !p.removed {
			if p.namespace != "" {
				err = fmt.Errorf("namespace %s: %w", p.namespace, err)
			}
			p.passed <- err
			return true
		}
	}
	pass := s.passNamespace
	if p.slots != nil {
		pass = s.passSlots
	}
	if !pass(ctx, p, content, t) || !s.send(bookmark(s.cfg.Client, s.known.upTo(), t)) { // the objects are not in the order of their versions
		return false
	}
	s.cfg.Observer.Completed()
	p.passed <- nil
	return true
}

// passNamespace passes on the part p, which is about a whole namespace.
func (s *resumableWatch) passNamespace(ctx context.Context, p *part, content listed, t Type) bool {
	content.suspicion, content.doubted = p.suspicion, p.doubted
	s.awaitStore(ctx, &content)
	keys := s.known.keysIn(p.namespace)
	missing, left := s.missingIn(content, t, keys), map[string]bool{}
	if p.removed {
		missing, left = keys, leftIn(keys, missing, p.gone)
		content = listed{} // the reflector gets no object of another namespace with that name
	}
	if content.view != nil {
		for _, key := range s.known.keysOf(p.namespace, content.view.Slots.Complement()) {
			left[key] = true
		}
	}
	if !s.delete(ctx, missing, left) || !s.give(content, false, p.list) {
		return false
	}
	if p.removed {
		s.known.removed(p.namespace)
	} else {
		s.known.completedIn(p.namespace, content)
		s.known.holdIn(p.namespace, content.view)
	}
	return true
}

// leftIn returns those of the keys of a removed namespace whose objects exist. If the namespace is gone, these are not missing in a list, and belong
// to another namespace with that name.
func leftIn(keys, missing []string, gone bool) map[string]bool {
	left := make(map[string]bool, len(keys))
	for _, key := range keys {
		left[key] = true
	}
	if gone {
		for _, key := range missing {
			delete(left, key)
		}
	}
	return left
}
