package source_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/consistencydetector"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/undecodable"
)

// watchListStream is a source with one watch-list.
type watchListStream struct {
	client   *script
	observer *observer
	server   *watch.FakeWatcher
	lw       cache.ListerWatcherWithContext
	w        watch.Interface
}

func newWatchListStream(t *testing.T) *watchListStream {
	t.Helper()
	r := &watchListStream{client: &script{}, observer: &observer{}, server: newServerWatch()}
	r.client.watch = always(r.server, nil)
	r.lw = newLW(source.Config{Client: source.Unstructured(r.client), GVR: widgets, Observer: r.observer})
	r.w = openWatch(t, r.lw, watchList())
	return r
}

func TestWatchList_StalledStreamFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWatchListStream(t)
		time.Sleep(10*time.Second - time.Nanosecond)
		if got := seen(r.w); got != nil {
			t.Fatalf("events before 10 s: %q", got)
		}
		time.Sleep(time.Nanosecond)
		if diff := cmp.Diff([]string{failed, "CLOSED"}, seen(r.w)); diff != "" {
			t.Errorf("events after 10 s (-want +got):\n%s", diff)
		}
		if !r.server.IsStopped() {
			t.Error("the client's watch has not been stopped")
		}
		if diff := cmp.Diff([]string{"watch failed"}, r.observer.reports()); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
		checkErrors(t, r.observer, source.ErrBookmarkMissing)
	})
}

// The initial events of many objects from a slow server take minutes, without a stall.
func TestWatchList_SlowStreamIsNotAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWatchListStream(t)
		for range 10_000 {
			time.Sleep(45 * time.Millisecond)
			r.server.Add(newObject("a"))
			if event := <-r.w.ResultChan(); event.Type != watch.Added {
				t.Fatalf("event: %v", event)
			}
		}
		time.Sleep(9 * time.Second)
		r.server.Action(watch.Bookmark, newBookmark("true"))
		if diff := cmp.Diff([]string{"BOOKMARK "}, seen(r.w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		checkErrors(t, r.observer)
	})
}

func TestWatchList_StallIsCountedFromTheLastEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWatchListStream(t)
		time.Sleep(7 * time.Second)
		r.server.Add(newObject("a"))
		seen(r.w)
		time.Sleep(10*time.Second - time.Nanosecond)
		if got := seen(r.w); got != nil {
			t.Fatalf("events before 10 s without events: %q", got)
		}
		time.Sleep(time.Nanosecond)
		if diff := cmp.Diff([]string{failed, "CLOSED"}, seen(r.w)); diff != "" {
			t.Errorf("events after 10 s without events (-want +got):\n%s", diff)
		}
	})
}

// A server that ignores the request for initial events sends later changes.
func TestWatchList_ChangesAreNotInitialEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWatchListStream(t)
		time.Sleep(5 * time.Second)
		begun := time.Now() // the first change
		for time.Since(begun) < 10*time.Second {
			r.server.Modify(newObject("a"))
			r.server.Add(newObject("b"))
			if got := seen(r.w); len(got) != 2 {
				t.Fatalf("after %v: %q", time.Since(begun), got)
			}
			time.Sleep(2 * time.Second)
		}
		if diff := cmp.Diff([]string{failed, "CLOSED"}, seen(r.w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// A server that ignores the request for initial events sends only objects that are created later.
func TestWatchList_NewObjectsAreNotInitialEvents(t *testing.T) {
	for _, each := range []time.Duration{100 * time.Millisecond, 9 * time.Second} {
		t.Run(each.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newWatchListStream(t)
				begun, objects := time.Now(), 0
				for {
					time.Sleep(each)
					r.server.Add(newObject("a"))
					if event := <-r.w.ResultChan(); event.Type == watch.Error {
						break
					}
					if objects++; time.Since(begun) > time.Hour {
						t.Fatal("the stream does not end")
					}
				}
				bound := time.Minute + time.Duration(objects)*50*time.Millisecond
				if took := time.Since(begun); took < bound-each || took > bound+each {
					t.Errorf("ended after %v, want %v", took, bound)
				}
				checkErrors(t, r.observer, source.ErrBookmarkMissing)
			})
		})
	}
}

// The server has sent all events, and the reflector is slow.
func TestWatchList_SlowConsumerIsNotAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWatchListStream(t)
		for range 20 {
			r.server.Add(newObject("a"))
		}
		r.server.Action(watch.Bookmark, newBookmark("true"))
		for i := range 21 {
			time.Sleep(25 * time.Second)
			want := watch.Added
			if i == 20 {
				want = watch.Bookmark
			}
			if event := <-r.w.ResultChan(); event.Type != want {
				t.Fatalf("event %d: %v, want %s", i, event, want)
			}
		}
		checkErrors(t, r.observer)
	})
}

func TestWatchList_NoEventsAfterTheBookmarkIsNotAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWatchListStream(t)
		r.server.Action(watch.Bookmark, newBookmark("true"))
		seen(r.w)
		time.Sleep(24 * time.Hour)
		r.server.Add(newObject("a"))
		if diff := cmp.Diff([]string{"ADDED a"}, seen(r.w)); diff != "" {
			t.Errorf("events after a day (-want +got):\n%s", diff)
		}
		checkErrors(t, r.observer)
	})
}

func TestWatchList_OtherBookmarksDoNotEndTheInitialEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWatchListStream(t)
		r.server.Action(watch.Bookmark, newBookmark(""))
		r.server.Action(watch.Bookmark, newBookmark("false"))
		seen(r.w)
		time.Sleep(10 * time.Second)
		if diff := cmp.Diff([]string{failed, "CLOSED"}, seen(r.w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

func TestWatch_NoEventsIsNotAStall(t *testing.T) {
	for name, initial := range map[string]*bool{"unset": nil, "false": new(false)} {
		t.Run("sendInitialEvents "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServerWatch()
				lw := newLW(source.Config{Client: source.Unstructured(&script{watch: always(server, nil)}), GVR: widgets})
				w := openWatch(t, lw, metav1.ListOptions{SendInitialEvents: initial})
				time.Sleep(24 * time.Hour)
				server.Add(newObject("a"))
				time.Sleep(24 * time.Hour)
				server.Stop()
				if diff := cmp.Diff([]string{"ADDED a", "CLOSED"}, seen(w)); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// stalls sends no events until the watch-list has stalled.
func (r *watchListStream) stalls(t *testing.T) {
	t.Helper()
	time.Sleep(10 * time.Second)
	if diff := cmp.Diff([]string{failed, "CLOSED"}, seen(r.w)); diff != "" {
		t.Fatalf("events of a stall (-want +got):\n%s", diff)
	}
}

func TestWatchList_IsNotTriedForAnHourAfterAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWatchListStream(t)
		r.stalls(t)
		for _, wait := range []time.Duration{0, 30 * time.Minute, 30*time.Minute - time.Nanosecond} {
			time.Sleep(wait)
			if _, err := r.lw.WatchWithContext(t.Context(), watchList()); err == nil {
				t.Error("a watch-list within the hour")
			}
		}
		if got := len(r.client.requests()); got != 1 {
			t.Errorf("requests = %d, want 1", got)
		}
		if diff := cmp.Diff([]string{"watch failed"}, r.observer.reports()); diff != "" { // the stall
			t.Errorf("reports (-want +got):\n%s", diff)
		}

		time.Sleep(time.Nanosecond)
		r.server.Reset()
		r.w = openWatch(t, r.lw, watchList())
		if got := len(r.client.requests()); got != 2 {
			t.Errorf("requests after the hour = %d, want 2", got)
		}
		r.stalls(t) // the second stall is also remembered
		if _, err := r.lw.WatchWithContext(t.Context(), watchList()); err == nil {
			t.Error("watch-list after the second stall has no error")
		}
	})
}

// A stall is remembered for all informers on the type, and not for a type that was created again.
func TestWatchList_StallIsRememberedForTheType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stalls := &source.Stalls{}
		open := func(generation int, uid string) error {
			lw := newLW(source.Config{
				Client: source.Unstructured(&script{}), GVR: widgets, Stalls: stalls,
				Availability: source.NewAvailability(source.Type{Serving: source.Served, GVR: widgets, Generation: generation, UID: uid}),
			})
			w, err := lw.WatchWithContext(t.Context(), watchList())
			if err != nil {
				return err
			}
			defer w.Stop()
			time.Sleep(10 * time.Second) // a stall
			take(w)
			return nil
		}
		if err := open(1, ""); err != nil {
			t.Fatal(err)
		}
		if err := open(1, ""); err == nil {
			t.Error("a watch-list of the same type")
		}
		for i, uid := range []string{"", "a", "b"} { // an unknown UID, a known UID, and another UID
			if err := open(2-i/2, uid); err != nil {
				t.Errorf("another generation, UID %q: %v", uid, err)
			}
		}
		if err := open(5, "a"); err == nil {
			t.Error("a watch-list of the same type with another generation number")
		}
	})
}

func TestWatchList_StallDoesNotAffectOtherRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWatchListStream(t)
		r.stalls(t)
		r.client.watch = nil
		openWatch(t, r.lw, metav1.ListOptions{ResourceVersion: "1"})
		openWatch(t, r.lw, metav1.ListOptions{SendInitialEvents: new(false)})
		// Another resource may have another server.
		openWatch(t, newLW(source.Config{Client: source.Unstructured(r.client), GVR: blocks}), watchList())
		if got := len(r.client.requests()); got != 4 {
			t.Errorf("requests = %d, want 4", got)
		}
	})
}

func TestWatchList_StreamThatEndsEarlyFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWatchListStream(t)
		r.server.Add(newObject("a"))
		r.server.Stop()
		if diff := cmp.Diff([]string{"ADDED a", failed, "CLOSED"}, seen(r.w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"watch failed"}, r.observer.reports()); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
		checkErrors(t, r.observer, source.ErrBookmarkMissing)

		// This was not a stall, so the next watch-list is sent.
		r.client.watch = nil
		openWatch(t, r.lw, watchList())
	})
}

// The reflector may have stopped the watch before the stream sends its error.
func TestWatchList_ErrorWithoutAReaderDoesNotBlock(t *testing.T) {
	fails := map[string]func(server *watch.FakeWatcher){
		"ended":   func(server *watch.FakeWatcher) { server.Stop() },
		"stalled": func(*watch.FakeWatcher) { time.Sleep(11 * time.Second) },
	}
	ends := map[string]func(w watch.Interface, cancel func()){
		"Stop":               func(w watch.Interface, _ func()) { w.Stop() },
		"end of its context": func(_ watch.Interface, cancel func()) { cancel() },
	}
	for failure, fail := range fails {
		for name, end := range ends {
			t.Run(failure+", "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					observer, server := &observer{}, newServerWatch()
					s := source.New(source.Config{Client: source.Unstructured(&script{watch: always(server, nil)}), GVR: widgets, Observer: observer})
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					w, err := source.RequestsOf(s).WatchWithContext(ctx, watchList())
					if err != nil {
						t.Fatal(err)
					}
					fail(server)
					synctest.Wait()
					end(w, cancel)
					if diff := cmp.Diff([]string{"CLOSED"}, seen(w)); diff != "" {
						t.Errorf("events (-want +got):\n%s", diff)
					}
					s.Wait()
					checkErrors(t, observer, source.ErrBookmarkMissing)
				})
			})
		}
	}
}

// The server has sent the bookmark and later events, and the reflector is slow.
func TestWatchList_SlowConsumerAfterTheBookmarkIsNotAStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWatchListStream(t)
		for range 10 {
			r.server.Modify(newObject("a"))
		}
		r.server.Action(watch.Bookmark, newBookmark("true"))
		for i := range 11 {
			time.Sleep(25 * time.Second)
			if event := <-r.w.ResultChan(); event.Type == watch.Error {
				t.Fatalf("event %d: %v", i, event)
			}
		}
	})
}

// Some proxies send no response headers before the first event.
func TestWatchList_RequestWithoutResponseFallsBackToList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
			if req.Options.SendInitialEvents != nil {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		r := runInformer(t, source.Config{Client: source.Unstructured(cluster), GVR: widgets})
		time.Sleep(time.Minute)
		synctest.Wait()
		if !r.HasSynced() {
			t.Error("not synced after a minute")
		}
		r.stop()
	})
}

// A tweak may replace all options. Then a LIST follows at once, without a wait for the bookmark.
func TestWatchList_ListFollowsAtOnceIfATweakRemovesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, observer := fakecluster.New(widgetType), &observer{}
		create(t, cluster, "ns", "a", "red")
		r := runInformer(t, source.Config{
			Client: source.Unstructured(cluster), GVR: widgets, Observer: observer,
			Tweak: func(opts *metav1.ListOptions) { *opts = metav1.ListOptions{ResourceVersion: opts.ResourceVersion} },
		})
		if !r.HasSynced() {
			t.Error("not synced at once")
		}
		if diff := cmp.Diff([]int{1, 0, 1}, asked(cluster)); diff != "" {
			t.Errorf("lists, watch-lists, watches (-want +got):\n%s", diff)
		}
		checkErrors(t, observer)
		r.stop()
	})
}

// The reflector gets nothing of a watch-list that has not ended.
func TestWatchList_ObjectsOfATypeThatGoesBeforeTheEndAreNotKnown(t *testing.T) {
	for _, keeps := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			client, server, available := &script{}, newServerWatch(), newAvailability(source.Served)
			client.watch = always(server, nil)
			s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Availability: available, KeepCache: keeps})
			listed := startWatchList(t.Context(), s)
			server.Add(newObject("a"))
			synctest.Wait()
			set(available, source.Gone)
			synctest.Wait()
			if got := s.State(); got.Objects != 0 || got.Complete || !server.IsStopped() {
				t.Errorf("the state has %d objects, complete: %t; the watch-list has been stopped: %t", got.Objects, got.Complete, server.IsStopped())
			}
			set(available, source.Served)
			if a := <-listed; a.err != nil || s.State().Objects != 0 {
				t.Errorf("%d objects, error %v", s.State().Objects, a.err)
			}
			if got := client.requests(); len(got) != 2 || got[1].Verb != "list" {
				t.Errorf("requests: %v, want a watch-list and a list", got)
			}
		})
	}
}

// A watch-list may have other events among its initial ones.
func TestWatchList_ObjectsMayChangeDuringTheInitialEvents(t *testing.T) {
	for name, transforms := range map[string]bool{"without a transform": false, "with a transform": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServerWatch()
				s := source.New(source.Config{Client: source.Unstructured(&script{watch: always(server, nil)}), GVR: widgets})
				transformed := 0
				if transforms {
					if err := s.SetTransform(func(obj any) (any, error) { transformed++; return obj, nil }); err != nil {
						t.Fatal(err)
					}
				}
				listed := startWatchList(t.Context(), s)
				state := func(name, version string) *unstructured.Unstructured {
					obj := newObject(name)
					obj.SetResourceVersion(version)
					return obj
				}
				for _, name := range []string{"a", "b", "c", "d", "g"} {
					server.Add(state(name, "1"))
				}
				synctest.Wait()
				if transforms && transformed != 5 {
					t.Errorf("%d objects are transformed before the end", transformed)
				}
				server.Modify(state("a", "2"))
				server.Delete(state("b", "3"))
				server.Delete(state("c", "4"))
				server.Add(state("c", "5"))
				server.Modify(state("e", "6"))
				server.Add(state("d", "7"))
				server.Delete(state("f", "8"))
				server.Modify(state("g", "8"))
				server.Delete(state("g", "8"))
				server.Add(state("h", "8"))
				server.Delete(state("h", "8"))
				server.Action(watch.Bookmark, state("", "9"))
				end := newBookmark("true")
				end.SetResourceVersion("10")
				server.Action(watch.Bookmark, end)
				a := <-listed
				if a.err != nil {
					t.Fatal(a.err)
				}
				got := map[string]string{}
				if err := meta.EachListItem(a.list, func(item runtime.Object) error {
					obj := item.(*unstructured.Unstructured)
					got[obj.GetName()] = obj.GetResourceVersion()
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(map[string]string{"a": "2", "c": "5", "d": "7", "e": "6"}, got); diff != "" {
					t.Errorf("objects (-want +got):\n%s", diff)
				}
				if meta.LenList(a.list) != 4 || s.State().Objects != 4 || s.State().Version != "10" {
					t.Errorf("%d objects, state %+v", meta.LenList(a.list), s.State())
				}
			})
		})
	}
}

// An object that can't be decoded is left out, until a good state of it arrives.
func TestWatchList_ObjectsThatCannotBeDecodedAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServerWatch()
		s := source.New(source.Config{Client: source.Unstructured(&script{watch: always(server, nil)}), GVR: widgets})
		listed := startWatchList(t.Context(), s)
		bad := func(name string) *undecodable.Object {
			object := &undecodable.Object{Err: errors.New("bad")}
			object.Namespace, object.Name = "ns", name
			return object
		}
		server.Add(newObject("a"))
		server.Add(bad("b"))
		server.Add(bad("c"))
		server.Add(bad("d"))
		server.Modify(newObject("b"))
		server.Delete(bad("c"))
		server.Action(watch.Bookmark, newBookmark("true"))
		if a := <-listed; a.err != nil || meta.LenList(a.list) != 2 {
			t.Errorf("list %v, error %v", a.list, a.err)
		}
		if got := s.State(); got.Objects != 2 || got.Rejected.Count != 1 || got.Rejected.Key != "ns/d" {
			t.Errorf("state %+v", got)
		}
	})
}

// The watch of the reflector is the rest of the watch-list, without another request. Nothing is lost between the two.
func TestWatchList_WatchContinuesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := &script{}, newServerWatch()
		client.watch = always(server, nil)
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets})
		listed := startWatchList(t.Context(), s)
		server.Action(watch.Bookmark, newBookmark("true"))
		if a := <-listed; a.err != nil {
			t.Fatal(a.err)
		}
		server.Add(newObject("a"))
		time.Sleep(time.Hour) // the reflector is slow
		w := openWatch(t, gateOf(s), metav1.ListOptions{ResourceVersion: "1"})
		server.Add(newObject("b"))
		if diff := cmp.Diff([]string{"ADDED a", "ADDED b"}, seen(w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if got := client.requests(); len(got) != 1 {
			t.Errorf("requests: %v", got)
		}
	})
}

// A watch-list that no watch continues is closed: at the end of the reflector, and when it lists again.
func TestWatchList_IsClosedIfNoWatchContinuesIt(t *testing.T) {
	for name, next := range map[string]func(t *testing.T, s *source.Source, cancel func()){
		"the reflector ends": func(_ *testing.T, _ *source.Source, cancel func()) { cancel() },
		"another list": func(t *testing.T, s *source.Source, _ func()) {
			t.Helper()
			if a := <-startList(t.Context(), s); a.err != nil {
				t.Error(a.err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServerWatch()
				s := source.New(source.Config{Client: source.Unstructured(&script{watch: always(server, nil)}), GVR: widgets})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				listed := startWatchList(ctx, s)
				server.Action(watch.Bookmark, newBookmark("true"))
				if a := <-listed; a.err != nil || server.IsStopped() {
					t.Fatalf("error %v, stopped: %t", a.err, server.IsStopped())
				}
				next(t, s, cancel)
				synctest.Wait()
				if !server.IsStopped() {
					t.Error("the watch-list is open")
				}
				if took := waitTakes(s); took != 0 {
					t.Errorf("Wait took %v", took)
				}
			})
		})
	}
}

// The end of a reflector is no failure of a watch-list that its watch continues.
func TestWatchList_EndOfTheReflectorIsNotReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &script{watch: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
			server := newServerWatch()
			server.Action(watch.Bookmark, newBookmark("true"))
			context.AfterFunc(ctx, func() {
				if !server.IsStopped() {
					server.Error(&metav1.Status{Message: "context canceled"})
				}
			})
			return server, nil
		}}
		observer := &observer{}
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Observer: observer})
		ctx := &inOrder{Context: t.Context(), ended: make(chan struct{})}
		<-startWatchList(ctx, s)
		if _, err := gateOf(s).WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: "1"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		ctx.end()
		s.Wait()
		if diff := cmp.Diff([]string{"list succeeded", "watch succeeded"}, observer.reports()); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
	})
}

// client-go's detector ends the process if a list at the version of the watch-list differs.
func TestWatchList_InconsistencyIsDetected(t *testing.T) {
	defer consistencydetector.SetDataConsistencyDetectionForWatchListEnabledForTest(true)()
	for name, differs := range map[string]bool{"equal": false, "different": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServerWatch()
				client := &script{watch: always(server, nil), list: func(context.Context) (*unstructured.UnstructuredList, error) {
					list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*newObject("a")}}
					if differs {
						list.Items[0].SetResourceVersion("2")
					}
					return list, nil
				}}
				lw := gateOf(source.New(source.Config{Client: source.Unstructured(client), GVR: widgets}))
				if w, err := lw.WatchWithContext(t.Context(), watchList()); err == nil {
					w.Stop()
					t.Fatal("a watch-list")
				}
				server.Add(newObject("a"))
				server.Action(watch.Bookmark, newBookmark("true"))
				defer func() {
					if panicked := recover(); differs != (panicked != nil) {
						t.Errorf("panic %v", panicked)
					}
				}()
				if _, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
