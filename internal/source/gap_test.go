package source_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
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
		w := newWorld(t, nil, "a")
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
		w.cluster.Intercept(nil)
		w.create("b")
		time.Sleep(36 * time.Second)
		w.expect("after that", "add b red")
		if got := len(w.cluster.Requests("list", widgets)); got != 0 {
			t.Errorf("lists = %d, want none: nothing was missed", got)
		}
	})
}

// A list in the middle of things shows as what has happened since, once each.
func TestSplice_ExpiredWatchIsBridged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, "same", "changed", "deleted", "replaced")
		w.offline(func() {
			w.paint("changed", "blue")
			w.remove("deleted", "replaced")
			w.create("replaced", "new")
			w.cluster.Expire(widgets)
		})
		time.Sleep(time.Second)
		w.expect("then", "delete deleted red", "delete replaced red", "update changed red to changed blue", "add replaced red", "add new red")
		if got := len(w.cluster.Requests("list", widgets)); got != 1 {
			t.Errorf("lists = %d, want 1", got)
		}
		w.paint("same", "green")
		w.expect("and it goes on:", "update same red to same green")
	})
}

// offline does something while nothing can be watched.
func (w *world) offline(do func()) {
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
		w := newWorld(t, func(cfg *source.Config) {
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
		time.Sleep(800 * time.Millisecond) // two watches, and a list
		w.expect("before it is known")
		if len(confirmed) != 1 {
			t.Errorf("asked %d times, want once", len(confirmed))
		}
		w.supersede()
		w.expect("when it is known", "delete a red", "delete b red", "add b red", "add c red")
	})
}

func TestSplice_ConfirmedListIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		confirmed := 0
		w := newWorld(t, func(cfg *source.Config) {
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
		w := newWorld(t, nil, "a")
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
		client := &script{watch: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewEmptyWatch(), nil
		}}
		s := source.New(source.Config{Client: client, GVR: widgets})
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
		s := source.New(source.Config{Client: client, GVR: widgets, Report: func(_ context.Context, err error) { reported = append(reported, err) }})
		<-startList(t.Context(), s)
		w := openWatch(t, gateOf(s), metav1.ListOptions{ResourceVersion: "7"})
		go func() {
			for range w.ResultChan() {
			}
		}()
		synctest.Wait()
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		lists, watches := 0, 0
		for _, req := range client.requests() {
			if req.Verb == "list" {
				lists++
			} else {
				watches++
			}
		}
		if lists < watches || lists > 32 || lists < 5 {
			t.Errorf("lists, watches in 10 min = %d, %d", lists, watches)
		}
		if len(reported) != watches {
			t.Errorf("reported %d errors of %d watches", len(reported), watches)
		}
	})
}

func TestSplice_ForbiddenWatchIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, "a")
		w.cluster.Intercept(failing("watch", apierrors.NewForbidden(widgets.GroupResource(), "", errors.New("revoked")), 0))
		w.cluster.CloseWatches(widgets)
		w.create("b")
		time.Sleep(10 * time.Minute)
		w.expect("while it is forbidden")
		w.cluster.Intercept(nil)
		w.source.Retry()
		w.expect("at once when it is not, and somebody says so", "add b red")
	})
}

// A reflector that is told the kind would drop such objects without a word.
func TestSplice_ObjectsOfAnotherKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(fakecluster.Type{GVR: widgets, Kind: "Gadget", Namespaced: true})
		create(t, cluster, "ns", "a", "red")
		observer := &observer{}
		r := runInformer(t, source.Config{
			Client: cluster, GVR: widgets, Observer: observer,
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
		s := source.New(source.Config{Client: client, GVR: widgets, Availability: available})
		<-startList(t.Context(), s)
		version++
		w := openWatch(t, gateOf(s), metav1.ListOptions{ResourceVersion: "7"})
		time.Sleep(time.Second)
		if diff := cmp.Diff([]string{"MODIFIED a", "BOOKMARK "}, seen(w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
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
				r := runInformer(t, source.Config{Client: client, GVR: widgets})
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

// A server that sends something and closes is not asked as fast as it can.
func TestSplice_WatchesOfOneEventAreSpacedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &script{}
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			list := &unstructured.UnstructuredList{}
			list.SetResourceVersion("7")
			return list, nil
		}
		client.watch = func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			server := newServerWatch()
			server.Action(watch.Bookmark, newBookmark(""))
			server.Stop()
			return server, nil
		}
		s := source.New(source.Config{Client: client, GVR: widgets})
		<-startList(t.Context(), s)
		w := openWatch(t, gateOf(s), metav1.ListOptions{ResourceVersion: "7"})
		for begun := time.Now(); time.Since(begun) < time.Minute; {
			<-w.ResultChan()
		}
		if got := len(client.requests()); got < 60 || got > 250 {
			t.Errorf("requests in a minute = %d, want one in 250 ms", got)
		}
	})
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
		s := source.New(source.Config{Client: client, GVR: widgets})
		<-startList(t.Context(), s)
		w := openWatch(t, gateOf(s), metav1.ListOptions{})
		time.Sleep(time.Hour + time.Minute)
		if diff := cmp.Diff([]string{"MODIFIED a", "BOOKMARK "}, seen(w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		time.Sleep(time.Hour)
	})
}
