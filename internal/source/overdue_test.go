package source_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// The connection hangs, so that the end of the watch does not arrive.
func TestResumableWatch_EndsAnOverdueWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var opened []*watch.FakeWatcher
		watches := func() []*watch.FakeWatcher {
			mu.Lock()
			defer mu.Unlock()
			return opened
		}
		client, observer := &script{}, &observer{}
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			list := &unstructured.UnstructuredList{}
			list.SetResourceVersion("7")
			return list, nil
		}
		client.watch = func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			mu.Lock()
			defer mu.Unlock()
			opened = append(opened, newServerWatch())
			return opened[len(opened)-1], nil
		}
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets, Observer: observer})
		<-startList(t.Context(), s)
		openWatch(t, gateOf(s), metav1.ListOptions{ResourceVersion: "7", TimeoutSeconds: new(int64(400))})
		time.Sleep(329 * time.Second) // the source has set a shorter timeout
		if got := len(watches()); got != 1 {
			t.Errorf("watches = %d", got)
		}
		time.Sleep(302 * time.Second)
		synctest.Wait()
		servers := watches()
		if len(servers) != 2 || !servers[0].IsStopped() || servers[1].IsStopped() {
			t.Errorf("watches after its timeout = %d, want another one", len(servers))
		}
		if got := observer.errors(); len(got) != 1 {
			t.Errorf("errors: %v, want one", got)
		}
	})
}

func TestResumableWatch_OverdueWatchListIsFollowedByAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServerWatch()
		client := &script{watch: always(server, nil)}
		s := source.New(source.Config{Client: source.Unstructured(client), GVR: widgets})
		opts := watchList()
		opts.TimeoutSeconds = new(int64(300))
		if w, err := gateOf(s).WatchWithContext(t.Context(), opts); err == nil {
			w.Stop()
			t.Fatal("a watch-list")
		}
		listed := startList(t.Context(), s)
		for range 40 { // a watch-list that does not end
			if server.IsStopped() {
				break
			}
			server.Add(newObject("a"))
			time.Sleep(9 * time.Second)
			synctest.Wait()
		}
		if a := <-listed; a.err != nil {
			t.Error(a.err)
		}
		if got := client.requests(); len(got) != 2 || got[1].Verb != "list" {
			t.Errorf("requests: %v", got)
		}
	})
}

// A request without a response ends after a timeout.
func TestResumableWatch_RequestsWithoutAResponseEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, nil, "a")
		w.cluster.Intercept(func(ctx context.Context, _ fakecluster.Request) error { <-ctx.Done(); return ctx.Err() })
		w.cluster.CloseWatches(widgets)
		time.Sleep(time.Hour)
		if got := len(w.cluster.Requests("watch", widgets)); got < 5 || got > 15 {
			t.Errorf("watches in an hour = %d", got)
		}
		w.replaceType()
		time.Sleep(time.Hour)
		if got := len(w.cluster.Requests("list", widgets)); got < 3 || got > 8 {
			t.Errorf("lists in an hour = %d", got)
		}
		if got := len(w.observer.errors()); got < 8 {
			t.Errorf("errors: %d, want one of each", got)
		}
		w.cluster.Intercept(nil)
	})
}

// The timeout of a watch is the one that the tweak has set.
func TestResumableWatch_UsesTheTimeoutOfTheTweak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newTestInformer(t, func(cfg *source.Config) {
			cfg.Tweak = func(o *metav1.ListOptions) { o.TimeoutSeconds = new(int64(7200)) }
		}, "a")
		time.Sleep(90 * time.Minute)
		if got := len(w.cluster.Requests("watch", widgets)); got != 1 {
			t.Errorf("watches = %d, want 1", got)
		}
		checkErrors(t, w.observer)
	})
}

// A list that is cancelled because the type has changed has not failed.
func TestGate_CancelledListIsNotAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		available := newAvailability(source.Served)
		client := &script{list: func(ctx context.Context) (*unstructured.UnstructuredList, error) { <-ctx.Done(); return nil, ctx.Err() }}
		reports := 0
		s := source.New(source.Config{
			Client: source.Unstructured(client), GVR: widgets, Availability: available,
			Report: func(context.Context, error) { reports++ },
		})
		ctx, cancel := context.WithCancel(t.Context())
		listed := startList(ctx, s)
		set(available, source.Held)
		synctest.Wait()
		set(available, source.Served)
		time.Sleep(time.Minute)
		cancel()
		<-listed
		if reports != 0 || len(client.requests()) != 2 {
			t.Errorf("%d reports of %d requests, want none of 2", reports, len(client.requests()))
		}
	})
}
