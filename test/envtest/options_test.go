package envtest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// Each option is in each list and watch: in the first list or watch-list, in the watch after it, and in the list
// after an expired version.
var _ = Describe("The options of an informer on "+kubeAPIServer.name, func() {
	type wanted struct {
		options []dynamicinformer.LeaseOption
		acquire func(context.Context, *dynamicinformer.Factory, ...dynamicinformer.LeaseOption) (*dynamicinformer.Lease, error) // nil: Acquire
		lists   faultproxy.Match                                                                                                // each list
		watches faultproxy.Match                                                                                                // each watch
		keys    []string
		also    func(*dynamicinformer.Lease) // checks the cache, after the list and after a watch
	}
	// A set of namespaces uses no watch-lists.
	sets := []string{"WithNamespaces", "WithNamespaceSelector", "WithAllowedNamespaces"}
	// There are objects of two names in each of two namespaces, with a label of their namespace.
	for name, of := range map[string]func(a, b string) wanted{
		"WithLabelSelector": func(a, b string) wanted {
			in := faultproxy.Query("labelSelector", "spec="+a)
			return wanted{options: []dynamicinformer.LeaseOption{dynamicinformer.WithLabelSelector("spec=" + a)}, lists: in, watches: in, keys: []string{a + "/" + a, a + "/" + b}}
		},
		"WithFieldSelector": func(a, b string) wanted {
			in := faultproxy.Query("fieldSelector", "metadata.name="+b)
			return wanted{options: []dynamicinformer.LeaseOption{dynamicinformer.WithFieldSelector("metadata.name=" + b)}, lists: in, watches: in, keys: []string{a + "/" + b, b + "/" + b}}
		},
		"WithNamespace": func(a, b string) wanted {
			in := faultproxy.Namespace(b)
			return wanted{options: []dynamicinformer.LeaseOption{dynamicinformer.WithNamespace(b)}, lists: in, watches: in, keys: []string{b + "/" + a, b + "/" + b}}
		},
		"WithNamespaces": func(a, b string) wanted {
			in := faultproxy.Any(faultproxy.Namespace(a), faultproxy.Namespace(b))
			return wanted{options: []dynamicinformer.LeaseOption{dynamicinformer.WithNamespaces(a, b)}, lists: in, watches: in, keys: []string{a + "/" + a, a + "/" + b, b + "/" + a, b + "/" + b}}
		},
		"WithNamespaceSelector": func(a, b string) wanted {
			in := faultproxy.Namespace(a)
			return wanted{options: []dynamicinformer.LeaseOption{dynamicinformer.WithNamespaceSelector("spec=" + a)}, lists: in, watches: in, keys: []string{a + "/" + a, a + "/" + b}}
		},
		"WithAllowedNamespaces": func(a, b string) wanted {
			in := faultproxy.All(faultproxy.Namespace(""), faultproxy.Query("labelSelector", "spec="+a))
			return wanted{
				options: []dynamicinformer.LeaseOption{dynamicinformer.WithAllowedNamespaces(), dynamicinformer.WithLabelSelector("spec=" + a)},
				lists:   in, watches: in, keys: []string{a + "/" + a, a + "/" + b},
			}
		},
		"WithTweakListOptions": func(a, b string) wanted {
			tweak := func(o *metav1.ListOptions) { o.LabelSelector, o.FieldSelector = "spec="+b, "metadata.name="+a }
			in := faultproxy.All(faultproxy.Query("labelSelector", "spec="+b), faultproxy.Query("fieldSelector", "metadata.name="+a))
			return wanted{options: []dynamicinformer.LeaseOption{dynamicinformer.WithTweakListOptions(tweak)}, lists: in, watches: in, keys: []string{b + "/" + a}}
		},
		"WithPageSize": func(a, b string) wanted {
			return wanted{
				options: []dynamicinformer.LeaseOption{dynamicinformer.WithPageSize(1), dynamicinformer.WithNamespace(a)},
				lists:   faultproxy.Query("limit", "1"), watches: faultproxy.Namespace(a), keys: []string{a + "/" + a, a + "/" + b},
			}
		},
		"WithMetadataOnly": func(a, b string) wanted {
			return wanted{options: []dynamicinformer.LeaseOption{dynamicinformer.WithMetadataOnly(), dynamicinformer.WithNamespace(a)}, lists: forMetadata, watches: forMetadata, keys: []string{a + "/" + a, a + "/" + b}}
		},
		"AcquireTyped": func(a, b string) wanted {
			in := func(r faultproxy.Request) bool { return r.Accept == "application/json" && r.Namespace == a }
			acquire := func(ctx context.Context, f *dynamicinformer.Factory, opts ...dynamicinformer.LeaseOption) (*dynamicinformer.Lease, error) {
				typed, err := dynamicinformer.AcquireTyped[*corev1.ConfigMap](ctx, f, configMaps, opts...)
				if err != nil {
					return nil, err
				}
				return typed.Lease, nil
			}
			return wanted{options: []dynamicinformer.LeaseOption{dynamicinformer.WithNamespace(a)}, acquire: acquire, lists: in, watches: in, keys: []string{a + "/" + a, a + "/" + b}}
		},
		"AcquireRef": func(a, b string) wanted {
			in := faultproxy.All(faultproxy.Namespace(b), faultproxy.Query("fieldSelector", "metadata.name="+a))
			acquire := func(ctx context.Context, f *dynamicinformer.Factory, opts ...dynamicinformer.LeaseOption) (*dynamicinformer.Lease, error) {
				return f.AcquireRef(ctx, "cm", opts...)
			}
			return wanted{
				options: []dynamicinformer.LeaseOption{dynamicinformer.WithNamespace(b), dynamicinformer.WithFieldSelector("metadata.name=" + a)},
				acquire: acquire, lists: in, watches: in, keys: []string{b + "/" + a},
			}
		},
		"AcquireGVK": func(a, b string) wanted {
			in := faultproxy.Query("labelSelector", "spec="+b)
			acquire := func(ctx context.Context, f *dynamicinformer.Factory, opts ...dynamicinformer.LeaseOption) (*dynamicinformer.Lease, error) {
				return f.AcquireGVK(ctx, corev1.SchemeGroupVersion.WithKind("ConfigMap"), opts...)
			}
			return wanted{options: []dynamicinformer.LeaseOption{dynamicinformer.WithLabelSelector("spec=" + b)}, acquire: acquire, lists: in, watches: in, keys: []string{b + "/" + a, b + "/" + b}}
		},
		"WithTransform": func(a, b string) wanted {
			transform := func(obj any) (any, error) {
				obj.(metav1.Object).SetAnnotations(map[string]string{"transformed": a})
				return obj, nil
			}
			return wanted{
				options: []dynamicinformer.LeaseOption{dynamicinformer.WithTransform(transform), dynamicinformer.WithNamespace(a)},
				lists:   faultproxy.Namespace(a), watches: faultproxy.Namespace(a), keys: []string{a + "/" + a, a + "/" + b},
				also: func(l *dynamicinformer.Lease) {
					GinkgoHelper()
					for _, obj := range l.Informer().GetStore().List() {
						Expect(obj.(metav1.Object).GetAnnotations()).To(HaveKeyWithValue("transformed", a))
					}
				},
			}
		},
		"WithIndexers": func(a, b string) wanted {
			byPolicy := func(obj any) ([]string, error) {
				policy, _, err := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "data", "policy")
				return []string{policy}, err
			}
			return wanted{
				options: []dynamicinformer.LeaseOption{dynamicinformer.WithIndexers(cache.Indexers{"policy": byPolicy}), dynamicinformer.WithNamespace(a)},
				lists:   faultproxy.Namespace(a), watches: faultproxy.Namespace(a), keys: []string{a + "/" + a, a + "/" + b},
				also: func(l *dynamicinformer.Lease) {
					GinkgoHelper()
					for _, obj := range l.Informer().GetStore().List() {
						policy, _, err := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "data", "policy")
						Expect(err).NotTo(HaveOccurred())
						Expect(l.Informer().GetIndexer().ByIndex("policy", policy)).To(ContainElement(BeIdenticalTo(obj)))
					}
				},
			}
		},
	} {
		It(name+" is in each list and watch", func(ctx SpecContext) {
			d, a, b := connect(kubeAPIServer), unique("a"), unique("b")
			for _, namespace := range []string{a, b} {
				for _, name := range []string{a, b} {
					obj := newCore("ConfigMap", name, nil)
					obj.SetLabels(map[string]string{"spec": namespace})
					d.create(ctx, configMaps, namespace, obj)
				}
			}
			relabel(ctx, d, a, a)
			want := of(a, b)
			if want.acquire == nil {
				want.acquire = func(ctx context.Context, f *dynamicinformer.Factory, opts ...dynamicinformer.LeaseOption) (*dynamicinformer.Lease, error) {
					return f.Acquire(ctx, configMaps, opts...)
				}
			}
			also := func(l *dynamicinformer.Lease) {
				GinkgoHelper()
				if want.also != nil {
					want.also(l)
				}
			}
			f, err := dynamicinformer.NewForConfig(d.config)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func(ctx SpecContext) { Expect(f.Shutdown(ctx)).To(Succeed()) })
			f.Start(ctx)
			lists := faultproxy.All(faultproxy.Resource("", configMaps.Resource), faultproxy.Verb("list"))
			watches := faultproxy.All(faultproxy.Resource("", configMaps.Resource), faultproxy.Verb("watch"))
			for _, policy := range []dynamicinformer.WatchListPolicy{dynamicinformer.WatchListNever, dynamicinformer.WatchListAuto} {
				d.proxy.Forget()
				options := append(want.options, dynamicinformer.WithWatchListPolicy(policy), dynamicinformer.WithSeparateInformer())
				lease, err := want.acquire(ctx, f, options...)
				Expect(err).NotTo(HaveOccurred())
				Expect(lease.WaitForSync(ctx)).To(Succeed())
				keys := func() []string { return lease.Informer().GetStore().ListKeys() }
				Eventually(keys).Should(ConsistOf(want.keys), "%v", policy) // a list may be older than some objects
				also(lease)
				before := d.proxy.Requests(lists)
				if policy == dynamicinformer.WatchListAuto && !slices.Contains(sets, name) {
					Expect(before).To(BeZero(), "lists beside a watch-list")
				}
				Eventually(func() int { return d.proxy.OpenWatches(watches) }).Should(BeNumerically(">", 0))
				remove := d.proxy.Inject(watches, faultproxy.Fail(410))
				Expect(d.proxy.CutWatches(watches)).To(BeNumerically(">", 0))
				Eventually(func() int { return d.proxy.Requests(lists) }).Should(BeNumerically(">", before), "no list after an expired version")
				remove()
				namespace, object, _ := strings.Cut(want.keys[0], "/")
				body := fmt.Appendf(nil, `{"data":{"policy":%q}}`, policy)
				changed, err := d.client.Resource(configMaps).Namespace(namespace).Patch(ctx, object, types.MergePatchType, body, metav1.PatchOptions{})
				Expect(err).NotTo(HaveOccurred())
				Eventually(func() string { return versionIn(lease, want.keys[0]) }).Should(Equal(changed.GetResourceVersion()))
				Expect(keys()).To(ConsistOf(want.keys), "%v, after an expired version", policy)
				also(lease)

				for _, each := range []struct{ all, with faultproxy.Match }{{lists, want.lists}, {watches, want.watches}} {
					Expect(d.proxy.Requests(each.all)).To(BeNumerically(">", 0))
					Expect(d.proxy.Past(faultproxy.All(each.all, faultproxy.Not(each.with)))).To(BeEmpty(), "requests without the option, %v", policy)
				}
				lease.Release()
				<-lease.Done()
			}
		})
	}

	It("WithWatchErrorHandler gets the errors of lists and watches", func(ctx SpecContext) {
		d, label := connect(kubeAPIServer), unique("errors")
		var mu sync.Mutex
		reported := 0
		handler := func(_ context.Context, _ *cache.Reflector, err error) {
			defer GinkgoRecover()
			Expect(err).To(Satisfy(apierrors.IsForbidden))
			mu.Lock()
			defer mu.Unlock()
			reported++
		}
		count := func() int {
			mu.Lock()
			defer mu.Unlock()
			return reported
		}
		f := d.startedFactory(dynamicinformer.WithNamespace(label), dynamicinformer.WithWatchErrorHandler(handler), dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever))
		requests := faultproxy.All(faultproxy.Resource("", configMaps.Resource), faultproxy.Namespace(label))
		remove := d.proxy.Inject(requests, faultproxy.Fail(403))
		lease, err := f.Acquire(ctx, configMaps)
		Expect(err).NotTo(HaveOccurred())
		Eventually(count).Should(BeNumerically(">", 0), "a list")
		remove()
		lease.Retry()
		Expect(lease.WaitForSync(ctx)).To(Succeed())
		Eventually(func() int { return d.proxy.OpenWatches(requests) }).Should(Equal(1))
		before := count()
		remove = d.proxy.Inject(requests, faultproxy.Fail(403))
		Expect(d.proxy.CutWatches(requests)).To(Equal(1))
		Eventually(count).Should(BeNumerically(">", before), "a watch")
		remove()
		lease.Retry()
		d.create(ctx, configMaps, label, newCore("ConfigMap", label, nil))
		Eventually(keysIn(lease)).Should(ConsistOf(label + "/" + label))
	})
})

// versionIn returns the resourceVersion of an object in the cache of a lease.
func versionIn(lease *dynamicinformer.Lease, key string) string {
	GinkgoHelper()
	obj, exists, err := lease.Informer().GetStore().GetByKey(key)
	Expect(err).NotTo(HaveOccurred())
	Expect(exists).To(BeTrue(), "%s", key)
	return obj.(metav1.Object).GetResourceVersion()
}
