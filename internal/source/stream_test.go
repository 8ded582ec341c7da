package source_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/source"
)

// kinds has the options of the two kinds of watch.
var kinds = map[string]metav1.ListOptions{"watch": {ResourceVersion: "1"}, "watch-list": watchList()}

func TestStream_PassesEventsInOrderAndUnchanged(t *testing.T) {
	for name, opts := range kinds {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newServerWatch()
				lw := newLW(source.Config{Client: source.Unstructured(&script{watch: always(server, nil)}), GVR: widgets})
				w := openWatch(t, lw, opts)
				expired := apierrors.NewResourceExpired("too old").Status()
				sent := []watch.Event{
					{Type: watch.Added, Object: newObject("a")},
					{Type: watch.Bookmark, Object: newBookmark("")},
					{Type: watch.Modified, Object: newObject("a")},
					{Type: watch.Bookmark, Object: newBookmark("true")},
					{Type: watch.Deleted, Object: newObject("a")},
					{Type: watch.Error, Object: &expired}, // unchanged after the initial events
				}
				for _, event := range sent {
					server.Action(event.Type, event.Object)
				}
				got := take(w)
				if diff := cmp.Diff(append(sent, watch.Event{Type: closed}), got); diff != "" {
					t.Fatalf("events (-want +got):\n%s", diff)
				}
				for i := range sent {
					if got[i].Object != sent[i].Object {
						t.Errorf("event %d is a copy", i)
					}
				}
			})
		})
	}
}

// At each end of a stream, its channel is closed, and the client's watch is stopped and closed.
func TestStream_Ends(t *testing.T) {
	stop := func(w watch.Interface, _ func()) { w.Stop() }
	cancel := func(_ watch.Interface, cancel func()) { cancel() }
	for _, tc := range []struct {
		name   string
		unread int // number of events without a reader
		end    func(w watch.Interface, cancel func())
	}{
		{"on Stop", 0, stop},
		{"on Stop, twice", 0, func(w watch.Interface, _ func()) { w.Stop(); w.Stop() }},
		{"on the end of its context", 0, cancel},
		{"on both of them", 0, func(w watch.Interface, cancel func()) { cancel(); w.Stop() }},
		{"on Stop while it sends", 2, stop},
		{"on the end of its context while it sends", 2, cancel},
	} {
		for kind, opts := range kinds {
			t.Run(kind+" "+tc.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := newServerWatch()
					lw := newLW(source.Config{Client: source.Unstructured(&script{watch: always(server, nil)}), GVR: widgets})
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					w, err := lw.WatchWithContext(ctx, opts)
					if err != nil {
						t.Fatal(err)
					}
					for range tc.unread {
						server.Add(newObject("a"))
					}
					synctest.Wait()
					begun := time.Now()
					tc.end(w, cancel)
					if diff := cmp.Diff([]string{"CLOSED"}, seen(w)); diff != "" {
						t.Errorf("events (-want +got):\n%s", diff)
					}
					if !server.IsStopped() {
						t.Error("the client's watch was not stopped")
					}
					if took := time.Since(begun); took != 0 {
						t.Errorf("it took %v", took)
					}
					w.Stop() // has no effect after the end
				})
			})
		}
	}
}

// It is normal that the server ends an ordinary watch, or a watch-list after its initial events.
func TestStream_EndsWithTheServersWatch(t *testing.T) {
	for kind, opts := range kinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				observer, server := &observer{}, newServerWatch()
				lw := newLW(source.Config{Client: source.Unstructured(&script{watch: always(server, nil)}), GVR: widgets, Observer: observer})
				w := openWatch(t, lw, opts)
				server.Action(watch.Bookmark, newBookmark("true"))
				server.Add(newObject("a"))
				server.Stop()
				// Earlier events arrive before the end.
				if diff := cmp.Diff([]string{"BOOKMARK ", "ADDED a", "CLOSED"}, seen(w)); diff != "" {
					t.Errorf("events (-want +got):\n%s", diff)
				}
				checkErrors(t, observer)
			})
		})
	}
}

// lateWatch is a watch whose goroutine still sends events after Stop, and closes its channel later.
type lateWatch struct {
	events  chan watch.Event
	stopped chan struct{}
	once    sync.Once
}

func newLateWatch(takes time.Duration) *lateWatch {
	s := &lateWatch{events: make(chan watch.Event), stopped: make(chan struct{})}
	go func() {
		defer close(s.events)
		<-s.stopped
		for range 3 {
			s.events <- watch.Event{Type: watch.Added, Object: newObject("late")}
		}
		time.Sleep(takes)
	}()
	return s
}

func (s *lateWatch) Stop()                          { s.once.Do(func() { close(s.stopped) }) }
func (s *lateWatch) ResultChan() <-chan watch.Event { return s.events }

// A goroutine of the client would wait for ever if its last events had no reader. The stream reads
// them, and ends after that goroutine.
func TestStream_DrainsTheClientsWatch(t *testing.T) {
	for name, end := range map[string]func(w watch.Interface, cancel func()){
		"on Stop":                   func(w watch.Interface, _ func()) { w.Stop() },
		"on the end of its context": func(_ watch.Interface, cancel func()) { cancel() },
		"on a stall":                func(w watch.Interface, _ func()) { <-w.ResultChan() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newLateWatch(500 * time.Millisecond)
				lw := newLW(source.Config{Client: source.Unstructured(&script{watch: always(server, nil)}), GVR: widgets})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w, err := lw.WatchWithContext(ctx, watchList())
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				end(w, cancel)
				begun := time.Now()
				if event, open := <-w.ResultChan(); open {
					t.Errorf("event %v after the end", event)
				}
				if took := time.Since(begun); took != 500*time.Millisecond {
					t.Errorf("closed after %v, while the client's watch took 0.5 s", took)
				}
				if _, open := <-server.events; open {
					t.Error("the client's watch has an event left")
				}
			})
		})
	}
}

// Some watches of tests never close their channel. The stream ends without them.
func TestStream_EndsWithoutAWatchThatNeverCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := source.New(source.Config{GVR: widgets, Client: source.Unstructured(&script{watch: always(watch.NewProxyWatcher(make(chan watch.Event)), nil)})})
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := source.RequestsOf(s).WatchWithContext(ctx, metav1.ListOptions{}); err != nil {
			t.Fatal(err)
		}
		cancel()
		if took := waitTakes(s); took != time.Second {
			t.Errorf("Wait took %v, want 1 s", took)
		}
	})
}

// Servers close a watch after an error. The end is not another error.
func TestStream_ErrorAmongInitialEventsIsReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newWatchListStream(t)
		status := apierrors.NewResourceExpired("too old").Status()
		r.server.Error(&status)
		r.server.Stop()
		if diff := cmp.Diff([]string{failed, "CLOSED"}, seen(r.w)); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]string{"watch failed"}, r.observer.reports()); diff != "" {
			t.Errorf("reports (-want +got):\n%s", diff)
		}
	})
}
