package shapes_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Widget is the program's own type of widgets.
type Widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Size int64 `json:"size"`
	} `json:"spec"`
}

// DeepCopyObject implements runtime.Object.
func (w *Widget) DeepCopyObject() runtime.Object {
	c, own := *w, &w.ObjectMeta
	own.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// toWidget converts an unstructured object.
func toWidget(obj any) (*Widget, error) {
	u, is := obj.(*unstructured.Unstructured)
	if !is {
		return nil, fmt.Errorf("a %T", obj)
	}
	w := &Widget{}
	return w, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, w)
}

// handlerShapes add handlers and controllers.
var handlerShapes = []shape{
	{
		name: "a transform to typed objects",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			p.must(informer.SetTransform(func(obj any) (any, error) {
				if w, is := obj.(*Widget); is { // a transform may get its own result
					return w, nil
				}
				return toWidget(obj)
			}))
			_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
				AddFunc:    func(obj any) { p.note("add %d", obj.(*Widget).Spec.Size) },
				UpdateFunc: func(old, obj any) { p.note("update %d %d", old.(*Widget).Spec.Size, obj.(*Widget).Spec.Size) },
				DeleteFunc: func(obj any) {
					if last, is := obj.(cache.DeletedFinalStateUnknown); is {
						obj = last.Obj
					}
					p.note("delete %d", obj.(*Widget).Spec.Size)
				},
			})
			p.must(err)
			f.Start(p.stop)
			synctest.Wait()
			p.resize("a", 2)
			synctest.Wait()
			obj, exists, err := informer.GetStore().GetByKey("ns/a")
			p.must(err)
			p.note("%v %d", exists, obj.(*Widget).Spec.Size)
			p.removeA()
			synctest.Wait()
		},
		want: []string{"add 1", "update 1 2", "true 2", "delete 2"},
	},
	{
		name: "a transform that removes fields",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 0)
			generic := f.ForResource(widgets)
			p.must(generic.Informer().SetTransform(func(obj any) (any, error) {
				u, is := obj.(*unstructured.Unstructured)
				if !is { // such as a DeletedFinalStateUnknown
					return obj, nil
				}
				u.SetManagedFields(nil)
				unstructured.RemoveNestedField(u.Object, "spec")
				return u, nil
			}))
			f.Start(p.stop)
			synctest.Wait()
			obj, err := generic.Lister().ByNamespace("ns").Get("a")
			p.must(err)
			p.note("%v", obj.(*unstructured.Unstructured).Object["spec"])
			p.note("after Start: %v", generic.Informer().SetTransform(func(obj any) (any, error) { return obj, nil }) != nil)
		},
		want: []string{"<nil>", "after Start: true"},
	},
	{
		name: "a handler that converts to a Go type",
		use: func(p *program) {
			p.createIn(p.cluster, widget("ns", "a", 1<<53+1)) // a float64 would lose the last bit
			f := p.newFactory(p.cluster, 0)
			_, err := f.ForResource(widgets).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
				w, err := toWidget(obj)
				p.note("%s %s %d %v", w.Kind, w.Name, w.Spec.Size, err)
			}})
			p.must(err)
			f.Start(p.stop)
			synctest.Wait()
		},
		want: []string{"Widget a 9007199254740993 <nil>"},
	},
	{
		name: "a handler that calls the lister",
		use: func(p *program) {
			f := p.newFactory(p.cluster, 0)
			generic := f.ForResource(widgets)
			look := func(event string, obj any) {
				key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
				p.must(err)
				_, err = generic.Lister().Get(key)
				all, listed := generic.Lister().ByNamespace("ns").List(labels.Everything())
				p.note("%s %s: found %v, of %d %v, synced %v", event, key, err == nil, len(all), listed, generic.Informer().HasSynced())
			}
			_, err := generic.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
				AddFunc: func(obj any) { look("add", obj) }, UpdateFunc: func(_, obj any) { look("update", obj) }, DeleteFunc: func(obj any) { look("delete", obj) },
			})
			p.must(err)
			f.Start(p.stop)
			f.WaitForCacheSync(p.stop)
			p.create("ns", "a")
			synctest.Wait()
			p.resize("a", 2)
			synctest.Wait()
			p.removeA()
			synctest.Wait()
		},
		want: []string{
			"add ns/a: found true, of 1 <nil>, synced true", "update ns/a: found true, of 1 <nil>, synced true",
			"delete ns/a: found false, of 0 <nil>, synced true",
		},
	},
	{
		name: "a handler that ignores events until the cache has synced",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			var synced atomic.Bool
			_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
				if synced.Load() {
					p.note("add %s", obj.(*unstructured.Unstructured).GetName())
				}
			}})
			p.must(err)
			f.Start(p.stop)
			if !cache.WaitForCacheSync(p.stop, informer.HasSynced) {
				p.note("not synced")
			}
			synctest.Wait()
			synced.Store(true)
			p.create("ns", "b")
			synctest.Wait()
		},
		want: []string{"add b"},
	},
	{
		name: "handlers that know the initial list, and that filter",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			_, err := informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{AddFunc: func(obj any, initial bool) {
				p.note("add %s, initial: %v", obj.(*unstructured.Unstructured).GetName(), initial)
			}})
			p.must(err)
			large := &events{}
			filtered, err := informer.AddEventHandler(cache.FilteringResourceEventHandler{
				FilterFunc: func(obj any) bool {
					u, is := obj.(*unstructured.Unstructured)
					if !is {
						return false
					}
					size, _, err := unstructured.NestedInt64(u.Object, "spec", "size")
					return err == nil && size > 1
				},
				Handler: large,
			})
			p.must(err)
			f.Start(p.stop)
			p.note("synced: %v", cache.WaitForCacheSync(p.stop, filtered.HasSynced))
			p.create("ns", "b")
			p.noteEvents("large", large)
			p.resize("a", 2)
			p.noteEvents("large", large)
			p.resize("a", 1)
			p.noteEvents("large", large)
		},
		want: []string{"add a, initial: true", "synced: true", "add b, initial: false", "large: ", "large: add ns/a", "large: delete ns/a"},
	},
	{
		name: "a handler that is added to a running informer, and removed",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			f.Start(p.stop)
			f.WaitForCacheSync(p.stop)
			first, second := &events{}, &events{}
			registration, err := informer.AddEventHandler(first)
			p.must(err)
			_, err = informer.AddEventHandler(second)
			p.must(err)
			p.noteEvents("first", first)
			p.note("synced: %v", registration.HasSynced())
			p.note("removed: %v, again: %v", informer.RemoveEventHandler(registration), informer.RemoveEventHandler(registration))
			p.create("ns", "b")
			p.noteEvents("first", first)
			p.noteEvents("second", second)
			p.note("another informer's: %v", p.newFactory(p.cluster, 0).ForResource(widgets).Informer().RemoveEventHandler(registration))
		},
		want: []string{"first: add ns/a", "synced: true", "removed: <nil>, again: <nil>", "first: ", "second: add ns/a, add ns/b", "another informer's: <nil>"},
	},
	{
		name: "a registration for each consumer, and the end of the informer after the last one",
		use: func(p *program) {
			p.create("ns", "a")
			generic := p.newFilteredInformer(p.cluster, widgets, "ns", 24*time.Hour, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, nil)
			ctx, cancel := context.WithCancel(p.t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); generic.Informer().Run(ctx.Done()) }()
			registrations := map[string]cache.ResourceEventHandlerRegistration{}
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
			for _, consumer := range []string{"one", "two"} {
				registration, err := generic.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { queue.Add(consumer) }})
				p.must(err)
				registrations[consumer] = registration
			}
			if !cache.WaitForCacheSync(p.stop, registrations["one"].HasSynced, registrations["two"].HasSynced) {
				p.note("not synced")
			}
			p.note("queued: %d", queue.Len())
			for consumer, registration := range registrations {
				p.must(generic.Informer().RemoveEventHandler(registration))
				delete(registrations, consumer)
			}
			cancel()
			<-ended
			queue.ShutDown()
			p.noteOpen()
		},
		want: []string{"queued: 2", "watches: 0 widgets, 0 nodes"},
	},
	{
		name: "a handler with its own resync period",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, time.Minute)
			informer := f.ForResource(widgets).Informer()
			often, never := &events{}, &events{}
			_, err := informer.AddEventHandlerWithResyncPeriod(often, 2*time.Minute)
			p.must(err)
			_, err = informer.AddEventHandlerWithResyncPeriod(never, 0)
			p.must(err)
			f.Start(p.stop)
			time.Sleep(5 * time.Minute)
			p.noteEvents("often", often)
			p.noteEvents("never", never)
		},
		want: []string{"often: add ns/a, update ns/a, update ns/a", "never: add ns/a"},
	},
	{
		name: "a handler that compares resource versions to skip resyncs",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 10*time.Second)
			skipped := 0
			_, err := f.ForResource(widgets).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(old, obj any) {
				before, after := old.(*unstructured.Unstructured), obj.(*unstructured.Unstructured)
				if before.GetResourceVersion() == after.GetResourceVersion() {
					skipped++
					return
				}
				p.note("generation %v to %v", before.Object["spec"], after.Object["spec"])
			}})
			p.must(err)
			f.Start(p.stop)
			time.Sleep(35 * time.Second)
			p.resize("a", 2)
			synctest.Wait()
			p.note("skipped: %d", skipped)
		},
		want: []string{"generation map[size:1] to map[size:2]", "skipped: 3"},
	},
	{
		name: "a handler that unwraps DeletedFinalStateUnknown",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 0)
			_, err := f.ForResource(widgets).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
				u, is := obj.(*unstructured.Unstructured)
				if !is {
					last, isLast := obj.(cache.DeletedFinalStateUnknown)
					if !isLast {
						p.note("unexpected: %T", obj)
						return
					}
					if u, is = last.Obj.(*unstructured.Unstructured); !is {
						p.note("unexpected in the tombstone: %T", last.Obj)
						return
					}
					p.note("tombstone of %s", last.Key)
				}
				p.note("delete %s", u.GetName())
			}})
			p.must(err)
			p.missDeletion(f)
		},
		want:       []string{"delete a"},
		clientGo:   []string{"tombstone of ns/a", "delete a"},
		difference: relists,
	},
	{
		name: "a handler that takes keys with the function for deletions",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 0)
			seen := p.listen(f.ForResource(widgets).Informer())
			p.missDeletion(f)
			p.noteEvents("events", seen)
		},
		want: []string{"events: add ns/a, delete ns/a"},
	},
	{
		name: "a controller with a work queue",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 0)
			c := newController(p, f)
			f.Start(p.stop)
			ended := make(chan struct{})
			go func() { defer close(ended); c.run(p.stop) }()
			time.Sleep(time.Second)
			p.resize("a", 7)
			time.Sleep(time.Second)
			p.removeA()
			time.Sleep(time.Second)
			c.queue.ShutDown()
			<-ended
		},
		want: []string{"ns/a has size 1, attempt 1: refused", "ns/a has size 1", "ns/a has size 7", "ns/a is gone"},
	},
	{
		name: "a handler that sends to a channel until the context ends",
		use: func(p *program) {
			p.create("ns", "a")
			ctx, cancel := context.WithCancel(p.t.Context())
			f := p.newFactory(p.cluster, 0)
			out := make(chan string)
			send := func(obj any) {
				select {
				case out <- obj.(*unstructured.Unstructured).GetName():
				case <-ctx.Done():
				}
			}
			_, err := f.ForResource(widgets).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
				AddFunc: send, UpdateFunc: func(_, obj any) { send(obj) },
			})
			p.must(err)
			f.Start(ctx.Done())
			p.note("%s", <-out)
			p.create("ns", "b") // no one receives it
			synctest.Wait()
			cancel()
			f.Shutdown()
			p.noteOpen()
		},
		want: []string{"a", "watches: 0 widgets, 0 nodes"},
	},
	{
		name: "a handler that requests another type and starts the factory",
		use: func(p *program) {
			p.create("ns", "a")
			f := p.newFactory(p.cluster, 0)
			_, err := f.ForResource(widgets).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
				f.ForResource(nodes)
				f.Start(p.stop)
			}})
			p.must(err)
			f.Start(p.stop)
			p.noteOpen()
		},
		want: []string{"watches: 1 widgets, 1 nodes"},
	},
	{
		name: "a slow handler beside a fast one",
		use: func(p *program) {
			f := p.newFactory(p.cluster, 0)
			informer := f.ForResource(widgets).Informer()
			var slow atomic.Int32
			_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { time.Sleep(time.Hour); slow.Add(1) }})
			p.must(err)
			fast := p.listen(informer)
			f.Start(p.stop)
			for _, name := range []string{"a", "b", "c"} {
				p.create("ns", name)
			}
			time.Sleep(90 * time.Minute)
			p.noteEvents("fast", fast)
			p.note("slow: %d", slow.Load())
			time.Sleep(2 * time.Hour)
			p.note("slow: %d", slow.Load())
		},
		want: []string{"fast: add ns/a, add ns/b, add ns/c", "slow: 1", "slow: 3"},
	},
}

// missDeletion starts f, and deletes a widget while no watch is open, so that a list shows that it is gone.
func (p *program) missDeletion(f factory) {
	p.t.Helper()
	f.Start(p.stop)
	synctest.Wait()
	p.cluster.Intercept(refuseAll(apierrors.NewServiceUnavailable("down")))
	p.cluster.CloseWatches(widgets)
	synctest.Wait()
	p.cluster.Intercept(nil)
	p.removeA()
	p.cluster.Expire(widgets)
	time.Sleep(time.Minute)
	synctest.Wait()
}

// controller is a controller as in client-go's examples: a factory that it gets, a queue of keys, and a lister.
type controller struct {
	p      *program
	lister cache.GenericLister
	synced cache.InformerSynced
	queue  workqueue.TypedRateLimitingInterface[string]
	failed bool
}

func newController(p *program, f factory) *controller {
	generic := f.ForResource(widgets)
	c := &controller{
		p: p, lister: generic.Lister(), synced: generic.Informer().HasSynced,
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, time.Second)),
	}
	enqueue := func(obj any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			c.queue.Add(key)
		}
	}
	_, err := generic.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, obj any) { enqueue(obj) }, DeleteFunc: enqueue,
	})
	p.must(err)
	return c
}

func (c *controller) run(stop <-chan struct{}) {
	if !cache.WaitForNamedCacheSync("controller", stop, c.synced) {
		return
	}
	for {
		key, down := c.queue.Get()
		if down {
			return
		}
		if err := c.reconcile(key); err != nil {
			c.p.note("%s has size 1, attempt %d: %v", key, c.queue.NumRequeues(key)+1, err)
			c.queue.AddRateLimited(key)
		} else {
			c.queue.Forget(key)
		}
		c.queue.Done(key)
	}
}

func (c *controller) reconcile(key string) error {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return err
	}
	obj, err := c.lister.ByNamespace(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		c.p.note("%s is gone", key)
		return nil
	}
	if err != nil {
		return err
	}
	if !c.failed {
		c.failed = true
		return errors.New("refused")
	}
	w, err := toWidget(obj.DeepCopyObject())
	if err == nil {
		c.p.note("%s has size %d", key, w.Spec.Size)
	}
	return err
}
