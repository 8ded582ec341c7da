package envtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// custom is an object that a program caches and that is not a runtime.Object.
type custom struct {
	metav1.ObjectMeta

	Size int64
}

// writingTransforms are transforms as programs use them. Each writes to its argument.
var writingTransforms = map[string]func(obj *unstructured.Unstructured) any{
	"removes managed fields": func(obj *unstructured.Unstructured) any {
		obj.SetManagedFields(nil)
		return obj
	},
	"sets an annotation": func(obj *unstructured.Unstructured) any {
		obj.SetAnnotations(map[string]string{"seen": "yes"})
		return obj
	},
	"returns another object and empties the first": func(obj *unstructured.Unstructured) any {
		other := obj.DeepCopy()
		clear(obj.Object["metadata"].(map[string]any))
		clear(obj.Object)
		return other
	},
	"removes the resourceVersion and the labels": func(obj *unstructured.Unstructured) any {
		obj.SetResourceVersion("")
		obj.SetLabels(nil)
		return obj
	},
	"returns metadata": func(obj *unstructured.Unstructured) any {
		only := &metav1.PartialObjectMetadata{ObjectMeta: metaOf(obj)}
		clear(obj.Object)
		return only
	},
	"returns a struct of its own": func(obj *unstructured.Unstructured) any {
		size, _, _ := unstructured.NestedInt64(obj.Object, "spec", "size")
		own := &custom{ObjectMeta: metaOf(obj), Size: size}
		clear(obj.Object)
		return own
	},
}

// metaOf returns the fields that identify an object.
func metaOf(obj *unstructured.Unstructured) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}
}

// transformReader is an informer with a transform, and a handler that reads all of each object and
// checks that the events are consistent.
type transformReader struct {
	name       string
	connection *connection
	lease      *dynamicinformer.Lease
	transform  func(*unstructured.Unstructured) any

	mu       sync.Mutex
	present  map[string]types.UID
	adds     int
	resyncs  int
	deletes  int
	problems []string
}

// newTransformReader starts an informer on gvr, which may not be served yet. It uses NewForConfig, as
// most programs do.
func newTransformReader(ctx context.Context, name string, gvr schema.GroupVersionResource, policy dynamicinformer.WatchListPolicy, transform func(*unstructured.Unstructured) any) *transformReader {
	GinkgoHelper()
	a := &transformReader{name: name, connection: connect(embeddedServer), transform: transform, present: map[string]types.UID{}} //nolint:contextcheck // the connection ends with the spec
	f, err := dynamicinformer.NewForConfig(a.connection.config,
		dynamicinformer.WithTransform(func(obj any) (any, error) { return transform(obj.(*unstructured.Unstructured)), nil }),
		dynamicinformer.WithWatchListPolicy(policy), dynamicinformer.WithResync(time.Second))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(f.Shutdown(ctx)).To(Succeed()) }, NodeTimeout(time.Minute)) //nolint:contextcheck // a cleanup has its own context
	f.Start(context.Background())                                                                           //nolint:contextcheck,forbidigo // the factory ends by Shutdown
	a.lease, err = f.Acquire(ctx, gvr, dynamicinformer.WithAllowAbsent())
	Expect(err).NotTo(HaveOccurred())
	_, err = a.lease.AddEventHandler(a)
	Expect(err).NotTo(HaveOccurred())
	return a
}

func (a *transformReader) OnAdd(obj any, _ bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key, uid := a.read(obj)
	if _, present := a.present[key]; present {
		a.problem("%s is added twice", key)
	}
	a.present[key] = uid
	a.adds++
}

func (a *transformReader) OnUpdate(before, after any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key, uid := a.read(after)
	old, oldUID := a.read(before)
	if added := a.present[key]; key != old || uid != added || oldUID != added {
		a.problem("%s %s is updated to %s %s, and was added with UID %s", old, oldUID, key, uid, added)
	}
	if equality.Semantic.DeepEqual(before, after) {
		a.resyncs++
	}
}

func (a *transformReader) OnDelete(obj any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if last, unknown := obj.(cache.DeletedFinalStateUnknown); unknown {
		obj = last.Obj
	}
	key, uid := a.read(obj)
	if added := a.present[key]; uid != added {
		a.problem("%s %s is deleted, and was added with UID %q", key, uid, added)
	}
	delete(a.present, key)
	a.deletes++
}

// read reads all fields of an object.
func (a *transformReader) read(obj any) (key string, uid types.UID) {
	if _, err := json.Marshal(obj); err != nil {
		a.problem("%v", err)
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		a.problem("%v", err)
		return "", ""
	}
	return cache.MetaObjectToName(accessor).String(), accessor.GetUID()
}

func (a *transformReader) problem(format string, args ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

// expect expects that the cache and the handler get all objects on the server, transformed, and no
// others.
func (a *transformReader) expect(ctx context.Context, admin dynamic.ResourceInterface) {
	GinkgoHelper()
	Eventually(func() error {
		list, err := admin.List(ctx, metav1.ListOptions{}) // each time: the server may complete a write after its client has left
		if err != nil {
			return err
		}
		want, keys := map[string]any{}, []string{}
		for _, item := range list.Items {
			key := cache.MetaObjectToName(&item).String()
			keys = append(keys, key)
			want[key] = a.transform(item.DeepCopy())
		}
		slices.Sort(keys)
		store := a.lease.Informer().GetStore()
		if got := slices.Sorted(slices.Values(store.ListKeys())); !slices.Equal(got, keys) {
			return fmt.Errorf("the cache has %v, the server %v", got, keys)
		}
		for key, object := range want {
			if got, _, _ := store.GetByKey(key); !equality.Semantic.DeepEqual(got, object) {
				return fmt.Errorf("%s is %v in the cache and %v on the server", key, got, object)
			}
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.present) != len(keys) {
			return fmt.Errorf("the handler has %d objects, the server %d", len(a.present), len(keys))
		}
		return nil
	}, "30s", "100ms").Should(Succeed(), a.name)
	a.mu.Lock()
	defer a.mu.Unlock()
	Expect(a.problems).To(BeEmpty(), a.name)
}

// writers create, change and delete objects until they are stopped.
type writers struct {
	stop    func()
	created func() int
}

// write starts writers of objects of gvr. They repeat requests that fail, as all do without the type.
func write(client dynamic.ResourceInterface, gvr schema.GroupVersionResource, kind string) writers {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // stop ends it
	var (
		all     sync.WaitGroup
		mu      sync.Mutex
		created int
	)
	for worker := range 3 {
		all.Go(func() {
			defer GinkgoRecover()
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("o%d-%d", worker, i%20)
				obj := newObject(gvr.GroupVersion().WithKind(kind), name, i, map[string]string{"created": fmt.Sprint(i)})
				_, err := client.Create(ctx, obj, metav1.CreateOptions{})
				switch {
				case err == nil:
					mu.Lock()
					created++
					mu.Unlock()
				case apierrors.IsAlreadyExists(err) && i%3 == 0:
					_ = client.Delete(ctx, name, metav1.DeleteOptions{})
				case apierrors.IsAlreadyExists(err):
					_, _ = client.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"size":%d}}`, i), metav1.PatchOptions{})
				default:
					select {
					case <-time.After(50 * time.Millisecond):
					case <-ctx.Done():
					}
				}
			}
		})
	}
	return writers{
		stop:    sync.OnceFunc(func() { cancel(); all.Wait() }),
		created: func() int { mu.Lock(); defer mu.Unlock(); return created },
	}
}

// An object that was sent to an informer belongs to its transform, which may write to it at once: the
// library must not read it any more. The race detector reports such a read. Without it, the runtime ends
// the process.
var _ = Describe("A transform that writes to its objects, on "+embeddedServer.name, func() {
	It("has no data race while objects and their type are created and deleted and watches break", func(ctx SpecContext) {
		admin := connect(embeddedServer)
		crd := newCRD(ownGroup("written"), "Ship", "v1")
		gvr := schema.GroupVersionResource{Group: crd.GetName()[len("ships."):], Version: "v1", Resource: "ships"}
		ships := admin.client.Resource(gvr)
		admin.define(ctx, crd)

		var readers []*transformReader
		for name, transform := range writingTransforms {
			readers = append(readers,
				newTransformReader(ctx, name+", streamed", gvr, dynamicinformer.WatchListAuto, transform),
				newTransformReader(ctx, name+", listed", gvr, dynamicinformer.WatchListNever, transform))
		}
		each := func(do func(a *transformReader)) {
			for _, a := range readers {
				do(a)
			}
		}
		expect := func() { GinkgoHelper(); each(func(a *transformReader) { a.expect(ctx, ships) }) }
		watches := faultproxy.All(faultproxy.Resource(gvr.Group, gvr.Resource), faultproxy.Verb("watch"))

		w := write(ships.Namespace("harbor"), gvr, "Ship")
		DeferCleanup(func() { w.stop() }) // also at the end of the spec
		awaitCreations := func(n int) {
			GinkgoHelper()
			enough := w.created() + n
			Eventually(w.created, "2m").Should(BeNumerically(">=", enough))
		}
		awaitCreations(100)
		for range 3 { // the watch resumes at its version
			each(func(a *transformReader) { a.connection.proxy.CutWatches(watches) })
			awaitCreations(20)
		}
		for _, gone := range []faultproxy.Fault{faultproxy.GoneStatus(), faultproxy.GoneEvent()} { // a list follows
			each(func(a *transformReader) {
				a.connection.proxy.Inject(watches, faultproxy.Times(1, gone))
				a.connection.proxy.CutWatches(watches)
			})
			awaitCreations(50)
		}
		w.stop()
		expect()
		each(func(a *transformReader) { a.connection.proxy.Heal() })

		w = write(ships.Namespace("harbor"), gvr, "Ship")
		for range 2 { // writes continue while the type is deleted and created again
			admin.undefine(ctx, crd.GetName())
			_, err := admin.client.Resource(definitions).Create(ctx, crd, metav1.CreateOptions{})
			Expect(err).NotTo(HaveOccurred())
			awaitCreations(50)
		}
		w.stop()
		expect()

		admin.undefine(ctx, crd.GetName())
		each(func(a *transformReader) {
			Eventually(a.lease.Status).Should(HaveField("State", status.StateNotServed), a.name)
			Eventually(func() []int {
				a.mu.Lock()
				defer a.mu.Unlock()
				return []int{len(a.present), a.adds - a.deletes}
			}).Should(Equal([]int{0, 0}), a.name)
			a.mu.Lock()
			defer a.mu.Unlock()
			Expect(a.adds).To(BeNumerically(">", 100), a.name)
			Expect(a.resyncs).NotTo(BeZero(), a.name)
			Expect(a.problems).To(BeEmpty(), a.name)
		})
	}, NodeTimeout(4*time.Minute))
})
