package source_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/source"
)

// injector is a client whose watches also have the events of a test.
type injector struct {
	source.Client
	events chan watch.Event
	fake   bool // as client-go's fakes
}

func (c *injector) IsWatchListSemanticsUnSupported() bool { return c.fake }

func (c *injector) Watch(ctx context.Context, gvr schema.GroupVersionResource, namespace string, opts metav1.ListOptions) (watch.Interface, error) {
	in, err := c.Client.Watch(ctx, gvr, namespace, opts)
	if err != nil {
		return nil, err
	}
	out := &injected{Interface: in, out: make(chan watch.Event), stopped: make(chan struct{})}
	go func() {
		defer close(out.out)
		for {
			var event watch.Event
			open := true
			select {
			case event, open = <-in.ResultChan():
			case event = <-c.events:
			}
			if !open {
				return
			}
			select {
			case out.out <- event:
			case <-out.stopped:
				return
			}
		}
	}()
	return out, nil
}

type injected struct {
	watch.Interface
	out     chan watch.Event
	stopped chan struct{}
}

func (i *injected) ResultChan() <-chan watch.Event { return i.out }

func (i *injected) Stop() {
	close(i.stopped)
	i.Interface.Stop()
}

// newInjected returns a testInformer and the client that injects events. Modify is that of newTestInformer.
func newInjected(t *testing.T, fake bool, modify func(*source.Config), names ...string) (*testInformer, *injector) {
	t.Helper()
	c := &injector{events: make(chan watch.Event), fake: fake}
	w := newTestInformer(t, func(cfg *source.Config) {
		endless(cfg)
		c.Client, cfg.Client = cfg.Client, c
		if modify != nil {
			modify(cfg)
		}
	}, names...)
	return w, c
}

func eventOf(kind watch.EventType, name, version string) watch.Event {
	obj := newObject(name)
	obj.SetNamespace("ns")
	obj.SetUID("uid of " + types.UID(name))
	obj.SetResourceVersion(version)
	obj.SetGroupVersionKind(widgets.GroupVersion().WithKind("Widget"))
	return watch.Event{Type: kind, Object: obj}
}

// The watch after a restore has begun at a version that the server does not have, and is silent. The first that the informer gets is a
// bookmark, without any change, or the event of a change.
func TestRewind_IsFoundByABookmark(t *testing.T) { testFoundBy(t, watch.Bookmark, nil) }

func TestRewind_IsFoundByAnEvent(t *testing.T) {
	for kind, tc := range map[watch.EventType]struct {
		write func(w *testInformer)
		want  string
	}{
		watch.Added:    {func(w *testInformer) { w.create("d") }, "add d red"},
		watch.Modified: {func(w *testInformer) { w.setColor("d", "green") }, "update d red to d green"},
		watch.Deleted:  {func(w *testInformer) { w.remove("d") }, "delete d red"},
	} {
		t.Run(string(kind), func(t *testing.T) { testFoundBy(t, kind, tc.write, tc.want) })
	}
}

// testFoundBy restores a backup, and sends one event of the given kind after write, if that is not nil. Want is for write.
func testFoundBy(t *testing.T, kind watch.EventType, write func(*testInformer), want ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		names := []string{"a", "b"}
		if kind != watch.Added {
			names = append(names, "d")
		}
		w, server := newInjected(t, false, nil, names...)
		backup, version := w.cluster.Backup(), len(names)
		w.setColor("a", "blue")
		w.create("c", "e", "f")
		w.expect("before", "update a red to a blue", "add c red", "add e red", "add f red")
		time.Sleep(time.Minute)
		w.cluster.Restore(backup)
		synctest.Wait()
		if write != nil {
			write(w)
			version++
		}
		w.expect("of the silent watch")
		w.checkRewinds(0)
		server.events <- eventOf(kind, "d", fmt.Sprint(version))
		time.Sleep(10 * time.Second) // a silent watch is compared later
		want = append(want, "delete c red", "delete e red", "delete f red", "update a blue to a red")
		got := w.handler.take()
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("then the handler got (-want +got):\n%s", diff)
		}
		w.checkRewinds(1)
		w.checkLists("then", 0, 1)
		w.create("new")
		w.expect("at the end", "add new red")
	})
}

// A server that is behind is not a server that has gone back. A list decides.
func TestRewind_EventsOfAServerThatIsBehind(t *testing.T) {
	for _, kind := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Bookmark} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, server := newInjected(t, false, nil, "a", "b", "c", "d", "e")
				w.remove("a")
				w.setColor("e", "blue")
				w.expect("before", "delete a red", "update e red to e blue")
				for i := range 3 {
					if kind == watch.Modified {
						server.events <- eventOf(kind, "e", "4")
					} else {
						server.events <- eventOf(kind, "a", "4")
					}
					time.Sleep(time.Minute)
					w.expect("after an event below the version")
					w.checkLists("then", 0, i+1)
				}
				w.checkRewinds(0)
				w.create("new")
				w.expect("then", "add new red")
			})
		})
	}
}

// The list after an event of a server that is behind waits: such events may come again and again.
func TestRewind_TheListAfterAnEventOfAServerThatIsBehindWaits(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, server := newInjected(t, false, scope, "a", "b", "c", "d", "e")
				_, before := w.lists()
				server.events <- eventOf(watch.Added, "x", "4")
				synctest.Wait()
				if _, got := w.lists(); got != before {
					t.Errorf("%d lists at once", got-before)
				}
				time.Sleep(time.Second)
				if _, got := w.lists(); got != before+1 {
					t.Errorf("%d lists after a second", got-before)
				}
			})
		})
	}
}

// Of a server that does not order its versions, each event is passed on, after some lists. So are the events of client-go's
// fake clients, whose objects have any versions, without a list.
func TestRewind_AServerWithoutOrderDoesNotCostAListForEachEvent(t *testing.T) {
	for name, fake := range map[string]bool{"server": false, "fake client": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, server := newInjected(t, fake, nil, "a", "b", "c", "d", "e")
				want, lists := []string{}, 0
				if fake {
					w.expect("first")
					_, lists = w.lists() // instead of a watch-list
				} else {
					lists = 3
				}
				for i := range 100 {
					server.events <- eventOf(watch.Added, fmt.Sprint("n", i), "4")
					if fake || i >= 3 {
						want = append(want, fmt.Sprintf("add n%d ", i))
					}
					time.Sleep(time.Minute)
					if i < 3 {
						w.create(fmt.Sprint("real", i)) // the version goes up again
						want = append(want, fmt.Sprintf("add real%d red", i))
						synctest.Wait()
					} else {
						server.events <- eventOf(watch.Bookmark, "", fmt.Sprint(100+i))
					}
				}
				var got []string
				for _, event := range w.handler.take() {
					if strings.HasPrefix(event, "add") { // the version goes back with an event, and events come again
						got = append(got, event)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				w.checkLists("in all", 0, lists)
			})
		})
	}
}

// Also if the watches have a timeout, so that one which ends early is doubtful: the lists that follow are compared by content.
func TestRewind_AServerWithoutOrderMayEndWatchesEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, server := newInjected(t, false, func(cfg *source.Config) { cfg.Tweak = nil }, "a", "b", "c", "d", "e")
		w.expect("first")
		for i := range 5 {
			server.events <- eventOf(watch.Added, fmt.Sprint("n", i), "4")
			time.Sleep(time.Minute)
		}
		w.expect("then", "add n3 ", "add n4 ")
		w.checkLists("in all", 0, 3)
	})
}

// Events below the version count for one generation.
func TestRewind_AnotherGenerationBeginsWithoutDisorder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, server := newInjected(t, false, nil, "a", "b", "c", "d", "e")
		for i := range 3 {
			server.events <- eventOf(watch.Added, fmt.Sprint("n", i), "4")
			time.Sleep(time.Minute)
			w.create(fmt.Sprint("real", i)) // the version goes up again
			synctest.Wait()
		}
		_, lists := w.lists()
		w.replaceType()
		set(w.available, source.Held) // its objects are deleted
		synctest.Wait()
		set(w.available, source.Served)
		time.Sleep(time.Minute)
		w.handler.take()
		server.events <- eventOf(watch.Added, "low", "4")
		time.Sleep(time.Minute)
		w.expect("below the version")
		if _, got := w.lists(); got != lists+2 {
			t.Errorf("%d lists, want one of the generation, and one after the event", got-lists)
		}
	})
}

// A tweak makes watches begin at an earlier version than the list: their first events say nothing about the server.
func TestRewind_WatchesThatATweakMakesOlder(t *testing.T) {
	for name, scope := range scopes {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newTestInformer(t, func(cfg *source.Config) {
					scope(cfg)
					cfg.NoWatchList = true
					cfg.Tweak = func(opts *metav1.ListOptions) {
						if opts.TimeoutSeconds != nil { // of a watch
							opts.ResourceVersion = "0"
						}
					}
				}, "a", "b", "c")
				time.Sleep(4 * time.Minute)
				w.checkLists("then", 0, 1)
			})
		})
	}
}
