package source_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// lists is a number of sources that share a queue. The lists of each end when the test says so.
type lists struct {
	t       *testing.T
	queue   *source.ListQueue
	mu      sync.Mutex
	begun   []string // the resources of the lists that have been sent, in order
	results map[string]chan error
	ended   map[string]<-chan answer
	sources map[string]*source.Source
	stop    map[string]context.CancelFunc
}

func newLists(t *testing.T, queue *source.ListQueue) *lists {
	t.Helper()
	return &lists{
		t: t, queue: queue, results: map[string]chan error{}, ended: map[string]<-chan answer{}, sources: map[string]*source.Source{}, stop: map[string]context.CancelFunc{},
	}
}

// add starts a list of a resource, or one more list if there is one.
func (l *lists) add(name string) {
	l.t.Helper()
	if l.sources[name] == nil {
		l.results[name] = make(chan error)
		client := &script{list: func(ctx context.Context) (*unstructured.UnstructuredList, error) {
			l.mu.Lock()
			l.begun = append(l.begun, name)
			l.mu.Unlock()
			select {
			case err := <-l.results[name]:
				return &unstructured.UnstructuredList{}, err
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}
		gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: name}
		l.sources[name] = source.New(source.Config{Client: source.Unstructured(client), GVR: gvr, Queue: l.queue})
	}
	ctx, cancel := context.WithCancel(l.t.Context())
	l.stop[name] = cancel
	l.ended[name] = startList(ctx, l.sources[name])
}

// end ends a list that has been sent.
func (l *lists) end(name string, err error) {
	l.t.Helper()
	l.results[name] <- err
	synctest.Wait()
}

// want checks which lists have been sent since the last call, and which are waiting.
func (l *lists) want(when string, begun, waiting string) {
	l.t.Helper()
	synctest.Wait()
	var queued []string
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		if s := l.sources[name]; s != nil && !s.State().Queued.IsZero() {
			queued = append(queued, name)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if got := strings.Join(l.begun, " "); got != begun || strings.Join(queued, " ") != waiting {
		l.t.Errorf("%s: %q have begun and %q wait, want %q and %q", when, got, queued, begun, waiting)
	}
	l.begun = nil
}

// finish ends all lists.
func (l *lists) finish() {
	for _, stop := range l.stop {
		stop()
	}
	synctest.Wait()
}

func TestListQueue_ListsBeginInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLists(t, source.NewListQueue(2, 0))
		defer l.finish()
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			l.add(name)
		}
		l.want("at first", "a b", "c d e")
		begun := l.sources["c"].State().Queued
		time.Sleep(10 * time.Second)
		if got := l.sources["c"].State().Queued; begun.IsZero() || !got.Equal(begun) {
			t.Errorf("waits since %v, then since %v", begun, got)
		}
		l.end("b", nil)
		l.want("one has ended", "c", "d e")
		l.stop["d"]()
		l.want("one that waited was stopped", "", "e")
		if a := <-l.ended["d"]; a.err == nil {
			t.Error("the list that was stopped has a result")
		}
		l.stop["a"]()
		l.want("one that had begun was stopped", "e", "")
		l.end("c", apierrors.NewServiceUnavailable("down"))
		l.add("f")
		l.want("one has failed", "f", "")
		time.Sleep(time.Second) // more than the pause after the first failure
		l.want("it waits again after its pause", "", "c")
		l.end("f", nil)
		l.want("its turn", "c", "")
	})
}

func TestListQueue_NoListBeginsAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := source.NewListQueue(1, 0)
		l := newLists(t, queue)
		defer l.finish()
		l.add("a")
		l.add("b")
		l.want("at first", "a", "b")
		queue.Close()
		l.stop["a"]()
		l.want("the first one was stopped", "", "b")
		l.stop["b"]()
		if a := <-l.ended["b"]; a.err == nil {
			t.Error("the list that was stopped has a result")
		}
		source.NewListQueue(0, 0).Close()
	})
}

func TestListQueue_ListWithoutProgressLosesItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLists(t, source.NewListQueue(1, 0))
		defer l.finish()
		l.add("a")
		l.add("b")
		l.add("c")
		time.Sleep(time.Minute - time.Nanosecond)
		l.want("before a minute", "a", "b c")
		time.Sleep(time.Nanosecond)
		l.want("after a minute", "b", "c")
		l.end("a", nil) // it has had its turn
		l.want("the first one has ended", "", "c")
		l.end("b", nil)
		l.want("the second one has ended", "c", "")
	})
}

// A list that fills a gap does not wait: the cache is in use.
func TestListQueue_OnlyFirstListsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLists(t, source.NewListQueue(1, 0))
		defer l.finish()
		l.add("a")
		l.end("a", nil)
		l.add("b")
		l.add("a") // the reflector lists again
		l.want("a list after a gap", "a b a", "")
		l.end("a", nil)
	})
}

func TestListQueue_FirstListOfAnotherGenerationWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := source.NewListQueue(1, 0)
		client, available := &script{}, newAvailability(source.Served)
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Availability: available, Queue: queue})
		<-startList(t.Context(), s)
		l := newLists(t, queue)
		defer l.finish()
		l.add("a")
		now, _ := available.Current()
		now.Generation++
		available.Set(now)
		listed := startList(t.Context(), s)
		if got := len(client.requests()); got != 1 || s.State().Queued.IsZero() {
			t.Errorf("%d requests", got)
		}
		l.end("a", nil)
		<-listed
	})
}

// The list of another generation is a first list, also within a watch.
func TestListQueue_AnotherGenerationWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := source.NewListQueue(1, 0)
		client, available := &script{}, newAvailability(source.Served)
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Availability: available, Queue: queue})
		<-startList(t.Context(), s)
		w := openWatch(t, gateOf(s), metav1.ListOptions{})
		l := newLists(t, queue)
		defer l.finish()
		l.add("a")
		before := len(client.requests())
		now, _ := available.Current()
		now.Generation++
		available.Set(now)
		synctest.Wait()
		if got := len(client.requests()); got != before || s.State().Queued.IsZero() {
			t.Errorf("%d requests while it waits since %v", got-before, s.State().Queued)
		}
		now.Kind = "Widget" // the same type, better known: it keeps its turn
		available.Set(now)
		l.add("b")
		l.end("a", nil)
		l.want("the turn of the other generation", "a b", "")
		if got := client.requests()[before:]; len(got) < 1 || got[0].Verb != "list" || !s.State().Queued.IsZero() {
			t.Errorf("requests: %v", got)
		}
		take(w)
	})
}

// The objects of a type that was replaced do not stay in the cache while the list of the new one waits, except that of a type that settles
// may still have them, unless it has another scope.
func TestListQueue_ObjectsOfThePreviousGenerationDoNotWait(t *testing.T) {
	for name, tc := range map[string]struct{ keep, unsettled, rescoped, stays bool }{
		"deleted": {}, "kept": {keep: true, stays: true}, "unsettled": {unsettled: true, stays: true}, "unsettled, of another scope": {unsettled: true, rescoped: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				queue := source.NewListQueue(1, 0)
				w := newTestInformer(t, func(cfg *source.Config) { cfg.Queue, cfg.KeepCache = queue, tc.keep }, "old")
				l := newLists(t, queue)
				defer l.finish()
				l.add("a")
				synctest.Wait()
				w.cluster.Withdraw(widgets)
				of, namespace := widgetType, "ns"
				if tc.rescoped {
					of.Namespaced, namespace = false, ""
				}
				w.cluster.Serve(of)
				next, _ := w.available.Current()
				next.Generation++
				next.Unsettled, next.Namespaced = tc.unsettled, of.Namespaced
				w.available.Set(next)
				obj := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "new", "labels": map[string]any{"color": "red"}}}}
				if _, err := w.cluster.Resource(widgets).Namespace(namespace).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				deleted := []string{"delete old red"}
				if tc.stays {
					w.expect("while the list waits")
				} else {
					w.expect("while the list waits", deleted...)
				}
				l.end("a", nil)
				if tc.stays {
					w.expect("after the list", append(deleted, "add new red")...)
				} else {
					w.expect("after the list", "add new red")
				}
			})
		})
	}
}

// A list of another version of the same objects is no first list.
func TestListQueue_AnotherVersionDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := source.NewListQueue(1, 0)
		client, available := &script{}, newAvailability(source.Served)
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Availability: available, Queue: queue})
		<-startList(t.Context(), s)
		w := openWatch(t, gateOf(s), metav1.ListOptions{})
		l := newLists(t, queue)
		defer l.finish()
		l.add("a")
		before := len(client.requests())
		now, _ := available.Current()
		now.GVR.Version = "v2"
		available.Set(now)
		take(w)
		if got := client.requests()[before:]; len(got) == 0 || got[0].Verb != "list" || got[0].GVR != now.GVR || !s.State().Queued.IsZero() {
			t.Errorf("requests %v; it waits since %v", got, s.State().Queued)
		}
	})
}

// A program may recover the panic of a function that it has given to the informer.
func TestListQueue_PanicEndsTheTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := source.NewListQueue(1, 0)
		s := source.New(source.Config{
			Client: source.Unstructured(&script{}), GVR: widgets, Queue: queue, Tweak: func(*metav1.ListOptions) { panic("tweak") },
		})
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_, _ = gateOf(s).ListWithContext(t.Context(), metav1.ListOptions{})
		}()
		l := newLists(t, queue)
		defer l.finish()
		l.add("a")
		l.want("after the panic", "a", "")
	})
}

// A type that is no longer served leaves the queue without a request.
func TestListQueue_TypeThatIsNotServedLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := source.NewListQueue(1, 0)
		l := newLists(t, queue)
		defer l.finish()
		l.add("a")
		client, available := &script{}, newAvailability(source.Served)
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Availability: available, Queue: queue})
		listed := startList(t.Context(), s)
		l.add("b")
		set(available, source.Held)
		synctest.Wait()
		if !s.State().Queued.IsZero() {
			t.Error("it waits in the queue")
		}
		l.end("a", nil)
		l.want("the next list", "a b", "")
		set(available, source.Served)
		l.end("b", nil)
		if a := <-listed; a.err != nil || len(client.requests()) != 1 {
			t.Errorf("%d requests, %v", len(client.requests()), a.err)
		}
	})
}

// A watch-list counts until its initial events are complete. If it fails, the LIST that replaces it does
// not wait for the others.
func TestListQueue_WatchListsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := source.NewListQueue(1, 0)
		server := newServerWatch()
		client := &script{watch: always(server, nil)}
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Queue: queue})
		listed := startWatchList(t.Context(), s)
		l := newLists(t, queue)
		defer l.finish()
		l.add("a")
		for range 20 { // progress, for more than a minute
			server.Add(newObject("x"))
			time.Sleep(3020 * time.Millisecond)
		}
		l.want("during the initial events", "", "a")
		server.Action(watch.Bookmark, newBookmark("true"))
		<-listed
		l.want("after the initial events", "a", "")
		time.Sleep(time.Second)

		failing := &script{watch: always(nil, apierrors.NewBadRequest("no"))}
		other := source.New(source.Config{Client: source.Unstructured(failing), GVR: blocks, Queue: queue})
		begun := time.Now()
		listed = startWatchList(t.Context(), other)
		l.add("b")
		l.add("c")
		l.end("a", nil)
		l.want("the watch-list has failed", "b", "c")
		l.end("b", nil)
		if a := <-listed; a.err != nil || time.Since(begun) != 0 {
			t.Errorf("the LIST took %v, error %v", time.Since(begun), a.err)
		}
		l.want("the LIST was before the others", "c", "")
	})
}

// A LIST that replaces a watch-list is before the others only once.
func TestListQueue_AListThatFailsWaitsBehindTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := source.NewListQueue(1, 0)
		client := &script{watch: always(nil, apierrors.NewBadRequest("no"))}
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			if len(client.requests()) == 2 {
				return nil, errors.New("broken")
			}
			time.Sleep(time.Second)
			return &unstructured.UnstructuredList{}, nil
		}
		l := newLists(t, queue)
		defer l.finish()
		l.add("a")
		listed := startWatchList(t.Context(), source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Queue: queue}))
		l.add("b")
		l.add("c")
		l.end("a", nil)
		l.want("the watch-list has failed", "a b", "c")
		l.end("b", nil)
		l.want("the LIST has failed", "c", "")
		l.add("d")
		time.Sleep(time.Second)
		l.end("c", nil)
		l.want("the LIST waits", "d", "")
		l.end("d", nil)
		if a := <-listed; a.err != nil {
			t.Error(a.err)
		}
	})
}

// Only the LIST that replaces a watch-list is before the others.
func TestListQueue_LaterListsWaitBehindTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := source.NewListQueue(1, 0)
		server, available := newServerWatch(), newAvailability(source.Served)
		s := source.New(source.Config{Client: source.Unstructured(&script{watch: always(server, nil)}), GVR: widgets, Availability: available, Queue: queue})
		listed := startWatchList(t.Context(), s)
		server.Action(watch.Bookmark, newBookmark("true"))
		<-listed
		w := openWatch(t, gateOf(s), metav1.ListOptions{ResourceVersion: "1"})
		l := newLists(t, queue)
		defer l.finish()
		l.add("a")
		l.add("b")
		now, _ := available.Current()
		now.Generation++
		available.Set(now)
		synctest.Wait()
		l.end("a", nil)
		l.want("one has ended", "a b", "")
		if s.State().Queued.IsZero() {
			t.Error("the list of another generation does not wait behind the others")
		}
		l.end("b", nil)
		if got := seen(w); len(got) == 0 || !s.State().Queued.IsZero() {
			t.Errorf("events %q, state %+v", got, s.State())
		}
	})
}

func TestListQueue_BrokenWatchListEndsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := source.NewListQueue(1, 0)
		server := newServerWatch()
		s := source.New(source.Config{Client: source.Unstructured(&script{watch: always(server, nil)}), GVR: widgets, Queue: queue})
		listed := startWatchList(t.Context(), s)
		l := newLists(t, queue)
		defer l.finish()
		l.add("a")
		l.want("during the initial events", "", "a")
		server.Stop()
		synctest.Wait()
		l.want("after the end of the stream", "a", "")
		l.end("a", nil)
		<-listed
	})
}

// paged is a client whose list has pages of 100 objects of some 1,000 bytes.
type paged struct {
	source.Client
	t        *testing.T
	pages    int
	selector bool          // the server does not report the number of remaining objects
	let      chan struct{} // each page waits for it

	mu        sync.Mutex
	requested int
}

func newPaged(t *testing.T, pages int) *paged {
	t.Helper()
	return &paged{Client: source.Unstructured(&script{}), t: t, pages: pages, let: make(chan struct{})}
}

func (p *paged) List(ctx context.Context, _ schema.GroupVersionResource, _ string, opts metav1.ListOptions) (runtime.Object, error) {
	p.mu.Lock()
	p.requested++
	p.mu.Unlock()
	select {
	case <-p.let:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	page := 0
	_, _ = fmt.Sscan(opts.Continue, &page)
	list := &unstructured.UnstructuredList{Object: map[string]any{}}
	for i := range 100 {
		obj := newObject(fmt.Sprintf("%d-%d", page, i))
		obj.SetAnnotations(map[string]string{"text": strings.Repeat("x", 900)})
		list.Items = append(list.Items, *obj)
	}
	if page++; page < p.pages {
		list.SetContinue(fmt.Sprint(page))
		if remaining := int64(100 * (p.pages - page)); !p.selector {
			list.SetRemainingItemCount(&remaining)
		}
	}
	return list, nil
}

// requests returns the number of pages that have been requested.
func (p *paged) requests() int {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requested
}

// start starts a list of p.
func (p *paged) start(queue *source.ListQueue) (*source.Source, <-chan answer) {
	s := source.New(source.Config{Client: p, GVR: widgets, Queue: queue, PageSize: 100})
	return s, startList(p.t.Context(), s)
}

// allow lets the server send pages.
func (p *paged) allow(pages int) {
	for range pages {
		p.let <- struct{}{}
		synctest.Wait()
	}
}

func TestListQueue_BudgetIsForTheEstimatedSize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// Ten pages are one MB, and a list counts as one MiB before its first page.
		queue := source.NewListQueue(0, 4<<20)
		clients := []*paged{newPaged(t, 25), newPaged(t, 20), newPaged(t, 1), newPaged(t, 30), newPaged(t, 1), newPaged(t, 100)}
		sources, ended := make([]*source.Source, len(clients)), make([]<-chan answer, len(clients))
		for i, client := range clients {
			sources[i], ended[i] = client.start(queue)
		}
		check := func(when string, want ...int) {
			t.Helper()
			got := make([]int, len(clients))
			for i, client := range clients {
				got[i] = client.requests()
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, requests (-want +got):\n%s", when, diff)
			}
		}
		check("at first, four lists have begun", 1, 1, 1, 1, 0, 0)
		clients[0].allow(1)
		check("the first list, of 2.5 MB, has a budget when others have ended", 1, 1, 1, 1, 0, 0)
		if sources[0].State().Queued.IsZero() {
			t.Error("it does not wait")
		}
		clients[2].allow(1)
		<-ended[2]
		synctest.Wait()
		check("a small list has ended", 1, 1, 1, 1, 0, 0)
		clients[1].allow(1)
		check("the second one, of 2 MB, waits behind it, and gives up a part", 2, 1, 1, 1, 0, 0)
		clients[3].allow(1)
		check("the fourth one, of 3 MB, waits too", 2, 1, 1, 1, 0, 0)
		clients[0].allow(24)
		<-ended[0]
		synctest.Wait()
		check("the first one has ended: the second one continues", 25, 2, 1, 1, 0, 0)
		clients[1].allow(19)
		<-ended[1]
		synctest.Wait()
		check("the second one has ended: the fourth one continues, and the fifth begins", 25, 20, 1, 2, 1, 0)
		clients[3].allow(29)
		<-ended[3]
		synctest.Wait()
		check("the last one begins", 25, 20, 1, 30, 1, 1)
		clients[5].allow(1)
		check("it is larger than the budget and waits to be alone", 25, 20, 1, 30, 1, 1)
		time.Sleep(time.Minute) // the fifth one hangs, and loses its turn
		check("it is alone", 25, 20, 1, 30, 1, 2)
		clients[5].allow(99)
		<-ended[5]
		clients[4].allow(1)
		<-ended[4]
	})
}

// Without the number of remaining objects, a list counts as far as it has arrived.
func TestListQueue_BudgetWithASelector(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := source.NewListQueue(0, 2<<20)
		first, second := newPaged(t, 12), newPaged(t, 1)
		first.selector = true
		_, ended := first.start(queue)
		first.allow(11)
		s, next := second.start(queue)
		if first.requests() != 12 || second.requests() != 0 || s.State().Queued.IsZero() {
			t.Errorf("requests: %d and %d", first.requests(), second.requests())
		}
		first.allow(1)
		<-ended
		second.allow(1)
		<-next
	})
}

// A set of namespaces is one list. Each namespace may have one page, which is then its last one.
func TestListQueue_BudgetWithASetOfNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := source.NewListQueue(0, 2<<20)
		first, second := newPaged(t, 1), newPaged(t, 1)
		var names []string
		for i := range 12 {
			names = append(names, fmt.Sprint("n", i))
		}
		ended := startList(t.Context(), source.New(source.Config{Client: first, GVR: widgets, Queue: queue, Namespaces: source.NewNamespaces(names...)}))
		first.allow(11)
		s, next := second.start(queue)
		if first.requests() != 12 || second.requests() != 0 || s.State().Queued.IsZero() {
			t.Errorf("requests: %d and %d", first.requests(), second.requests())
		}
		first.allow(1)
		<-ended
		second.allow(1)
		<-next
	})
}

// Without a budget, an informer uses a watch-list; with one, a list in pages.
func TestListQueue_BudgetNeedsAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &script{}
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Queue: source.NewListQueue(0, 1)})
		if a := <-startWatchList(t.Context(), s); a.err != nil {
			t.Error(a.err)
		}
		want := []request{{Verb: "list", GVR: widgets, Options: metav1.ListOptions{Limit: 500}}}
		if diff := cmp.Diff(want, client.requests()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

func TestListQueue_WithoutLimitIsNone(t *testing.T) {
	if source.NewListQueue(0, 0) != nil || source.NewListQueue(-1, -1) != nil {
		t.Error("a queue without a limit")
	}
}

// A source that does not know the names of its namespaces sends no list: it has no turn. So has one whose list of all namespaces was forbidden.
func TestListQueue_SourceThatWaitsForNamesHasNoTurn(t *testing.T) {
	for name, everywhere := range map[string]bool{"at first": false, "after a list of all namespaces": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				queue, known := source.NewListQueue(1, 0), make(chan struct{})
				set := source.NewFollowedNamespaces(func(ctx context.Context, set *source.Namespaces, _ func(string, error)) {
					select {
					case <-known:
						set.Set("ns")
					case <-ctx.Done():
					}
				})
				if everywhere {
					set.Allowed(true)
				}
				cluster := fakecluster.New(widgetType)
				create(t, cluster, "ns", "a", "red")
				cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
					if req.Namespace == "" {
						return errForbidden
					}
					return nil
				})
				waits := runInformer(t, source.Config{Client: source.Unstructured(cluster), GVR: widgets, Queue: queue, NoWatchList: true, Namespaces: set})
				defer waits.stop()
				other := runInformer(t, source.Config{Client: source.Unstructured(fakecluster.New(blockType)), GVR: blocks, Queue: queue, NoWatchList: true})
				defer other.stop()
				if !other.HasSynced() || waits.HasSynced() || !waits.source.State().Queued.IsZero() {
					t.Errorf("the other source has synced: %v, the one without names: %v", other.HasSynced(), waits.HasSynced())
				}
				l := newLists(t, queue)
				defer l.finish()
				l.add("a")
				close(known)
				synctest.Wait()
				if waits.HasSynced() {
					t.Error("the list of the namespaces has not waited for its turn")
				}
				l.end("a", nil)
				if !waits.HasSynced() {
					t.Error("not synced with the names")
				}
			})
		})
	}
}

// Objects of a type that was replaced do not stay while the names of the namespaces are not known.
func TestListQueue_ObjectsOfThePreviousGenerationDoNotWaitForNames(t *testing.T) {
	for name, keep := range map[string]bool{"deleted": false, "kept": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				set := source.NewFollowedNamespaces(func(ctx context.Context, _ *source.Namespaces, _ func(string, error)) { <-ctx.Done() }).Allowed(true)
				w := newTestInformer(t, func(cfg *source.Config) { cfg.Namespaces, cfg.KeepCache = set, keep }, "old")
				w.cluster.Intercept(failing("list", errForbidden, 0))
				w.replaceType()
				time.Sleep(time.Minute)
				if keep {
					w.expect("while the names are not known")
				} else {
					w.expect("while the names are not known", "delete old red")
				}
			})
		})
	}
}
