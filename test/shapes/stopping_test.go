package shapes_test

import (
	"context"
	"sync"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// stopShapes start, stop and restart informers.
var stopShapes = []shape{
	{
		name: "a stop channel that may be closed twice, with sync.Once",
		use: func(p *program) {
			stop, once := make(chan struct{}), sync.Once{}
			end := func() { once.Do(func() { close(stop) }) }
			f := p.newFactory(p.cluster, 0)
			f.ForResource(widgets)
			f.Start(stop)
			f.WaitForCacheSync(stop)
			p.noteOpen()
			end()
			end()
			f.Shutdown()
			p.noteOpen()
		},
		want: []string{"watches: 1 widgets, 0 nodes", "watches: 0 widgets, 0 nodes"},
	},
	{
		name: "Start with several stop channels",
		use: func(p *program) {
			first, second := make(chan struct{}), make(chan struct{})
			f := p.newFactory(p.cluster, 0)
			f.ForResource(widgets)
			f.Start(first)
			f.ForResource(nodes)
			f.Start(second) // widgets keep their channel
			p.noteOpen()
			close(second)
			p.noteOpen()
			close(first)
			p.noteOpen()
			f.Shutdown()
		},
		want: []string{"watches: 1 widgets, 1 nodes", "watches: 1 widgets, 0 nodes", "watches: 0 widgets, 0 nodes"},
	},
	{
		name: "Start with a channel that is closed",
		use: func(p *program) {
			stop := make(chan struct{})
			close(stop)
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			f.Start(stop)
			synctest.Wait()
			synced, known := f.WaitForCacheSync(stop)[widgets]
			p.note("synced: %v, in the map: %v %v", informer.HasSynced(), synced, known)
			f.Shutdown()
			p.noteOpen()
		},
		want: []string{"synced: false, in the map: false true", "watches: 0 widgets, 0 nodes"},
	},
	{
		name: "ForResource and Start on each use",
		use: func(p *program) {
			p.create("ns", "a")
			stop := make(chan struct{})
			f := p.newFactory(p.cluster, time.Minute)
			inform := func(gvr schema.GroupVersionResource) cache.GenericLister {
				informer := f.ForResource(gvr)
				f.Start(stop)
				if !cache.WaitForCacheSync(stop, informer.Informer().HasSynced) {
					p.note("not synced")
				}
				return informer.Lister()
			}
			for range 3 {
				for _, gvr := range []schema.GroupVersionResource{widgets, nodes} {
					all, err := inform(gvr).List(labels.Everything())
					p.must(err)
					p.note("%s: %d", gvr.Resource, len(all))
				}
			}
			p.noteOpen()
			close(stop)
			f.Shutdown()
		},
		want: []string{"widgets: 1", "nodes: 0", "widgets: 1", "nodes: 0", "widgets: 1", "nodes: 0", "watches: 1 widgets, 1 nodes"},
	},
	{
		name: "Start in a goroutine, and a wait for the informer",
		use: func(p *program) {
			p.create("ns", "a")
			ctx, cancel := context.WithCancel(p.t.Context())
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			go f.Start(ctx.Done())
			p.note("synced: %v, objects: %d", cache.WaitForCacheSync(ctx.Done(), informer.HasSynced), len(informer.GetStore().List()))
			cancel()
			f.Shutdown()
		},
		want: []string{"synced: true, objects: 1"},
	},
	{
		name: "Run by hand, then Start",
		use: func(p *program) {
			p.create("ns", "a")
			byHand, byFactory := make(chan struct{}), make(chan struct{})
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			seen := p.listen(informer)
			ended := make(chan struct{})
			go func() { defer close(ended); informer.Run(byHand) }()
			synctest.Wait()
			f.Start(byFactory)
			p.note("synced: %v", f.WaitForCacheSync(byFactory)[widgets])
			p.noteEvents("events", seen)
			p.noteOpen()
			close(byFactory) // the informer has its own channel
			p.noteOpen()
			p.create("ns", "b")
			p.noteEvents("events", seen)
			close(byHand)
			<-ended
			f.Shutdown()
			p.noteOpen()
			p.note("stopped: %v", informer.IsStopped())
		},
		want: []string{
			"synced: true", "events: add ns/a", "watches: 1 widgets, 0 nodes", "watches: 1 widgets, 0 nodes",
			"events: add ns/b", "watches: 0 widgets, 0 nodes", "stopped: true",
		},
	},
	{
		name: "Start, then Run by hand",
		use: func(p *program) {
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			stop, byHand := make(chan struct{}), make(chan struct{})
			f.Start(stop)
			synctest.Wait()
			returned := false
			go func() { informer.Run(byHand); returned = true }()
			synctest.Wait()
			p.note("Run has returned: %v", returned)
			close(byHand)
			p.noteOpen()
			close(stop)
			f.Shutdown()
			p.noteOpen()
		},
		want: []string{"Run has returned: true", "watches: 1 widgets, 0 nodes", "watches: 0 widgets, 0 nodes"},
	},
	{
		name: "the informer of a factory that is never started, run by hand",
		use: func(p *program) {
			p.create("ns", "a")
			stop, ended := make(chan struct{}), make(chan struct{})
			informer := p.newFactory(p.cluster, 0).ForResource(widgets).Informer()
			seen := p.listen(informer)
			go func() { defer close(ended); informer.Run(stop) }()
			p.note("synced: %v", cache.WaitForNamedCacheSync("widgets", stop, informer.HasSynced))
			p.noteEvents("events", seen)
			close(stop)
			<-ended
			p.noteOpen()
		},
		want: []string{"synced: true", "events: add ns/a", "watches: 0 widgets, 0 nodes"},
	},
	{
		name: "an informer that is run again after its end",
		use: func(p *program) {
			informer := p.newFilteredInformer(p.cluster, widgets, "", 0, cache.Indexers{}, nil).Informer()
			for range 2 {
				ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
				begun := time.Now()
				informer.RunWithContext(ctx)
				p.note("it ran for %v, stopped: %v", time.Since(begun).Round(time.Second), informer.IsStopped())
				cancel()
			}
		},
		want: []string{"it ran for 1m0s, stopped: true", "it ran for 0s, stopped: true"},
	},
	{
		name: "a factory for each type, and another one after its end",
		use: func(p *program) {
			seen := &events{}
			for i := range 3 {
				p.create("ns", string(rune('a'+i)))
				stop := make(chan struct{})
				f := p.newFactory(p.cluster, 0)
				informer := f.ForResource(widgets).Informer()
				_, err := informer.AddEventHandler(seen)
				p.must(err)
				f.Start(stop)
				f.WaitForCacheSync(stop)
				p.noteEvents("events", seen)
				close(stop)
				f.Shutdown()
				p.note("stopped: %v", informer.IsStopped())
				p.noteOpen()
			}
		},
		want: []string{
			"events: add ns/a", "stopped: true", "watches: 0 widgets, 0 nodes",
			"events: add ns/a, add ns/b", "stopped: true", "watches: 0 widgets, 0 nodes",
			"events: add ns/a, add ns/b, add ns/c", "stopped: true", "watches: 0 widgets, 0 nodes",
		},
	},
	{
		name: "a test that fills caches, and stops the factory",
		use: func(p *program) {
			p.create("ns", "a")
			stop := make(chan struct{})
			f := p.newFactory(p.cluster, 0)
			before := f.ForResource(widgets)
			f.Start(stop)
			f.WaitForCacheSync(stop)
			close(stop)
			synctest.Wait()
			for _, generic := range []informers.GenericInformer{before, f.ForResource(widgets)} {
				all, err := generic.Lister().List(labels.Everything())
				p.must(err)
				_, err = generic.Lister().ByNamespace("ns").Get("a")
				p.note("%d, %v; store %v, synced %v", len(all), err, generic.Informer().GetStore().ListKeys(), generic.Informer().HasSynced())
			}
		},
		want:       []string{"1, <nil>; store [ns/a], synced true", "1, <nil>; store [], synced false"},
		clientGo:   []string{"1, <nil>; store [ns/a], synced true", "1, <nil>; store [ns/a], synced true"},
		difference: stopped,
	},
	{
		name: "a monitor that keeps the controller and the store of an informer",
		use: func(p *program) {
			p.create("ns", "a")
			stop, ended := make(chan struct{}), make(chan struct{})
			f := p.newFactory(p.cluster, 12*time.Hour)
			informer := f.ForResource(widgets).Informer()
			seen := &events{}
			_, err := informer.AddEventHandlerWithResyncPeriod(seen, 0)
			p.must(err)
			controller, store := informer.GetController(), informer.GetStore()
			f.Start(stop)
			go func() { defer close(ended); controller.Run(stop) }()
			<-ended // the factory runs the informer
			p.note("synced: %v", cache.WaitForNamedCacheSync("monitors", stop, controller.HasSynced))
			time.Sleep(25 * time.Hour)
			p.noteEvents("events", seen)
			p.note("%v", store.ListKeys())
			close(stop)
			f.Shutdown()
		},
		want: []string{"synced: true", "events: add ns/a", "[ns/a]"},
	},
	{
		name: "the same factory after the end of its informer",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 0)
			for range 2 {
				stop := make(chan struct{})
				seen := &events{}
				_, err := f.ForResource(widgets).Informer().AddEventHandler(seen)
				p.note("accepted: %v", err == nil)
				f.Start(stop)
				p.noteEvents("events", seen)
				p.noteOpen()
				close(stop)
				synctest.Wait()
			}
		},
		want: []string{
			"accepted: true", "events: add ns/a", "watches: 1 widgets, 0 nodes",
			"accepted: true", "events: add ns/a", "watches: 1 widgets, 0 nodes",
		},
		clientGo: []string{
			"accepted: true", "events: add ns/a", "watches: 1 widgets, 0 nodes",
			"accepted: false", "events: ", "watches: 0 widgets, 0 nodes",
		},
		difference: stopped,
	},
	{
		name: "a factory for new types every 30 seconds, all with one stop channel",
		use: func(p *program) {
			p.create("ns", "a")
			stop, known := make(chan struct{}), map[schema.GroupVersionResource]bool{}
			seen := &events{}
			var ended []factory
			for _, found := range [][]schema.GroupVersionResource{{widgets}, {widgets}, {widgets, nodes}} {
				f := p.newFactory(p.cluster, 30*time.Second)
				for _, gvr := range found {
					if known[gvr] {
						continue
					}
					known[gvr] = true
					_, err := f.ForResource(gvr).Informer().AddEventHandler(seen)
					p.must(err)
				}
				f.Start(stop)
				f.WaitForCacheSync(stop)
				ended = append(ended, f)
				p.noteOpen()
				time.Sleep(10 * time.Second)
			}
			p.noteEvents("events", seen)
			close(stop)
			for _, f := range ended {
				f.Shutdown()
			}
			p.noteOpen()
		},
		want: []string{
			"watches: 1 widgets, 0 nodes", "watches: 1 widgets, 0 nodes", "watches: 1 widgets, 1 nodes",
			"events: add ns/a, update ns/a", "watches: 0 widgets, 0 nodes",
		},
	},
	{
		name: "Shutdown blocks until the stop channel is closed",
		use: func(p *program) {
			stop, down := make(chan struct{}), make(chan struct{})
			f := p.newFactory(p.cluster, 0)
			f.ForResource(widgets)
			f.Start(stop)
			go func() { defer close(down); f.Shutdown() }()
			time.Sleep(time.Hour)
			select {
			case <-down:
				p.note("it has returned")
			default:
				p.noteOpen()
			}
			close(stop)
			<-down
			f.ForResource(nodes)
			f.Start(p.stop)
			p.noteOpen()
		},
		want: []string{"watches: 1 widgets, 0 nodes", "watches: 0 widgets, 0 nodes"},
	},
	{
		name: "the map of WaitForCacheSync says which types have not synced",
		use: func(p *program) {
			p.cluster.Intercept(forbid(nodes))
			f := p.newFactory(p.cluster, 0)
			f.ForResource(widgets)
			f.ForResource(nodes)
			f.Start(p.stop)
			ctx, cancel := context.WithTimeout(p.t.Context(), 30*time.Second)
			defer cancel()
			for gvr, synced := range f.WaitForCacheSync(ctx.Done()) {
				if !synced {
					p.note("%s has not synced", gvr.Resource)
				}
			}
			p.note("%v", ctx.Err())
		},
		want: []string{"nodes has not synced", "context deadline exceeded"},
	},
	{
		name: "a wait for informers that may have been stopped",
		use: func(p *program) {
			p.cluster.Intercept(forbid(widgets))
			f := p.newFactory(p.cluster, 0)
			f.ForResource(widgets)
			stop := make(chan struct{})
			f.Start(stop)
			close(stop)
			begun := time.Now()
			got := f.WaitForCacheSync(after(time.Minute))
			p.note("%v after %v", got[widgets], time.Since(begun).Round(time.Second))
		},
		want:       []string{"false after 0s"},
		clientGo:   []string{"false after 1m0s"},
		difference: polls,
	},
	{
		name: "IsStopped, LastSyncResourceVersion and GetController are polled",
		use: func(p *program) {
			p.create("ns", "a")
			stop := make(chan struct{})
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			look := func(when string) {
				synctest.Wait()
				p.note("%s: stopped %v, synced %v, version %q, controller %v %q", when, informer.IsStopped(), informer.HasSynced(),
					informer.LastSyncResourceVersion(), informer.GetController().HasSynced(), informer.GetController().LastSyncResourceVersion())
			}
			look("before")
			f.Start(stop)
			look("runs")
			p.create("ns", "b")
			look("later")
			close(stop)
			f.Shutdown()
			look("after")
		},
		want: []string{
			`before: stopped false, synced false, version "", controller false ""`,
			`runs: stopped false, synced true, version "2", controller true "2"`,
			`later: stopped false, synced true, version "3", controller true "3"`,
			`after: stopped true, synced true, version "3", controller true "3"`,
		},
	},
}
