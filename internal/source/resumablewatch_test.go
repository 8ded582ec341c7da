package source_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// Each round takes as long as the first one: there is no back-off.
func TestResumableWatch_TypeIsDeletedAndCreatedManyTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, nil, "a", "b")
		begun := time.Now()
		for round := range 20 {
			w.deleteType()
			w.expect(fmt.Sprintf("gone, round %d:", round), "delete a red", "delete b red")
			before := asked(w.cluster)
			synctest.Wait()
			if got := w.keys(); len(got) != 0 {
				t.Fatalf("round %d: the store has %v", round, got)
			}
			w.cluster.Serve(widgetType) // before the source knows it
			synctest.Wait()
			if diff := cmp.Diff(before, asked(w.cluster)); diff != "" {
				t.Fatalf("round %d: requests while the type did not exist (-want +got):\n%s", round, diff)
			}
			w.createType()
			w.create("a", "b")
			w.expect(fmt.Sprintf("back, round %d:", round), "add a red", "add b red")
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("20 rounds took %v", took)
		}
		if got := w.cluster.OpenWatches(widgets); got != 1 {
			t.Errorf("open watches = %d, want 1", got)
		}
	})
}

// The server may send some deletions before the source knows that the type is gone.
func TestResumableWatch_DeletionsDuringTheEndOfTheType(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	for told := range len(names) + 1 {
		t.Run(strconv.Itoa(told), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, nil, names...)
				w.remove(names[:told]...) // the watch may have sent some of them
				if told%2 == 0 {
					synctest.Wait()
				}
				w.deleteType()
				w.expect("in all", "delete a red", "delete b red", "delete c red", "delete d red", "delete e red")
				w.createType()
				w.create("a")
				w.expect("after that", "add a red")
			})
		})
	}
}

func TestResumableWatch_DeletedObjectsHaveTheirLastState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, nil, "a", "b")
		w.setColor("a", "blue")
		w.expect("painted:", "update a red to a blue")
		cached, _, _ := w.GetStore().GetByKey("ns/b") // its version is not the last
		before := cached.(*unstructured.Unstructured).DeepCopy()
		last := w.LastSyncResourceVersion()
		w.deleteType()
		w.expect("gone:", "delete a blue", "delete b red")
		for _, obj := range w.handler.gone {
			if obj.GetResourceVersion() < last {
				t.Errorf("%s is deleted at %s, before %s", obj.GetName(), obj.GetResourceVersion(), last)
			}
			if obj.GetUID() == "" {
				t.Errorf("%s has lost its UID", obj.GetName())
			}
		}
		if diff := cmp.Diff(before, cached); diff != "" {
			t.Errorf("the cached object has changed (-want +got):\n%s", diff)
		}
		if got := w.LastSyncResourceVersion(); got != last {
			t.Errorf("the informer has version %s, and had %s", got, last)
		}
	})
}

// The deletion of an object without a known last state has only its name.
func TestResumableWatch_DeletionOfAnObjectThatIsNotInTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, available := &script{}, newAvailability(source.Served)
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			obj := newObject("a")
			obj.SetUID("u")
			list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*obj}}
			list.SetResourceVersion("7")
			return list, nil
		}
		now, _ := available.Current()
		now.Kind = "Widget"
		available.Set(now)
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Availability: available})
		<-startList(t.Context(), s)
		w := openWatch(t, gateOf(s), metav1.ListOptions{ResourceVersion: "7"})
		synctest.Wait()
		set(available, source.Gone)
		events := take(w)
		want := newObject("a")
		want.SetAPIVersion("example.com/v1")
		want.SetKind("Widget")
		want.SetUID("u")
		want.SetResourceVersion("7")
		if diff := cmp.Diff([]watch.Event{{Type: watch.Deleted, Object: want}}, events); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// The store may be behind the reflector: a deletion waits until the store has the object, so that it has
// the last state.
func TestResumableWatch_DeletionWaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, available := &script{}, newAvailability(source.Served)
		last := newObject("a")
		last.SetUID("u")
		last.SetResourceVersion("6")
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*last.DeepCopy()}}
			list.SetResourceVersion("7")
			return list, nil
		}
		before := last.DeepCopy()
		before.SetResourceVersion("5")
		before.SetLabels(map[string]string{"state": "before"})
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Availability: available})
		<-startList(t.Context(), s)
		begun := time.Now()
		s.LookUp(func(string) (any, bool) {
			if time.Since(begun) < 300*time.Millisecond {
				return before, true
			}
			return last, true
		})
		w := openWatch(t, gateOf(s), metav1.ListOptions{ResourceVersion: "7"})
		synctest.Wait()
		set(available, source.Gone)
		time.Sleep(time.Second)
		events := take(w)
		if len(events) != 1 || events[0].Type != watch.Deleted || len(events[0].Object.(*unstructured.Unstructured).GetLabels()) > 0 {
			t.Errorf("events: %v, want a deletion with the last state", events)
		}
	})
}

// A server may leave out the deletion of an object that it sends with another UID.
func TestResumableWatch_ObjectWithAnotherUIDIsNoUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		old, server := newObject("a"), newServerWatch()
		old.SetUID("1")
		client := &script{watch: always(server, nil), list: func(context.Context) (*unstructured.UnstructuredList, error) {
			list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*old.DeepCopy()}}
			list.SetResourceVersion("1")
			return list, nil
		}}
		r, h := runInformer(t, source.Config{Client: source.Unstructured(client), GVR: widgets, NoWatchList: true}), &handler{}
		defer r.stop()
		if _, err := r.AddEventHandler(h); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		recreated := old.DeepCopy()
		recreated.SetUID("2")
		recreated.SetResourceVersion("2")
		server.Modify(recreated)
		synctest.Wait()
		if diff := cmp.Diff([]string{"add a ", "delete a ", "add a "}, h.take()); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	})
}

// A watch can begin with earlier events, if another server responds now. The handler gets only deletions of objects
// that it has, with their own states.
func TestResumableWatch_DeletionsOfOtherObjects(t *testing.T) {
	for name, tc := range map[string]struct {
		deleted, uid string
		want         []string
	}{
		"of no known object":   {"b", "2", nil},
		"of an earlier object": {"a", "2", []string{"delete a "}},
		"of the object":        {"a", "1", []string{"delete a "}},
		"without a UID":        {"a", "", []string{"delete a "}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				known, server := newObject("a"), newServerWatch()
				known.SetUID("1")
				client := &script{watch: always(server, nil), list: func(context.Context) (*unstructured.UnstructuredList, error) {
					list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*known.DeepCopy()}}
					list.SetResourceVersion("1")
					return list, nil
				}}
				r, h := runInformer(t, source.Config{Client: source.Unstructured(client), GVR: widgets, NoWatchList: true}), &handler{}
				defer r.stop()
				if _, err := r.AddEventHandler(h); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				h.take()
				other := newObject(tc.deleted)
				other.SetUID(types.UID(tc.uid))
				other.SetResourceVersion("7")
				server.Delete(other)
				synctest.Wait()
				if diff := cmp.Diff(tc.want, h.take()); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				for _, gone := range h.gone {
					if gone.GetUID() != "1" && tc.uid != "" {
						t.Errorf("the handler got the deletion of %s, which it has not", gone.GetUID())
					}
				}
				if got := r.LastSyncResourceVersion(); got != "7" {
					t.Errorf("version %q, want 7", got)
				}
			})
		})
	}
}

// If watches fail for long, the source lists instead. The failure of such a list is not reported: what
// fails is the watch.
func TestResumableWatch_ListInsteadOfAWatchReportsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lists atomic.Int64
		watchFails := errors.New("no watch")
		client := &script{watch: always(nil, watchFails), list: func(context.Context) (*unstructured.UnstructuredList, error) {
			if lists.Add(1) > 1 {
				return nil, errors.New("no list")
			}
			list := &unstructured.UnstructuredList{}
			list.SetResourceVersion("1")
			return list, nil
		}}
		observer := &observer{}
		r := runInformer(t, source.Config{Client: source.Unstructured(client), GVR: widgets, NoWatchList: true, Observer: observer})
		defer r.stop()
		time.Sleep(10 * time.Minute)
		if lists.Load() < 2 {
			t.Fatalf("%d lists, want some instead of watches", lists.Load())
		}
		for _, err := range observer.errors() {
			if !errors.Is(err, watchFails) {
				t.Errorf("reported: %v", err)
			}
		}
	})
}

// The cache never has objects of two generations, and no update has objects of both.
func TestResumableWatch_TypeIsCreatedAgainWithoutEvents(t *testing.T) {
	for name, keep := range map[string]bool{"EmitDeletes": false, "KeepCache": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, func(cfg *source.Config) { cfg.KeepCache = keep }, "a", "b")
				w.unwatched() // until the source knows that the type is another one
				w.cluster.Withdraw(widgets)
				w.cluster.Serve(widgetType)
				w.create("b", "c")
				w.replaceType()
				w.expect("then", "delete a red", "delete b red", "add b red", "add c red")
			})
		})
	}
}

// replaceType makes the type another type with the same name.
func (w *testInformer) replaceType() {
	now, _ := w.available.Current()
	now.Generation++
	w.available.Set(now)
}

// unwatched makes the watch fail.
func (w *testInformer) unwatched() {
	w.cluster.Intercept(failing("watch", apierrors.NewServiceUnavailable("down"), 0))
	w.cluster.CloseWatches(widgets)
	synctest.Wait()
}

func TestResumableWatch_KeepCacheKeepsObjectsUntilTheNextList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, func(cfg *source.Config) { cfg.KeepCache = true }, "a", "b")
		w.deleteType()
		time.Sleep(time.Hour)
		w.expect("gone:")
		if diff := cmp.Diff([]string{"ns/a", "ns/b"}, w.keys()); diff != "" {
			t.Errorf("kept (-want +got):\n%s", diff)
		}
		w.cluster.Serve(widgetType)
		w.create("b")
		w.replaceType()
		set(w.available, source.Served)
		w.expect("back:", "delete a red", "delete b red", "add b red")
	})
}

// Kept objects of a type that was gone are not a complete list before the next list, also if the
// two types can't be distinguished.
func TestResumableWatch_KeptObjectsAreNotComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, func(cfg *source.Config) { cfg.KeepCache = true }, "a")
		if state := w.source.State(); !state.Complete || state.FirstLists != 1 {
			t.Errorf("at the beginning: %+v", state)
		}
		w.deleteType()
		w.expect("gone:")
		if state := w.source.State(); state.Complete || state.Listed != "" || state.Objects != 1 {
			t.Errorf("while the type is gone: %+v", state)
		}
		w.cluster.Serve(widgetType)
		w.create("b")
		w.cluster.Intercept(failing("list", apierrors.NewServiceUnavailable("down"), 0))
		set(w.available, source.Served)
		time.Sleep(time.Minute)
		if state := w.source.State(); state.Complete || state.FirstLists != 1 {
			t.Errorf("before the list: %+v", state)
		}
		w.cluster.Intercept(nil)
		w.source.Retry()
		w.expect("listed:", "delete a red", "add b red")
		if state := w.source.State(); !state.Complete || state.FirstLists != 2 || state.Listed == "" {
			t.Errorf("after the list: %+v", state)
		}
	})
}

// Versions of a server whose etcd was restored go back. A wait for the version of a list must end.
func TestResumableWatch_VersionsGoBack(t *testing.T) {
	for name, back := range map[string]func(w *watched){
		"in an event": func(w *watched) {
			obj := newObject("a")
			obj.SetResourceVersion("2")
			w.server.Modify(obj)
		},
		"in a bookmark": func(w *watched) {
			w.server.Action(watch.Bookmark, newBookmark(""))
		},
		"in a list": func(w *watched) {
			w.fail(apierrors.NewResourceExpired("too old"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatched(t, source.Config{})
				obj := newObject("a")
				obj.SetResourceVersion("10")
				w.server.Add(obj)
				synctest.Wait()
				if state := w.source.State(); state.Listed != "7" || state.Version != "10" {
					t.Errorf("before: %+v", state)
				}
				w.list = func(context.Context) (*unstructured.UnstructuredList, error) {
					list := &unstructured.UnstructuredList{}
					list.SetResourceVersion("3")
					return list, nil
				}
				back(w)
				time.Sleep(time.Second)
				if state := w.source.State(); state.Listed != "3" || state.Version != "3" || state.Rewinds != 1 {
					t.Errorf("after: %+v", state)
				}
			})
		})
	}
}

func TestResumableWatch_ScopeChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, nil, "a")
		w.unwatched()
		w.cluster.Withdraw(widgets)
		w.cluster.Serve(fakecluster.Type{GVR: widgets, Kind: "Widget"})
		obj := newObject("a")
		obj.SetNamespace("")
		if _, err := w.cluster.Resource(widgets).Create(t.Context(), obj, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.available.Set(source.Type{Serving: source.Served, GVR: widgets, Generation: 1})
		w.expect("then", "delete a red", "add a ")
		if diff := cmp.Diff([]string{"a"}, w.keys()); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
	})
}

// The server may send objects of a new type before the source knows that the type is another one.
// They are not deleted and added again later, unless the next list does not have them.
func TestResumableWatch_KeepsEarlyObjectsOfTheNextType(t *testing.T) {
	for name, tc := range map[string]struct {
		fault error
		want  []string
	}{
		"listed":     {nil, []string{"delete b red", "add c red"}},
		"not listed": {errors.New("down"), []string{"delete a red", "delete b red"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, nil, "a", "b")
				w.remove("a")
				w.create("a") // an object of the next type
				w.expect("before it is known", "delete a red", "add a red")
				w.cluster.CloseWatches(widgets)
				w.cluster.Intercept(failing("watch", errors.New("down"), 0))
				w.remove("b")
				w.create("c")
				synctest.Wait()
				if tc.fault != nil {
					w.cluster.Intercept(func(context.Context, fakecluster.Request) error { return tc.fault })
				}
				w.available.Set(source.Type{Serving: source.Served, GVR: widgets, Kind: "Widget", Namespaced: true, Generation: 1})
				synctest.Wait()
				w.expect("once it is known", tc.want...)
			})
		})
	}
}

// While another server begins to serve a type, requests fail, and then the earlier server may answer once more. Its objects have not been
// deleted, and so are not added again. They end when the type is settled, and there is still no list.
func TestResumableWatch_ObjectsStayWhileATypeSettles(t *testing.T) {
	for name, answersAgain := range map[string]bool{"the earlier server answers again": true, "no list succeeds": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, nil, "a", "b")
				w.cluster.Intercept(func(context.Context, fakecluster.Request) error { return errors.New("no server yet") })
				moved, _ := w.available.Current()
				moved.Generation++
				moved.Unsettled = true
				w.available.Set(moved)
				time.Sleep(5 * time.Second)
				w.expect("while no server answers")
				if answersAgain {
					w.cluster.Intercept(nil)
					w.remove("b")
					time.Sleep(time.Minute)
					w.expect("when the earlier server answers", "delete b red")
					w.cluster.Intercept(func(context.Context, fakecluster.Request) error { return errors.New("no server yet") })
				}
				moved.Unsettled = false
				w.available.Set(moved)
				time.Sleep(time.Minute)
				if answersAgain { // they are of this generation
					w.expect("settled")
					return
				}
				w.expect("settled", "delete a red", "delete b red")
			})
		})
	}
}

// A server that has not noticed the new scope of a type lists no objects, and its version is the newest one. The watch that follows has no
// events for the objects before that version.
func TestResumableWatch_ATypeWithAnotherScopeIsListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, available := &script{}, newAvailability(source.Served)
		var items atomic.Value
		items.Store([]unstructured.Unstructured{*newObject("a")})
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			list := &unstructured.UnstructuredList{Items: items.Load().([]unstructured.Unstructured)}
			list.SetResourceVersion("7")
			return list, nil
		}
		client.watch = func(_ context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			if opts.SendInitialEvents != nil {
				return nil, apierrors.NewBadRequest("what is that?")
			}
			return newServerWatch(), nil
		}
		r, events := runInformer(t, source.Config{Client: source.Unstructured(client), GVR: widgets, Availability: available}), &handler{}
		if _, err := r.AddEventHandler(events); err != nil {
			t.Fatal(err)
		}
		expect := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			if diff := cmp.Diff(want, events.take()); diff != "" {
				t.Errorf("%s the handler got (-want +got):\n%s", when, diff)
			}
		}
		expect("at first", "add a ")
		items.Store([]unstructured.Unstructured(nil))
		rescoped, _ := available.Current()
		rescoped.Generation++
		rescoped.Namespaced, rescoped.Unsettled = false, true
		available.Set(rescoped)
		expect("of the server that is behind", "delete a ")
		b := *newObject("b")
		b.SetNamespace("")
		items.Store([]unstructured.Unstructured{b})
		time.Sleep(10 * time.Second)
		expect("before it is settled")
		rescoped.Unsettled = false
		available.Set(rescoped)
		expect("settled", "add b ")
		r.stop()
	})
}

// The first list after a change of the server may be of the earlier server. The watch that follows is of the new
// one, and has no events for the objects of the earlier server.
func TestResumableWatch_ATypeThatSettlesIsListedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, available := &script{}, newAvailability(source.Served)
		var name atomic.Value
		name.Store("a")
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*newObject(name.Load().(string))}}
			list.SetResourceVersion("7")
			return list, nil
		}
		client.watch = func(_ context.Context, opts metav1.ListOptions) (watch.Interface, error) {
			if opts.SendInitialEvents != nil {
				return nil, apierrors.NewBadRequest("what is that?")
			}
			return newServerWatch(), nil
		}
		r := runInformer(t, source.Config{Client: source.Unstructured(client), GVR: widgets, Availability: available})
		moved, _ := available.Current()
		moved.Generation++
		moved.Unsettled = true
		available.Set(moved)
		synctest.Wait()
		name.Store("b")
		time.Sleep(10 * time.Second)
		if diff := cmp.Diff([]string{"ns/a"}, r.keys()); diff != "" {
			t.Errorf("keys before it is settled (-want +got):\n%s", diff)
		}
		moved.Unsettled = false
		available.Set(moved)
		synctest.Wait()
		if diff := cmp.Diff([]string{"ns/b"}, r.keys()); diff != "" {
			t.Errorf("keys (-want +got):\n%s", diff)
		}
		r.stop()
	})
}

// The same objects are served in another version: they are updated, not deleted and added.
func TestResumableWatch_ChangesTheVersionByUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, available := &script{}, newAvailability(source.Served)
		version := "v1"
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			list := &unstructured.UnstructuredList{}
			for _, name := range []string{"a", "b"} {
				obj := newObject(name)
				obj.SetAPIVersion("example.com/" + version)
				obj.SetUID("u")
				list.Items = append(list.Items, *obj)
			}
			list.SetResourceVersion("7")
			return list, nil
		}
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Availability: available})
		<-startList(t.Context(), s)
		w := openWatch(t, gateOf(s), metav1.ListOptions{ResourceVersion: "7"})
		synctest.Wait()
		version = "v2"
		available.Set(source.Type{Serving: source.Served, GVR: widgets.GroupResource().WithVersion("v2"), Namespaced: true})
		if diff := cmp.Diff([]string{"MODIFIED a", "MODIFIED b", "BOOKMARK "}, seen(w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		last := client.requests()[len(client.requests())-1]
		if last.Verb != "watch" || last.GVR.Version != "v2" || last.Options.ResourceVersion != "7" {
			t.Errorf("last request: %v, want a watch in v2 from 7 on", last)
		}
	})
}

// A held type is not gone. Its watch continues until the server ends it.
func TestResumableWatch_HeldTypeKeepsItsWatchAndItsCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, endless, "a")
		set(w.available, source.Held)
		w.create("b")
		w.expect("held:", "add b red")
		before := asked(w.cluster)
		w.cluster.CloseWatches(widgets)
		w.create("c")
		time.Sleep(time.Hour)
		w.expect("closed:")
		if diff := cmp.Diff(before, asked(w.cluster)); diff != "" {
			t.Errorf("requests while the type is held (-want +got):\n%s", diff)
		}
		set(w.available, source.Served)
		w.expect("served again:", "add c red")
		if after := asked(w.cluster); after[0] != before[0] || after[2] != before[2]+1 {
			t.Errorf("lists, watch-lists, watches = %v after %v: want one watch, which resumes", after, before)
		}
	})
}

func TestResumableWatch_MissingTypeIsGoneAfterNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, nil, "a")
		set(w.available, source.Missing)
		w.create("b")
		time.Sleep(300 * time.Millisecond)
		w.expect("while it answers", "add b red")
		if now, _ := w.available.Current(); now.Serving != source.Served {
			t.Errorf("it is %s", now.Serving)
		}
		w.cluster.Withdraw(widgets)
		set(w.available, source.Missing)
		time.Sleep(time.Second) // a watch may have failed before the type was missing: the next request is after a pause
		w.expect("when it does not", "delete a red", "delete b red")
		if now, _ := w.available.Current(); now.Serving != source.Gone {
			t.Errorf("it is %s", now.Serving)
		}
	})
}

// Unavailable is not NotFound.
func TestResumableWatch_MissingTypeWhoseServerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reported []error
		w := newTestInformer(t, func(cfg *source.Config) {
			cfg.Report = func(_ context.Context, err error) { reported = append(reported, err) }
		}, "a")
		w.cluster.Intercept(failing("list", apierrors.NewServiceUnavailable("down"), 0))
		set(w.available, source.Missing)
		time.Sleep(10 * time.Minute)
		w.expect("while it can't be determined")
		if got := len(w.cluster.Requests("list", widgets)); got < 5 || got > 30 {
			t.Errorf("%d requests in 10 min", got)
		} else if len(reported) != got {
			t.Errorf("%d failures are reported, want %d", len(reported), got)
		}
		w.cluster.Intercept(nil)
		w.cluster.Withdraw(widgets)
		time.Sleep(36 * time.Second)
		w.expect("when it can", "delete a red")
	})
}

func TestResumableWatch_EndsAtOnceInEachState(t *testing.T) {
	hang := func(ctx context.Context, _ fakecluster.Request) error { <-ctx.Done(); return ctx.Err() }
	for name, do := range map[string]func(w *testInformer){
		"watches": func(*testInformer) {},
		"is held": func(w *testInformer) { set(w.available, source.Held); w.cluster.CloseWatches(widgets) },
		"is gone": func(w *testInformer) { w.deleteType() },
		"pauses": func(w *testInformer) {
			w.cluster.Intercept(failing("watch", errors.New("broken"), 0))
			w.cluster.CloseWatches(widgets)
		},
		"watch hangs":      func(w *testInformer) { w.cluster.Intercept(hang); w.cluster.CloseWatches(widgets) },
		"list hangs":       func(w *testInformer) { w.cluster.Intercept(hang); w.replaceType() },
		"probe hangs":      func(w *testInformer) { w.cluster.Intercept(hang); set(w.available, source.Missing) },
		"is created again": func(w *testInformer) { w.deleteType(); w.createType() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, nil, "a")
				do(w)
				time.Sleep(45 * time.Second)
				if took := w.stop(); took != 0 {
					t.Errorf("stopping took %v", took)
				}
				if got := w.cluster.OpenWatches(widgets); got != 0 {
					t.Errorf("open watches = %d", got)
				}
			})
		})
	}
}

// A request that hangs is cancelled when the type is deleted.
func TestResumableWatch_HangingRequestsEndOnChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, nil, "a")
		w.cluster.Intercept(func(ctx context.Context, _ fakecluster.Request) error { <-ctx.Done(); return ctx.Err() })
		_, watches := w.requests()
		w.cluster.CloseWatches(widgets)
		time.Sleep(time.Second) // the watch was short: there is a pause
		if _, now := w.requests(); now != watches+1 {
			t.Errorf("%d watches hang, want 1", now-watches)
		}
		w.deleteType()
		w.expect("gone:", "delete a red")
		lists, _ := w.requests()
		w.createType()
		synctest.Wait()
		if now, _ := w.requests(); now != lists+1 {
			t.Errorf("%d lists hang, want 1", now-lists)
		}
		w.createUnintercepted("b")
		w.replaceType()
		w.expect("back:", "add b red")
		checkErrors(t, w.observer)
	})
}

// createUnintercepted creates an object without the interceptor, which hangs.
func (w *testInformer) createUnintercepted(name string) {
	w.t.Helper()
	w.cluster.Intercept(nil)
	w.create(name)
}
