package dynamicinformer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// Informers that their user runs without the factory, as client-go's users do.

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

		// Started too, and shut down: neither touches what its user runs.
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

func TestFactory_InformerRunByHandAndStoppedIsNotHandedOutAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		f := newFactory(t, fakecluster.New(widgetType))
		informer := f.ForResource(widgets).Informer()
		byHand, stop := context.WithCancel(ctx)
		stop()
		informer.RunWithContext(byHand)
		if f.ForResource(widgets).Informer() == informer {
			t.Error("a stopped informer was handed out again")
		}
	})
}

// A context that has ended says nothing about who runs the informer.
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
			t.Errorf("the same one: %v, synced: %v", again == informer, again.HasSynced())
		}
		shutdown(t, f)
	})
}
