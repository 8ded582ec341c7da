package source

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/budget"
	"github.com/gvrkit/gvrkit/sharding"
)

// Config configures a Source.
type Config struct {
	Client Client
	// Invalid is why no request is possible; nil if requests are possible. It is reported once, as
	// the failure of a list that is not retried. A nil Client has the same effect.
	Invalid error
	GVR     schema.GroupVersionResource
	// Namespace limits requests to one namespace; empty means all. It is ignored for a
	// cluster-scoped type.
	Namespace string
	// Namespaces limits requests to a set of namespaces, which may change, and takes precedence over Namespace. Each
	// namespace has its own lists and watches. One in which requests fail does not affect the others.
	Namespaces *Namespaces
	// Tweak may change the options of each request before it is sent, except the continue token of a list.
	Tweak func(*metav1.ListOptions)
	// Availability is the state of the type. Nil: the type is served as GVR and is
	// namespaced.
	Availability *Availability
	// NoWatchList disables watch-lists. WatchListAnywhere also enables them for types of
	// aggregated API servers.
	NoWatchList, WatchListAnywhere bool
	// PageSize is the number of objects in a page of a list; 0: the reflector's page size.
	PageSize int64
	// Strict makes an object that can't be decoded fail its list, or end its watch, as in client-go.
	// Otherwise it is left out.
	Strict bool
	// Polling is the mean time between lists of a type that can be listed and not watched. Zero or less: the
	// failure of its watches is reported.
	Polling time.Duration
	// KeepCache keeps the objects of a type that is gone in the cache, until the next list
	// replaces them.
	KeepCache bool
	// Shard limits the source to the objects of some slots, which may change; nil: it has all objects.
	Shard Shard
	// Loaded is called when the reflector has got all objects in the slots of the view with this generation, or will get
	// them next. It must not block. It may be nil.
	Loaded func(generation uint64)
	// Group returns the state of the group that shares the objects; nil: there is no group. It is called while locks are held.
	Group func() sharding.Status
	// MarkMoved marks the deletions of objects that exist, but whose namespaces have left Namespaces, or whose slots Shard: see [Moved]. The
	// reflector must accept objects of any type.
	MarkMoved bool
	// Confirm is called after a list that fills a gap, and if the version of the server is lower than that of the objects. It reports
	// whether the server still has type t. If it does not, Availability will change. A nil Confirm always returns true.
	Confirm func(ctx context.Context, t Type) bool
	// Probed is called with the result of a list of a type that is [Missing]: gone says that it
	// was NotFound. If Availability is still t, Probed must set its next state. A nil Probed
	// sets Served or Gone.
	Probed func(t Type, gone bool)
	// WhileWaiting, if not nil, is called in a goroutine while requests wait for Availability, once for all that wait for the same
	// change. Its context ends with the last wait.
	WhileWaiting func(ctx context.Context)
	// Queue limits the first lists of all sources that share it. Nil: lists never wait.
	Queue *ListQueue
	// Budget limits the memory of the caches of all sources that share it: first lists must fit. Nil: there is no limit.
	Budget *budget.Budget
	// Stalls records stalled watch-lists, and may be shared. Nil: the source has its own.
	Stalls *Stalls
	// Packing is the form of objects in the reflector's store; nil: as the client and the transform return them.
	Packing Packing
	// Observer gets the results of requests. It may be nil.
	Observer Observer
	// Report, if not nil, gets each error of a list or watch that will be retried, except the
	// ordinary end of a watch. An error of a list is a [*ListError], and that of an open watch a
	// [*StreamError], unless Namespaces is a set. It also gets the errors of requests for the names of
	// Namespaces after these are known: they do not fail the source. The goroutine that sends the
	// request calls it. It may be code of the user.
	Report func(ctx context.Context, err error)
}

// Observer gets the results of requests. The goroutines that send requests call its methods,
// concurrently. The methods must not block.
type Observer interface {
	// Failed is called when a request has failed or its stream has broken.
	Failed(verb string, err error)
	// Doubted is called when a request in one namespace of a set is NotFound, and not all namespaces of the set
	// fail: the type may be gone, or a server does not serve it there.
	Doubted()
	// Succeeded is called when the source accepts a list, from a LIST or from the initial
	// events of a watch: it is complete, it is of the present type, and the reflector has it or
	// will get it next. For a watch, it is called when the server accepts the watch.
	Succeeded(verb string)
	// Received is called with the number of bytes of a response that have been read, if the
	// client's transport reports them.
	Received(bytes int)
	// Completed is called when State has changed: the reflector has got a whole list or will get
	// it next, its objects have been deleted, the server has responded to a watch, an object is
	// left out, or no longer, or a followed set of namespaces has changed. It is not called for other single events.
	Completed()
}

// The verbs of requests.
const (
	VerbList  = "list"
	VerbWatch = "watch"
)

// Source lists and watches one resource for one reflector.
type Source struct {
	gate *gate
}

// New returns a source. It does no I/O and starts nothing.
func New(cfg Config) *Source {
	if cfg.Observer == nil {
		cfg.Observer = noObserver{}
	}
	if cfg.Client == nil && cfg.Invalid == nil {
		cfg.Invalid = errNoClient
	}
	if cfg.Stalls == nil {
		cfg.Stalls = &Stalls{}
	}
	if cfg.Availability == nil {
		cfg.Availability = NewAvailability(Type{Serving: Served, GVR: cfg.GVR, Namespaced: true})
	}
	if cfg.Probed == nil {
		cfg.Probed = cfg.Availability.probed
	}
	s := &Source{gate: &gate{cfg: cfg, available: cfg.Availability}}
	if cfg.Namespaces != nil {
		s.gate.known.hides = cfg.Namespaces.hides
	}
	s.gate.account = cfg.Budget.Account(s.gate.cacheBytes)
	s.gate.transform.strict, s.gate.transform.packing = cfg.Strict, cfg.Packing
	if cfg.Client != nil {
		s.gate.transform.convert = cfg.Client.Convert()
	}
	return s
}

// ListerWatcher returns the source with the interface that informers use. It has
// the client's watch-list marker: an informer on a client without support for
// watch-lists, such as client-go's fake, must not use them (kubernetes#129408).
func (s *Source) ListerWatcher() cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return s.gate.ListWithContext(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return s.gate.WatchWithContext(ctx, opts)
		},
	}, s.gate.cfg.Client)
}

// LookUp sets the function that reads the reflector's store by key. If the source creates
// a deletion itself, the deletion has the object's state in the store. It must be called
// before the reflector runs.
func (s *Source) LookUp(get func(key string) (item any, there bool)) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	s.gate.store = get
}

// SetTransform sets the function that transforms each object before it is cached. The goroutine that
// reads from the server calls it once for an object. It may write to the object, or return another
// one. If it is nil, objects are not changed. The informer must have [Unwrap] as its own transform.
// After the source has begun to read, SetTransform has no effect and returns [ErrStarted].
func (s *Source) SetTransform(f cache.TransformFunc) error {
	t := &s.gate.transform
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sealed {
		return ErrStarted
	}
	if t.function.Store(nil); f != nil {
		t.function.Store(&f)
	}
	return nil
}

// Retry ends pauses before retries, unless the server has requested the pause. A request in progress continues; if it fails, there is no pause
// after it. Retry does not block.
func (s *Source) Retry() {
	s.gate.asked.Broadcast()
	s.gate.retries.Broadcast()
}

// State describes what the source has passed to the reflector.
type State struct {
	// Objects is the number of the reflector's objects.
	Objects int
	// Bytes is about the memory of these objects, and of the maps that have them by key. Only Report sets it.
	Bytes int64
	// Version is the resourceVersion up to which the reflector has everything. It is empty
	// before the first list is complete, and while another list is required.
	Version string
	// Generation is the generation of the objects' type.
	Generation int
	// Complete says that the reflector has a whole list of this generation. Listed is the
	// resourceVersion of that list, or a smaller one if the server's versions have decreased.
	Complete bool
	Listed   string
	// Former is the Version of the previous generation. It may be larger than the versions of
	// this one, if they are from different servers.
	Former string
	// Watched says that the server has responded to the first watch.
	Watched bool
	// FirstLists is the number of complete first lists: of a generation, of a type that was
	// gone, or of a reflector that starts again.
	FirstLists int
	// Rewinds is how often Version has decreased for one generation, as after a restore of etcd.
	Rewinds int
	// Events is the number of objects so far in lists, changes and deletions, and LastEvent the
	// time of the last one; zero if there was none.
	Events    uint64
	LastEvent time.Time
	// Rejected are the objects that are left out.
	Rejected Rejected
	// Due is the time of the next attempt after a failure; zero if there was no failure.
	Due time.Time
	// Queued is the time since when a list waits for Config.Queue; zero if it does not.
	Queued time.Time
	// Polling is the mean time between lists that replace watches; zero if the type is watched.
	Polling time.Duration
	// Shard is nil if there is no Config.Shard.
	Shard *ShardState
}

// State returns the state.
func (s *Source) State() State {
	k := &s.gate.known
	k.mu.Lock()
	defer k.mu.Unlock()
	return s.stateLocked(k)
}

// Report is the state at one moment, with its parts that grow with the objects and the namespaces.
type Report struct {
	State
	// Names are the objects that are left out: at most MaxNamed, sorted by key. The slice is shared and read-only.
	Names []RejectedObject
	// Namespaces are the states of the namespaces of Config.Namespaces, sorted by name, and NamesErr why requests for their names fail; nil if they do not.
	Namespaces []Namespace
	NamesErr   error
}

// Report returns the state with all its parts.
func (s *Source) Report() Report {
	k, common := &s.gate.known, s.gate.commonBytes()
	k.mu.Lock()
	defer k.mu.Unlock()
	r := Report{State: s.stateLocked(k), Names: k.rejected.names(), Namespaces: s.namespacesLocked(k), NamesErr: s.gate.cfg.Namespaces.failure()}
	r.Bytes = s.gate.bytesLocked(k) + common
	return r
}

// Resize sets the size of an object that has been replaced in the store by another form of the same state.
func (s *Source) Resize(key string, stored metav1.Object) {
	s.gate.known.resize(key, stored.GetResourceVersion(), estimate(stored))
	s.gate.account.Update()
}

// stateLocked is State for a caller that holds the lock of k.
func (s *Source) stateLocked(k *known) State {
	state := State{
		Objects: k.objects.len(), Generation: k.of.Generation,
		Complete: k.complete, Listed: k.listed, Former: k.former, FirstLists: k.firstLists, Rewinds: k.rewinds, Rejected: k.rejected.last,
	}
	if k.current {
		state.Version = k.version
	}
	state.Watched = s.gate.watched.Load()
	state.Events, state.LastEvent = s.Events(), s.LastEvent()
	if due := s.gate.due.Load(); due != nil {
		state.Due = *due
	}
	if queued := s.gate.queued.Load(); queued != nil {
		state.Queued = *queued
	}
	if s.gate.cfg.Shard != nil {
		state.Shard = &ShardState{
			View: k.seen.Slots, Slots: k.slotsLocked(), Generation: k.viewed, Moved: s.gate.moved.Load(), ByClient: s.gate.strays.Load(), Group: s.gate.cfg.Group,
		}
	}
	if t, _ := s.gate.available.Current(); s.gate.polls(t) {
		state.Polling = s.gate.cfg.Polling
	}
	return state
}

// IsServed reports whether the type is served, as far as discovery knows.
func (s *Source) IsServed() bool {
	now, _ := s.gate.available.Current()
	return now.Serving == Served
}

// ServerVersion requests the present resourceVersion of the server, that of a consistent list with at most
// one object. It waits until the type is served. A failure is not reported.
func (s *Source) ServerVersion(ctx context.Context) (string, error) {
	t, _, err := s.gate.served(ctx)
	if err != nil {
		return "", err
	}
	return s.gate.requests(t).unreported().version(ctx)
}

// Has reports whether the reflector has an object with this key.
func (s *Source) Has(key string) bool {
	_, has := s.gate.known.get(key)
	return has
}

// Objects returns State().Objects in less time. It is zero before the first list is complete, because
// Events does not count the objects of a list before.
func (s *Source) Objects() int {
	k := &s.gate.known
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.firstLists == 0 {
		return 0
	}
	return k.objects.len()
}

// Events returns State().Events in less time.
func (s *Source) Events() uint64 { return s.gate.traffic.events.Load() }

// LastEvent returns State().LastEvent in less time.
func (s *Source) LastEvent() time.Time { return s.gate.traffic.lastEvent() }

// Wait prevents new requests, and waits until no request is in progress and no watch is open.
// The caller must have ended the reflector's context. A reflector that is stopped during a
// LIST does not wait for it.
func (s *Source) Wait() {
	s.gate.calls.Close()
	<-s.gate.calls.Done()
}

type noObserver struct{}

func (noObserver) Failed(string, error) {}
func (noObserver) Succeeded(string)     {}
func (noObserver) Received(int)         {}
func (noObserver) Doubted()             {}
func (noObserver) Completed()           {}
