package envtest_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/gvrkit/gvrkit/test/faultproxy"
)

var _ = Describe("controller-runtime's client with the resolver's mapper", onEachServer(func(at *apiServer) {
	It("reads objects of a CRD that was created after the client", func(ctx SpecContext) {
		d, admin := connect(at), connect(at)
		ships := schema.GroupVersionResource{Group: ownGroup("later"), Version: "v1", Resource: "ships"}
		ship := ships.GroupVersion().WithKind("Ship")
		reader, err := client.New(d.config, client.Options{HTTPClient: d.http, Mapper: d.live().RESTMapper()})
		Expect(err).NotTo(HaveOccurred())
		read := func() (*unstructured.Unstructured, error) {
			obj := &unstructured.Unstructured{}
			obj.SetGroupVersionKind(ship)
			return obj, reader.Get(ctx, types.NamespacedName{Namespace: "harbour", Name: "a"}, obj)
		}
		_, err = read()
		Expect(meta.IsNoMatchError(err)).To(BeTrue(), "%v", err)

		crd := newCRD(ships.Group, ship.Kind, ships.Version)
		DeferCleanup(func(ctx SpecContext) { admin.undefine(ctx, crd.GetName()) })
		at.install(ctx, crd)
		created := admin.create(ctx, ships, "harbour", newObject(ship, "a", 1, nil))
		Eventually(read).Should(Equal(created))

		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(ships.GroupVersion().WithKind("ShipList"))
		Expect(reader.List(ctx, list, client.InNamespace("harbour"))).To(Succeed())
		Expect(list.Items).To(HaveLen(1))
		Expect(d.proxy.Requests(faultproxy.Discovery(ships.Group))).To(BeZero(), "requests for the documents of the group")
	})
}))
