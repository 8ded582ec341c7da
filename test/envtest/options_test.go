package envtest_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// Each option is in each list and watch: in the first list or watch-list, in the watch after it, and in the list
// after an expired version.
var _ = Describe("The options of an informer on "+kubeAPIServer.name, func() {
	type wanted struct {
		options []dynamicinformer.LeaseOption
		typed   bool
		lists   faultproxy.Match // each list
		watches faultproxy.Match // each watch
		keys    []string
	}
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
			return wanted{options: []dynamicinformer.LeaseOption{dynamicinformer.WithNamespace(a)}, typed: true, lists: in, watches: in, keys: []string{a + "/" + a, a + "/" + b}}
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
			want := of(a, b)
			f, err := dynamicinformer.NewForConfig(d.config)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func(ctx SpecContext) { Expect(f.Shutdown(ctx)).To(Succeed()) })
			f.Start(ctx)
			lists := faultproxy.All(faultproxy.Resource("", configMaps.Resource), faultproxy.Verb("list"))
			watches := faultproxy.All(faultproxy.Resource("", configMaps.Resource), faultproxy.Verb("watch"))
			for _, policy := range []dynamicinformer.WatchListPolicy{dynamicinformer.WatchListNever, dynamicinformer.WatchListAuto} {
				d.proxy.Forget()
				options := append(want.options, dynamicinformer.WithWatchListPolicy(policy), dynamicinformer.WithSeparateInformer())
				var lease *dynamicinformer.Lease
				if want.typed {
					typed, err := dynamicinformer.AcquireTyped[*corev1.ConfigMap](ctx, f, configMaps, options...)
					Expect(err).NotTo(HaveOccurred())
					lease = typed.Lease
				} else {
					lease, err = f.Acquire(ctx, configMaps, options...)
					Expect(err).NotTo(HaveOccurred())
				}
				Expect(lease.WaitForSync(ctx)).To(Succeed())
				keys := func() []string { return lease.Informer().GetStore().ListKeys() }
				Expect(keys()).To(ConsistOf(want.keys), "%v", policy)
				before := d.proxy.Requests(lists)
				if policy == dynamicinformer.WatchListAuto && name != "WithNamespaces" {
					Expect(before).To(BeZero(), "lists beside a watch-list")
				}
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

				for _, each := range []struct{ all, with faultproxy.Match }{{lists, want.lists}, {watches, want.watches}} {
					Expect(d.proxy.Requests(each.all)).To(BeNumerically(">", 0))
					Expect(d.proxy.Past(faultproxy.All(each.all, faultproxy.Not(each.with)))).To(BeEmpty(), "requests without the option, %v", policy)
				}
				lease.Release()
				<-lease.Done()
			}
		})
	}
})

// versionIn returns the resourceVersion of an object in the cache of a lease.
func versionIn(lease *dynamicinformer.Lease, key string) string {
	GinkgoHelper()
	obj, exists, err := lease.Informer().GetStore().GetByKey(key)
	Expect(err).NotTo(HaveOccurred())
	Expect(exists).To(BeTrue(), "%s", key)
	return obj.(metav1.Object).GetResourceVersion()
}
