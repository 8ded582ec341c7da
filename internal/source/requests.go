package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/attempt"
	"github.com/gvrkit/gvrkit/internal/errtext"
	"github.com/gvrkit/gvrkit/sharding"
)

var (
	errNoWatch     = errors.New("the client returned neither a watch nor an error")
	errUnreachable = errors.New("the server could not be reached: connections time out or are closed")
	errNoAnswer    = errors.New("the server has not responded to a watch-list request")
	errNoList      = errors.New("the server has not responded to a list")
)

// listAfter is the maximum time of a list, or of a page of a list.
const listAfter = 10 * time.Minute

// shortestWatch is the reflector's default for the minimum timeout of a watch.
const shortestWatch = 5 * time.Minute

// noEvents is the type of the watch that client-go returns, without an error, if connections time out or are closed in all attempts.
var noEvents = reflect.TypeOf(watch.NewEmptyWatch())

// optionsFrom returns the options of a watch from version on. Opts are the reflector's options.
func optionsFrom(opts metav1.ListOptions, version string) metav1.ListOptions {
	opts.ResourceVersion = version
	opts.ResourceVersionMatch = ""
	opts.SendInitialEvents = nil
	if seconds := opts.TimeoutSeconds; seconds != nil { // a new random timeout, as for each watch of the reflector
		again := int64(wait.Jitter(shortestWatch, 1).Seconds())
		opts.TimeoutSeconds = &again
	}
	return opts
}

// requests reports the results of requests, counts requests in progress, and ends requests
// that hang.
type requests struct {
	gate     *gate // has the configuration, and what is common to the requests of the source
	next     cache.ListerWatcherWithContext
	observer Observer
	of       Type
	kind     string         // the kind of the objects; empty: it is not checked
	unscoped bool           // the type is cluster-scoped: no object is in a namespace
	view     *sharding.View // the slots of the objects that are requested; nil: all objects
	timeout  time.Duration  // the maximum time of a list, or of a page of a list; 0: listAfter
}

// selectSlots makes opts request the objects in the slots, also if a tweak has replaced all options.
func (r *requests) selectSlots(opts *metav1.ListOptions) {
	if r.view != nil {
		opts.ShardSelector = r.view.Slots.Selector()
	}
}

// unreported returns the stage without reports of failures to the observer.
func (r *requests) unreported() *requests {
	quiet := *r
	quiet.observer = unreported{r.observer}
	return &quiet
}

// reporting returns the stage with reports of progress to turn.
func (r *requests) reporting(turn *turn) *requests {
	if turn == nil {
		return r
	}
	reporting := *r
	reporting.observer = progressing{r.observer, turn}
	return &reporting
}

type progressing struct {
	Observer
	turn *turn
}

// Received implements Observer.
func (p progressing) Received(bytes int) {
	p.turn.progress()
	p.Observer.Received(bytes)
}

type unreported struct{ Observer }

// Failed implements Observer.
func (unreported) Failed(string, error) {}

// list requests a list, or a page of a list.
func (r *requests) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	if !r.gate.calls.Begin() {
		return nil, errClosed
	}
	defer r.gate.calls.End()
	at := opts.Continue
	if tweak := r.gate.cfg.Tweak; tweak != nil {
		tweak(&opts)
	}
	opts.Continue = at // a tweak that replaces all options would get the first page again and again
	r.selectSlots(&opts)
	bounded, cancel := context.WithTimeout(ctx, cmp.Or(r.timeout, listAfter))
	defer cancel()
	list, err := r.next.ListWithContext(r.observed(bounded, VerbList), opts)
	if bounded.Err() != nil && ctx.Err() == nil {
		err = fmt.Errorf("%w within %v", errNoList, cmp.Or(r.timeout, listAfter))
	}
	if err == nil {
		err = checkNext(list, at)
	}
	if err == nil {
		err = r.checkAll(list)
	}
	if err != nil {
		if !r.gate.fallsBack(r.of, err) {
			r.failed(ctx, VerbList, err)
		}
		return nil, err
	}
	return list, nil
}

// checkNext returns an error if page, which was requested with the token at, has the same token for the next page. The pager would
// request it again and again, without a pause, and keep all its objects.
func checkNext(page runtime.Object, at string) error {
	if at == "" {
		return nil
	}
	if list, err := meta.ListAccessor(page); err == nil && list.GetContinue() == at {
		return fmt.Errorf("%w that ends: a page refers to itself as the next one", ErrNotAList)
	}
	return nil
}

// watch opens a stream, which the caller closes.
func (r *requests) watch(ctx context.Context, opts metav1.ListOptions) (*stream, error) {
	initial := opts.SendInitialEvents != nil && *opts.SendInitialEvents
	if initial && r.gate.cfg.Stalls.stalledLately(r.of, time.Now()) {
		return nil, errNotTried
	}
	if !r.gate.calls.Begin() {
		return nil, errClosed
	}
	from := opts.ResourceVersion
	if tweak := r.gate.cfg.Tweak; tweak != nil {
		tweak(&opts)
	}
	r.selectSlots(&opts)
	if initial && (opts.SendInitialEvents == nil || !*opts.SendInitialEvents) {
		r.gate.calls.End()
		return nil, errTweaked // the bookmark would never arrive
	}
	open, cancel := context.WithCancel(ctx)
	release := func() {
		cancel()
		r.gate.calls.End()
	}
	var interruption atomic.Pointer[error]
	attempts := *r
	attempts.observer = interruptions{r.observer, &interruption}
	in, err := r.open(attempts.observed(open, VerbWatch), cancel, opts, initial)
	last := interruption.Load()
	if err == errUnreachable && last != nil { //nolint:errorlint // an error of the client is not this one
		err = *last
	}
	if err != nil {
		if !initial || !r.gate.fallsBack(r.of, err) {
			r.failed(ctx, VerbWatch, err)
		}
		release()
		return nil, err
	}
	if !initial {
		r.observer.Succeeded(VerbWatch)
	}
	return &stream{
		in: in, requests: r, opened: time.Now(), lists: initial, initial: initial, timeout: timeoutOf(opts), silence: newSilence(initial),
		overdue: newDeadline(opts), release: release, interrupted: last != nil, elsewhere: opts.ResourceVersion != from,
	}, nil
}

// interruptions records the last error of an attempt that could not reach the server.
type interruptions struct {
	Observer
	last *atomic.Pointer[error]
}

// Failed implements Observer.
func (i interruptions) Failed(verb string, err error) {
	if unreachable(err) {
		i.last.Store(&err)
	}
	i.Observer.Failed(verb, err)
}

// open sends a watch request. If there is no response, it cancels the request: soon for a
// watch-list, otherwise when the watch would be overdue, since a proxy may delay the header of a
// response until the first event.
func (r *requests) open(ctx context.Context, cancel context.CancelFunc, opts metav1.ListOptions, initial bool) (watch.Interface, error) {
	var timer *time.Timer
	switch {
	case initial:
		timer = time.AfterFunc(answerAfter, cancel)
	case opts.TimeoutSeconds != nil && *opts.TimeoutSeconds > 0:
		timer = time.AfterFunc(time.Duration(*opts.TimeoutSeconds)*time.Second+overdueAfter, cancel)
	}
	in, err := r.next.WatchWithContext(ctx, opts)
	switch {
	case timer != nil && !timer.Stop():
		if in != nil {
			in.Stop()
		}
		if !initial {
			return nil, errOverdue
		}
		r.gate.cfg.Stalls.stalled(r.of, time.Now())
		return nil, fmt.Errorf("%w for %v", errNoAnswer, answerAfter)
	case err == nil && in == nil:
		return nil, errNoWatch
	case err == nil && reflect.TypeOf(in) == noEvents:
		return nil, errUnreachable
	}
	return in, err
}

// observed returns a context for a request. With it, attempts that the client hides are
// reported.
func (r *requests) observed(ctx context.Context, verb string) context.Context {
	return attempt.Observe(ctx, attempt.Observer{
		Failed:   func(err error) { r.failed(ctx, verb, errtext.Clean(err)) },
		Received: r.observer.Received,
	})
}

// failed reports err, unless its cause is the end of the request's context.
func (r *requests) failed(ctx context.Context, verb string, err error) {
	if ctx.Err() != nil || r.gate.cfg.Polling > 0 && verb == VerbWatch && apierrors.IsMethodNotSupported(err) {
		return
	}
	r.observer.Failed(verb, err)
}
