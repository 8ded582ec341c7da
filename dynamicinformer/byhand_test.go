package dynamicinformer_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// These tests are about informers that a user runs without the factory, as users of client-go do.

func TestFactory_InformerRunByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		informer := f.ForResource(widgets).Informer()
		byHand, stop := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() { defer close(ended); informer.RunWithContext(byHand) }()
		synctest.Wait()

		// Start and Shutdown of the factory do not affect an informer that its user runs.
		events := listen(t, informer)
		start(ctx, f)
		shutdown(t, f)
		create(t, cluster, widgets, "ns", "a")
		synctest.Wait()
		if diff := cmp.Diff([]string{"add ns/a"}, events.take()); diff != "" {
			t.Errorf("events after Shutdown of the factory (-want +got):\n%s", diff)
		}
		if got := len(cluster.Requests("watch", widgets)); got != 1 {
			t.Errorf("watches = %d, want 1", got)
		}
		stop()
		<-ended
	})
}

func TestFactory_InformerRunByHandAndStoppedIsNotReturnedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		f := newFactory(t, fakecluster.New(widgetType))
		informer := f.ForResource(widgets).Informer()
		byHand, stop := context.WithCancel(ctx)
		stop()
		informer.RunWithContext(byHand)
		if f.ForResource(widgets).Informer() == informer {
			t.Error("ForResource returned a stopped informer")
		}
	})
}

// The end of Start's context does not end an informer that its user runs.
func TestFactory_InformerRunByHandOutlivesAStartThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		informer := f.ForResource(widgets).Informer()
		byHand, stop := context.WithCancel(t.Context())
		ran := make(chan struct{})
		go func() { defer close(ran); informer.RunWithContext(byHand) }()
		synctest.Wait()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		f.Start(ended)
		shutdown(t, f)

		events := listen(t, informer)
		cluster.CloseWatches(widgets)
		create(t, cluster, widgets, "ns", "a")
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"add ns/a"}, events.take()); diff != "" {
			t.Errorf("events after its watch was closed (-want +got):\n%s", diff)
		}
		stop()
		<-ran
	})
}

func TestFactory_InformerRunByHandAndStoppedIsReplacedThoughStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		informer := f.ForResource(widgets).Informer()
		byHand, stop := context.WithCancel(t.Context())
		go informer.RunWithContext(byHand)
		synctest.Wait()
		start(t.Context(), f)
		stop()
		synctest.Wait()
		again := f.ForResource(widgets).Informer()
		synctest.Wait()
		if again == informer || !again.HasSynced() {
			t.Errorf("same informer: %v, synced: %v", again == informer, again.HasSynced())
		}
		shutdown(t, f)
	})
}

// An index function of the user blocks while it holds the informer's lock. Release does not wait.
func TestFactory_InformerRunByHandDoesNotBlockRelease(t *testing.T) {
	cluster := fakecluster.New(widgetType)
	f := newFactory(t, cluster)
	informer := f.ForResource(widgets).Informer()
	entered, hold := make(chan struct{}, 1), make(chan struct{})
	err := informer.AddIndexers(cache.Indexers{"slow": func(any) ([]string, error) {
		select {
		case entered <- struct{}{}:
		default:
		}
		<-hold
		return nil, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	l := acquire(t, f, widgets)
	listen(t, l.Informer())
	byHand, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); informer.RunWithContext(byHand) }()
	create(t, cluster, widgets, "ns", "a")
	<-entered

	released := make(chan struct{})
	go func() { defer close(released); l.Release() }()
	select {
	case <-released:
	case <-time.After(10 * time.Second):
		t.Error("Release waits for an index function")
	}
	giveUp, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := f.Shutdown(giveUp); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown while a handler is to be removed: %v", err)
	}
	close(hold)
	<-released
	shutdown(t, f)
	stop()
	<-ended
}
