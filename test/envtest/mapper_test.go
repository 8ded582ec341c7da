package envtest_test

import (
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/gvrkit/gvrkit/discovery"
)

// lookup is a question to a mapper.
type lookup struct {
	method string
	ask    func(meta.RESTMapper) (any, error)
}

// lookups returns the methods of a mapper as questions about a kind and its resource, in one version,
// or in any version if that is empty.
func lookups(gvk schema.GroupVersionKind, resource string) []lookup {
	gvr := gvk.GroupVersion().WithResource(resource)
	var versions []string
	if gvk.Version != "" {
		versions = []string{gvk.Version}
	}
	return []lookup{
		{"KindFor", func(m meta.RESTMapper) (any, error) { return m.KindFor(gvr) }},
		{"KindsFor", func(m meta.RESTMapper) (any, error) { return m.KindsFor(gvr) }},
		{"ResourceFor", func(m meta.RESTMapper) (any, error) { return m.ResourceFor(gvr) }},
		{"ResourcesFor", func(m meta.RESTMapper) (any, error) { return m.ResourcesFor(gvr) }},
		{"RESTMapping", func(m meta.RESTMapper) (any, error) { return m.RESTMapping(gvk.GroupKind(), versions...) }},
		{"RESTMappings", func(m meta.RESTMapper) (any, error) { return m.RESTMappings(gvk.GroupKind(), versions...) }},
	}
}

// shipGroup is the group of a spec, which serves ships in v1 and v2, and a running resolver that
// knows them.
type shipGroup struct {
	*connection
	admin  *connection // for requests that do not count
	mapper meta.RESTMapper
	group  string
	ship   schema.GroupKind
	ships  schema.GroupResource
}

func newShipGroup(ctx SpecContext, at *apiServer) *shipGroup {
	GinkgoHelper()
	group := ownGroup("harbour")
	h := &shipGroup{
		connection: connect(at), admin: connect(at), group: group,
		ship:  schema.GroupKind{Group: group, Kind: "Ship"},
		ships: schema.GroupResource{Group: group, Resource: "ships"},
	}
	h.admin.define(ctx, newCRD(group, "Ship", "v1", "v2"))
	h.mapper = h.live().RESTMapper()
	// For a moment, documents may have only one of the versions, or v1 before v2.
	Eventually(func() ([]*meta.RESTMapping, error) { return h.mapper.RESTMappings(h.ship, "v1", "v2") }).Should(HaveLen(2))
	Eventually(func() (*meta.RESTMapping, error) { return h.mapper.RESTMapping(h.ship) }).Should(HaveField("Resource.Version", "v2"))
	return h
}

// kind returns a kind of the group.
func (h *shipGroup) kind(kind string) schema.GroupKind {
	return schema.GroupKind{Group: h.group, Kind: kind}
}

var _ = Describe("The RESTMapper of a resolver that runs", onEachServer(func(at *apiServer) {
	It("answers for known types without a request", func(ctx SpecContext) {
		h := newShipGroup(ctx, at)
		h.quiet()
		Expect(h.costs(func() {
			for _, version := range []string{"v1", "v2", ""} {
				for _, l := range lookups(h.ship.WithVersion(version), "ships") {
					got, err := l.ask(h.mapper)
					Expect(err).NotTo(HaveOccurred(), l.method)
					Expect(got).NotTo(BeZero(), l.method)
				}
			}
			Expect(h.mapper.ResourceSingularizer("ships")).To(Equal("ship"))
		})).To(BeZero())
	})

	It("answers as controller-runtime's mapper does", func(ctx SpecContext) {
		h := newShipGroup(ctx, at)
		theirs, err := apiutil.NewDynamicRESTMapper(h.admin.config, h.admin.http)
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() error { _, err := theirs.RESTMapping(h.ship, "v1", "v2"); return err }).Should(Succeed())
		kinds := map[schema.GroupKind]string{
			h.ship: "ships", h.kind("ship"): "ship", h.kind("Nothing"): "nothings",
			{Group: "nowhere.example.com", Kind: "Ship"}: "ships",
		}
		if at.whole {
			kinds[schema.GroupKind{Kind: "Pod"}] = "pods"
			kinds[schema.GroupKind{Group: "apps", Kind: "Deployment"}] = "deployments"
			kinds[schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}] = "horizontalpodautoscalers"
			kinds[schema.GroupKind{Group: "authentication.k8s.io", Kind: "TokenReview"}] = "tokenreviews"
			kinds[schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}] = "ingresses"
			kinds[schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}] = "poddisruptionbudgets"
			kinds[schema.GroupKind{Group: "scheduling.k8s.io", Kind: "PriorityClass"}] = "priorityclasses"
		}
		for gk, resource := range kinds {
			for _, version := range []string{"v1", "v2", "v3", ""} {
				for _, l := range lookups(gk.WithVersion(version), resource) {
					question := l.method + " " + gk.WithVersion(version).String()
					want, refusal := l.ask(theirs)
					got, err := l.ask(h.mapper)
					Expect(meta.IsNoMatchError(err)).To(Equal(meta.IsNoMatchError(refusal)), "%s: %v, but %v", question, err, refusal)
					Expect(err == nil).To(Equal(refusal == nil), "%s: %v, but %v", question, err, refusal)
					if refusal == nil {
						Expect(got).To(Equal(want), question)
					}
				}
			}
		}
	})

	It("uses the first served version of several, and the preferred version if none is given", func(ctx SpecContext) {
		h := newShipGroup(ctx, at)
		for _, want := range []struct {
			version string
			of      []string
		}{
			{"v1", []string{"v1"}}, {"v2", []string{"v2"}}, {"v1", []string{"v1", "v2"}}, {"v2", []string{"v3", "v2", "v1"}}, {"v2", nil},
		} {
			mapping, err := h.mapper.RESTMapping(h.ship, want.of...)
			Expect(err).NotTo(HaveOccurred())
			Expect(mapping.Resource).To(Equal(h.ships.WithVersion(want.version)), "of %v", want.of)
			Expect(mapping.GroupVersionKind).To(Equal(h.ship.WithVersion(want.version)), "of %v", want.of)
			Expect(mapping.Scope.Name()).To(Equal(meta.RESTScopeNameNamespace))
		}
		both, err := h.mapper.RESTMappings(h.ship, "v1", "v2")
		Expect(err).NotTo(HaveOccurred())
		Expect(both).To(HaveLen(2))
		Expect(h.mapper.KindFor(h.ships.WithVersion(""))).To(Equal(h.ship.WithVersion("v2")))
		Expect(h.mapper.ResourceFor(schema.GroupVersionResource{Group: h.group, Resource: "ship"})).To(Equal(h.ships.WithVersion("v2")))
		Expect(h.mapper.KindsFor(h.ships.WithVersion(""))).To(ConsistOf(h.ship.WithVersion("v1"), h.ship.WithVersion("v2")))
	})

	DescribeTable("sends requests only once for",
		func(ctx SpecContext, of func(h *shipGroup) (schema.GroupVersionKind, string)) {
			h := newShipGroup(ctx, at)
			h.quiet()
			for _, l := range lookups(of(h)) {
				ask := func() {
					_, err := l.ask(h.mapper)
					Expect(meta.IsNoMatchError(err)).To(BeTrue(), "%s: %v", l.method, err)
					Expect(err).To(MatchError(discovery.ErrNotServed), l.method)
				}
				Expect(h.costs(ask)).To(BeNumerically("<=", 3), "%s: the two documents, and the CRD of the group, which is new", l.method)
				Expect(h.costs(ask)).To(BeZero(), l.method)
			}
		},
		Entry("a group that does not exist", func(*shipGroup) (schema.GroupVersionKind, string) {
			return schema.GroupVersionKind{Group: ownGroup("nowhere"), Version: "v1", Kind: "Ship"}, "ships"
		}),
		Entry("a group that does not exist, without a version", func(*shipGroup) (schema.GroupVersionKind, string) {
			return schema.GroupVersionKind{Group: ownGroup("nowhere"), Kind: "Ship"}, "ships"
		}),
		Entry("a resource that does not exist", func(h *shipGroup) (schema.GroupVersionKind, string) {
			return h.kind("Nothing").WithVersion("v1"), "nothings"
		}),
		Entry("a resource that does not exist, without a version", func(h *shipGroup) (schema.GroupVersionKind, string) {
			return h.kind("Nothing").WithVersion(""), "nothings"
		}),
		Entry("a version that does not exist", func(h *shipGroup) (schema.GroupVersionKind, string) {
			return h.ship.WithVersion("v3"), "ships"
		}),
	)

	It("sends requests once for each of several kinds that do not exist", func(ctx SpecContext) {
		h := newShipGroup(ctx, at)
		h.quiet()
		ask := func() {
			for _, kind := range []string{"Crane", "Pier", "Buoy"} {
				_, err := h.mapper.RESTMapping(h.kind(kind))
				Expect(meta.IsNoMatchError(err)).To(BeTrue(), "%s: %v", kind, err)
			}
		}
		Expect(h.costs(ask)).To(BeNumerically("<=", 8)) // two for each, and perhaps those of a poll
		h.quiet()
		Expect(h.costs(ask)).To(BeZero())
	})

	It("removes a version that its CRD no longer has, and keeps the other", func(ctx SpecContext) {
		h := newShipGroup(ctx, at)
		crd := newCRD(h.group, "Ship", "v1")
		h.admin.patch(ctx, definitions, crd.GetName(), map[string]any{"spec": crd.Object["spec"]})
		Eventually(func() error { _, err := h.mapper.RESTMapping(h.ship, "v2"); return err }).Should(Satisfy(meta.IsNoMatchError))
		for range 20 {
			_, err := h.mapper.RESTMapping(h.ship, "v2")
			Expect(err).To(MatchError(ContainSubstring("it is served in v1")))
			mapping, err := h.mapper.RESTMapping(h.ship)
			Expect(err).NotTo(HaveOccurred())
			Expect(mapping.Resource).To(Equal(h.ships.WithVersion("v1")))
		}
	})

	It("returns the same preferred version to all callers, and a new one after a change", func(ctx SpecContext) {
		h := newShipGroup(ctx, at)
		preferred := func() map[string]int {
			var (
				wg  sync.WaitGroup
				mu  sync.Mutex
				got = map[string]int{}
			)
			for range 50 {
				wg.Go(func() {
					version := ""
					if mapping, err := h.mapper.RESTMapping(h.ship); err == nil {
						version = mapping.Resource.Version
					}
					mu.Lock()
					defer mu.Unlock()
					got[version]++
				})
			}
			wg.Wait()
			return got
		}
		Expect(preferred()).To(Equal(map[string]int{"v2": 50}))
		crd := newCRD(h.group, "Ship", "v1", "v2", "v10")
		h.admin.patch(ctx, definitions, crd.GetName(), map[string]any{"spec": crd.Object["spec"]})
		Eventually(preferred).Should(Equal(map[string]int{"v10": 50}))
		Consistently(preferred, "3s", "20ms").Should(Equal(map[string]int{"v10": 50}), "also after the next documents")
	})
}))
