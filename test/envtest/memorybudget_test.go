package envtest_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

var _ = Describe("A factory with a memory budget", onEachServer(func(at *apiServer) {
	// The server reports the number of remaining objects of a list, unless it has a selector.
	DescribeTable("refuses a type that does not fit until there is room", func(ctx SpecContext, mostPages int, opts ...dynamicinformer.Option) {
		const objects = 60
		group := ownGroup("budget")
		d, admin := connect(at), connect(at)
		admin.defineMany(ctx, group, []*unstructured.Unstructured{newCRD(group, "Ship0", "v1"), newCRD(group, "Ship1", "v1")})
		var gvrs []schema.GroupVersionResource
		for n := range 2 {
			gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: fmt.Sprintf("ship%ds", n)}
			gvrs = append(gvrs, gvr)
			Eventually(func() error { // a new type refuses requests for a moment
				_, err := admin.client.Resource(gvr).List(ctx, metav1.ListOptions{})
				return err
			}, "30s", "250ms").Should(Succeed())
			for i := range objects {
				object := newObject(gvr.GroupVersion().WithKind(fmt.Sprint("Ship", n)), fmt.Sprintf("s%02d", i), i, map[string]string{"app": "ship"})
				object.SetAnnotations(map[string]string{"text": strings.Repeat(fmt.Sprintf("ship %d of %d, ", i, n), 100)})
				admin.create(ctx, gvr, "default", object)
			}
			Eventually(func() error {
				_, err := d.resolver.Resolve(ctx, discovery.RefOf(gvr).String())
				return err
			}, "30s", "250ms").Should(Succeed())
		}
		// Few objects say little about what all of them share, so that estimates would differ by half.
		opts = append(opts, dynamicinformer.WithPageSize(10), dynamicinformer.WithClientOptions(dynamicclient.WithoutSharing()))
		lease := func(f *dynamicinformer.Factory, gvr schema.GroupVersionResource) *dynamicinformer.Lease {
			GinkgoHelper()
			l, err := f.Acquire(ctx, gvr)
			Expect(err).NotTo(HaveOccurred())
			return l
		}
		// With a budget, more objects of a first page are measured: without one, the estimate for few objects is much less exact.
		probe := lease(d.startedFactory(append(opts, dynamicinformer.WithMemoryBudget(1<<40))...), gvrs[0])
		Expect(probe.WaitForSync(ctx)).To(Succeed())
		size := probe.Status().CacheBytes

		f := d.startedFactory(append(opts, dynamicinformer.WithMemoryBudget(size*3/2))...)
		first := lease(f, gvrs[0])
		Expect(first.WaitForSync(ctx)).To(Succeed())
		lists := faultproxy.All(faultproxy.Verb("list"), func(r faultproxy.Request) bool { return r.Resource == gvrs[1].Resource })
		before := d.proxy.Requests(lists)
		second := lease(f, gvrs[1])
		err := second.WaitForSync(ctx, dynamicinformer.WithFailFast())
		Expect(err).To(MatchError(And(ContainSubstring("of the memory budget of"), ContainSubstring("raise WithMemoryBudget"))))
		Expect(second.Status().Reason).To(Equal(status.ReasonOverBudget))
		Consistently(func() int { return d.proxy.Requests(lists) - before }, "1s", "100ms").Should(BeNumerically("<=", mostPages))
		first.Release()
		Expect(second.WaitForSync(ctx)).To(Succeed())
		Expect(second.Status().Objects).To(Equal(objects))
		Eventually(func() int64 { return f.MemoryBudget().Caches - second.Status().CacheBytes }).Should(BeZero())
		second.Release()
		Eventually(f.MemoryBudget).Should(Equal(status.Budget{Limit: size * 3 / 2}))
	},
		Entry("at its first page", NodeTimeout(2*time.Minute), 1),
		Entry("at a later page, with a selector", NodeTimeout(2*time.Minute), 6, dynamicinformer.WithLabelSelector("app=ship")),
	)

	It("packs a type that does not fit otherwise", func(ctx SpecContext) {
		GinkgoT().Setenv("GVRKIT_PACKED_CACHES", "false") // the policy decides
		const objects = 100
		group := ownGroup("pack")
		d, admin := connect(at), connect(at)
		admin.defineMany(ctx, group, []*unstructured.Unstructured{newCRD(group, "Crate", "v1")})
		gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "crates"}
		Eventually(func() error { // a new type refuses requests for a moment
			_, err := admin.client.Resource(gvr).List(ctx, metav1.ListOptions{})
			return err
		}, "30s", "250ms").Should(Succeed())
		for i := range objects {
			object, parts := newObject(gvr.GroupVersion().WithKind("Crate"), fmt.Sprintf("c%03d", i), i, nil), make([]any, 60)
			for n := range parts {
				parts[n] = map[string]any{"id": fmt.Sprintf("part-%d-%d", i, n), "size": int64(1000 + i*n)}
			}
			object.Object["spec"].(map[string]any)["parts"] = parts
			admin.create(ctx, gvr, "default", object)
		}
		opts := []dynamicinformer.Option{
			dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever), dynamicinformer.WithPageSize(20),
			dynamicinformer.WithClientOptions(dynamicclient.WithoutSharing()),
		}
		size := func(opts ...dynamicinformer.Option) (int64, bool) {
			GinkgoHelper()
			f, err := dynamicinformer.NewForConfig(d.config, opts...)
			Expect(err).NotTo(HaveOccurred())
			f.Start(ctx)
			l, err := f.Acquire(ctx, gvr)
			Expect(err).NotTo(HaveOccurred())
			Expect(l.WaitForSync(ctx)).To(Succeed())
			found, err := l.Unstructured().List(nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(found).To(HaveLen(objects))
			Expect(found[0].Object["spec"]).To(HaveKeyWithValue("parts", HaveLen(60)))
			now := l.Status()
			Expect(f.Shutdown(ctx)).To(Succeed())
			return now.CacheBytes, now.Packed
		}
		trees, _ := size(opts...)
		packed, _ := size(append(opts, dynamicinformer.WithPackedCache())...)
		_, is := size(append(opts, dynamicinformer.WithMemoryBudget(trees*2), dynamicinformer.WithBudgetPolicy(dynamicinformer.PackOverBudget))...)
		Expect(is).To(BeFalse())
		now, is := size(append(opts, dynamicinformer.WithMemoryBudget((trees+packed)/2), dynamicinformer.WithBudgetPolicy(dynamicinformer.PackOverBudget))...)
		Expect(is).To(BeTrue())
		Expect(now).To(BeNumerically("<", trees))
	}, NodeTimeout(2*time.Minute))
}))
