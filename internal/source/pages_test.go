package source_test

import (
	"context"
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

	"github.com/gvrkit/gvrkit/internal/budget"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/internal/source"
)

// The version of the first page may expire before the last page. The list that follows has pages, too, if a tweak limits it, or the server does.
func TestPages_AListThatBeginsAgainIsComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var expires atomic.Int64
		cluster := fakecluster.New(widgetType)
		want := []string{"ns/a", "ns/b", "ns/c", "ns/d", "ns/e"}
		for _, key := range want {
			create(t, cluster, "ns", key[len("ns/"):], "red")
		}
		cluster.Intercept(func(_ context.Context, req fakecluster.Request) error {
			if req.Options.Continue != "" && expires.CompareAndSwap(1, 0) || req.Verb == "watch" && expires.CompareAndSwap(2, 1) {
				return apierrors.NewResourceExpired("too old")
			}
			return nil
		})
		expires.Store(1)
		w, h := runInformer(t, source.Config{
			Client: source.Unstructured(cluster), GVR: widgets, NoWatchList: true, Availability: newAvailability(source.Served),
			Tweak:  func(opts *metav1.ListOptions) { opts.Limit = 2 },
			Report: func(_ context.Context, err error) { t.Errorf("the list fails: %v", err) },
		}), &handler{}
		defer w.stop()
		if _, err := w.AddEventHandler(h); err != nil {
			t.Fatal(err)
		}
		check := func(when string, events int) {
			t.Helper()
			if diff := cmp.Diff(want, w.keys()); diff != "" || expires.Load() != 0 {
				t.Errorf("%s, the store has (-want +got):\n%s", when, diff)
			}
			if got := h.take(); len(got) != events {
				t.Errorf("%s, the handler got %q", when, got)
			}
		}
		check("after the first list", len(want))
		expires.Store(2)
		cluster.CloseWatches(widgets)
		time.Sleep(time.Minute)
		check("after a later list", 0)
	})
}

// The pages of a server that ignores versions may have an object twice: it moves to a later page.
func TestPages_AnObjectInTwoPagesIsAddedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, begin := &script{watch: always(watch.NewFake(), nil)}, make(chan struct{})
		client.list = func(context.Context) (*unstructured.UnstructuredList, error) {
			<-begin
			list := &unstructured.UnstructuredList{Items: []unstructured.Unstructured{*newObject("a")}}
			list.SetResourceVersion("1")
			if len(client.requests()) == 1 {
				list.SetContinue("more")
			}
			return list, nil
		}
		w, checker := runInformer(t, source.Config{Client: source.Unstructured(client), GVR: widgets, NoWatchList: true}), &eventChecker{t: t, there: map[string]types.UID{}}
		defer w.stop()
		if _, err := w.AddEventHandler(checker); err != nil {
			t.Fatal(err)
		}
		close(begin)
		synctest.Wait()
		if got := w.source.State(); got.Objects != 1 || got.Events != 1 {
			t.Errorf("%d objects, %d events", got.Objects, got.Events)
		}
	})
}

// A program may recover the panic of a function that it has given to the informer.
func TestPages_APanicKeepsNoRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster, memory := fakecluster.New(widgetType), budget.New(1<<20)
		for _, name := range []string{"a", "b", "c"} {
			create(t, cluster, "ns", name, "red")
		}
		s := source.New(source.Config{
			Client: source.Unstructured(cluster), GVR: widgets, PageSize: 1, Budget: memory,
			Tweak: func(opts *metav1.ListOptions) {
				if opts.Continue != "" {
					panic("tweak")
				}
			},
		})
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_, _ = gateOf(s).ListWithContext(t.Context(), metav1.ListOptions{})
		}()
		if got := memory.Status(); got.Lists != 0 {
			t.Errorf("after the panic, the budget is %+v", got)
		}
	})
}

// A tweak that replaces all options would request the first page again and again.
func TestPages_ATweakThatReplacesAllOptionsGetsAllPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := fakecluster.New(widgetType)
		want := []string{"ns/a", "ns/b", "ns/c"}
		for _, key := range want {
			create(t, cluster, "ns", key[len("ns/"):], "red")
		}
		w := runInformer(t, source.Config{
			Client: source.Unstructured(cluster), GVR: widgets, NoWatchList: true,
			Tweak: func(opts *metav1.ListOptions) {
				*opts = metav1.ListOptions{Limit: 1, ResourceVersion: opts.ResourceVersion}
			},
		})
		defer w.stop()
		if diff := cmp.Diff(want, w.keys()); diff != "" {
			t.Errorf("store (-want +got):\n%s", diff)
		}
	})
}
