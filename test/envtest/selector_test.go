package envtest_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

var _ = Describe("ResolveAll", onEachServer(func(at *apiServer) {
	for name, resolver := range map[string]func(d *connection) *discovery.Resolver{
		"a resolver that runs":         (*connection).live,
		"a resolver that does not run": func(d *connection) *discovery.Resolver { return d.resolver },
	} {
		It("of "+name+" selects by category, group and label of the CRD", func(ctx SpecContext) {
			d, admin := connect(at), connect(at)
			port, yard := ownGroup("port"), ownGroup("yard")
			category := unique("fleet")
			ship, crane, dock := newCRD(port, "Ship", "v1", "v2"), newCRD(port, "Crane", "v1"), newCRD(yard, "Dock", "v1")
			for _, crd := range []map[string]any{ship.Object, dock.Object} {
				crd["spec"].(map[string]any)["names"].(map[string]any)["categories"] = []any{category}
			}
			dock.Object["spec"].(map[string]any)["scope"] = "Cluster"
			ship.SetLabels(map[string]string{"tier": category})
			crane.SetLabels(map[string]string{"tier": category + "-not"})
			admin.define(ctx, ship, crane, dock)
			r := resolver(d)

			tier, err := labels.Parse("tier=" + category)
			Expect(err).NotTo(HaveOccurred())
			ships := schema.GroupVersionResource{Group: port, Version: "v2", Resource: "ships"}
			cranes := schema.GroupVersionResource{Group: port, Version: "v1", Resource: "cranes"}
			docks := schema.GroupVersionResource{Group: yard, Version: "v1", Resource: "docks"}
			both := []string{port, yard}
			for _, c := range []struct {
				of   discovery.Selector
				want []schema.GroupVersionResource
			}{
				{discovery.Selector{Groups: both}, []schema.GroupVersionResource{ships, cranes, docks}},
				{discovery.Selector{Groups: []string{port}}, []schema.GroupVersionResource{ships, cranes}},
				{discovery.Selector{Categories: []string{category}}, []schema.GroupVersionResource{ships, docks}},
				{discovery.Selector{Categories: []string{category}, Scope: discovery.ClusterScoped}, []schema.GroupVersionResource{docks}},
				{discovery.Selector{CRDLabels: tier}, []schema.GroupVersionResource{ships}},
				{discovery.Selector{CRDLabels: tier, Versions: discovery.EveryVersion()}, []schema.GroupVersionResource{ships, ships.GroupResource().WithVersion("v1")}},
				{discovery.Selector{Groups: both, CRDLabels: labels.Nothing()}, nil},
				{discovery.Selector{Groups: both, Backing: discovery.BackingCRD, Verbs: []string{"watch"}}, []schema.GroupVersionResource{ships, cranes, docks}},
			} {
				Eventually(func() ([]schema.GroupVersionResource, error) {
					found, err := r.ResolveAll(ctx, c.of)
					var gvrs []schema.GroupVersionResource
					for _, res := range found {
						gvrs = append(gvrs, res.GVR)
					}
					return gvrs, err
				}).Should(ConsistOf(c.want), "%+v", c.of)
			}
		})
	}

	It("follows the labels of a CRD", func(ctx SpecContext) {
		h := newShipGroup(ctx, at)
		selector := discovery.Selector{CRDLabels: labels.SelectorFromSet(labels.Set{"port": h.group})}
		Expect(h.resolver.ResolveAll(ctx, selector)).To(BeEmpty())
		h.admin.patch(ctx, definitions, "ships."+h.group, map[string]any{"metadata": map[string]any{"labels": map[string]any{"port": h.group}}})
		Eventually(func() ([]discovery.Resource, error) { return h.resolver.ResolveAll(ctx, selector) }).Should(HaveLen(1))
	})
}))
