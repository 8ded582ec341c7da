package source

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// Config says what a Source lists and watches.
type Config struct {
	Client dynamic.Interface
	GVR    schema.GroupVersionResource
	// Namespace limits requests to one namespace; empty means all.
	Namespace string
	// Tweak may change the options of each request before it leaves.
	Tweak func(*metav1.ListOptions)
	// Admit is asked before the first request, and again with back-off while it
	// returns an error. It says whether the type has namespaces: if it has none,
	// Namespace is ignored. Nil lets every request through as it is.
	Admit func(ctx context.Context) (namespaced bool, err error)
	// Observer is told how the requests go. Nil means nobody is.
	Observer Observer
}

// Observer learns how requests go. Its methods are called from the goroutines
// that make the requests, several at a time, and must not block.
type Observer interface {
	// Refused is called when Admit has said no.
	Refused(err error)
	// Admitted is called when it has said yes, with the namespace that requests
	// go to.
	Admitted(namespace string)
	// Failed is called when a request has failed or its stream broke.
	Failed(verb string, err error)
	// Succeeded is called when a list is complete, whether it came from a LIST
	// or as the initial events of a watch, or when a watch has been accepted.
	Succeeded(verb string)
}

// The verbs that an Observer hears.
const (
	VerbList  = "list"
	VerbWatch = "watch"
)

// Source lists and watches one resource for one reflector.
type Source struct {
	client dynamic.Interface
	gate   *gate // nil: open
	first  cache.ListerWatcherWithContext
	calls  *calls
}

// New returns a source. It does no I/O and starts nothing.
func New(cfg Config) *Source {
	if cfg.Observer == nil {
		cfg.Observer = nobody{}
	}
	s := &Source{client: cfg.Client, calls: &calls{}}
	requestsIn := func(namespace string) cache.ListerWatcherWithContext {
		return &requests{
			next:     &client{Config: cfg, namespace: namespace},
			observer: cfg.Observer,
			calls:    s.calls,
		}
	}
	if cfg.Admit == nil {
		s.first = requestsIn(cfg.Namespace)
		return s
	}
	s.gate = &gate{
		refused: cfg.Observer.Refused,
		admit: func(ctx context.Context) (cache.ListerWatcherWithContext, error) {
			namespaced, err := cfg.Admit(ctx)
			if err != nil {
				return nil, err
			}
			namespace := cfg.Namespace
			if !namespaced {
				namespace = metav1.NamespaceAll
			}
			cfg.Observer.Admitted(namespace)
			return requestsIn(namespace), nil
		},
	}
	s.first = s.gate
	return s
}

// ListerWatcher returns the source in the form that informers take. It carries
// the client's watch-list marker: an informer on a client that can't do
// watch-list, such as client-go's fake, must not try (kubernetes#129408).
func (s *Source) ListerWatcher() cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
			return s.first.ListWithContext(ctx, opts)
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			return s.first.WatchWithContext(ctx, opts)
		},
	}, s.client)
}

// Open waits until the gate lets requests through, or ctx ends. An informer that
// is run only after that costs nothing while its type is not served.
func (s *Source) Open(ctx context.Context) error {
	if s.gate == nil {
		return nil
	}
	_, err := s.gate.pass(ctx)
	return err
}

// Wait waits until no request is under way and no watch is open, and lets no new
// ones begin. The caller has ended the reflector's context before. A reflector
// leaves a LIST behind when it is stopped in the middle of one.
func (s *Source) Wait() { s.calls.closeAndWait() }

type nobody struct{}

func (nobody) Refused(error)        {}
func (nobody) Admitted(string)      {}
func (nobody) Failed(string, error) {}
func (nobody) Succeeded(string)     {}
