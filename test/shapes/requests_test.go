package shapes_test

import (
	"slices"
	"strings"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"
)

// Rows of docs/migration.md.
const (
	hangs   = "A watch-list stream that never ends its initial events hangs the informer."
	relists = "A relist sends an update for every cached object, also for a replaced object, and a `DeletedFinalStateUnknown` for a deleted object."
	stopped = "`ForResource` returns a stopped informer again, and that informer rejects handlers."
	failed  = "A generic lister's failed `Get` returns an object that is not nil but holds a nil pointer."
	polls   = "`WaitForCacheSync` polls every 100 ms, one informer after another, and also waits for stopped informers."
)

// requestShapes choose what is requested.
var requestShapes = []shape{
	{
		name: "a tweak replaces all options",
		use: func(p *program) {
			p.create("ns", "a")
			p.create("ns", "b")
			f := p.newFiltered(p.cluster, 0, metav1.NamespaceAll, func(o *metav1.ListOptions) {
				*o = metav1.ListOptions{LabelSelector: "app=a"}
			})
			informer := f.ForResource(widgets).Informer()
			seen := p.listen(informer)
			f.Start(p.stop)
			p.note("synced: %v", f.WaitForCacheSync(after(time.Minute))[widgets])
			p.noteEvents("first", seen)
			p.resize("a", 2)
			p.noteEvents("later", seen)
		},
		want:       []string{"synced: true", "first: add ns/a, update ns/a", "later: update ns/a"}, // the watch begins with all objects
		clientGo:   []string{"synced: false", "first: ", "later: "},
		difference: hangs,
	},
	{
		name: "a tweak replaces all options and the watch ends",
		use: func(p *program) {
			p.cluster.Intercept(noWatchList)
			p.create("ns", "a")
			f := p.newFiltered(p.cluster, 0, metav1.NamespaceAll, func(o *metav1.ListOptions) {
				*o = metav1.ListOptions{LabelSelector: "app in (a,b)"}
			})
			informer := f.ForResource(widgets).Informer()
			f.Start(p.stop)
			synctest.Wait()
			p.cluster.CloseWatches(widgets)
			p.create("ns", "b")
			time.Sleep(time.Minute)
			p.note("%v", sorted(informer.GetStore().ListKeys()))
		},
		want:       []string{"[ns/a ns/b]"},
		clientGo:   []string{"[]"},
		difference: hangs,
	},
	{
		name: "a tweak adds to the options",
		use: func(p *program) {
			p.create("ns", "a")
			p.create("ns", "b")
			f := p.newFiltered(p.cluster, 0, "ns", func(o *metav1.ListOptions) {
				o.LabelSelector = labels.Set{"app": "a"}.AsSelector().String()
				o.Limit = 100
			})
			seen := p.listen(f.ForResource(widgets).Informer())
			f.Start(p.stop)
			p.noteEvents("first", seen)
			p.resize("a", 2)
			p.resize("b", 2)
			p.noteEvents("later", seen)
		},
		want: []string{"first: add ns/a", "later: update ns/a"},
	},
	{
		name: "one filtered factory for each namespace, merged by the program",
		use: func(p *program) {
			for _, ns := range []string{"one", "two", "three"} {
				p.create(ns, "a")
			}
			factories, stops := map[string]factory{}, map[string]chan struct{}{}
			seen := &events{}
			for _, ns := range []string{"one", "two"} {
				factories[ns], stops[ns] = p.newFiltered(p.cluster, 0, ns, nil), make(chan struct{})
				_, err := factories[ns].ForResource(widgets).Informer().AddEventHandler(seen)
				p.must(err)
				factories[ns].Start(stops[ns])
			}
			merged := func() (keys []string) {
				for _, f := range factories {
					for _, synced := range f.WaitForCacheSync(p.stop) {
						if !synced {
							p.note("not synced")
						}
					}
					all, err := f.ForResource(widgets).Lister().List(labels.Everything())
					p.must(err)
					for _, obj := range all {
						key, err := cache.MetaNamespaceKeyFunc(obj)
						p.must(err)
						keys = append(keys, key)
					}
				}
				return sorted(keys)
			}
			p.note("%v", merged())
			p.noteEvents("events", seen)
			close(stops["one"])
			factories["one"].Shutdown()
			delete(factories, "one")
			p.create("one", "b")
			p.create("two", "b")
			synctest.Wait()
			p.note("%v", merged())
			p.noteEvents("events", seen)
			close(stops["two"])
			factories["two"].Shutdown()
		},
		want: []string{"[one/a two/a]", "events: add one/a, add two/a", "[two/a two/b]", "events: add two/b"},
	},
	{
		name: "one informer for each namespace and type, in a map, with a function that stops it",
		use: func(p *program) {
			type running struct {
				informer cache.SharedIndexInformer
				stop     func()
			}
			all := map[string]*running{}
			p.create("one", "a")
			p.create("two", "a")
			for _, ns := range []string{"one", "two"} {
				stop, ended := make(chan struct{}), make(chan struct{})
				informer := p.newFilteredInformer(p.cluster, widgets, ns, time.Hour, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, nil).Informer()
				all[ns] = &running{informer, func() { close(stop); <-ended }}
				go func() { defer close(ended); informer.Run(stop) }()
				p.note("synced: %v", cache.WaitForCacheSync(stop, informer.HasSynced))
			}
			for _, ns := range []string{"one", "two"} {
				objs, err := all[ns].informer.GetIndexer().ByIndex(cache.NamespaceIndex, ns)
				p.must(err)
				p.note("%s: %d of %v", ns, len(objs), all[ns].informer.GetStore().ListKeys())
				all[ns].stop()
				p.noteOpen()
			}
		},
		want: []string{
			"synced: true", "synced: true", "one: 1 of [one/a]", "watches: 1 widgets, 0 nodes", "two: 1 of [two/a]", "watches: 0 widgets, 0 nodes",
		},
	},
	{
		name: "a field selector for one object",
		use: func(p *program) {
			p.create("ns", "a")
			p.create("ns", "b")
			informer := p.newFilteredInformer(p.cluster, widgets, "ns", 0, cache.Indexers{}, func(o *metav1.ListOptions) {
				o.FieldSelector = "metadata.name=a"
			}).Informer()
			got := make(chan string, 1)
			_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
				size, _, err := unstructured.NestedInt64(obj.(*unstructured.Unstructured).Object, "spec", "size")
				got <- strings.TrimSpace(strings.Join([]string{obj.(*unstructured.Unstructured).GetName(), errorText(err)}, " "))
				if size != 1 {
					p.note("size: %d", size)
				}
			}})
			p.must(err)
			go informer.Run(p.stop)
			p.note("%s", <-got)
		},
		want: []string{"a"},
	},
	{
		name: "a type that the cluster does not have beside one that it has",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, time.Minute)
			missing := widgets
			missing.Resource = "missing"
			f.ForResource(missing)
			seen := p.listen(f.ForResource(widgets).Informer())
			f.Start(p.stop)
			got := f.WaitForCacheSync(after(30 * time.Second))
			p.note("widgets %v, missing %v of %d", got[widgets], got[missing], len(got))
			p.noteEvents("events", seen)
		},
		want: []string{"widgets true, missing false of 2", "events: add ns/a"},
	},
	{
		name: "an update with another resourceVersion after the watch has expired",
		use: func(p *program) {
			p.create("ns", "a")
			p.create("ns", "same")
			f := p.newFactory(p.cluster, 0)
			seen := p.listen(f.ForResource(widgets).Informer())
			f.Start(p.stop)
			p.noteEvents("first", seen)
			p.cluster.Intercept(refuseAll(apierrors.NewServiceUnavailable("down")))
			p.cluster.CloseWatches(widgets)
			synctest.Wait()
			p.cluster.Intercept(nil)
			p.resize("a", 2)
			p.cluster.Expire(widgets)
			time.Sleep(time.Minute)
			p.noteEvents("later", seen)
		},
		want:       []string{"first: add ns/a, add ns/same", "later: update ns/a"},
		clientGo:   []string{"first: add ns/a, add ns/same", "later: update ns/a, update ns/same"},
		difference: relists,
	},
}

func sorted(keys []string) []string {
	slices.Sort(keys)
	return keys
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
