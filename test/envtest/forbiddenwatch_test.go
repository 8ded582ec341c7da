package envtest_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/typefacts"
)

var _ = Describe("A resolver whose user may not watch, on "+kubeAPIServer.name, func() {
	It("reports that, and finds later types by polling", func(ctx SpecContext) {
		d, admin, group := connectAsUser(unique("polling")), connect(kubeAPIServer), ownGroup("polled")
		r := d.live()
		for _, of := range []func() discovery.SourceStatus{
			func() discovery.SourceStatus { return r.Status().CRDs }, func() discovery.SourceStatus { return r.Status().APIServices },
		} {
			Eventually(of).Should(SatisfyAll(HaveField("State", discovery.SourceForbidden), HaveField("Verb", "list"), HaveField("Err", MatchError(ContainSubstring(d.user)))))
		}
		events := d.groupEvents(group)
		DeferCleanup(typefacts.Of(r).Expect(schema.GroupResource{Group: group, Resource: "ships"}))
		admin.define(ctx, newCRD(group, "Ship", "v1"))
		Eventually(events.texts).Should(Equal([]string{"Added ships.v1." + group}))
		Expect(r.Resolve(ctx, "ships."+group)).To(HaveField("CRDUID", BeEmpty()))
		admin.undefine(ctx, "ships."+group)
		Eventually(events.texts, "60s").Should(Equal([]string{"Added ships.v1." + group, "Removed ships.v1." + group + " (NotListed)"}))
	})

	It("awaits a type that is created later", func(ctx SpecContext) {
		d, admin, group := connectAsUser(unique("awaiting")), connect(kubeAPIServer), ownGroup("awaited")
		r := d.live()
		awaited := make(chan error, 1)
		go func() {
			_, err := r.Await(ctx, schema.GroupVersionResource{Group: group, Version: "v1", Resource: "ships"})
			awaited <- err
		}()
		Consistently(awaited, "200ms").ShouldNot(Receive())
		admin.define(ctx, newCRD(group, "Ship", "v1"))
		Eventually(awaited).Should(Receive(BeNil()))
	})

	It("watches when the permission is granted", func(ctx SpecContext) {
		d := connectAsUser(unique("granted"))
		r := d.live()
		state := func() discovery.SourceState { return r.Status().CRDs.State }
		Eventually(state).Should(Equal(discovery.SourceForbidden))
		grant(ctx, d.user, "", definitions, "list", "watch")
		Eventually(state, "60s").Should(Equal(discovery.SourceCurrent))
		Eventually(func() (discovery.Resource, error) { return r.Resolve(ctx, "widgets") }).Should(HaveField("CRDUID", Not(BeEmpty())))
	})
})
