package source

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// Config says what a Source lists and watches, and who is told of it.
type Config struct {
	Client dynamic.Interface
	// Invalid says why no request can be made; nil if requests can. It is reported once, as
	// the failure of a list that is not tried again. A Client that is nil is such a reason.
	Invalid error
	GVR     schema.GroupVersionResource
	// Namespace limits requests to one namespace; empty means all. It is ignored for a
	// type without namespaces.
	Namespace string
	// Tweak may change the options of each request before it leaves.
	Tweak func(*metav1.ListOptions)
	// Availability is what is known of the type. Nil: that it is served, as GVR and with
	// namespaces.
	Availability *Availability
	// NoWatchList makes watch-lists not be tried, WatchListAnywhere also on types behind
	// which there is another server.
	NoWatchList, WatchListAnywhere bool
	// PageSize is how many objects a page of a list has; 0: as many as the reflector wants.
	PageSize int64
	// KeepCache leaves the objects of a type that has gone in the cache, until there are
	// others to take their place.
	KeepCache bool
	// Confirm is asked when a gap has been bridged by a list: whether what was listed is
	// still of the type that is known. If not, Availability is about to change. Nil means
	// that it always is.
	Confirm func(ctx context.Context, t Type) bool
	// Probed takes the answer of a type that is [Missing] to a list: gone says that it was
	// NotFound. It has to set Availability to what follows, if that is still t. Nil: served or
	// gone is what follows.
	Probed func(t Type, gone bool)
	// WhileWaiting is called in a goroutine while a request waits for Availability, with a context
	// that ends with the wait. Nil means nobody needs to know.
	WhileWaiting func(ctx context.Context)
	// Stalls remembers stalled watch-lists, and may be shared. Nil: the source does so itself.
	Stalls *Stalls
	// Observer is told how the requests go. Nil means nobody is.
	Observer Observer
	// Report gets each error after which a list or watch is tried again, but for those
	// that are the ordinary end of a watch: a [*ListError] if it was a list. It is called in the goroutine that tries, and
	// may be anybody's code. Nil means nobody gets them.
	Report func(ctx context.Context, err error)
}

// Observer learns how requests go. Its methods are called from the goroutines
// that make the requests, several at a time, and must not block.
type Observer interface {
	// Failed is called when a request has failed or its stream broke.
	Failed(verb string, err error)
	// Succeeded is called when a list has been accepted, whether it came from a LIST or as
	// the initial events of a watch: it is whole, of the type as it is known, and the
	// reflector has it or is about to. For a watch it is called when the server accepts it.
	Succeeded(verb string)
	// Received is called when so many bytes of an answer have been read, if the client's
	// transport tells of that.
	Received(bytes int)
	// Completed is called when State has changed, but for single events: the reflector has
	// been given all of a list, or is about to be, what it had has been taken back, or a
	// watch has been answered.
	Completed()
}

// The verbs that an Observer hears.
const (
	VerbList  = "list"
	VerbWatch = "watch"
)

// Source lists and watches one resource for one reflector.
type Source struct {
	client dynamic.Interface
	gate   *gate
}

// New returns a source. It does no I/O and starts nothing.
func New(cfg Config) *Source {
	if cfg.Observer == nil {
		cfg.Observer = nobody{}
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
	return &Source{
		client: cfg.Client,
		gate:   &gate{cfg: cfg, available: cfg.Availability},
	}
}

// ListerWatcher returns the source in the form that informers take. It carries
// the client's watch-list marker: an informer on a client that can't do
// watch-list, such as client-go's fake, must not try (kubernetes#129408).
func (s *Source) ListerWatcher() cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return s.gate.ListWithContext(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return s.gate.WatchWithContext(ctx, opts)
		},
	}, s.client)
}

// LookUp lets the source see the store that its reflector fills, by key. An object whose
// deletion the source has to make up itself is deleted with the state that is there. To
// be called before the reflector runs.
func (s *Source) LookUp(get func(key string) (item any, there bool)) {
	s.gate.mu.Lock()
	defer s.gate.mu.Unlock()
	s.gate.store = get
}

// Open waits until the type is served, or ctx ends. An informer that is run only after
// that costs nothing while its type is not served.
func (s *Source) Open(ctx context.Context) error {
	_, _, err := s.gate.served(ctx)
	return err
}

// Retry makes what waits to be tried again be tried now, unless the server has asked for
// the wait. A request that is under way goes on. It does not block.
func (s *Source) Retry() { s.gate.retries.Broadcast() }

// State is what a reflector has been given.
type State struct {
	// Objects is how many it has.
	Objects int
	// Version is the resourceVersion up to which it has everything; empty before the
	// first list is complete, and while the next one is needed.
	Version string
	// Generation is that of the type whose objects they are.
	Generation int
	// Complete says that it has been given a whole list of this generation, and Listed
	// up to which resourceVersion that was; a smaller one, if the server has gone back.
	Complete bool
	Listed   string
	// Former is the Version of the generation before. Another server's versions may be larger
	// than those of this one.
	Former string
	// Watched says that the first watch has been answered, one way or the other.
	Watched bool
	// FirstLists is how often a list has become complete that was the first: of a
	// generation, of a type that had gone, or of a reflector that begins anew.
	FirstLists int
	// Events is how many objects it has been given so far, in lists, as changes and as
	// deletions, and LastEvent when that was last; zero: never.
	Events    uint64
	LastEvent time.Time
	// Rejected are the objects that are left out.
	Rejected Rejected
	// Due is when the next try is due, after one that has failed; zero if none has.
	Due time.Time
}

// State returns what the reflector has been given so far.
func (s *Source) State() State {
	k := &s.gate.known
	k.mu.Lock()
	state := State{
		Objects: len(k.objects), Generation: k.of.Generation,
		Complete: k.complete, Listed: k.listed, Former: k.former, FirstLists: k.firstLists, Rejected: k.rejected.last,
	}
	if k.current {
		state.Version = k.version
	}
	k.mu.Unlock()
	state.Watched = s.gate.watched.Load()
	state.Events, state.LastEvent = s.Events(), s.LastEvent()
	if due := s.gate.due.Load(); due != nil {
		state.Due = *due
	}
	return state
}

// Has reports whether the reflector has an object with that key.
func (s *Source) Has(key string) bool {
	_, has := s.gate.known.get(key)
	return has
}

// Objects returns State's, at less cost.
func (s *Source) Objects() int {
	k := &s.gate.known
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.objects)
}

// Events returns State's, at less cost.
func (s *Source) Events() uint64 { return s.gate.traffic.events.Load() }

// LastEvent returns State's, at less cost.
func (s *Source) LastEvent() time.Time { return s.gate.traffic.lastEvent() }

// Wait waits until no request is under way and no watch is open, and lets no new
// ones begin. The caller has ended the reflector's context before. A reflector
// leaves a LIST behind when it is stopped in the middle of one.
func (s *Source) Wait() {
	s.gate.calls.Close()
	<-s.gate.calls.Done()
}

type nobody struct{}

func (nobody) Failed(string, error) {}
func (nobody) Succeeded(string)     {}
func (nobody) Received(int)         {}
func (nobody) Completed()           {}
