package shapes_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

// refuseAll responds with err to lists and watches.
func refuseAll(err error) fakecluster.Interceptor {
	return func(_ context.Context, req fakecluster.Request) error {
		if req.Verb == "list" || req.Verb == "watch" {
			return err
		}
		return nil
	}
}

// forbid responds with Forbidden to lists and watches of gvr.
func forbid(gvr schema.GroupVersionResource) fakecluster.Interceptor {
	return func(_ context.Context, req fakecluster.Request) error {
		if req.GVR == gvr && (req.Verb == "list" || req.Verb == "watch") {
			return apierrors.NewForbidden(gvr.GroupResource(), "", errors.New("no"))
		}
		return nil
	}
}

// noWatchList rejects watch-list requests, as servers before 1.27 do.
func noWatchList(_ context.Context, req fakecluster.Request) error {
	if req.Options.SendInitialEvents != nil {
		return apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}, "", nil)
	}
	return nil
}

// errorShapes handle errors of requests.
var errorShapes = []shape{
	{
		name: "a watch error handler that cancels its own context",
		use: func(p *program) {
			p.cluster.Withdraw(widgets)
			ctx, cancel := context.WithTimeout(p.t.Context(), time.Hour)
			defer cancel()
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			calls := 0
			p.must(informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
				calls++
				if apierrors.IsNotFound(err) {
					cancel()
				}
			}))
			begun := time.Now()
			f.Start(ctx.Done())
			p.note("synced: %v", cache.WaitForCacheSync(ctx.Done(), informer.HasSynced))
			f.Shutdown()
			p.note("stopped %v, calls %d, after %v", informer.IsStopped(), calls, time.Since(begun).Truncate(time.Second))
		},
		want: []string{"synced: false", "stopped true, calls 1, after 0s"},
	},
	{
		name: "a watch error handler that closes its stop channel after some errors",
		use: func(p *program) {
			p.cluster.Intercept(forbid(widgets))
			ctx, stop := context.WithTimeout(p.t.Context(), time.Hour)
			defer stop()
			informer := p.newFilteredInformer(p.cluster, widgets, "", 0, cache.Indexers{}, nil).Informer()
			failures := 0
			p.must(informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
				if failures++; failures == 3 {
					p.note("%v: %v", apierrors.IsForbidden(err), err)
					stop()
				}
			}))
			informer.Run(ctx.Done())
			p.note("%d", failures)
		},
		want: []string{"true: failed to list example.com/v1, Resource=widgets: widgets.example.com is forbidden: no", "3"},
	},
	{
		name: "a watch error handler that stops its informer, while the server restarts",
		use: func(p *program) {
			for _, outage := range []error{syscall.ECONNREFUSED, apierrors.NewTooManyRequests("busy", 1)} {
				ctx, stop := context.WithCancel(p.t.Context())
				f := p.newFactory(p.cluster, 0)
				informer := f.ForResource(widgets).Informer()
				p.must(informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
					p.note("stopped by: %v", err)
					stop()
				}))
				f.Start(ctx.Done())
				f.WaitForCacheSync(ctx.Done())
				time.Sleep(10 * time.Second)
				p.cluster.Intercept(refuseAll(outage))
				p.cluster.CloseWatches(widgets)
				time.Sleep(10 * time.Second)
				p.cluster.Intercept(nil)
				time.Sleep(2 * time.Minute)
				p.note("stopped %v", informer.IsStopped())
				stop()
				f.Shutdown()
			}
		},
		want: []string{"stopped false", "stopped false"},
	},
	{
		name: "a watch error handler while the server can't be reached",
		use: func(p *program) {
			p.create("ns", "a")
			p.cluster.Intercept(refuseAll(syscall.ECONNREFUSED))
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			p.must(informer.SetWatchErrorHandler(func(_ *cache.Reflector, err error) { p.note("%v", err) }))
			f.Start(p.stop)
			p.note("synced %v", f.WaitForCacheSync(after(time.Minute))[widgets])
			p.cluster.Intercept(nil)
			p.note("synced %v", f.WaitForCacheSync(after(time.Minute))[widgets])
		},
		want: []string{"synced false", "synced true"},
	},
	{
		name: "a watch error handler that calls the default handler",
		use: func(p *program) {
			p.create("ns", "a")
			p.cluster.Intercept(forbid(widgets))
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			p.must(informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
				cache.DefaultWatchErrorHandler(ctx, r, err)
				p.cluster.Intercept(nil)
			}))
			seen := p.listen(informer)
			f.Start(p.stop)
			p.note("synced: %v", f.WaitForCacheSync(after(time.Minute))[widgets])
			p.noteEvents("events", seen)
		},
		want: []string{"synced: true", "events: add ns/a"},
	},
	{
		name: "handlers that are set after the start",
		use: func(p *program) {
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			f.Start(p.stop)
			synctest.Wait()
			p.note("%v", informer.SetWatchErrorHandler(func(*cache.Reflector, error) {}))
			p.note("%v", informer.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}))
		},
		want: []string{"informer has already started", "informer has already started"},
	},
	{
		name: "a program that gives up a type that has not synced in time",
		use: func(p *program) {
			p.cluster.Intercept(forbid(widgets))
			stop := make(chan struct{})
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			f.Start(stop)
			ctx, cancel := context.WithTimeout(p.t.Context(), 10*time.Second)
			defer cancel()
			if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
				p.note("%v", ctx.Err())
				close(stop)
			}
			f.Shutdown()
			requests := len(p.cluster.Requests("list", widgets)) + len(p.cluster.Requests("watch", widgets))
			time.Sleep(time.Hour)
			p.note("later requests: %d", len(p.cluster.Requests("list", widgets))+len(p.cluster.Requests("watch", widgets))-requests)
		},
		want: []string{"context deadline exceeded", "later requests: 0"},
	},
	{
		name: "an outage while the program reads its cache",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			seen := p.listen(informer)
			f.Start(p.stop)
			f.WaitForCacheSync(p.stop)
			p.cluster.Intercept(refuseAll(errors.New("connection refused")))
			p.cluster.CloseWatches(widgets)
			time.Sleep(10 * time.Minute)
			p.note("%v, synced %v", informer.GetStore().ListKeys(), informer.HasSynced())
			p.cluster.Intercept(nil)
			p.create("ns", "b")
			time.Sleep(2 * time.Minute)
			p.noteEvents("events", seen)
		},
		want:       []string{"[ns/a], synced true", "events: add ns/a, add ns/b"},
		clientGo:   []string{"[ns/a], synced true", "events: add ns/a, add ns/b, update ns/a"},
		difference: relists,
	},
	{
		name: "a forbidden type that is allowed later",
		use: func(p *program) {
			p.create("ns", "a")
			p.cluster.Intercept(forbid(widgets))
			f := p.newFactory(p.cluster, 0)
			seen := p.listen(f.ForResource(widgets).Informer())
			f.Start(p.stop)
			p.note("synced: %v", f.WaitForCacheSync(after(10 * time.Minute))[widgets])
			p.cluster.Intercept(nil)
			p.note("synced: %v", f.WaitForCacheSync(after(2 * time.Minute))[widgets])
			p.noteEvents("events", seen)
		},
		want: []string{"synced: false", "synced: true", "events: add ns/a"},
	},
	{
		name: "a registration that is asked for its sync in a poll",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 0)
			var handled bool
			registration, err := f.ForResource(widgets).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
				time.Sleep(time.Minute)
				handled = true
			}})
			p.must(err)
			f.Start(p.stop)
			for !registration.HasSynced() {
				time.Sleep(time.Second)
			}
			p.note("handled: %v", handled)
		},
		want: []string{"handled: true"},
	},
	{
		name: "a nil handler of watch errors and of transforms",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			p.must(informer.SetTransform(nil))
			f.Start(p.stop)
			p.note("%s", fmt.Sprint(f.WaitForCacheSync(p.stop)[widgets], informer.GetStore().ListKeys()))
		},
		want: []string{"true [ns/a]"},
	},
}
