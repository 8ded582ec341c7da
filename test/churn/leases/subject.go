package leases

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/churn"
)

// New returns a subject: a factory with these options. It implements [churn.NewSubject].
func New(opts ...dynamicinformer.Option) churn.NewSubject {
	return func(ctx context.Context, env churn.Environment) (churn.Subject, error) {
		s := &subject{env: env, opts: opts, leases: map[string]*lease{}, follows: map[string]*following{}}
		return s, s.start(ctx)
	}
}

// subject is a factory and its leases. Its methods are called one at a time, but handlers change
// leases too.
type subject struct {
	env     churn.Environment
	opts    []dynamicinformer.Option
	factory *dynamicinformer.Factory

	mu        sync.Mutex // never held during a call of the library
	leases    map[string]*lease
	follows   map[string]*following
	recorders []*churn.Recorder // all that have been added
	results   []result
	lost      []lost
	found     []churn.Violation
	rested    map[uint64]lastRest // by the ID of the informer

	waits sync.WaitGroup // of leases and handlers
}

// lease is a lease that has not been released.
type lease struct {
	*dynamicinformer.Lease
	name     string
	owner    string // the name that the library has for it
	version  string // empty: the preferred one
	view     churn.View
	recovers bool // panics of its handlers
	labeled  bool // its namespaces are those with a label
	handlers map[string]*handler
	expected churn.Expected // empty unless it is the first lease on its informer
	ended    <-chan struct{}
	end      func()                               // closes ended; may be called again
	during   func(wait func(ctx context.Context)) // calls wait in a goroutine; ctx ends with the lease
	awaited  string                               // the last version for which AtLeast was called
	awaits   atomic.Bool                          // a call of AtLeast has not returned
}

// handler is an event handler of a lease.
type handler struct {
	*churn.Recorder
	registered   chan struct{} // closed when registration is set
	registration cache.ResourceEventHandlerRegistration
	ended        chan struct{} // closed when it is removed
	end          func()        // closes ended; may be called again

	mu      sync.Mutex
	panics  []int         // the numbers of the calls that have panicked, beginning with 1
	blocked chan struct{} // until it closes, calls wait; nil: they do not
	unblock func()        // closes it; may be called again
}

// block makes calls wait for d, or until free.
func (h *handler) block(d time.Duration) {
	h.free()
	h.mu.Lock()
	defer h.mu.Unlock()
	blocked := make(chan struct{})
	h.blocked, h.unblock = blocked, sync.OnceFunc(func() { close(blocked) })
	time.AfterFunc(d, h.unblock)
}

// free ends what block began.
func (h *handler) free() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.blocked != nil {
		h.unblock()
	}
}

// wait waits until the handler is not blocked.
func (h *handler) wait() {
	h.mu.Lock()
	blocked := h.blocked
	h.mu.Unlock()
	if blocked != nil {
		<-blocked
	}
}

// panicked returns the number of calls that have panicked, and that of the objects for which the last call has.
func (h *handler) panicked() (calls, failed int) {
	events := h.History()
	h.mu.Lock()
	defer h.mu.Unlock()
	last := map[string]int{} // calls, by the keys of the objects that the handler has
	for i, e := range events {
		if e.Kind == churn.Deleted || e.Kind == churn.Moved {
			delete(last, e.New.Key())
		} else {
			last[e.New.Key()] = i + 1
		}
	}
	for _, n := range last {
		if slices.Contains(h.panics, n) {
			failed++
		}
	}
	return len(h.panics), failed
}

func (s *subject) start(ctx context.Context, opts ...dynamicinformer.Option) error {
	f, err := dynamicinformer.NewForConfigAndClient(s.env.Config, s.env.HTTP, append(slices.Clip(s.opts), opts...)...)
	if err != nil {
		return err
	}
	s.factory, s.rested = f, map[uint64]lastRest{}                      // IDs are those of the factory
	f.Start(klog.NewContext(context.WithoutCancel(ctx), klog.Logger{})) // the factory ends by Shutdown
	return nil
}

func (s *subject) report(i churn.Invariant, format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = append(s.found, churn.Violation{Invariant: i, Text: fmt.Sprintf(format, args...)})
}

func (s *subject) lease(op churn.Op) *lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leases[op.Arg("lease")]
}

// all returns the leases, sorted by name.
func (s *subject) all() []*lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*lease
	for _, name := range slices.Sorted(maps.Keys(s.leases)) {
		all = append(all, s.leases[name])
	}
	return all
}

// handlersOf returns the handlers of a lease.
func (s *subject) handlersOf(l *lease) map[string]*handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(l.handlers)
}

// Do implements [churn.Subject].
func (s *subject) Do(ctx context.Context, op churn.Op) error {
	l := s.lease(op)
	switch {
	case op.Verb == churn.Restart:
		return s.restart(ctx, op)
	case op.Verb == churn.Follow:
		s.follow(ctx, op)
	case op.Verb == churn.Unfollow:
		s.unfollow(op.Arg("following"))
	case op.Verb == churn.Acquire && l == nil:
		s.acquire(ctx, op)
	case op.Verb != churn.Acquire && l != nil:
		return s.with(l, op) //nolint:contextcheck // handlers have no context
	}
	return nil
}

// with executes an operation on a lease that is held.
func (s *subject) with(l *lease, op churn.Op) error {
	switch {
	case op.Verb == churn.Release:
		s.release(l)
	case op.Verb == churn.Handle:
		return s.handle(l, op)
	case op.Verb == churn.Unhandle:
		s.unhandle(l, op.Arg("handler"), s.handlersOf(l)[op.Arg("handler")], 1)
	case op.Verb == churn.Block, op.Verb == churn.Unblock:
		s.block(l, op)
	case op.Verb == churn.Retry:
		l.Retry()
	case op.Verb == churn.Namespace && l.view.Sets != nil && !l.labeled:
		names := op.List("names")
		l.view.Sets.Change(names...)
		return l.SetNamespaces(names...)
	}
	return nil
}

// block blocks or unblocks a handler.
func (s *subject) block(l *lease, op churn.Op) {
	h := s.handlersOf(l)[op.Arg("handler")]
	if h == nil {
		return
	}
	ms := 1000
	_, _ = fmt.Sscan(op.With["ms"], &ms)
	if op.Verb == churn.Block {
		h.block(time.Duration(ms) * time.Millisecond)
	} else {
		h.free()
	}
}

// restart shuts the factory down, which ends all leases, and starts another one.
func (s *subject) restart(ctx context.Context, op churn.Op) error {
	s.shutDown(ctx)
	var opts []dynamicinformer.Option
	for _, opt := range sizes(op) {
		opts = append(opts, opt)
	}
	return s.start(ctx, opts...)
}

// sizes returns the options of factories and leases that change only requests.
func sizes(op churn.Op) (opts []dynamicinformer.InformerOption) {
	var size int64
	if _, err := fmt.Sscan(op.With["pagesize"], &size); err == nil {
		opts = append(opts, dynamicinformer.WithPageSize(size))
	}
	switch op.With["watchlist"] {
	case "never":
		opts = append(opts, dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever))
	case "anywhere":
		opts = append(opts, dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListAnywhere))
	}
	return opts
}

func (s *subject) shutDown(ctx context.Context) {
	s.mu.Lock()
	recorders := slices.Clone(s.recorders)
	leases := slices.Collect(maps.Values(s.leases))
	clear(s.leases)
	follows := slices.Collect(maps.Values(s.follows))
	clear(s.follows)
	s.mu.Unlock()
	for _, l := range leases {
		l.end()
	}
	for _, f := range follows {
		f.ends.Store(true)
	}
	s.awaitWaits()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	if err := s.factory.Shutdown(ctx); err != nil {
		s.report(churn.Released, "%v", err)
		return
	}
	for _, f := range follows {
		s.awaitEnd(f)
		f.stop()
	}
	for _, r := range recorders {
		r.Removed(0)
	}
}

// acquire acquires a lease. A lease whose options contradict those of another lease has an
// informer of its own.
func (s *subject) acquire(ctx context.Context, op churn.Op) {
	l := &lease{name: op.Arg("lease"), owner: op.Arg("lease"), version: "v1", handlers: map[string]*handler{}}
	l.view = churn.View{Name: l.name, Type: op.Arg("type"), Color: op.With["selector"], Merged: op.With["coalescing"] != "", Keeps: op.With["removal"] == "keep"}
	opts := append([]dynamicinformer.LeaseOption{dynamicinformer.WithAllowAbsent(), dynamicinformer.WithLeaseName(l.name)}, l.selection(op)...)
	opts = append(opts, s.namespaces(l, op)...)
	opts = append(opts, l.storage(op)...)
	l.view.Version = l.version
	version := l.version
	if version == "" {
		version = "v1"
	}
	patience := 20 * time.Second // for a slow machine: only a fault of discovery may make it wait
	if s.env.DiscoveryFails() {
		patience = 2 * time.Second
	}
	acquiring, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	gvr := s.env.World.Resource(l.view.Type, version)
	informers, expected := s.informers(), s.env.World.Expect(l.view)
	var err error
	l.Lease, err = s.factory.Acquire(acquiring, gvr, opts...)
	if errors.Is(err, dynamicinformer.ErrConflict) {
		l.Lease, err = s.factory.Acquire(acquiring, gvr, append(opts, dynamicinformer.WithSeparateInformer())...)
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded) && s.env.DiscoveryFails():
		return
	case err != nil:
		s.report(churn.Status, "%s: %v", op, err)
		return
	}
	if !l.labeled && !informers[l.Status().ID] {
		l.expected = expected
	}
	waiting, end := context.WithCancel(context.WithoutCancel(ctx))
	l.ended, l.end = waiting.Done(), end
	l.during = func(wait func(ctx context.Context)) { s.waits.Go(func() { wait(waiting) }) }
	s.mu.Lock()
	s.leases[l.name] = l
	s.mu.Unlock()
	s.awaitSync(l)
}

// selection returns the options that select objects and their version.
func (l *lease) selection(op churn.Op) (opts []dynamicinformer.LeaseOption) {
	switch version := op.With["version"]; version {
	case "":
	case "preferred":
		l.version = ""
		opts = append(opts, dynamicinformer.WithVersionPolicy(discovery.FollowPreferred()))
	default:
		l.version = version
	}
	if l.view.Color != "" {
		opts = append(opts, dynamicinformer.WithLabelSelector(churn.ColorLabel+"="+l.view.Color))
	}
	return opts
}

// namespaces returns the options that select namespaces.
func (s *subject) namespaces(l *lease, op churn.Op) []dynamicinformer.LeaseOption {
	names, color := op.List("namespaces"), op.With["labeled"]
	switch {
	case color != "" && s.env.World.HasNamespaces():
		l.view.Sets, l.labeled = s.env.World.SelectedNamespaces(color), true
		return []dynamicinformer.LeaseOption{dynamicinformer.WithNamespaceSelector(s.env.World.NamespaceSelector(color))}
	case names != nil:
		l.view.Sets = &churn.NamespaceSets{}
		l.view.Sets.Change(names...)
		// Other leases on the informer would get the namespaces of this one.
		return []dynamicinformer.LeaseOption{dynamicinformer.WithNamespaces(names...), dynamicinformer.WithSeparateInformer()}
	}
	return nil
}

// storage returns the options of requests, of the cache and of handlers.
func (l *lease) storage(op churn.Op) (opts []dynamicinformer.LeaseOption) {
	for _, opt := range sizes(op) {
		opts = append(opts, opt)
	}
	if l.view.Merged {
		opts = append(opts, dynamicinformer.WithCoalescing(0))
	}
	if op.With["recovery"] != "" {
		l.recovers = true
		opts = append(opts, dynamicinformer.WithHandlerRecovery())
	}
	if l.view.Keeps {
		opts = append(opts, dynamicinformer.WithRemovalPolicy(dynamicinformer.KeepCache))
	}
	if op.With["separate"] != "" {
		opts = append(opts, dynamicinformer.WithSeparateInformer())
	}
	if op.With["packed"] != "" {
		opts = append(opts, dynamicinformer.WithPackedCache())
	}
	if op.With["polling"] != "" {
		opts = append(opts, dynamicinformer.WithPolling(time.Second))
	}
	switch {
	case op.With["form"] == "metadata":
		l.view.Form = churn.Metadata
		opts = append(opts, dynamicinformer.WithMetadataOnly())
	case op.With["form"] == "typed":
		l.view.Form = churn.Typed
		opts = append(opts, dynamicinformer.WithGoType(&churn.Thing{}))
	case op.With["transform"] != "":
		l.view.Form = churn.Transformed
		opts = append(opts, dynamicinformer.WithTransform(churn.Transform))
	}
	return opts
}

// release releases a lease, and waits for the calls of its handlers.
func (s *subject) release(l *lease) {
	s.forget(l)
	l.end()
	l.Release()
	for _, h := range s.handlersOf(l) {
		h.free()
	}
	select {
	case <-l.Done():
		for _, h := range s.handlersOf(l) {
			h.Removed(0)
		}
	case <-time.After(10 * time.Second):
		s.report(churn.Released, "%s: a call of a handler has not returned after 10 s", l.name)
	}
}

func (s *subject) forget(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases[l.name] == l {
		delete(s.leases, l.name)
	}
}

// handle adds a handler to a lease.
func (s *subject) handle(l *lease, op churn.Op) error {
	name := op.Arg("handler")
	s.mu.Lock()
	_, exists := l.handlers[name]
	s.mu.Unlock()
	if exists {
		return nil
	}
	view := l.view
	view.Name = l.name + "/" + name
	h := &handler{Recorder: &churn.Recorder{View: view, Since: time.Now()}, registered: make(chan struct{}), ended: make(chan struct{})}
	h.end = sync.OnceFunc(func() { close(h.ended) })
	var delay, after, panics int
	_, _ = fmt.Sscan(op.With["ms"], &delay)
	_, _ = fmt.Sscan(op.With["after"], &after)
	_, _ = fmt.Sscan(op.With["panics"], &panics)
	h.Called = func(n int) {
		h.wait()
		if delay > 0 {
			<-time.After(time.Duration(delay) * time.Millisecond)
		}
		if n == after {
			s.within(l, name, h, op.With["does"])
		}
		if l.recovers && panics > 0 && n%panics == 0 {
			h.mu.Lock()
			h.panics = append(h.panics, n)
			h.mu.Unlock()
			panic(panicText)
		}
	}
	s.mu.Lock()
	s.recorders = append(s.recorders, h.Recorder)
	l.handlers[name] = h
	s.mu.Unlock()
	before, _ := l.read()
	var err error
	h.registration, err = l.AddEventHandler(h)
	close(h.registered)
	switch {
	case errors.Is(err, dynamicinformer.ErrReleased): // by another handler
		return nil
	case err == nil:
		after, _ := l.read()
		had := inBoth(before, after)
		h.AddedTo(had)
		s.awaitHandler(l, h, had)
	}
	return err
}

// panicText is the text of the panics of handlers.
const panicText = "churn: a handler panics on purpose"

// within is called in a call of a handler, and calls the library.
func (s *subject) within(l *lease, name string, h *handler, does string) {
	switch does {
	case "remove":
		<-h.registered
		s.unhandle(l, name, h, 0)
	case "release":
		s.forget(l)
		l.end()
		l.Release()
		h.Removed(0)
		for _, other := range s.handlersOf(l) {
			other.Removed(1)
		}
	case "acquire":
		ctx, cancel := context.WithTimeout(context.Background(), time.Second) //nolint:forbidigo // a handler has no context
		defer cancel()
		other, err := s.factory.Acquire(ctx, s.env.World.Resource(l.view.Type, "v1"), dynamicinformer.WithAllowAbsent(), dynamicinformer.WithSeparateInformer())
		if err == nil {
			other.Release()
		}
	case "retry":
		l.Retry()
	}
}

// unhandle removes the handler with a name, unless another one has the name. Running is the number of its calls that may be running.
func (s *subject) unhandle(l *lease, name string, h *handler, running int) {
	s.mu.Lock()
	is := h != nil && l.handlers[name] == h
	if is {
		delete(l.handlers, name)
	}
	s.mu.Unlock()
	if !is || h.registration == nil {
		return
	}
	h.end()
	if err := l.RemoveEventHandler(h.registration); err != nil {
		s.report(churn.CalledAfterRemoval, "%s: remove: %v", h.View.Name, err)
	}
	h.Removed(running)
	h.free()
}

// Settle implements [churn.Subject].
func (s *subject) Settle() {
	for _, l := range s.all() {
		l.hasten()
	}
	for _, f := range s.allFollowing() {
		for _, l := range f.now() {
			l.hasten()
		}
	}
}

// hasten makes the next attempt of a lease that says it waits for one. A lease that says it is synced gets no help: if that is not true, it
// never comes to rest.
func (l *lease) hasten() {
	if IsWaiting(l.Status()) {
		l.Retry()
	}
}

// IsWaiting reports whether an informer says that it is not up to date, or that one of its namespaces is not.
func IsWaiting(at status.Informer) bool {
	return at.State != status.StateSynced || at.Reason != "" || slices.ContainsFunc(at.Namespaces, func(ns status.Namespace) bool { return ns.Reason != "" })
}

// Stop implements [churn.Subject].
func (s *subject) Stop(ctx context.Context) []churn.Violation {
	s.shutDown(ctx)
	s.judge()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.recorders {
		s.found = append(append(s.found, r.Check(s.env.World)...), withoutState(r)...)
	}
	return s.found
}

// withoutState returns a violation for each deletion without a final state. Only events that may be merged lose it while they wait.
func withoutState(r *churn.Recorder) (found []churn.Violation) {
	for _, e := range r.History() {
		if e.Kind == churn.Deleted && e.New.Unknown && !r.View.Merged {
			found = append(found, churn.Violation{Invariant: churn.Status, Text: fmt.Sprintf("%s: a deletion has no final state: %v", r.View.Name, e)})
		}
	}
	return found
}

// AtRest implements [churn.Subject].
func (s *subject) AtRest(ctx context.Context) []churn.Violation {
	s.judge()
	s.mu.Lock()
	found := slices.Clone(s.found)
	s.mu.Unlock()
	for _, l := range s.all() {
		found = append(found, s.atRest(ctx, l)...)
	}
	for _, f := range s.allFollowing() {
		found = append(found, s.followingAtRest(ctx, f)...)
	}
	open, wanted := s.open(), s.watched()
	return append(append(found, excess(open, wanted)...), deficit(open, wanted)...)
}

// atRest compares a lease with the model.
func (s *subject) atRest(ctx context.Context, l *lease) []churn.Violation {
	begun := time.Now()
	c := &comparison{lease: l, world: s.env.World, handlers: s.handlersOf(l), at: l.Status(), resource: l.Resource(), wait: l.WaitForSync, get: l.get}
	c.has, c.incomplete = l.read()
	for _, name := range slices.Sorted(maps.Keys(c.handlers)) {
		c.found = append(c.found, churn.Compare("handler "+l.name+"/"+name+", compared with the lister,", c.has, c.handlers[name].Has())...)
	}
	c.panicked()
	i, n := c.world.Incarnation(l.view.Type)
	c.state(ctx, i, n >= 0)
	s.rewound(c, begun)
	return c.found
}

// state compares with the model of a type that exists, as i says, or does not.
func (c *comparison) state(ctx context.Context, i churn.Incarnation, exists bool) {
	switch {
	case c.world.Down():
		c.down(ctx)
	case !exists:
		c.absent(ctx)
	case c.version != "" && !slices.Contains(i.Served, c.version):
		if c.at.State == status.StateSynced || c.at.Reason != status.ReasonVersionNotServed {
			c.report("version %s is not served, and the state is %s (%s)", c.version, c.at.State, c.at.Reason)
		}
		c.unsynced(ctx)
		c.found = append(c.found, churn.CheckKnown(c.world, c.view, c.has)...)
	case c.world.ConversionFails(c.view.Type, cmp.Or(c.version, i.Served[0])):
		c.unconverted(ctx)
	default:
		c.served(ctx, i)
	}
}

// down is for a type whose server does not respond, so that discovery can't tell whether it exists. A lease without namespaces sends no
// request.
func (c *comparison) down(ctx context.Context) {
	c.unsynced(ctx)
	if c.at.State == status.StateSynced && (c.view.Sets == nil || len(c.view.Sets.Current()) > 0) {
		c.report("the server of the type is down, and the state is %s", c.at.State)
	}
	c.found = append(c.found, churn.CheckKnown(c.world, c.view, c.has)...)
}

// unconverted is for a type whose objects can't be converted to the version of the lease. The server may have converted all of them
// before.
func (c *comparison) unconverted(ctx context.Context) {
	c.unsynced(ctx)
	forbidden := slices.ContainsFunc([]string{"", "a", "b", "c"}, func(namespace string) bool {
		return c.world.Forbidden(c.view.Type, namespace, "list") || c.world.Forbidden(c.view.Type, namespace, "watch")
	})
	throttled := c.at.Reason == status.ReasonThrottled && c.world.Throttled(c.resource.GVR)
	if c.at.State != status.StateSynced && c.at.Reason != status.ReasonConversionFailed && !throttled && !forbidden {
		c.report("the conversion of the type fails, and the state is %s (%s)", c.at.State, c.at.Reason)
	}
	c.found = append(c.found, churn.CheckKnown(c.world, c.view, c.has)...)
}

// comparison compares one lease with the model.
type comparison struct {
	*lease
	world      *churn.World
	handlers   map[string]*handler
	at         status.Informer
	resource   discovery.Resource
	has        map[string]churn.Observation
	incomplete error // of the lister
	wait       func(context.Context, ...dynamicinformer.WaitOption) error
	get        func(namespace, name string) (runtime.Object, error) // from the lister; nil: it is not read
	found      []churn.Violation
}

func (c *comparison) report(format string, args ...any) {
	c.found = append(c.found, churn.Violation{Invariant: churn.Status, Text: c.name + ": " + fmt.Sprintf(format, args...)})
}

// absent is for a type that does not exist.
func (c *comparison) absent(ctx context.Context) {
	// Another server may have had the type for a moment. Then discovery no longer lists it, and a list must show that it is gone.
	unproven := c.at.State == status.StateDegraded && c.world.Forbidden(c.view.Type, "", "list")
	if c.at.State != status.StateNotServed && !unproven || c.at.Reason != status.ReasonNotFound {
		c.report("the type does not exist, and the state is %s (%s)", c.at.State, c.at.Reason)
	}
	if len(c.has) > 0 && !c.view.Keeps {
		c.report("the type does not exist, and the lister has %d objects", len(c.has))
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := c.wait(ctx, dynamicinformer.WithFailFast()); !errors.Is(err, status.ErrNotSynced) {
		c.report("the type does not exist, and WaitForSync returns %v", err)
	}
}

// served is for a type that is served in the version of the lease.
func (c *comparison) served(ctx context.Context, i churn.Incarnation) {
	scopes := []string{""}
	if i.Namespaced && c.view.Sets != nil {
		scopes = c.view.Sets.Current()
	}
	forbidden := slices.DeleteFunc(slices.Clone(scopes), func(scope string) bool {
		return !isForbidden(c.at, scope, c.world.Forbidden(c.view.Type, scope, "list"), c.world.Forbidden(c.view.Type, scope, "watch"))
	})
	allowed := c.view
	switch {
	case len(forbidden) == 0:
		c.synced(ctx, i)
	case len(forbidden) == len(scopes):
		if c.at.Reason != status.ReasonForbidden || c.at.State == status.StateSynced {
			c.report("lists are forbidden, and the state is %s (%s)", c.at.State, c.at.Reason)
		}
		c.unsynced(ctx)
		if i.Namespaced {
			c.refused()
		}
		c.found = append(c.found, churn.CheckKnown(c.world, c.view, c.has)...)
		return
	default:
		c.partly(ctx, i, forbidden)
		allowed.Sets, allowed.Namespaces = nil, slices.DeleteFunc(slices.Clone(scopes), func(scope string) bool { return slices.Contains(forbidden, scope) })
	}
	for _, ns := range c.at.Namespaces {
		if is := ns.Reason == status.ReasonForbidden; is != slices.Contains(forbidden, ns.Name) {
			c.report("namespace %s has the reason %q; %v are forbidden", ns.Name, ns.Reason, forbidden)
		}
	}
	maps.DeleteFunc(c.has, func(_ string, o churn.Observation) bool { return slices.Contains(forbidden, o.Namespace) })
	want := c.world.Want(allowed)
	different := churn.Compare("the lister of "+c.name, want, c.has)
	if c.found = append(c.found, different...); len(different) == 0 {
		c.reads(want, scopes)
	}
}

// isForbidden reports whether an informer must have the reason Forbidden in a scope in which lists or watches are forbidden. If only lists
// are, it may go on as long as it needs none: then it must be as if they were allowed. One that lists in place of watches needs no watch.
func isForbidden(at status.Informer, scope string, lists, watches bool) bool {
	reason := at.Reason
	if i := slices.IndexFunc(at.Namespaces, func(ns status.Namespace) bool { return ns.Name == scope }); i >= 0 {
		reason = at.Namespaces[i].Reason
	}
	return watches && at.PollPeriod == 0 || lists && reason == status.ReasonForbidden
}

// synced is for a type that can be listed and watched.
func (c *comparison) synced(ctx context.Context, i churn.Incarnation) {
	c.versions(i, nil)
	if c.incomplete != nil {
		c.report("the lister returns %v", c.incomplete)
	}
	if c.at.State != status.StateSynced || c.at.Reason != "" || c.at.Err != nil || !c.at.StaleSince.IsZero() {
		c.report("the state is %s (%s), out of date since %v: %v", c.at.State, c.at.Reason, c.at.StaleSince, c.at.Err)
	}
	if want := cmp.Or(c.version, i.Served[0]); c.resource.GVR.Version != want {
		c.report("the resource is %s, want the version %s", c.resource.GVR, want)
	}
	if c.at.Objects != len(c.has) {
		c.report("the status has %d objects, and the lister %d", c.at.Objects, len(c.has))
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := c.wait(ctx); err != nil {
		c.report("WaitForSync: %v", err)
	}
	if c.awaits.Load() {
		c.report("AtLeast has not returned, and the cache has version %s", c.awaited)
	}
	for name, h := range c.handlers {
		if h.registration != nil && !h.registration.HasSynced() {
			c.report("the handler %s has not synced", name)
		}
	}
	if c.resource.Terminating != i.Terminating {
		c.report("the type is reported as terminating: %v; want %v", c.resource.Terminating, i.Terminating)
	}
}

// unsynced is for an informer that can't list or watch now. Waits for it return the reason, at once if it lasts, unless the cache has been
// complete; then the status says since when it may be out of date.
func (c *comparison) unsynced(ctx context.Context) {
	if c.at.State == status.StateSynced {
		return // it needs no request
	}
	if c.at.State == status.StateDegraded && len(c.has) > 0 && c.at.StaleSince.IsZero() {
		c.report("the state is %s (%s), and the cache is reported as up to date", c.at.State, c.at.Reason)
	}
	ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	err := c.wait(ctx, dynamicinformer.WithFailFast())
	switch unsynced, is := errors.AsType[*status.NotSyncedError](err); {
	case err == nil && c.at.State == status.StateDegraded:
	case !is || unsynced.Reason != c.at.Reason:
		c.report("the state is %s (%s), and WaitForSync returns %v", c.at.State, c.at.Reason, err)
	case c.at.Reason.Lasting() && ctx.Err() != nil:
		c.report("WaitForSync with fail-fast does not return at once though the reason %s lasts", c.at.Reason)
	}
}

// panicked compares the panics in the status with those of the handlers.
func (c *comparison) panicked() {
	want, wantFailed, got, gotFailed := 0, 0, 0, 0
	for _, h := range c.handlers {
		panics, failed := h.panicked()
		want, wantFailed = want+panics, wantFailed+failed
	}
	for _, h := range c.at.Handlers {
		if h.Lease != c.owner {
			continue
		}
		got, gotFailed = got+int(h.Panics), gotFailed+h.FailedObjects //nolint:gosec // small
		if (h.Panics > 0) != (h.LastPanic == panicText) || (h.FailedObjects > 0) != (h.Reason == status.ReasonHandlerPanicked) {
			c.report("the status of a handler has %d panics, %d failed objects, the reason %q and the text %q", h.Panics, h.FailedObjects, h.Reason, h.LastPanic)
		}
	}
	if got != want || gotFailed != wantFailed {
		c.report("the status has %d panics of handlers and %d failed objects; want %d and %d", got, gotFailed, want, wantFailed)
	}
}

// read returns the objects of the lister.
func (l *lease) read() (map[string]churn.Observation, error) {
	has := map[string]churn.Observation{}
	objects, err := l.Lister().List(labels.Everything())
	for _, obj := range objects {
		seen := churn.Observe(obj, l.view.Form)
		has[seen.Key()] = seen
	}
	return has, err
}
