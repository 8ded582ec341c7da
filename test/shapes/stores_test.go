package shapes_test

import (
	"fmt"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic/dynamiclister"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// bySize is an index function of programs.
func bySize(obj any) ([]string, error) {
	u, is := obj.(*unstructured.Unstructured)
	if !is {
		return nil, nil
	}
	size, _, err := unstructured.NestedInt64(u.Object, "spec", "size")
	return []string{fmt.Sprint(size)}, err
}

// widgetLister is a typed lister of a program, on any informer.
type widgetLister struct{ generic cache.GenericLister }

func newWidgetLister(informer informers.GenericInformer) widgetLister {
	return widgetLister{informer.Lister()}
}

func (l widgetLister) list(namespace string, selector labels.Selector) (found []*Widget, err error) {
	objs, err := l.generic.ByNamespace(namespace).List(selector)
	for _, obj := range objs {
		w, err := toWidget(obj)
		if err != nil {
			return nil, err
		}
		found = append(found, w)
	}
	return found, err
}

func (l widgetLister) get(namespace, name string) (*Widget, error) {
	obj, err := l.generic.ByNamespace(namespace).Get(name)
	if err != nil {
		return nil, err
	}
	return toWidget(obj)
}

// storeShapes read caches, and write to them.
var storeShapes = []shape{
	{
		name: "a lister that is used before the cache has synced",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 0)
			lister := f.ForResource(widgets).Lister()
			all, err := lister.List(labels.Everything())
			p.note("%d %v", len(all), err)
			_, err = lister.ByNamespace("ns").Get("a")
			p.note("%v", err)
			f.Start(p.stop)
			synctest.Wait()
			_, err = lister.ByNamespace("ns").Get("a")
			p.note("%v", err)
		},
		want: []string{"0 <nil>", `widgets.example.com "a" not found`, "<nil>"},
	},
	{
		name: "a lister by namespace and by selector",
		use: func(p *program) {
			for _, ns := range []string{"one", "two"} {
				p.create(ns, "a")
				p.create(ns, "b")
			}
			f := p.newFactory(p.cluster, 0)
			lister := f.ForResource(widgets).Lister()
			f.Start(p.stop)
			f.WaitForCacheSync(p.stop)
			selector, err := labels.Parse("app=a")
			p.must(err)
			all, err := lister.List(selector)
			p.note("all: %d %v", len(all), err)
			in, err := lister.ByNamespace("one").List(selector)
			p.note("in one: %d %v", len(in), err)
			everywhere, err := lister.ByNamespace("").List(labels.Everything())
			p.note("in all: %d %v", len(everywhere), err)
			_, err = lister.ByNamespace("one").Get("c")
			p.note("NotFound: %v", apierrors.IsNotFound(err))
		},
		want: []string{"all: 2 <nil>", "in one: 1 <nil>", "in all: 4 <nil>", "NotFound: true"},
	},
	{
		name: "a lister of an informer without indexers",
		use: func(p *program) {
			p.create("ns", "a")
			p.create("other", "b")
			for _, indexers := range []cache.Indexers{nil, {}} {
				generic := p.newFilteredInformer(p.cluster, widgets, "", 0, indexers, nil)
				go generic.Informer().Run(p.stop)
				cache.WaitForCacheSync(p.stop, generic.Informer().HasSynced)
				all, err := generic.Lister().List(labels.Everything())
				p.note("%d %v", len(all), err)
				in, err := generic.Lister().ByNamespace("ns").List(labels.Everything())
				p.note("in ns: %d %v", len(in), err)
				_, err = generic.Lister().Get("ns/a")
				p.note("by key: %v", err)
			}
		},
		want: []string{"2 <nil>", "in ns: 1 <nil>", "by key: <nil>", "2 <nil>", "in ns: 1 <nil>", "by key: <nil>"},
	},
	{
		name: "a lister whose result is compared with nil",
		use: func(p *program) {
			obj, err := p.newFactory(p.cluster, 0).ForResource(widgets).Lister().ByNamespace("ns").Get("missing")
			p.note("nil: %v, %v", obj == nil, err)
		},
		want:       []string{`nil: true, widgets.example.com "missing" not found`},
		clientGo:   []string{`nil: false, widgets.example.com "missing" not found`},
		difference: failed,
	},
	{
		name: "a typed lister on a generic informer",
		use: func(p *program) {
			p.create("ns", "a")
			p.create("ns", "b")
			f := p.newFactory(p.cluster, 0)
			lister := newWidgetLister(f.ForResource(widgets))
			f.Start(p.stop)
			f.WaitForCacheSync(p.stop)
			w, err := lister.get("ns", "a")
			p.note("%s %d %v", w.Name, w.Spec.Size, err)
			all, err := lister.list("ns", labels.SelectorFromSet(labels.Set{"app": "b"}))
			p.note("%d %v", len(all), err)
			_, err = lister.get("ns", "c")
			p.note("NotFound: %v", apierrors.IsNotFound(err))
		},
		want: []string{"a 1 <nil>", "1 <nil>", "NotFound: true"},
	},
	{
		name: "client-go's dynamic lister on the indexer",
		use: func(p *program) {
			p.create("ns", "a")
			generic := p.newFilteredInformer(p.cluster, widgets, "", 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, nil)
			lister := dynamiclister.New(generic.Informer().GetIndexer(), widgets)
			go generic.Informer().Run(p.stop)
			cache.WaitForCacheSync(p.stop, generic.Informer().HasSynced)
			u, err := lister.Namespace("ns").Get("a")
			p.note("%s %v", u.GetName(), err)
			all, err := lister.List(labels.Everything())
			p.note("%d %v", len(all), err)
		},
		want: []string{"a <nil>", "1 <nil>"},
	},
	{
		name: "indexers that are added before and after Start",
		use: func(p *program) {
			p.create("ns", "a")
			p.createIn(p.cluster, widget("ns", "b", 2))
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			p.must(informer.AddIndexers(cache.Indexers{"size": bySize}))
			p.note("the same name: %v", informer.GetIndexer().AddIndexers(cache.Indexers{"size": bySize}) != nil)
			f.Start(p.stop)
			f.WaitForCacheSync(p.stop)
			byName := func(obj any) ([]string, error) { return []string{obj.(*unstructured.Unstructured).GetName()}, nil }
			p.must(informer.GetIndexer().AddIndexers(cache.Indexers{"name": byName}))
			synctest.Wait()
			for _, query := range [][2]string{{"size", "1"}, {"size", "2"}, {"name", "b"}, {"name", "c"}, {cache.NamespaceIndex, "ns"}} {
				objs, err := informer.GetIndexer().ByIndex(query[0], query[1])
				p.note("%s=%s: %d %v", query[0], query[1], len(objs), err)
			}
			keys, err := informer.GetIndexer().IndexKeys("name", "a")
			p.note("%v %v", keys, err)
			p.note("%v", sorted(informer.GetIndexer().ListIndexFuncValues("size")))
			_, err = informer.GetIndexer().ByIndex("color", "red")
			p.note("%v", err)
			p.resize("a", 2)
			synctest.Wait()
			objs, err := informer.GetIndexer().ByIndex("size", "2")
			p.note("%d %v", len(objs), err)
		},
		want: []string{
			"the same name: true", "size=1: 1 <nil>", "size=2: 1 <nil>", "name=b: 1 <nil>", "name=c: 0 <nil>", "namespace=ns: 2 <nil>",
			"[ns/a] <nil>", "[1 2]", "Index with name color does not exist", "2 <nil>",
		},
	},
	{
		name: "objects that a test adds to the store of an informer that never runs",
		use: func(p *program) {
			generic := p.newFactory(p.cluster, 0).ForResource(widgets)
			p.must(generic.Informer().GetIndexer().AddIndexers(cache.Indexers{"size": bySize}))
			p.must(generic.Informer().GetStore().Add(widget("ns", "a", 3)))
			p.must(generic.Informer().GetIndexer().Add(widget("ns", "b", 3)))
			obj, err := generic.Lister().ByNamespace("ns").Get("a")
			p.must(err)
			p.note("%s", obj.(*unstructured.Unstructured).GetName())
			objs, err := generic.Informer().GetIndexer().ByIndex("size", "3")
			p.note("%d %v", len(objs), err)
			p.must(generic.Informer().GetStore().Update(widget("ns", "a", 4)))
			p.must(generic.Informer().GetStore().Delete(widget("ns", "b", 3)))
			objs, err = generic.Informer().GetIndexer().ByIndex("size", "4")
			p.note("%d %v %v", len(objs), err, generic.Informer().GetStore().ListKeys())
			p.must(generic.Informer().GetStore().Replace([]any{widget("ns", "c", 5)}, "7"))
			all, err := generic.Lister().List(labels.Everything())
			p.note("%d %v %v", len(all), err, generic.Informer().GetStore().ListKeys())
		},
		want: []string{"a", "2 <nil>", "1 <nil> [ns/a]", "1 <nil> [ns/c]"},
	},
	{
		name: "objects that a program writes to the store of a running informer",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			seen := p.listen(informer)
			p.must(informer.GetStore().Add(widget("ns", "before", 1)))
			f.Start(p.stop)
			f.WaitForCacheSync(p.stop)
			p.noteEvents("events", seen)
			p.note("%v", sorted(informer.GetStore().ListKeys()))
			created := p.create("ns", "own") // a program that does not wait for its own write
			p.must(informer.GetStore().Add(created))
			p.note("%v", sorted(informer.GetStore().ListKeys()))
			p.must(informer.GetStore().Delete(widget("ns", "a", 1)))
			_, exists, err := informer.GetStore().GetByKey("ns/a")
			p.note("%v %v", exists, err)
			synctest.Wait()
			p.resize("a", 2)
			p.resize("own", 2)
			synctest.Wait()
			p.note("%v", sorted(informer.GetStore().ListKeys()))
		},
		want: []string{"events: add ns/a, delete ns/before", "[ns/a]", "[ns/a ns/own]", "false <nil>", "[ns/a ns/own]"},
	},
	{
		name: "a store that is read by key and by object",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 0)
			store := f.ForResource(widgets).Informer().GetStore()
			f.Start(p.stop)
			f.WaitForCacheSync(p.stop)
			obj, exists, err := store.Get(widget("ns", "a", 0))
			p.must(err)
			size, _, err := unstructured.NestedInt64(obj.(*unstructured.Unstructured).Object, "spec", "size")
			p.note("%v %d %v", exists, size, err)
			_, exists, err = store.GetByKey("ns/b")
			p.note("%v %v", exists, err)
			for _, obj := range store.List() {
				key, err := cache.MetaNamespaceKeyFunc(obj)
				p.note("%s %v", key, err)
			}
		},
		want: []string{"true 1 <nil>", "false <nil>", "ns/a <nil>"},
	},
	{
		name: "an object that is copied before it is changed",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 0)
			lister := f.ForResource(widgets).Lister()
			f.Start(p.stop)
			f.WaitForCacheSync(p.stop)
			obj, err := lister.ByNamespace("ns").Get("a")
			p.must(err)
			own := obj.(*unstructured.Unstructured).DeepCopy()
			p.must(unstructured.SetNestedField(own.Object, int64(9), "spec", "size"))
			again, err := lister.ByNamespace("ns").Get("a")
			p.must(err)
			p.note("%v, its own: %v", again.(*unstructured.Unstructured).Object["spec"], own.Object["spec"])
			time.Sleep(5 * time.Second) // client-go's mutation detector may be on
		},
		want: []string{"map[size:1], its own: map[size:9]"},
	},
}
