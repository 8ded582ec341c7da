package source

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// requests reports how requests go, accounts for those under way, and answers
// watch-list requests so that the reflector never waits for ever on one.
type requests struct {
	next      cache.ListerWatcherWithContext
	observer  Observer
	calls     *calls
	watchList watchListMemory
}

func (r *requests) ListWithContext(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	if err := r.calls.begin(); err != nil {
		return nil, err
	}
	defer r.calls.end()
	list, err := r.next.ListWithContext(ctx, opts)
	if err != nil {
		r.failed(ctx, VerbList, err)
		return nil, err // not list, which may be a nil pointer in an interface
	}
	r.observer.Succeeded(VerbList)
	return list, nil
}

func (r *requests) WatchWithContext(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	initial := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	if initial && r.watchList.stalledLately(time.Now()) {
		return nil, errNotTried
	}
	if err := r.calls.begin(); err != nil {
		return nil, err
	}
	in, err := r.next.WatchWithContext(ctx, opts)
	if err != nil {
		r.calls.end()
		r.failed(ctx, VerbWatch, err)
		if initial {
			err = plain(err)
		}
		return nil, err
	}
	if !initial {
		r.observer.Succeeded(VerbWatch)
	}
	s := newStream(in, initial, r)
	go func() {
		defer r.calls.end()
		s.run(ctx)
	}()
	return s, nil
}

// failed reports err, unless it is only the end of the request's own context.
func (r *requests) failed(ctx context.Context, verb string, err error) {
	if ctx.Err() == nil {
		r.observer.Failed(verb, err)
	}
}
