package source

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Open waits until the type is served, or ctx ends.
func (s *Source) Open(ctx context.Context) error {
	_, _, err := s.gate.served(ctx)
	return err
}

// Namespaces returns the namespaces of the report.
func (s *Source) Namespaces() []Namespace { return s.Report().Namespaces }

// Requests is the requests stage of a source, without the gate: each watch is one stream. Its last event is an ERROR event if it is a watch-list that
// fails.
type Requests struct{ stage *requests }

// NewRequests returns the requests stage of a source with cfg.
func NewRequests(cfg Config) *Requests { return RequestsOf(New(cfg)) }

// RequestsOf returns the requests stage of s.
func RequestsOf(s *Source) *Requests {
	t, _ := s.gate.available.Current()
	return &Requests{s.gate.requests(t)}
}

// ListWithContext implements cache.ListerWatcherWithContext.
func (r *Requests) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	return r.stage.list(ctx, opts)
}

// WatchWithContext implements cache.ListerWatcherWithContext.
func (r *Requests) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	stream, err := r.stage.watch(ctx, opts)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	return openPipe(ctx, cancel, &r.stage.gate.calls, func(ctx context.Context, send func(watch.Event) bool) {
		defer stream.close()
		for ending := altered; ending == altered || ending == completed; {
			ending = stream.run(ctx, send, nil)
		}
		if stream.failure != nil {
			send(errorEvent(stream.failure))
		}
	})
}

// Repeated returns the number of objects with events that a watch has repeated since lists of gained slots.
func (s *Source) Repeated() int {
	k := &s.gate.known
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.repeated)
}

// Gone returns the number of names of which the set knows that they have left it because the server does not have them.
func (n *Namespaces) Gone() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.gone)
}
