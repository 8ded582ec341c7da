package envtest_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

// newNamedCRD returns a CRD in an own group with a short name.
func newNamedCRD(kind, shortName string) *unstructured.Unstructured {
	crd := newCRD(ownGroup("harbour"), kind, "v1")
	crd.Object["spec"].(map[string]any)["names"].(map[string]any)["shortNames"] = []any{shortName}
	return crd
}

func groupOf(crd *unstructured.Unstructured) string {
	group, _, _ := unstructured.NestedString(crd.Object, "spec", "group")
	return group
}

// objectNames returns the names of the objects in the cache of a lease.
func objectNames(l *dynamicinformer.Lease) ([]string, error) {
	objects, err := l.Unstructured().List(labels.Everything())
	names := make([]string, 0, len(objects))
	for _, obj := range objects {
		names = append(names, obj.GetName())
	}
	slices.Sort(names)
	return names, err
}

// createNamed creates an object as soon as the server serves its type.
func (d *connection) createNamed(ctx context.Context, gvr schema.GroupVersionResource, kind, name string) {
	GinkgoHelper()
	d.at.ensureNamespace(ctx, d.client, "harbor")
	Expect(retryUntilServed(ctx, func() error {
		_, err := d.client.Resource(gvr).Namespace("harbor").Create(ctx, newObject(gvr.GroupVersion().WithKind(kind), name, 1, nil), metav1.CreateOptions{})
		return err
	})).To(Succeed())
}

var _ = Describe("A lease by name", onEachServer(func(at *apiServer) {
	It("follows a short name from one group to another", func(ctx SpecContext) {
		d, name := connect(at), unique("vessel")
		f := d.startedFactory()
		lease, err := f.AcquireRef(ctx, name, dynamicinformer.WithAllowAbsent())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(lease.Release)
		Eventually(lease.Status).Should(HaveField("Reason", status.ReasonNotFound))

		ships, boats := newNamedCRD("Ship", name), newNamedCRD("Boat", name)
		d.define(ctx, ships)
		shipsGVR := schema.GroupVersionResource{Group: groupOf(ships), Version: "v1", Resource: "ships"}
		d.createNamed(ctx, shipsGVR, "Ship", "a")
		Eventually(func() ([]string, error) { return objectNames(lease) }).Should(Equal([]string{"a"}))
		Expect(lease.WaitForSync(ctx)).To(Succeed())
		Expect(lease.Resource().GVR).To(Equal(shipsGVR))

		d.define(ctx, boats)
		boatsGVR := schema.GroupVersionResource{Group: groupOf(boats), Version: "v1", Resource: "boats"}
		Eventually(lease.Status).Should(HaveField("Reason", status.ReasonAmbiguous))
		d.createNamed(ctx, shipsGVR, "Ship", "b")
		d.createNamed(ctx, boatsGVR, "Boat", "c")
		Eventually(func() ([]string, error) { return objectNames(lease) }).Should(Equal([]string{"a", "b"}))
		_, err = f.AcquireRef(ctx, name, dynamicinformer.WithSeparateInformer())
		Expect(err).To(MatchError(discovery.ErrAmbiguous))

		d.undefine(ctx, ships.GetName())
		Eventually(func() ([]string, error) { return objectNames(lease) }).Should(Equal([]string{"c"}))
		Eventually(lease.Status).Should(And(HaveField("State", status.StateSynced), HaveField("GVR", boatsGVR)))
	})

	It("waits for a kind, also if its plural changes", func(ctx SpecContext) {
		d := connect(at)
		f := d.startedFactory()
		crd := newCRD(ownGroup("harbour"), "Ship", "v1")
		kind := schema.GroupVersionKind{Group: groupOf(crd), Version: "v1", Kind: "Ship"}
		_, err := f.AcquireGVK(ctx, kind)
		Expect(err).To(MatchError(discovery.ErrNotServed))
		lease, err := f.AcquireGVK(ctx, kind, dynamicinformer.WithAllowAbsent())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(lease.Release)

		d.define(ctx, crd)
		gvr := schema.GroupVersionResource{Group: groupOf(crd), Version: "v1", Resource: "ships"}
		d.createNamed(ctx, gvr, "Ship", "a")
		Eventually(func() ([]string, error) { return objectNames(lease) }).Should(Equal([]string{"a"}))
		byGVR, err := f.Acquire(ctx, gvr)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(byGVR.Release)
		Expect(byGVR.WaitForSync(ctx)).To(Succeed())

		d.undefine(ctx, crd.GetName())
		Eventually(func() ([]string, error) { return objectNames(lease) }).Should(BeEmpty())
		another := newCRD(groupOf(crd), "Ship", "v1")
		another.SetName("fleet." + groupOf(crd))
		another.Object["spec"].(map[string]any)["names"].(map[string]any)["plural"] = "fleet"
		d.define(ctx, another)
		d.createNamed(ctx, gvr.GroupVersion().WithResource("fleet"), "Ship", "b")
		Eventually(func() ([]string, error) { return objectNames(lease) }).Should(Equal([]string{"b"}))
		Eventually(func() ([]string, error) { return objectNames(byGVR) }).Should(BeEmpty())
		Eventually(byGVR.Status).Should(HaveField("State", status.StateNotServed))
	})

	It("ends a wait for a name", func(ctx SpecContext) {
		d, name := connect(at), unique("vessel")
		untilEnd(d.resolver.Run)
		found := make(chan discovery.Resource, 1)
		go func() {
			defer GinkgoRecover()
			res, err := d.resolver.AwaitRef(ctx, name)
			Expect(err).NotTo(HaveOccurred())
			found <- res
		}()
		Consistently(found, "200ms").ShouldNot(Receive())
		d.define(ctx, newNamedCRD("Ship", name))
		Eventually(found).Should(Receive(HaveField("GVK.Kind", "Ship")))
	})
}))
