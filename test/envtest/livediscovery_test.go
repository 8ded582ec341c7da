package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	gomegatypes "github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

var _ = Describe("A resolver that runs", onEachServer(func(at *apiServer) {
	It("answers from memory", func(ctx SpecContext) {
		r := connect(at).live()
		Eventually(func() discovery.SourceState { return r.Status().CRDs.State }).Should(Equal(discovery.SourceCurrent))
		want := discovery.SourceAbsent // the embedded server has no aggregation layer
		if at.whole {
			want = discovery.SourceCurrent
		}
		Eventually(func() discovery.SourceState { return r.Status().APIServices.State }).Should(Equal(want))
		Expect(r.Status().Running).To(BeTrue())
		Eventually(func() (int, error) { // types of earlier specs may end
			all, err := r.ResolveAll(ctx, discovery.Selector{})
			return len(all) - r.Status().Types, err
		}).Should(BeZero())
	})

	It("begins with one request for each of the two documents", func() {
		Eventually(func() int { // until the types of earlier specs are deleted, and no CRD is new
			d := connect(at)
			d.live()
			d.quiet()
			return d.proxy.Requests(faultproxy.AnyDiscovery())
		}, "90s").Should(Equal(2))
		var starting []*connection
		for range 5 { // the order of the first responses varies
			d := connect(at)
			d.live()
			starting = append(starting, d)
		}
		starting[len(starting)-1].quiet()
		for _, d := range starting {
			Expect(d.proxy.Requests(faultproxy.AnyDiscovery())).To(Equal(2))
		}
	})

	DescribeTable("finds a new kind of a known group, after a NotServed answer for it,",
		func(ctx SpecContext, ask func(ctx context.Context, r *discovery.Resolver, group string) error) {
			h := newShipGroup(ctx, at)
			for range 2 {
				err := ask(ctx, h.resolver, h.group)
				Expect(err).To(MatchError(discovery.ErrNotServed))
				Expect(meta.IsNoMatchError(err)).To(BeTrue())
			}
			h.admin.define(ctx, newCRD(h.group, "Crane", "v1"))
			Eventually(func() error { return ask(ctx, h.resolver, h.group) }).Should(Succeed())
		},
		Entry("by its name", func(ctx context.Context, r *discovery.Resolver, group string) error {
			_, err := r.Resolve(ctx, "crane."+group)
			return err
		}),
		Entry("by its plural", func(ctx context.Context, r *discovery.Resolver, group string) error {
			_, err := r.ResolveGR(ctx, schema.GroupResource{Group: group, Resource: "cranes"})
			return err
		}),
		Entry("by its kind", func(ctx context.Context, r *discovery.Resolver, group string) error {
			_, err := r.ResolveGK(ctx, schema.GroupKind{Group: group, Kind: "Crane"})
			return err
		}),
		Entry("by plural and version", func(ctx context.Context, r *discovery.Resolver, group string) error {
			_, err := r.Validate(ctx, schema.GroupVersionResource{Group: group, Version: "v1", Resource: "cranes"})
			return err
		}),
		Entry("with its mapper", func(_ context.Context, r *discovery.Resolver, group string) error {
			_, err := r.RESTMapper().RESTMapping(schema.GroupKind{Group: group, Kind: "Crane"})
			return err
		}),
	)

	It("drops NotServed answers with the next event", func(ctx SpecContext) {
		h := newShipGroup(ctx, at)
		h.quiet()
		ask := func() {
			_, err := h.resolver.ResolveGK(ctx, h.kind("Crane"))
			Expect(err).To(MatchError(discovery.ErrNotServed))
		}
		Expect(h.costs(ask)).NotTo(BeZero())
		Expect(h.costs(ask)).To(BeZero())
		h.admin.define(ctx, newCRD(h.group, "Pier", "v1"))
		Eventually(func() error { _, err := h.resolver.ResolveGK(ctx, h.kind("Pier")); return err }).Should(Succeed())
		h.quiet()
		Expect(h.costs(ask)).NotTo(BeZero())
		Expect(h.costs(ask)).To(BeZero())
	})

	It("reports a CRD that is deleted and created again as two types", func(ctx SpecContext) {
		h := newShipGroup(ctx, at)
		events := h.groupEvents(h.group)
		Eventually(events.addedAndRemoved).Should(HaveLen(1))
		h.admin.undefine(ctx, "ships."+h.group)
		Eventually(events.addedAndRemoved).Should(HaveLen(2))
		crd := newCRD(h.group, "Ship", "v1")
		crd.Object["spec"].(map[string]any)["scope"] = "Cluster"
		h.admin.define(ctx, crd)
		Eventually(events.addedAndRemoved).Should(matchTwoTypes(crd.GetName()))
		mapping, err := h.mapper.RESTMapping(h.ship)
		Expect(err).NotTo(HaveOccurred())
		Expect(mapping.Scope.Name()).To(Equal(meta.RESTScopeNameRoot))
	})

	It("reports a CRD that was deleted and created again during a failure of watches as two types", func(ctx SpecContext) {
		h := newShipGroup(ctx, at)
		events := h.groupEvents(h.group)
		Eventually(events.addedAndRemoved).Should(HaveLen(1))
		ofCRDs := faultproxy.Resource(definitions.Group, definitions.Resource)
		again := h.proxy.Inject(ofCRDs, faultproxy.Fail(http.StatusServiceUnavailable))
		h.proxy.CutWatches(ofCRDs)
		state := func() discovery.SourceState { return h.resolver.Status().CRDs.State }
		Eventually(state).Should(Equal(discovery.SourceFailing))
		catchUp := h.proxy.Inject(nil, faultproxy.StaleDiscovery()) // documents without the type for 5 s would be evidence; a server may need longer
		h.admin.undefine(ctx, "ships."+h.group)
		h.admin.define(ctx, newCRD(h.group, "Ship", "v1", "v2"))
		Eventually(func() error { _, err := h.admin.resolver.ResolveGK(ctx, h.ship); return err }).Should(Succeed())
		Expect(events.addedAndRemoved()).To(HaveLen(1), "the last known state")
		catchUp()
		h.proxy.Inject(faultproxy.All(ofCRDs, faultproxy.Verb("watch")), faultproxy.Times(1, faultproxy.GoneStatus())) // makes it list
		again()
		Eventually(state).Should(Equal(discovery.SourceCurrent))
		Eventually(events.addedAndRemoved).Should(matchTwoTypes("ships." + h.group))
	})

	It("does not report writes to a CRD that do not change its type, and reads no CRD", func(ctx SpecContext) {
		h := newShipGroup(ctx, at)
		events := h.groupEvents(h.group)
		h.quiet()
		Eventually(events.texts).Should(HaveLen(1))
		read := func() int { return h.proxy.Requests(faultproxy.Path(definitionPath + "/ships." + h.group)) }
		before := read()
		Expect(h.costs(func() {
			for i := range 20 {
				crd := newCRD(h.group, "Ship", "v1", "v2")
				crd.SetAnnotations(map[string]string{"note": fmt.Sprint(i)})
				describe(crd, fmt.Sprint(i))
				h.admin.patch(ctx, definitions, crd.GetName(), crd.Object)
			}
			names := map[string]any{"shortNames": []any{"sh"}}
			h.admin.patch(ctx, definitions, "ships."+h.group, map[string]any{"spec": map[string]any{"names": names}})
			Eventually(events.texts).Should(HaveLen(2), "the event of the last write")
		})).To(BeNumerically("<", 2*21), "conditional requests for the two documents, fewer than one per write")
		Expect(read()).To(Equal(before))
		Expect(events.texts()).To(Equal([]string{"Added ships.v2." + h.group, "Changed ships.v2." + h.group + " [Names]"}))
	})

	It("awaits a type until its CRD is established, as a resolver that does not run", func(ctx SpecContext) {
		h, idle := newShipGroup(ctx, at), connect(at).resolver
		cranes := schema.GroupVersionResource{Group: h.group, Version: "v1", Resource: "cranes"}
		awaited := make(chan error, 2)
		for _, r := range []*discovery.Resolver{h.resolver, idle} {
			go func() {
				_, err := r.Await(ctx, cranes)
				awaited <- err
			}()
		}
		Consistently(awaited, "200ms").ShouldNot(Receive())
		h.admin.define(ctx, newCRD(h.group, "Crane", "v1"))
		Eventually(awaited).Should(Receive(BeNil()))
		Eventually(awaited).Should(Receive(BeNil()))
	})

	It("returns the server's reason why a CRD is not served, until it is served", func(ctx SpecContext) {
		h := newShipGroup(ctx, at)
		rival := newCRD(h.group, "Ship", "v1") // the same kind with another name
		rival.SetName("boats." + h.group)
		rival.Object["spec"].(map[string]any)["names"] = map[string]any{"plural": "boats", "singular": "boat", "kind": "Ship"}
		h.admin.define(ctx, rival)
		boats := schema.GroupVersionResource{Group: h.group, Version: "v1", Resource: "boats"}

		others := connect(at).resolver // does not run
		for _, r := range []*discovery.Resolver{h.resolver, others} {
			var refused *discovery.NotEstablishedError
			Eventually(func() string {
				_, err := r.ResolveGVR(ctx, boats)
				if !errors.As(err, &refused) {
					return fmt.Sprint(err)
				}
				Expect(err).To(MatchError(discovery.ErrNotServed))
				Expect(meta.IsNoMatchError(err)).To(BeTrue())
				return refused.Condition
			}).Should(Equal("NamesAccepted"))
			crd, err := h.admin.client.Resource(definitions).Get(ctx, rival.GetName(), metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(refused.CRD).To(Equal(rival.GetName()))
			Expect(conditions(crd)).To(ContainElement(And(
				HaveKeyWithValue("type", "NamesAccepted"), HaveKeyWithValue("reason", refused.Reason), HaveKeyWithValue("message", refused.Message))))
			Expect(refused.Message).NotTo(BeEmpty())
			Expect(refused.Error()).To(ContainSubstring(refused.Message))
		}
		_, err := h.resolver.ResolveGVR(ctx, h.ships.WithVersion("v1"))
		Expect(err).NotTo(HaveOccurred(), "the first CRD is served")

		h.admin.undefine(ctx, "ships."+h.group)
		for _, r := range []*discovery.Resolver{h.resolver, others} {
			Eventually(func() error { _, err := r.ResolveGVR(ctx, boats); return err }).Should(Succeed())
		}
		Expect(h.resolver.ResolveGK(ctx, h.ship)).To(HaveField("GVR", boats))
	})
}))

// matchTwoTypes matches the events Added, Removed and Added for two types with the name of crd, one
// after another.
func matchTwoTypes(crd string) gomegatypes.GomegaMatcher {
	return WithTransform(func(events []discovery.Event) error {
		if len(events) != 3 {
			return fmt.Errorf("events %v", events)
		}
		added, removed, again := events[0], events[1], events[2]
		first, second := added.Resource.CRDUID, again.Resource.CRDUID
		switch {
		case added.Type != discovery.Added || removed.Type != discovery.Removed || again.Type != discovery.Added:
			return fmt.Errorf("events %v", events)
		case first == "" || second == "" || first == second:
			return fmt.Errorf("%s had UID %q, and later %q", crd, first, second)
		case removed.Evidence.Kind != discovery.CRDDeleted || removed.Evidence.CRDUID != first:
			return fmt.Errorf("%s had UID %q, but the evidence is %+v", crd, first, removed.Evidence)
		}
		return nil
	}, Succeed())
}

const definitionPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// describe sets the description of each schema of crd.
func describe(crd *unstructured.Unstructured, text string) {
	for _, version := range crd.Object["spec"].(map[string]any)["versions"].([]any) {
		schema := version.(map[string]any)["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)
		schema["description"] = text
	}
}
