package envtest_test

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/controller-manager/pkg/informerfactory"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/metadatainformer"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// forMetadata matches requests for metadata only.
func forMetadata(r faultproxy.Request) bool {
	return strings.Contains(r.Accept, "as=PartialObjectMetadata")
}

// leaseMetadata acquires a lease with metadata only on a type that does not exist yet.
func leaseMetadata(ctx context.Context, at *apiServer, opts ...dynamicinformer.LeaseOption) *leasedType {
	GinkgoHelper()
	d := connect(at) //nolint:contextcheck // a connection ends with the spec, not with ctx
	factory, err := dynamicinformer.NewForConfig(d.config)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(factory.Shutdown(ctx)).To(Succeed()) }) //nolint:contextcheck // a clean-up has a context of its own
	factory.Start(context.WithoutCancel(ctx))
	f := &leasedType{connection: d, factory: factory}
	f.acquire(ctx, append(opts, dynamicinformer.WithMetadataOnly())...)
	f.eventLog = newEventLogOf(f.lease, func(obj any) bool {
		object, is := obj.(*metav1.PartialObjectMetadata)
		return is && object.UID != "" && object.Labels["generation"] != ""
	})
	return f
}

var _ = Describe("A lease with metadata only", onEachServer(func(at *apiServer) {
	It("follows a type that is created, changed, deleted and created again", func(ctx SpecContext) {
		f := leaseMetadata(ctx, at)
		Eventually(func() status.Reason { return f.status().Reason }).Should(Equal(status.ReasonNotFound))
		f.define(ctx, f.crd)
		f.created++
		f.createShips(ctx, 20)
		f.synced(ctx)
		Eventually(f.eventLog.addsAndDeletes).Should(Equal([2]int{20, 0}))
		f.resize(ctx, 5, 7)
		Eventually(f.eventLog.changes).Should(Equal(5))
		f.proxy.CutWatches(f.requests())
		f.resize(ctx, 3, 8)
		Eventually(f.eventLog.changes).Should(Equal(8))

		f.undefine(ctx, f.crd.GetName())
		Eventually(f.eventLog.addsAndDeletes, "60s").Should(Equal([2]int{20, 20}))
		Eventually(f.status).Should(SatisfyAll(HaveField("State", status.StateNotServed), HaveField("Form", "metadata"), HaveField("Objects", 0)))
		f.again(ctx, nil)
		f.createShips(ctx, 10)
		f.synced(ctx)
		Eventually(f.eventLog.addsAndDeletes).Should(Equal([2]int{30, 20}))
		f.eventLog.check()
		Expect(f.proxy.Past(faultproxy.All(f.requests("list", "watch"), faultproxy.Not(forMetadata)))).To(BeEmpty())
	})

	It("emits deletions with the last state when its watch sees none", func(ctx SpecContext) {
		f := leaseMetadata(ctx, at)
		f.define(ctx, f.crd)
		f.created++
		f.createShips(ctx, 20)
		f.synced(ctx)
		Eventually(f.eventLog.addsAndDeletes).Should(Equal([2]int{20, 0})) // the first list may be older than some ships
		f.proxy.Inject(f.requests("list", "watch"), faultproxy.Fail(503))
		f.proxy.CutWatches(f.requests())
		f.undefine(ctx, f.crd.GetName())
		Eventually(f.eventLog.addsAndDeletes, "60s").Should(Equal([2]int{20, 20}))
		f.proxy.Heal()
		f.eventLog.check()
	})

	It("has a watch of its own beside whole objects, and their versions", func(ctx SpecContext) {
		f := leaseMetadata(ctx, at, dynamicinformer.WithLabelSelector("generation=1"))
		whole, err := f.factory.Acquire(ctx, f.gvr, dynamicinformer.WithAllowAbsent())
		Expect(err).NotTo(HaveOccurred())
		f.define(ctx, f.crd)
		f.created++
		f.createShips(ctx, 5)
		f.created++
		other := &unstructured.Unstructured{Object: map[string]any{}}
		other.SetGroupVersionKind(f.gvr.GroupVersion().WithKind("Ship"))
		other.SetName("unlabelled")
		f.create(ctx, f.gvr, f.namespace(ctx), other)
		f.synced(ctx)
		Expect(whole.WaitForSync(ctx)).To(Succeed())
		Eventually(func() int { return len(whole.Informer().GetStore().ListKeys()) }).Should(Equal(6))
		Eventually(f.eventLog.addsAndDeletes).Should(Equal([2]int{5, 0}))
		Eventually(func() int { return f.proxy.OpenWatches(f.requests()) }).Should(Equal(2))
		Expect(f.proxy.OpenWatches(faultproxy.All(f.requests(), forMetadata))).To(Equal(1))
		partial, err := f.lease.Lister().List(labels.Everything())
		Expect(err).NotTo(HaveOccurred())
		Expect(partial).To(HaveLen(5))
		for _, each := range partial {
			object := each.(*metav1.PartialObjectMetadata)
			same, err := whole.Lister().ByNamespace(object.Namespace).Get(object.Name)
			Expect(err).NotTo(HaveOccurred())
			Expect(object.ResourceVersion).To(Equal(same.(*unstructured.Unstructured).GetResourceVersion()))
			Expect(object.ManagedFields).To(Equal(same.(*unstructured.Unstructured).GetManagedFields()))
		}
		f.eventLog.check()
	})
}))

var _ = Describe("The controller manager's factory on "+kubeAPIServer.name, func() {
	It("can be ObjectOrMetadata", func(ctx SpecContext) {
		d, label := connect(kubeAPIServer), unique("both")
		client, err := kubernetes.NewForConfigAndClient(d.config, d.http)
		Expect(err).NotTo(HaveOccurred())
		shared := informers.NewSharedInformerFactory(client, 0)
		f, err := dynamicinformer.NewForConfig(d.config)
		Expect(err).NotTo(HaveOccurred())
		var both informerfactory.InformerFactory = dynamicinformer.ObjectOrMetadata(shared, f)
		_, err = both.ForResource(schema.GroupVersionResource{Group: blocks.Group, Version: blocks.Version, Resource: "ipamblokcs"})
		Expect(err).To(MatchError(discovery.ErrNotServed))
		whole, err := both.ForResource(configMaps)
		Expect(err).NotTo(HaveOccurred())
		partial, err := both.ForResource(blocks)
		Expect(err).NotTo(HaveOccurred())
		wholeEvents, partialEvents := listen(whole.Informer()), listen(partial.Informer())
		stop := make(chan struct{})
		both.Start(stop)
		DeferCleanup(func(ctx SpecContext) {
			close(stop)
			shared.Shutdown()
			Expect(f.Shutdown(ctx)).To(Succeed())
		})
		d.create(ctx, configMaps, label, newCore("ConfigMap", label, nil))
		d.create(ctx, blocks, "", newBlock(label, label))
		Eventually(wholeEvents.all).Should(ContainElement("add " + label + "/" + label))
		Eventually(partialEvents.all).Should(ContainElement("add " + label))
		Expect(whole.Lister().ByNamespace(label).Get(label)).To(BeAssignableToTypeOf(&corev1.ConfigMap{}))
		Expect(partial.Lister().Get(label)).To(BeAssignableToTypeOf(&metav1.PartialObjectMetadata{}))
	})

	It("starts our metadata factory in place of client-go's", func(ctx SpecContext) {
		d, label := connect(kubeAPIServer), unique("both")
		client, err := kubernetes.NewForConfigAndClient(d.config, d.http)
		Expect(err).NotTo(HaveOccurred())
		partial, err := metadata.NewForConfigAndClient(metadata.ConfigFor(d.config), d.http)
		Expect(err).NotTo(HaveOccurred())
		shared, ours := informers.NewSharedInformerFactory(client, 0), metadatainformer.NewSharedInformerFactory(partial, 0)
		both := informerfactory.NewInformerFactory(shared, ours)

		got := map[schema.GroupVersionResource]*events{}
		for _, gvr := range []schema.GroupVersionResource{configMaps, blocks} {
			informer, err := both.ForResource(gvr)
			Expect(err).NotTo(HaveOccurred())
			got[gvr] = listen(informer.Informer())
		}
		stop := make(chan struct{})
		both.Start(stop)
		DeferCleanup(func() {
			close(stop)
			shared.Shutdown()
			ours.Shutdown()
		})
		Expect(shared.WaitForCacheSync(ctx.Done())).NotTo(ContainElement(false))
		Expect(ours.WaitForCacheSync(ctx.Done())).To(Equal(map[schema.GroupVersionResource]bool{blocks: true}))

		d.create(ctx, configMaps, label, newCore("ConfigMap", label, nil))
		d.create(ctx, blocks, "", newBlock(label, label))
		Eventually(got[configMaps].all).Should(ContainElement("add " + label + "/" + label))
		Eventually(got[blocks].all).Should(ContainElement("add " + label))
		config, err := shared.Core().V1().ConfigMaps().Lister().ConfigMaps(label).Get(label)
		Expect(err).NotTo(HaveOccurred())
		Expect(config.Labels).To(HaveKeyWithValue("spec", label))
		block, err := ours.ForResource(blocks).Lister().Get(label)
		Expect(err).NotTo(HaveOccurred())
		Expect(block).To(BeAssignableToTypeOf(&metav1.PartialObjectMetadata{}))
		of := faultproxy.All(faultproxy.Verb("list", "watch"), faultproxy.Resource(blocks.Group, blocks.Resource))
		Expect(d.proxy.Requests(of)).To(BeNumerically(">", 0))
		Expect(d.proxy.Past(faultproxy.All(of, faultproxy.Not(forMetadata)))).To(BeEmpty())
	})
})
