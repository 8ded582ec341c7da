package shapes_test

import (
	"fmt"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// manager has a factory as a field, and is the form in which programs pass it on.
type manager struct {
	dynamic   upstream.DynamicSharedInformerFactory
	byCluster map[string]dynamicinformer.DynamicSharedInformerFactory // a program in which one import line has changed
	listers   map[schema.GroupVersionResource]cache.GenericLister
}

// lister returns a lister for gvr, of an informer that it starts.
func (m *manager) lister(gvr schema.GroupVersionResource, stop <-chan struct{}) cache.GenericLister {
	if m.listers[gvr] == nil {
		m.listers[gvr] = m.dynamic.ForResource(gvr).Lister()
		m.dynamic.Start(stop)
		m.dynamic.WaitForCacheSync(stop)
	}
	return m.listers[gvr]
}

// factories is an interface of a program that embeds client-go's.
type factories interface {
	upstream.DynamicSharedInformerFactory
	Cluster() string
}

// named implements it.
type named struct {
	upstream.DynamicSharedInformerFactory
	cluster string
}

func (n named) Cluster() string { return n.cluster }

// counting is a factory of a program that wraps another one.
type counting struct {
	dynamicinformer.DynamicSharedInformerFactory
	requested []schema.GroupVersionResource
}

func (c *counting) ForResource(gvr schema.GroupVersionResource) informers.GenericInformer {
	c.requested = append(c.requested, gvr)
	return c.DynamicSharedInformerFactory.ForResource(gvr)
}

// startAndCount is a function with the smallest interface that it needs.
func startAndCount(f interface {
	ForResource(gvr schema.GroupVersionResource) informers.GenericInformer
	Start(stopCh <-chan struct{})
}, gvr schema.GroupVersionResource, stop <-chan struct{},
) (int, error) {
	generic := f.ForResource(gvr)
	f.Start(stop)
	if !cache.WaitForCacheSync(stop, generic.Informer().HasSynced) {
		return 0, fmt.Errorf("%v has not synced", gvr)
	}
	all, err := generic.Lister().List(labels.Everything())
	return len(all), err
}

// typeShapes pass factories on, as values of client-go's types.
var typeShapes = []shape{
	{
		name: "a factory as a field, and in a map",
		use: func(p *program) {
			p.create("ns", "a")
			m := &manager{
				dynamic:   p.newFactory(p.cluster, time.Minute),
				byCluster: map[string]dynamicinformer.DynamicSharedInformerFactory{},
				listers:   map[schema.GroupVersionResource]cache.GenericLister{},
			}
			for range 2 {
				all, err := m.lister(widgets, p.stop).List(labels.Everything())
				p.note("%d %v", len(all), err)
			}
			m.byCluster["first"] = m.dynamic
			m.dynamic = m.byCluster["first"]
			_, known := m.byCluster["second"]
			p.note("%v, equal %v", known, m.dynamic == m.byCluster["first"])
			p.note("the same informer: %v", m.dynamic.ForResource(widgets).Informer() == m.byCluster["first"].ForResource(widgets).Informer())
		},
		want: []string{"1 <nil>", "1 <nil>", "false, equal true", "the same informer: true"},
	},
	{
		name: "a factory in an interface of the program",
		use: func(p *program) {
			p.create("ns", "a")
			var f factories = named{p.newFactory(p.cluster, 0), "first"}
			n, err := startAndCount(f, widgets, p.stop)
			p.note("%s: %d %v", f.Cluster(), n, err)
			_, is := f.(interface{ Shutdown() })
			p.note("Shutdown: %v", is)
		},
		want: []string{"first: 1 <nil>", "Shutdown: true"},
	},
	{
		name: "a factory that wraps another one",
		use: func(p *program) {
			p.create("ns", "a")
			f := &counting{DynamicSharedInformerFactory: p.newFactory(p.cluster, 0)}
			seen := p.listen(upstream.DynamicSharedInformerFactory(f).ForResource(widgets).Informer())
			n, err := startAndCount(f, widgets, p.stop)
			p.note("%d %v, requested %d", n, err, len(f.requested))
			p.noteEvents("events", seen)
		},
		want: []string{"1 <nil>, requested 2", "events: add ns/a"},
	},
	{
		name: "constructors in a map of the program",
		use: func(p *program) {
			p.create("ns", "a")
			type constructor func(dynamic.Interface, time.Duration) upstream.DynamicSharedInformerFactory
			constructors := map[string]constructor{
				"plain":    p.newFactory,
				"filtered": func(c dynamic.Interface, d time.Duration) factory { return p.newFiltered(c, d, "other", nil) },
			}
			for _, name := range []string{"plain", "filtered"} {
				n, err := startAndCount(constructors[name](p.cluster, 0), widgets, p.stop)
				p.note("%s: %d %v", name, n, err)
			}
		},
		want: []string{"plain: 1 <nil>", "filtered: 0 <nil>"},
	},
	{
		name: "a generic informer that is stored beside its lister",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 0)
			generics := map[string]informers.GenericInformer{"widgets": f.ForResource(widgets), "nodes": f.ForResource(nodes)}
			var synced []cache.InformerSynced
			for _, generic := range generics {
				synced = append(synced, generic.Informer().HasSynced)
			}
			f.Start(p.stop)
			p.note("%v", cache.WaitForCacheSync(p.stop, synced...))
			synctest.Wait()
			for _, name := range []string{"widgets", "nodes"} {
				all, err := generics[name].Lister().List(labels.Everything())
				p.note("%s: %d %v, the same informer: %v", name, len(all), err, generics[name].Informer() == generics[name].Informer())
			}
		},
		want: []string{"true", "widgets: 1 <nil>, the same informer: true", "nodes: 0 <nil>, the same informer: true"},
	},
}
