package dynamicinformer_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
	"github.com/gvrkit/gvrkit/status"
)

// panicking is a handler that panics for objects whose label value is "bad".
type panicking struct{ recorder }

func (p *panicking) check(obj any) {
	if value := obj.(*unstructured.Unstructured).GetLabels()["value"]; value == "bad" {
		panic("no spec in " + value)
	}
}

func (p *panicking) OnAdd(obj any, initial bool) { p.recorder.OnAdd(obj, initial); p.check(obj) }
func (p *panicking) OnUpdate(old, obj any)       { p.recorder.OnUpdate(old, obj); p.check(obj) }
func (p *panicking) OnDelete(obj any)            { p.recorder.OnDelete(obj); p.check(obj) }

// A handler may panic with the error of its own request.
func TestRecovery_ShowsNoResponseBody(t *testing.T) {
	inLeases(t, func(in bubble) {
		l := acquire(in.T, in.factory, widgets, dynamicinformer.WithHandlerRecovery())
		_, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { panic(runtime.NewMissingKindErr(secret)) }})
		if err != nil {
			in.Fatal(err)
		}
		create(in.T, in.cluster, widgets, "ns", "a")
		got := handlerOf(in.T, l)
		if got.Panics != 1 {
			in.Errorf("%+v", got)
		}
		checkHides(in.T, "the status", got.LastPanic)
		checkHides(in.T, "the page", look(in.T, in.factory.Handler(), "").Body.String())
		l.Release()
	})
}

func TestRecovery_HandlerGoesOnAfterAPanic(t *testing.T) {
	for _, opts := range [][]dynamicinformer.LeaseOption{
		{dynamicinformer.WithHandlerRecovery()},
		{dynamicinformer.WithHandlerRecovery(), dynamicinformer.WithCoalescing(0)},
	} {
		inLeases(t, func(in bubble) {
			l := acquire(in.T, in.factory, widgets, append(opts, dynamicinformer.WithLeaseName("gc"))...)
			handler := &panicking{}
			registration, err := l.AddEventHandler(handler)
			if err != nil {
				in.Fatal(err)
			}
			for _, name := range []string{"a", "b"} {
				create(in.T, in.cluster, widgets, "ns", name)
				synctest.Wait()
			}
			check := func(when string, want status.Handler) {
				in.Helper()
				want.Handler, want.Lease = "github.com/gvrkit/gvrkit/dynamicinformer_test.panicking", "gc"
				if diff := cmp.Diff(want, handlerOf(in.T, l)); diff != "" {
					in.Errorf("%s (-want +got):\n%s", when, diff)
				}
			}
			set := func(name, value string) {
				setValue(in.T, in.cluster, name, value)
				synctest.Wait()
			}
			check("before", status.Handler{Delivered: 2})
			set("a", "bad")
			failing := status.Handler{Delivered: 3, Panics: 1, LastPanic: "no spec in bad", Reason: status.ReasonHandlerPanicked, FailedObjects: 1, LastFailed: "ns/a"}
			check("after a panic", failing)
			text := in.factory.Explain(widgets).String()
			for _, part := range []string{
				`of lease "gc": 3 calls finished (1 panic, the last one: no spec in bad).`,
				"To do: correct handler github.com/gvrkit/gvrkit/dynamicinformer_test.panicking, which has panicked for ns/a; the log has the stack.",
			} {
				if !strings.Contains(text, part) {
					in.Errorf("the explanation has no %q:\n%s", part, text)
				}
			}
			if got := l.Status(); got.State != status.StateSynced || got.Reason != "" {
				in.Errorf("the informer is %s", got.Summary(time.Now()))
			}
			set("b", "bad")
			failing.Delivered, failing.Panics, failing.FailedObjects, failing.LastFailed = 4, 2, 2, "ns/b"
			check("after another panic", failing)
			set("b", "good")
			failing.Delivered, failing.FailedObjects, failing.LastFailed = 5, 1, "ns/a"
			check("after a call for one of the objects has returned", failing)
			deleteWidget(in.T, in.cluster, "a") // its last state is bad: the deletion panics
			check("after the deletion of the other one", status.Handler{Delivered: 6, Panics: 3, LastPanic: "no spec in bad"})
			want := []string{"add ns/a", "add ns/b", "update ns/a", "update ns/b", "update ns/b", "delete ns/a"}
			if diff := cmp.Diff(want, handler.take()); diff != "" {
				in.Errorf("events (-want +got):\n%s", diff)
			}
			if !registration.HasSynced() {
				in.Error("the registration has not synced")
			}
			l.Release()
			if !isDone(l) {
				in.Error("the lease is not done")
			}
		})
	}
}

// When the last object no longer fails, the last one is that which failed before it.
func TestRecovery_LastFailedIsTheLastOfTheObjectsThatFail(t *testing.T) {
	inLeases(t, func(in bubble) {
		l := acquire(in.T, in.factory, widgets, dynamicinformer.WithHandlerRecovery())
		if _, err := l.AddEventHandler(&panicking{}); err != nil {
			in.Fatal(err)
		}
		check := func(name, value, last string) {
			in.Helper()
			setValue(in.T, in.cluster, name, value)
			synctest.Wait()
			if got := handlerOf(in.T, l).LastFailed; got != last {
				in.Errorf("after %s is %s, the last one is %q, want %q", name, value, got, last)
			}
		}
		names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
		for _, name := range names {
			create(in.T, in.cluster, widgets, "ns", name)
			check(name, "bad", "ns/"+name)
		}
		check("a", "bad", "ns/a")
		check("a", "good", "ns/h")
		for n := len(names) - 1; n > 1; n-- {
			check(names[n], "good", "ns/"+names[n-1])
		}
		check("b", "good", "")
		l.Release()
	})
}

// A handler that panics for each object of the list has got the list.
func TestRecovery_RegistrationSyncsInSpiteOfPanics(t *testing.T) {
	inLeases(t, func(in bubble) {
		for i := range 2000 {
			create(in.T, in.cluster, widgets, "ns", fmt.Sprint(i))
		}
		l := acquire(in.T, in.factory, widgets, dynamicinformer.WithHandlerRecovery())
		registration, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { panic(strings.Repeat("x", 5000)) }})
		if err != nil {
			in.Fatal(err)
		}
		<-registration.HasSyncedChecker().Done()
		if got := handlerOf(in.T, l); got.Panics != 2000 || got.FailedObjects != 1000 || len(got.LastPanic) > 1024 {
			in.Errorf("%d panics, %d objects, a text of %d bytes", got.Panics, got.FailedObjects, len(got.LastPanic))
		}
	})
}

// The log has the stack, and a limited number of lines.
func TestRecovery_LogsTheStack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(0)))
		cluster := fakecluster.New(widgetType)
		f := newFactory(t, cluster)
		l := acquire(t, f, widgets, dynamicinformer.WithHandlerRecovery())
		f.Start(klog.NewContext(t.Context(), logger))
		if _, err := l.AddEventHandler(&panicking{}); err != nil {
			t.Fatal(err)
		}
		create(t, cluster, widgets, "ns", "a")
		for i := range 20 {
			setValue(t, cluster, "a", []string{"bad", "good"}[i%2])
			synctest.Wait()
		}
		lines := logger.GetSink().(ktesting.Underlier).GetBuffer().Data()
		if len(lines) != 10 {
			t.Fatalf("%d lines for ten panics", len(lines))
		}
		text := fmt.Sprint(lines[0].Message, lines[0].WithKVList, lines[0].ParameterKVList)
		for _, part := range []string{"has panicked", "widgets.v1.example.com", "panicking", "ns/a", "no spec in bad", "(*panicking).check"} {
			if !strings.Contains(text, part) {
				t.Errorf("the line has no %q:\n%s", part, text)
			}
		}
		for range 10 {
			setValue(t, cluster, "a", "bad")
			synctest.Wait()
		}
		if got := len(logger.GetSink().(ktesting.Underlier).GetBuffer().Data()); got != 10 {
			t.Errorf("%d lines in one minute", got)
		}
		shutdown(t, f)
	})
}

// Without the option, the panic reaches client-go, which ends the process.
func TestRecovery_IsOffByDefault(t *testing.T) {
	reached := make(chan any, 10)
	handlers := utilruntime.PanicHandlers
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = false, []func(context.Context, any){func(_ context.Context, value any) { reached <- value }}
	defer func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = true, handlers }()
	inLeases(t, func(in bubble) {
		for _, opts := range [][]dynamicinformer.LeaseOption{nil, {dynamicinformer.WithCoalescing(0)}, {dynamicinformer.WithHandlerRecovery()}} {
			l := acquire(in.T, in.factory, widgets, opts...)
			if _, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { panic("x") }}); err != nil {
				in.Fatal(err)
			}
			defer l.Release()
		}
		create(in.T, in.cluster, widgets, "ns", "a")
		synctest.Wait()
		if got := len(reached); got != 2 {
			in.Errorf("%d panics have reached client-go, want those of two leases", got)
		}
	})
}
