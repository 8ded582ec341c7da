package dynamicclient_test

import (
	"context"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// cancelKey is the context key of the function that cancels a call.
type cancelKey struct{}

// answered is a transport that cancels the call once the headers are here.
type answered struct{ http.RoundTripper }

func (a answered) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := a.RoundTripper.RoundTrip(r)
	r.Context().Value(cancelKey{}).(context.CancelFunc)()
	return resp, err
}

// canceledWhenAnswered makes next with a context that ends once the headers of the
// response are here.
func canceledWhenAnswered(next call) call {
	return func(ctx context.Context, c dynamic.Interface) (any, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		return next(context.WithValue(ctx, cancelKey{}, cancel), c)
	}
}

func TestClient_CancelEndsAnAnswerUnderWayAsClientGo(t *testing.T) {
	s := serve(t)
	config := func(cfg *rest.Config) {
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return answered{next} })
	}
	for _, c := range readers {
		t.Run(c.name, func(t *testing.T) {
			row := exchange{config: config, replies: []stubserver.Reply{stubserver.Hang(`{"apiVersion":`)}, call: canceledWhenAnswered(c.call)}
			if c.name != "watch" {
				row.fails = "context canceled"
			}
			s.check(t, row)
		})
	}
}

func TestClient_CancelEndsARequestWithoutAnAnswerAsClientGo(t *testing.T) {
	s := serve(t)
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			arrived := make(chan struct{}, 1)
			silent := func(w http.ResponseWriter, r *http.Request) {
				arrived <- struct{}{}
				stubserver.Hang("")(w, r)
			}
			row := exchange{replies: []stubserver.Reply{silent}, fails: "context canceled"}
			row.call = func(ctx context.Context, client dynamic.Interface) (any, error) {
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				go func() { <-arrived; cancel() }()
				return c.call(ctx, client)
			}
			s.check(t, row)
		})
	}
}

func TestClient_CanceledBeforeItBeginsFailsAsClientGo(t *testing.T) {
	s := serve(t)
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			s.check(t, exchange{replies: []stubserver.Reply{stubserver.JSON(widgetA)}, fails: "context canceled", call: func(ctx context.Context, client dynamic.Interface) (any, error) {
				ctx, cancel := context.WithCancel(ctx)
				cancel()
				return c.call(ctx, client)
			}})
		})
	}
}

// watchUntil reads one event and calls end. It returns what came before the channel
// was closed.
func watchUntil(end func(cancel context.CancelFunc, w watch.Interface) []watch.Event) call {
	return func(ctx context.Context, c dynamic.Interface) (any, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		w, err := widgetsOf(c).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		defer w.Stop()
		return append([]watch.Event{<-w.ResultChan()}, end(cancel, w)...), nil
	}
}

func TestClient_EndOfAnOpenWatchAsClientGo(t *testing.T) {
	added := stubserver.Event("ADDED", widgetA)
	s := serve(t)
	for name, end := range map[string]func(context.CancelFunc, watch.Interface) []watch.Event{
		"canceled": func(cancel context.CancelFunc, w watch.Interface) []watch.Event {
			cancel()
			return drained(w)
		},
		"stopped": func(_ context.CancelFunc, w watch.Interface) []watch.Event {
			w.Stop()
			drained(w) // an error gets out or does not, by chance
			return nil
		},
	} {
		s.checkAll(t, []exchange{
			{name: name + " between events", replies: []stubserver.Reply{stubserver.Hang(added)}, call: watchUntil(end)},
			{name: name + " in an event", replies: []stubserver.Reply{stubserver.Hang(added + added[:300])}, call: watchUntil(end)},
			{name: name + " in an indented event", replies: []stubserver.Reply{stubserver.Hang(added + indented(t, added)[:300])}, call: watchUntil(end)},
		})
	}
}
