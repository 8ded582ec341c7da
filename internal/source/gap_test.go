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

// NotFound for any time does not mean that the type is gone.
func TestResumableWatch_SpuriousNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, endless, "a")
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
			t.Errorf("lists in 10 min = %d, want one for each watch after the pauses have grown", lists)
		}
		w.cluster.Intercept(nil)
		w.create("b")
		time.Sleep(36 * time.Second)
		w.expect("after that", "add b red")
		if got := len(w.cluster.Requests("list", widgets)); got != lists {
			t.Errorf("lists = %d, want no more than the %d: no event was missed", got, lists)
		}
	})
}

// After an expired watch, a list gives the changes since then, once each.
func TestResumableWatch_ListReplacesAnExpiredWatch(t *testing.T) {
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

// offline calls do while all watches fail.
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

// A type was deleted and created again while the watch failed. The source does not know this
// before the list; the confirmation reports it.
func TestResumableWatch_ListOfAnotherTypeIsRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var confirmed []source.Type
		w := newTestInformer(t, func(cfg *source.Config) {
			cfg.Confirm = func(_ context.Context, t source.Type) bool {
				confirmed = append(confirmed, t)
				return len(confirmed) > 1
			}
		}, "a", "b")
		if len(confirmed) != 0 {
			t.Errorf("the first list was confirmed")
		}
		w.cluster.Withdraw(widgets)
		w.cluster.Serve(widgetType)
		w.create("b", "c")
		time.Sleep(500 * time.Millisecond) // for two watches and a list
		w.expect("before it is known")
		if len(confirmed) != 1 {
			t.Errorf("%d confirmations, want one", len(confirmed))
		}
		w.replaceType()
		w.expect("when it is known", "delete a red", "delete b red", "add b red", "add c red")
	})
}

func TestResumableWatch_ConfirmedListIsAccepted(t *testing.T) {
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
			t.Errorf("%d confirmations, want one", confirmed)
		}
	})
}

func TestResumableWatch_WatchesResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, nil, "a")
		for i := range 5 {
			time.Sleep(4 * time.Minute) // less than the shortest timeout of a watch
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
				t.Errorf("watch %d has a timeout of %v s", i, seconds)
			}
		}
		if _, whole := w.lists(); whole != 0 {
			t.Errorf("%d lists, want none", whole)
		}
		checkErrors(t, w.observer)
	})
}

// The server closes each watch at once. The pauses between requests grow.
func TestResumableWatch_PausesGrowWhileWatchesEndAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &script{}
		client.watch = func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			if len(client.requests()) > tooMany { // otherwise time would not pass
				return newServerWatch(), nil
			}
			return endedWatch(), nil
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

// A source that waits for seconds between watches that end at once does not seem to be up to date.
func TestResumableWatch_EndsOfShortWatchesAreFailuresIfTheNextOneWaits(t *testing.T) {
	for name, namespaces := range map[string][]string{"all namespaces": nil, "a set": {"ns"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, func(cfg *source.Config) {
					if namespaces != nil {
						cfg.Namespaces = source.NewNamespaces(namespaces...)
					}
				}, "a")
				time.Sleep(time.Minute)
				end := func(pause time.Duration) []error {
					w.cluster.CloseWatches(widgets)
					synctest.Wait()
					reported := w.observer.errors()
					time.Sleep(pause + pause/4) // with its jitter
					return reported
				}
				end(0) // it had lasted
				for _, pause := range []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second} {
					if reported := end(pause); len(reported) > 0 {
						t.Fatalf("before a pause of %v: %v", pause, reported)
					}
				}
				reported := end(2 * time.Second)
				synctest.Wait()
				said := w.observer.reports()
				if len(reported) != 1 || !strings.Contains(reported[0].Error(), "the server ends watches within 1s") || said[len(said)-1] != "watch succeeded" {
					t.Errorf("before a pause of 2 s: %v; after it: %v", reported, said)
				}
			})
		})
	}
}

// An event that can't be decoded would be sent again, so a list follows. The pauses grow.
func TestResumableWatch_BrokenStreamIsFollowedByAList(t *testing.T) {
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

// Watches are refused, and lists are allowed. After the pauses have grown, a list replaces each
// watch.
func TestResumableWatch_ListsReplaceRefusedWatches(t *testing.T) {
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
				time.Sleep(3 * time.Minute) // until the pauses have grown
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
				time.Sleep(25 * time.Second) // one of the responses has a Retry-After
				w.expect("soon after Retry, once it is not refused", "add last red")
			})
		})
	}
}

// A list follows a refused watch at once. If its version is expired, which causes no pause, the pause of the watch
// still holds.
func TestResumableWatch_ExpiredListsDoNotEndThePausesOfWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, nil, "a")
		w.cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			switch req.Verb {
			case "watch":
				return apierrors.NewServiceUnavailable("down")
			case "list":
				return apierrors.NewResourceExpired("too old")
			}
			return nil
		})
		w.cluster.CloseWatches(widgets)
		time.Sleep(23 * time.Minute)
		for _, verb := range []string{"list", "watch"} {
			if got := len(w.cluster.Requests(verb, widgets)); got < 33 || got > 56 {
				t.Errorf("requests to %s in 23 min = %d, want one each 30 to 36 s", verb, got)
			}
		}
		w.cluster.Intercept(nil)
		time.Sleep(time.Minute)
		w.create("b")
		w.expect("after the failures", "add b red")
	})
}

// The server requests a pause. A list also waits for its end.
func TestResumableWatch_ListWaitsForRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pause = time.Minute // longer than all other pauses
		w := newWatched(t, source.Config{})
		list, open := w.list, w.watch
		var refused time.Time
		w.watch = func(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			refused = time.Now()
			return open(ctx, opts)
		}
		w.list = func(ctx context.Context) (*unstructured.UnstructuredList, error) {
			if left := pause - time.Since(refused); left > 0 {
				t.Errorf("a list is sent %v early", left)
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

// The server closes each watch after some seconds. Such watches are successful: after some time,
// the pause after a failure is as short as the first one.
func TestResumableWatch_PausesShrinkWhileShortWatchesSucceed(t *testing.T) {
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

// No lists are sent to a server that is overloaded or can't be reached.
func TestResumableWatch_ListsDoNotAddToTheLoad(t *testing.T) {
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

// watched is a source on a scripted server. Its list is empty, at version 7. The test sends the
// events of watches: server is the open watch.
type watched struct {
	*script
	t         *testing.T
	source    *source.Source
	available *source.Availability // nil in most tests
	refuse    error                // the error of later watches
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
		if len(w.requests()) > 10*tooMany { // otherwise time would not pass
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

// open opens a watch as a reflector does. An error ends it.
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

// replaceType makes the type another type with the same name.
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

// fail ends the watch, with err if it is not nil.
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

// since returns the requests after the first n as strings.
func (w *watched) since(n int) (words []string) {
	synctest.Wait()
	for _, req := range w.requests()[n:] {
		words = append(words, strings.TrimSpace(req.Verb+" "+req.Options.ResourceVersion))
	}
	return words
}

// The store may still have the version of the type that is gone after the list of the next type,
// whose versions may be smaller.
func TestResumableWatch_KeepsTheVersionOfATypeThatIsGone(t *testing.T) {
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

// A stream that the server ends because of overload has sent all events so far.
func TestResumableWatch_NoListFollowsAThrottledStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, source.Config{})
		w.fail(apierrors.NewTooManyRequests("slowly", 5))
		time.Sleep(5*time.Second - time.Millisecond)
		if got := w.since(2); got != nil {
			t.Errorf("requests during Retry-After: %q", got)
		}
		time.Sleep(time.Second)
		if diff := cmp.Diff([]string{"watch 7"}, w.since(2)); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

// After a long watch, it is normal that the version has expired: a list follows without a pause,
// for each form of the error.
func TestResumableWatch_ListFollowsAnExpiredLongWatchAtOnce(t *testing.T) {
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
				time.Sleep(20 * time.Second) // the pauses have grown
				w.set(nil)
				time.Sleep(20*time.Second + lasts)
				synctest.Wait()
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

// If the version expires each time, the pauses grow.
func TestResumableWatch_PausesGrowWhileVersionsExpire(t *testing.T) {
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

// A reflector with an expected kind would ignore such objects without an error.
func TestResumableWatch_ObjectsOfAnotherKind(t *testing.T) {
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
			t.Error("the objects are in the store")
		}
		for _, err := range observer.errors() {
			if !errors.Is(err, source.ErrWrongKind) {
				t.Errorf("error: %v", err)
			}
		}
		if len(observer.errors()) < 2 {
			t.Errorf("errors: %v, want at least one for the watch-list and one for a list", observer.errors())
		}
		r.stop()
	})
}

// Objects without UIDs are identified by their keys. Objects of the next type are different.
func TestResumableWatch_ObjectsWithoutUIDsAreIdentifiedByTheirKeys(t *testing.T) {
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

// Another server may have taken over, which can't use the version of the first one.
func TestResumableWatch_ListFollowsAWatchWhoseVersionIsRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatched(t, source.Config{})
		w.set(apierrors.NewBadRequest("resourceVersion: not a number"))
		w.fail(nil)
		time.Sleep(350 * time.Millisecond) // the watch has been rejected
		w.set(nil)
		time.Sleep(5 * time.Second)
		if diff := cmp.Diff([]string{"watch 7", "list", "watch 7"}, w.since(2)); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

// Some aggregated API servers send objects without resource versions.
func TestResumableWatch_ServerWithoutVersions(t *testing.T) {
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

// The server closes each watch after one event or bookmark. The pauses grow. Lists replace the
// watches, which do not send all changes.
func TestResumableWatch_PausesGrowWhileWatchesSendOneEvent(t *testing.T) {
	a, mark := newObject("a"), newBookmark("")
	a.SetResourceVersion("7")
	mark.SetResourceVersion("7")
	for name, event := range map[string]watch.Event{
		"event":    {Type: watch.Modified, Object: a},
		"bookmark": {Type: watch.Bookmark, Object: mark},
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
					if len(client.requests()) > tooMany { // otherwise time would not pass
						return server, nil
					}
					server.Action(event.Type, event.Object.DeepCopyObject())
					time.AfterFunc(max(time.Duration(lasting.Load()), time.Nanosecond), server.Stop)
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

// count returns the numbers of lists and watches in requests.
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

// Without versions, no object is known to be unchanged.
func TestResumableWatch_ObjectsWithoutVersionsAreUpdated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &script{}
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			obj := newObject("a")
			obj.SetResourceVersion("")
			return &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*obj}}, nil
		}
		client.watch = func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			time.Sleep(time.Hour)
			return endedWatch(), nil // may have missed changes
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
