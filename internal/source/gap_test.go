package source_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// NotFound alone is no end, however long it goes on.
func TestSplice_SpuriousNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, nil, "a")
		w.cluster.Intercept(func(context.Context, fakecluster.Request) error {
			return apierrors.NewGenericServerResponse(404, "get", widgets.GroupResource(), "", "404 page not found", 0, true)
		})
		w.cluster.CloseWatches(widgets)
		before := len(w.cluster.Requests("watch", widgets))
		time.Sleep(10 * time.Minute)
		w.expect("meanwhile")
		if got := len(w.cluster.Requests("watch", widgets)) - before; got > 30 {
			t.Errorf("watches in 10 min = %d", got)
		}
		lists := len(w.cluster.Requests("list", widgets))
		if lists < 5 || lists > 20 {
			t.Errorf("lists in 10 min = %d, want one with each watch once these are slow", lists)
		}
		w.cluster.Intercept(nil)
		w.create("b")
		time.Sleep(36 * time.Second)
		w.expect("after that", "add b red")
		if got := len(w.cluster.Requests("list", widgets)); got != lists {
			t.Errorf("lists = %d, want no other than the %d: nothing was missed", got, lists)
		}
	})
}

// A list in the middle of things shows as what has happened since, once each.
func TestSplice_ExpiredWatchIsBridged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, nil, "same", "changed", "deleted", "replaced")
		w.offline(func() {
			w.setColor("changed", "blue")
			w.remove("deleted", "replaced")
			w.create("replaced", "new")
			w.cluster.Expire(widgets)
		})
		time.Sleep(time.Second)
		w.expect("then", "delete deleted red", "delete replaced red", "update changed red to changed blue", "add replaced red", "add new red")
		if got := len(w.cluster.Requests("list", widgets)); got != 1 {
			t.Errorf("lists = %d, want 1", got)
		}
		w.setColor("same", "green")
		w.expect("and it goes on:", "update same red to same green")
	})
}

// offline does something while nothing can be watched.
func (w *testInformer) offline(do func()) {
	w.t.Helper()
	w.cluster.Intercept(failing("watch", apierrors.NewServiceUnavailable("down"), 0))
	w.cluster.CloseWatches(widgets)
	synctest.Wait()
	do()
	w.expect("offline")
	w.cluster.Intercept(nil)
	w.source.Retry()
}

// A type that was deleted and created again while the watch was down is not known to be
// another one when it is listed. Somebody else is about to say so.
func TestSplice_ListOfAnotherTypeIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var confirmed []source.Type
		w := newTestInformer(t, func(cfg *source.Config) {
			cfg.Confirm = func(_ context.Context, t source.Type) bool {
				confirmed = append(confirmed, t)
				return len(confirmed) > 1
			}
		}, "a", "b")
		if len(confirmed) != 0 {
			t.Errorf("the first list was to be confirmed")
		}
		w.cluster.Withdraw(widgets)
		w.cluster.Serve(widgetType)
		w.create("b", "c")
		time.Sleep(time.Second) // two watches, and a list
		w.expect("before it is known")
		if len(confirmed) != 1 {
			t.Errorf("asked %d times, want once", len(confirmed))
		}
		w.replaceType()
		w.expect("when it is known", "delete a red", "delete b red", "add b red", "add c red")
	})
}

func TestSplice_ConfirmedListIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		confirmed := 0
		w := newTestInformer(t, func(cfg *source.Config) {
			cfg.Confirm = func(context.Context, source.Type) bool { confirmed++; return true }
		}, "a")
		w.offline(func() {
			w.create("b")
			w.cluster.Expire(widgets)
		})
		time.Sleep(time.Second)
		w.expect("then", "add b red")
		if confirmed != 1 {
			t.Errorf("asked %d times, want once", confirmed)
		}
	})
}

func TestSplice_WatchesAreOpenedAgainFromWhereTheyWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, nil, "a")
		for i := range 5 {
			time.Sleep(5 * time.Minute) // each has lasted
			w.cluster.CloseWatches(widgets)
			name := fmt.Sprint("new-", i)
			w.create(name)
			w.expect("then", "add "+name+" red")
		}
		for i, req := range w.cluster.Requests("watch", widgets)[1:] {
			opts := req.Options
			if opts.ResourceVersion == "" || opts.SendInitialEvents != nil || opts.ResourceVersionMatch != "" || !opts.AllowWatchBookmarks {
				t.Errorf("watch %d has the options %v", i, opts)
			}
			if seconds := opts.TimeoutSeconds; seconds == nil || *seconds < 300 || *seconds >= 600 {
				t.Errorf("watch %d may last %v s", i, seconds)
			}
		}
		if got := len(w.cluster.Requests("list", widgets)); got != 0 {
			t.Errorf("lists = %d, want none", got)
		}
		checkErrors(t, w.observer)
	})
}

// A server that closes each watch at once is not asked more and more often.
func TestSplice_WatchesThatEndAtOnceAreSpacedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &script{}
		client.watch = func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			if len(client.requests()) > tooMany { // or time would never pass
				return newServerWatch(), nil
			}
			return watch.NewEmptyWatch(), nil
		}
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets})
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			list := &unstructured.UnstructuredList{}
			list.SetResourceVersion("7")
			return list, nil
		}
		<-startList(t.Context(), s)
		openWatch(t, gateOf(s), metav1.ListOptions{ResourceVersion: "7"})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := len(client.requests()); got > 32 {
			t.Errorf("requests in 10 min = %d", got)
		}
	})
}

// What can't be read would be sent again: a list gets past it. But not over and over.
func TestSplice_BrokenStreamIsFollowedByAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []error
		client := &script{}
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			list := &unstructured.UnstructuredList{}
			list.SetResourceVersion("7")
			return list, nil
		}
		client.watch = func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			server := newServerWatch()
			status := apierrors.NewClientErrorReporter(500, "watch", "ClientWatchDecoding").AsObject(errors.New("garbage"))
			server.Error(status)
			return server, nil
		}
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Report: func(_ context.Context, err error) { reported = append(reported, err) }})
		<-startList(t.Context(), s)
		w := openWatch(t, gateOf(s), metav1.ListOptions{ResourceVersion: "7"})
		go func() {
			for range w.ResultChan() {
			}
		}()
		synctest.Wait()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		lists, watches := count(client.requests())
		if lists < watches || lists > 32 || lists < 5 {
			t.Errorf("lists, watches in 10 min = %d, %d", lists, watches)
		}
		if len(reported) != watches {
			t.Errorf("reported %d errors of %d watches", len(reported), watches)
		}
	})
}

// Where a watch is refused and a list is not, lists make up for it: at the pace to which the
// watches have slowed down.
func TestSplice_RefusedWatchIsMadeUpForByLists(t *testing.T) {
	for name, refusal := range map[string]error{
		"forbidden":     apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("revoked")),
		"not supported": apierrors.NewMethodNotSupported(widgets.GroupResource(), "watch"),
		"broken":        apierrors.NewInternalError(errors.New("broken")),
		"not found":     apierrors.NewNotFound(widgets.GroupResource(), ""),
		"unavailable":   apierrors.NewServiceUnavailable("down"),
		"throttled":     apierrors.NewGenericServerResponse(503, "watch", widgets.GroupResource(), "", "", 20, true),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, nil, "a")
				w.cluster.Intercept(failing("watch", refusal, 0))
				w.cluster.CloseWatches(widgets)
				time.Sleep(3 * time.Minute) // until they have slowed down
				for i := range 10 {
					name := fmt.Sprint("new-", i)
					w.create(name)
					time.Sleep(2 * time.Minute)
					w.expect("while it is refused", "add "+name+" red")
				}
				if got := len(w.cluster.Requests("list", widgets)); got < 33 || got > 46 {
					t.Errorf("lists in 23 min = %d, want one each 30 to 36 s", got)
				}
				if got := len(w.cluster.Requests("watch", widgets)); got < 33 || got > 56 {
					t.Errorf("watches in 23 min = %d, want one for each list, and some before", got)
				}
				w.create("last")
				w.cluster.Intercept(nil)
				w.source.Retry()
				time.Sleep(25 * time.Second) // the server of one has asked for that
				w.expect("soon after Retry, once it is not refused", "add last red")
			})
		})
	}
}

// A server that wants to be left alone gets no list either, until its pause is over.
func TestSplice_ListWaitsForThePauseThatTheServerWants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pause = time.Minute // longer than any other
		w := newWatched(t, source.Config{})
		list, open := w.list, w.watch
		var refused time.Time
		w.watch = func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			refused = time.Now()
			return open(ctx, opts)
		}
		w.list = func(ctx context.Context) (*unstructured.UnstructuredList, error) {
			if left := pause - time.Since(refused); left > 0 {
				t.Errorf("a list is %v too early", left)
			}
			return list(ctx)
		}
		w.set(apierrors.NewGenericServerResponse(503, "watch", widgets.GroupResource(), "", "", int(pause.Seconds()), true))
		w.fail(nil)
		time.Sleep(30 * time.Minute)
		if lists, watches := count(w.requests()); lists < 15 {
			t.Errorf("%d lists, %d watches in 30 min, want a list for each watch that was not among the first", lists, watches)
		}
	})
}

// A server that closes each watch after some seconds is not calm, and yet it works: what fails
// after a while of that is tried again as soon as what fails first.
func TestSplice_PausesShrinkWhileShortWatchesWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, source.Config{})
		open := w.watch
		w.watch = func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			out, err := open(ctx, opts)
			if err == nil {
				time.AfterFunc(5*time.Second, out.Stop)
			}
			return out, err
		}
		w.set(errors.New("broken"))
		w.fail(nil)
		time.Sleep(5 * time.Minute)
		w.set(nil)
		time.Sleep(3 * time.Minute)
		w.set(errors.New("broken"))
		before := len(w.requests())
		time.Sleep(10 * time.Second)
		if got := len(w.requests()) - before; got < 4 {
			t.Errorf("requests in at least 5 s = %d, want 4 or more", got)
		}
	})
}

// What a server that wants to be asked less would have to answer, too, or one that can't be
// reached, is not asked for.
func TestSplice_ListsDoNotAddToTheLoad(t *testing.T) {
	for _, name := range []string{"too many requests", "connection refused"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, nil, "a")
				w.cluster.Intercept(failing("watch", faults[name], 0))
				w.cluster.CloseWatches(widgets)
				time.Sleep(20 * time.Minute)
				if got := asked(w.cluster); got[0] != 0 || got[2] < 33 || got[2] > 50 {
					t.Errorf("lists, watch-lists, watches = %v, want no lists, and the watches at the usual pace", got)
				}
			})
		})
	}
}

// watched is a source on a scripted server whose list is empty, at version 7, and whose
// watches the test holds: server is the one that is open.
type watched struct {
	*script
	t         *testing.T
	source    *source.Source
	available *source.Availability // if the test needs it
	refuse    error                // the next watches
	server    *watch.FakeWatcher
}

func newWatched(t *testing.T, cfg source.Config) *watched {
	t.Helper()
	w := &watched{script: &script{}, t: t}
	w.list = func(context.Context) (*unstructured.UnstructuredList, error) {
		list := &unstructured.UnstructuredList{}
		list.SetResourceVersion("7")
		return list, nil
	}
	w.watch = func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
		if len(w.requests()) > 10*tooMany { // or time would never pass
			<-ctx.Done()
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.refuse != nil {
			return nil, w.refuse
		}
		w.server = newServerWatch()
		return w.server, nil
	}
	cfg.Client, cfg.GVR = source.Unstructured(w.script), widgets
	w.source = source.New(cfg)
	<-startList(t.Context(), w.source)
	w.open(metav1.ListOptions{ResourceVersion: "7"})
	return w
}

// open watches as a reflector does. An error is an end.
func (w *watched) open(opts metav1.ListOptions) {
	out, err := gateOf(w.source).WatchWithContext(w.t.Context(), opts)
	if err != nil {
		return
	}
	w.t.Cleanup(out.Stop)
	go func() {
		for range out.ResultChan() {
		}
	}()
	synctest.Wait()
}

// replaceType sets another type with the same name.
func (w *watched) replaceType() {
	now, _ := w.available.Current()
	now.Serving = source.Served
	now.Generation++
	w.available.Set(now)
}

func (w *watched) set(refuse error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse = refuse
}

// fail ends the watch with err, which may be nil.
func (w *watched) fail(err *apierrors.StatusError) {
	w.mu.Lock()
	server := w.server
	w.mu.Unlock()
	if err != nil {
		server.Error(&err.ErrStatus)
	}
	server.Stop()
	synctest.Wait()
}

// since returns the requests after the first n, in words.
func (w *watched) since(n int) (words []string) {
	synctest.Wait()
	for _, req := range w.requests()[n:] {
		words = append(words, strings.TrimSpace(req.Verb+" "+req.Options.ResourceVersion))
	}
	return words
}

// The store may still have the version of a type that is gone when the next type has been listed, whose
// versions may be smaller.
func TestSplice_KeepsTheVersionOfATypeThatIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		available := newAvailability(source.Served)
		w := newWatched(t, source.Config{Availability: available})
		now, _ := available.Current()
		now.Serving = source.Gone
		available.Set(now)
		synctest.Wait()
		w.mu.Lock()
		w.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			list := &unstructured.UnstructuredList{}
			list.SetResourceVersion("3")
			return list, nil
		}
		w.mu.Unlock()
		now.Serving, now.Generation = source.Served, now.Generation+1
		available.Set(now)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := w.source.State(); got.Former != "7" || got.Listed != "3" || got.FirstLists != 2 {
			t.Errorf("former version %q, listed %q, %d first lists; want 7, 3 and 2", got.Former, got.Listed, got.FirstLists)
		}
	})
}

// A stream that the server ends since it has too much to do has told everything so far.
func TestSplice_ThrottledStreamIsNoReasonToList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, source.Config{})
		w.fail(apierrors.NewTooManyRequests("slowly", 5))
		time.Sleep(5*time.Second - time.Millisecond)
		if got := w.since(2); got != nil {
			t.Errorf("requests while the server wants to be left alone: %q", got)
		}
		time.Sleep(time.Second)
		if diff := cmp.Diff([]string{"watch 7"}, w.since(2)); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

// That the version to watch from has expired when a watch has lasted is the ordinary course
// of things: there is no pause, however it is said.
func TestSplice_ExpiryAfterALongWatchIsFollowedByAListAtOnce(t *testing.T) {
	const lasts = 11 * time.Second
	expiry := apierrors.NewResourceExpired("too old")
	for name, expire := range map[string]struct {
		how  func(w *watched)
		want []string
	}{
		"within the stream": {func(w *watched) { w.fail(expiry) }, []string{"list", "watch 7"}},
		"by the next request": {func(w *watched) {
			w.list = func(list func(context.Context) (*unstructured.UnstructuredList, error)) func(context.Context) (*unstructured.UnstructuredList, error) {
				return func(ctx context.Context) (*unstructured.UnstructuredList, error) {
					w.set(nil)
					return list(ctx)
				}
			}(w.list)
			w.set(expiry)
			w.fail(nil)
		}, []string{"watch 7", "list", "watch 7"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatched(t, source.Config{Report: func(_ context.Context, err error) {
					if apierrors.IsResourceExpired(err) {
						t.Errorf("reported: %v", err)
					}
				}})
				w.set(apierrors.NewServiceUnavailable("down"))
				w.fail(nil)
				time.Sleep(20 * time.Second) // the pauses have become long
				w.set(nil)
				time.Sleep(20*time.Second + lasts)
				for range 3 {
					before := len(w.requests())
					expire.how(w)
					if diff := cmp.Diff(expire.want, w.since(before)); diff != "" {
						t.Errorf("requests at once (-want +got):\n%s", diff)
					}
					time.Sleep(lasts)
				}
			})
		})
	}
}

// A version that expires each time is another thing.
func TestSplice_ExpiryAgainAndAgainIsSpacedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, nil, "a")
		w.cluster.Intercept(failing("watch", apierrors.NewResourceExpired("too old"), 0))
		w.cluster.CloseWatches(widgets)
		time.Sleep(10 * time.Minute)
		if got := asked(w.cluster); got[0] > 30 || got[2] > 30 {
			t.Errorf("lists, watch-lists, watches in 10 min = %v", got)
		}
	})
}

// A reflector that is told the kind would drop such objects without a word.
func TestSplice_ObjectsOfAnotherKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(fakecluster.Type{GVR: widgets, Kind: "Gadget", Namespaced: true})
		create(t, cluster, "ns", "a", "red")
		observer := &observer{}
		r := runInformer(t, source.Config{
			Client: source.Unstructured(cluster), GVR: widgets, Observer: observer,
			Availability: source.NewAvailability(source.Type{Serving: source.Served, GVR: widgets, Namespaced: true, Kind: "Widget"}),
		})
		time.Sleep(time.Second)
		if r.HasSynced() || len(r.keys()) > 0 {
			t.Error("it took them")
		}
		for _, err := range observer.errors() {
			if !errors.Is(err, source.ErrWrongKind) {
				t.Errorf("error: %v", err)
			}
		}
		if len(observer.errors()) < 2 {
			t.Errorf("errors: %v, want one of the watch-list and one of a list at least", observer.errors())
		}
		r.stop()
	})
}

// Objects without UIDs are identified by their keys; those of the next type are other objects.
func TestSplice_ObjectsWithoutUIDsAreToldByTheirNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, available := &script{}, newAvailability(source.Served)
		version := 7
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			obj := newObject("a")
			obj.SetResourceVersion(strconv.Itoa(version))
			list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*obj}}
			list.SetResourceVersion(strconv.Itoa(version))
			return list, nil
		}
		expired := true
		client.watch = func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			if expired {
				expired = false
				return nil, apierrors.NewResourceExpired("too old")
			}
			return newServerWatch(), nil
		}
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Availability: available})
		<-startList(t.Context(), s)
		version++
		w := openWatch(t, gateOf(s), metav1.ListOptions{ResourceVersion: "7"})
		time.Sleep(time.Second)
		if diff := cmp.Diff([]string{"MODIFIED a", "BOOKMARK "}, seen(w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		version++
		next, _ := available.Current()
		next.Generation++
		available.Set(next)
		time.Sleep(time.Second)
		if diff := cmp.Diff([]string{"DELETED a", "ADDED a", "BOOKMARK "}, seen(w)); diff != "" {
			t.Errorf("events of the next type (-want +got):\n%s", diff)
		}
	})
}

// Such servers are there, behind APIServices. What they send has no place in an order.
func TestSplice_ServerWithoutVersions(t *testing.T) {
	for _, version := range []string{"", "0"} {
		t.Run("version "+strconv.Quote(version), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &script{}
				client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
					if len(client.requests()) > tooMany {
						select {}
					}
					obj := newObject("a")
					obj.SetResourceVersion(version)
					list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*obj}}
					list.SetResourceVersion(version)
					return list, nil
				}
				server := newServerWatch()
				client.watch = func(_ context.Context, opts metav1.ListOptions) (watch.Interface, error) {
					if opts.SendInitialEvents != nil {
						return nil, apierrors.NewBadRequest("what is that?")
					}
					return server, nil
				}
				r := runInformer(t, source.Config{Client: source.Unstructured(client), GVR: widgets})
				if !r.HasSynced() {
					t.Error("not synced")
				}
				obj := newObject("b")
				obj.SetResourceVersion(version)
				server.Add(obj)
				if diff := cmp.Diff([]string{"ns/a", "ns/b"}, r.keys()); diff != "" {
					t.Errorf("keys (-want +got):\n%s", diff)
				}
				if got := len(client.requests()); got != 3 {
					t.Errorf("requests = %d, want a watch-list, a list and a watch", got)
				}
				r.stop()
			})
		})
	}
}

// A server that sends one event, or a bookmark, and closes is asked more and more slowly.
// Since its watches tell less than what happens, lists make up for it then.
func TestSplice_WatchesOfOneEventAreSpacedOut(t *testing.T) {
	for name, event := range map[string]watch.Event{
		"event":    {Type: watch.Modified, Object: newObject("a")},
		"bookmark": {Type: watch.Bookmark, Object: newBookmark("")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := &script{}
				client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
					list := &unstructured.UnstructuredList{}
					list.SetResourceVersion("7")
					return list, nil
				}
				var lasting atomic.Int64
				client.watch = func(context.Context, metav1.ListOptions) (watch.Interface, error) {
					server := newServerWatch()
					if len(client.requests()) > tooMany { // or time would never pass
						return server, nil
					}
					server.Action(event.Type, event.Object.DeepCopyObject())
					time.AfterFunc(time.Duration(lasting.Load()), server.Stop)
					return server, nil
				}
				s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets})
				<-startList(t.Context(), s)
				w := openWatch(t, gateOf(s), metav1.ListOptions{ResourceVersion: "7"})
				go func() {
					for range w.ResultChan() {
					}
				}()
				time.Sleep(10 * time.Minute)
				lists, watches := count(client.requests())
				if watches < 17 || watches > 30 || lists < 15 || lists > 20 {
					t.Errorf("%d lists, %d watches in 10 min, want one of both each 30 to 36 s", lists, watches)
				}
				lasting.Store(int64(15 * time.Second))
				time.Sleep(10 * time.Minute)
				lists, watches = count(client.requests()[lists+watches:])
				if watches < 35 || watches > 45 || lists > 1 {
					t.Errorf("%d lists, %d watches in 10 min, want one watch after another of 15 s", lists, watches)
				}
			})
		})
	}
}

// count returns how many of requests are lists and watches.
func count(requests []request) (lists, watches int) {
	for _, req := range requests {
		if req.Verb == "list" {
			lists++
		} else {
			watches++
		}
	}
	return lists, watches
}

// Where objects have no versions, none can be said to be the same.
func TestSplice_ObjectsWithoutVersionsAreUpdated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &script{}
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			obj := newObject("a")
			obj.SetResourceVersion("")
			return &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*obj}}, nil
		}
		client.watch = func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			time.Sleep(time.Hour)
			return watch.NewEmptyWatch(), nil // and what has happened since?
		}
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets})
		<-startList(t.Context(), s)
		w := openWatch(t, gateOf(s), metav1.ListOptions{})
		time.Sleep(time.Hour + time.Minute)
		if diff := cmp.Diff([]string{"MODIFIED a", "BOOKMARK "}, seen(w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		time.Sleep(time.Hour)
	})
}
