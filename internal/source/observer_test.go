package source_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/source"
)

func TestObserver_GetsTheResultOfAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		answers := []error{broken, nil}
		client, observer := &script{}, &observer{}
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			return &unstructured.UnstructuredList{}, answers[len(client.requests())-1]
		}
		lw := gateOf(source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Observer: observer}))
		if _, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"list failed", "list succeeded"}, observer.reports()); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
		checkErrors(t, observer, broken)
	})
}

// A list succeeds with its last page. Otherwise a failure of later pages would end each time that
// the first page succeeds.
func TestObserver_GetsTheSuccessOfAListWithItsLastPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		client, observer := &script{}, &observer{}
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			list := &unstructured.UnstructuredList{}
			switch len(client.requests()) {
			case 1, 3:
				list.SetContinue("more")
			case 2:
				return nil, broken
			}
			return list, nil
		}
		lw := gateOf(source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Observer: observer}))
		if _, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"list failed", "list succeeded"}, observer.reports()); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
	})
}

// checkErrors compares the errors that the observer got with want, one by one.
func checkErrors(t *testing.T, observer *observer, want ...error) {
	t.Helper()
	got := observer.errors()
	if len(got) != len(want) {
		t.Fatalf("observer's errors: %q, want %q", got, want)
	}
	for i := range want {
		if !errors.Is(got[i], want[i]) {
			t.Errorf("observer's error %d: %v, want %v", i, got[i], want[i])
		}
	}
}

func TestObserver_GetsTheResultOfAWatch(t *testing.T) {
	for name, initial := range map[string]*bool{"unset": nil, "false": new(false)} {
		t.Run("sendInitialEvents "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := metav1.ListOptions{SendInitialEvents: initial}
				broken := errors.New("broken")
				client, observer := &script{watch: always(nil, broken)}, &observer{}
				lw := newLW(source.Config{Client: source.Unstructured(client), GVR: widgets, Observer: observer})
				if _, err := lw.WatchWithContext(t.Context(), opts); !errors.Is(err, broken) {
					t.Errorf("watch: %v, want the client's error", err)
				}
				server := newServerWatch()
				client.watch = always(server, nil)
				w := openWatch(t, lw, opts)
				// The report is that the watch was accepted, and not its events.
				server.Add(newObject("a"))
				server.Action(watch.Bookmark, newBookmark("true"))
				take(w)
				server.Stop()
				take(w)
				if diff := cmp.Diff([]string{"watch failed", "watch succeeded"}, observer.reports()); diff != "" {
					t.Errorf("reports (-want +got):\n%s", diff)
				}
				checkErrors(t, observer, broken)
			})
		})
	}
}

func TestObserver_GetsAnErrorEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observer, server := &observer{}, newServerWatch()
		lw := newLW(source.Config{Client: source.Unstructured(&script{watch: always(server, nil)}), GVR: widgets, Observer: observer})
		w := openWatch(t, lw, metav1.ListOptions{ResourceVersion: "1"})
		status := apierrors.NewResourceExpired("too old").Status()
		server.Error(&status)
		take(w)
		if diff := cmp.Diff([]string{"watch succeeded", "watch failed"}, observer.reports()); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
		if got := observer.errors(); len(got) != 1 || !apierrors.IsResourceExpired(got[0]) {
			t.Errorf("its errors: %v, want the server's", got)
		}
	})
}

// A watch-list is a list until the end of its initial events. Then the list has succeeded once;
// later bookmarks are not reported.
func TestObserver_GetsAListByWatchList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observer, server := &observer{}, newServerWatch()
		s := source.New(source.Config{Client: source.Unstructured(&script{watch: always(server, nil)}), GVR: widgets, Observer: observer})
		listed := startWatchList(t.Context(), s)
		expect := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, observer.reports()); diff != "" {
				t.Errorf("%s the observer has heard (-want +got):\n%s", when, diff)
			}
		}
		expect("at the beginning")
		server.Add(newObject("a"))
		server.Action(watch.Bookmark, newBookmark(""))
		server.Action(watch.Bookmark, newBookmark("false"))
		server.Action(watch.Modified, newBookmark("true")) // not a bookmark, in spite of its annotation
		server.Action(watch.Bookmark, &metav1.Status{})    // not an object of the type
		expect("among the initial events")
		server.Action(watch.Bookmark, newBookmark("true"))
		expect("at their end", "list succeeded", "watch succeeded")
		if a := <-listed; a.err != nil {
			t.Fatal(a.err)
		}
		openWatch(t, gateOf(s), metav1.ListOptions{ResourceVersion: "1"})
		server.Action(watch.Bookmark, newBookmark("true"))
		server.Add(newObject("b"))
		expect("after that", "list succeeded", "watch succeeded")
	})
}

// The end of the caller's context is not a failure. There are several rounds, because the stream
// can end in two ways.
func TestObserver_EndOfTheCallersContextIsNotAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		observer, client := &observer{}, &script{}
		lw := newLW(source.Config{Client: source.Unstructured(client), GVR: widgets, Observer: observer})
		for range 50 {
			ctx, cancel := context.WithCancel(t.Context())
			client.list = func(ctx context.Context) (*unstructured.UnstructuredList, error) { return nil, hang(ctx) }
			client.watch = func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) { return nil, hang(ctx) }
			ended := make(chan error)
			go func() { _, err := lw.ListWithContext(ctx, metav1.ListOptions{}); ended <- err }()
			go func() { _, err := lw.WatchWithContext(ctx, metav1.ListOptions{}); ended <- err }()
			go func() { _, err := lw.WatchWithContext(ctx, watchList()); ended <- err }()
			synctest.Wait()

			// Streams that get an event, or end, at the same time as the context.
			client.watch = func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				cancel()
				server := newServerWatch()
				status := apierrors.NewInternalError(errors.New("context canceled")).Status()
				server.Error(&status)
				return server, nil
			}
			broken, err := lw.WatchWithContext(ctx, watchList())
			if err != nil {
				t.Fatal(err)
			}
			client.watch = always(endedWatch(), nil)
			cut, err := lw.WatchWithContext(ctx, watchList())
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := <-ended; err == nil {
					t.Fatal("a request without a response has no error")
				}
			}
			take(broken)
			take(cut)
		}
		if got := observer.reports(); got != nil {
			t.Errorf("reports %q, want none", got)
		}
	})
}

// A context error is a failure while the caller's context has not ended: clients have their own
// timeouts.
func TestObserver_ContextErrorFromElsewhereIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		observer := &observer{}
		lw := newLW(source.Config{GVR: widgets, Observer: observer, Client: source.Unstructured(&script{
			list:  func(context.Context) (*unstructured.UnstructuredList, error) { return nil, context.DeadlineExceeded },
			watch: always(nil, context.Canceled),
		})})
		_, listErr := lw.ListWithContext(t.Context(), metav1.ListOptions{})
		_, watchErr := lw.WatchWithContext(t.Context(), metav1.ListOptions{})
		if listErr == nil || watchErr == nil {
			t.Fatalf("errors = %v, %v", listErr, watchErr)
		}
		checkErrors(t, observer, listErr, watchErr)
	})
}

func TestObserver_MayBeNil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServerWatch()
		lw := newLW(source.Config{Client: source.Unstructured(&script{watch: always(server, nil)}), GVR: widgets})
		list, err := lw.ListWithContext(t.Context(), metav1.ListOptions{})
		if err != nil || list == nil {
			t.Errorf("list = %v, %v", list, err)
		}
		w := openWatch(t, lw, watchList())
		status := apierrors.NewResourceExpired("too old").Status()
		server.Error(&status)
		if diff := cmp.Diff([]string{failed, "CLOSED"}, seen(w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// inOrder is a context whose children end one after another, in the order in which they were created. Between them, all goroutines become
// idle. The children of other contexts end in any order.
type inOrder struct {
	context.Context //nolint:containedctx // it is a context
	ended           chan struct{}

	mu       sync.Mutex
	children []func() // nil: it was stopped, or has ended
}

func (c *inOrder) Done() <-chan struct{} { return c.ended }

func (c *inOrder) Err() error {
	select {
	case <-c.ended:
		return context.Canceled
	default:
		return nil
	}
}

// AfterFunc is called by package context for each child.
func (c *inOrder) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := len(c.children)
	c.children = append(c.children, f)
	return func() bool { return c.take(at) != nil }
}

func (c *inOrder) take(at int) func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.children[at]
	c.children[at] = nil
	return f
}

func (c *inOrder) end() {
	close(c.ended)
	for at := range c.children {
		if f := c.take(at); f != nil {
			f()
			synctest.Wait()
		}
	}
}

// client-go's watches send an error if the context of their request ends.
func TestObserver_DoesNotGetTheErrorOfAFirstWatchThatEndsWithTheInformer(t *testing.T) {
	for name, opts := range map[string]metav1.ListOptions{
		"watch":      {ResourceVersion: "1"},
		"watch-list": {SendInitialEvents: new(true)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, observer := &script{}, &observer{}
				client.watch = func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
					events := make(chan watch.Event, 1)
					context.AfterFunc(ctx, func() {
						status := apierrors.NewInternalError(ctx.Err()).Status()
						events <- watch.Event{Type: watch.Error, Object: &status}
					})
					return watch.NewProxyWatcher(events), nil
				}
				ctx := &inOrder{Context: t.Context(), ended: make(chan struct{})}
				s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Observer: observer})
				if opts.SendInitialEvents != nil {
					listed := startWatchList(ctx, s)
					ctx.end()
					<-listed
					checkErrors(t, observer)
					return
				}
				if a := <-startList(t.Context(), s); a.err != nil {
					t.Fatal(a.err)
				}
				w, err := gateOf(s).WatchWithContext(ctx, opts)
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				ctx.end()
				for range w.ResultChan() {
				}
				checkErrors(t, observer)
			})
		})
	}
}
