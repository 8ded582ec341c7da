package envtest_test

import (
	"context"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	crcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gvrkit/gvrkit/controllerruntime"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// manager returns a manager of controller-runtime on our cache.
func (d *connection) manager(opts ...controllerruntime.Option) ctrl.Manager {
	GinkgoHelper()
	m, err := ctrl.NewManager(d.config, ctrl.Options{
		Logger: GinkgoLogr, Metrics: metricsserver.Options{BindAddress: "0"}, NewCache: controllerruntime.WithOptions(opts...),
	})
	Expect(err).NotTo(HaveOccurred())
	return m
}

// begin runs m until the spec ends. It returns when m has started its cache.
func begin(m ctrl.Manager) {
	GinkgoHelper()
	untilEnd(m.Start)
	Eventually(m.Elected()).Should(BeClosed())
}

// reconciled adds a controller for kind to m. It returns the results of its reads: the name of an object, or "-" and the name if it is absent.
func reconciled(m ctrl.Manager, kind *unstructured.Unstructured) <-chan string {
	GinkgoHelper()
	results := make(chan string, 100)
	Expect(ctrl.NewControllerManagedBy(m).Named(unique("controller")).For(kind).Complete(reconcile.Func(
		func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			err := m.GetCache().Get(ctx, request.NamespacedName, kind.DeepCopy())
			switch {
			case err == nil:
				results <- request.Name
			case apierrors.IsNotFound(err):
				results <- "-" + request.Name
			default:
				return reconcile.Result{}, err
			}
			return reconcile.Result{}, nil
		}))).To(Succeed())
	return results
}

// ofKind returns an object without content.
func ofKind(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(gvk)
	return obj
}

var _ = Describe("A manager of controller-runtime", onEachServer(func(at *apiServer) {
	It("reconciles a kind that is installed later, deleted, and installed again", func(ctx SpecContext) {
		d, crd := connect(at), newCRD(ownGroup("managed"), "Ship", "v1")
		ships := schema.GroupVersionResource{Group: groupOf(crd), Version: "v1", Resource: "ships"}
		m := d.manager(controllerruntime.WithAllowAbsent())
		results := reconciled(m, ofKind(ships.GroupVersion().WithKind("Ship")))
		begin(m)

		d.define(ctx, crd)
		d.createNamed(ctx, ships, "Ship", "a")
		Eventually(results).Should(Receive(Equal("a")))
		d.undefine(ctx, crd.GetName())
		Eventually(results).Should(Receive(Equal("-a")))
		d.define(ctx, crd)
		d.createNamed(ctx, ships, "Ship", "b")
		Eventually(results).Should(Receive(Equal("b")))
	})

	It("ends the watch of an informer that is removed", func(ctx SpecContext) {
		d, label := connect(at), unique("removed")
		d.create(ctx, blocks, "", newBlock(label, label))
		m, block := d.manager(), ofKind(blocks.GroupVersion().WithKind("IPAMBlock"))
		begin(m)
		watches := func() int { return d.proxy.OpenWatches(faultproxy.Resource(blocks.Group, blocks.Resource)) }

		for range 2 {
			Expect(m.GetCache().Get(ctx, client.ObjectKey{Name: label}, block.DeepCopy())).To(Succeed())
			Eventually(watches).Should(Equal(1))
			Expect(m.GetCache().RemoveInformer(ctx, block)).To(Succeed())
			Eventually(watches).Should(BeZero())
			before := d.proxy.Requests(faultproxy.Resource(blocks.Group, blocks.Resource))
			Consistently(func() int {
				return d.proxy.Requests(faultproxy.Resource(blocks.Group, blocks.Resource))
			}, "300ms").Should(Equal(before))
		}
	})
}))

var _ = Describe("A manager of controller-runtime under RBAC, on "+kubeAPIServer.name, func() {
	It("returns the reason why an informer does not sync", func(ctx SpecContext) {
		m := connectAsUser(unique("failfast")).manager(controllerruntime.WithFailFast())
		begin(m)
		_, err := m.GetCache().GetInformer(ctx, ofKind(blocks.GroupVersion().WithKind("IPAMBlock")))
		var notSynced *status.NotSyncedError
		Expect(err).To(SatisfyAll(Satisfy(apierrors.IsForbidden), MatchError(ContainSubstring("list"))))
		Expect(errors.As(err, &notSynced)).To(BeTrue())
	}, SpecTimeout(2*time.Minute))

	It("runs its controllers while another kind is forbidden", func(ctx SpecContext) {
		d, admin, label := connectAsUser(unique("broken")), connect(kubeAPIServer), unique("broken")
		admin.create(ctx, widgets, "harbor", newWidget(label, label))
		grant(ctx, d.user, "", widgets, "list", "watch")
		m := d.manager()
		results := reconciled(m, ofKind(widgets.GroupVersion().WithKind("Widget")))
		forbidden, err := m.GetCache().GetInformer(ctx, ofKind(blocks.GroupVersion().WithKind("IPAMBlock")), crcache.BlockUntilSynced(false))
		Expect(err).NotTo(HaveOccurred())
		begin(m)
		Eventually(results).Should(Receive(Equal(label)))
		Expect(forbidden.HasSynced()).To(BeFalse())
	})
})
