package dynamicinformer

import (
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// The informer may end after Acquire has joined it and before Acquire checks that. The steps are those of Acquire.
func TestJoin_AgainAfterTheEndOfTheInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
		f, err := New(fakecluster.New(fakecluster.Type{GVR: widgets, Kind: "Widget", Namespaced: true}))
		if err != nil {
			t.Fatal(err)
		}
		o, err := f.leaseOptions(nil)
		if err != nil {
			t.Fatal(err)
		}
		f.DropIn().ForResource(widgets)
		stop := make(chan struct{})
		f.DropIn().Start(stop)
		l, k := &Lease{factory: f}, key{gvr: widgets, form: o.form}
		join := func() {
			if err := f.join(l, k, &o); err != nil {
				t.Fatal(err)
			}
		}
		join()
		close(stop)
		<-l.entry.done
		if !l.entry.informer.IsStopped() || !f.replace(l.entry, l) {
			t.Fatal("the informer is not replaced")
		}
		join()
		f.Start(t.Context())
		handler, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if closed(l.Done()) || !handler.HasSynced() {
			t.Errorf("the lease is done: %t, its handler has synced: %t", closed(l.Done()), handler.HasSynced())
		}
		if err := f.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Another goroutine may have begun to release the lease. The step is that of Release.
func TestRelease_EndsCallsAlsoBesideAnotherRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
		f, err := New(fakecluster.New(fakecluster.Type{GVR: widgets, Kind: "Widget"}))
		if err != nil {
			t.Fatal(err)
		}
		l, err := f.Acquire(t.Context(), widgets)
		if err != nil {
			t.Fatal(err)
		}
		l.released.Swap(true)
		l.Release()
		if !closed(l.Done()) {
			t.Error("calls of handlers may begin after Release has returned")
		}
		if err := f.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
