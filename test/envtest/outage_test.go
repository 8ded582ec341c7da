package envtest_test

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// A back-off doubles, so that its last pause is at most as long as the outage before it, with some jitter.
var _ = Describe("An outage of "+embeddedServer.name, func() {
	It("is over soon after the server is back, also for types that were created again meanwhile", func(ctx SpecContext) {
		const (
			outage = 9 * time.Second
			ships  = 3
		)
		through, admin := connect(embeddedServer), connect(embeddedServer)
		factory := through.startedFactory()
		var fleet []*leasedType
		for i := range 12 {
			group := ownGroup(fmt.Sprintf("outage%d", i))
			f := &leasedType{
				connection: admin, factory: factory, crd: newCRD(group, "Ship", "v1"),
				gvr: schema.GroupVersionResource{Group: group, Version: "v1", Resource: "ships"},
			}
			f.define(ctx, f.crd)
			f.created++
			f.createShips(ctx, ships)
			var err error
			f.lease, err = factory.Acquire(ctx, f.gvr, dynamicinformer.WithAllowAbsent())
			Expect(err).NotTo(HaveOccurred())
			f.eventLog = newEventLog(f.lease)
			f.synced(ctx)
			fleet = append(fleet, f)
		}

		through.proxy.Inject(faultproxy.All(), faultproxy.Fail(503))
		through.proxy.CutWatches(faultproxy.All())
		begun := time.Now()
		for _, f := range fleet[:6] {
			f.undefine(ctx, f.crd.GetName())
			f.again(ctx, func(crd *unstructured.Unstructured) { crd.SetResourceVersion(""); crd.SetUID("") })
			f.createShips(ctx, ships+1)
		}
		Eventually(func() time.Duration { return time.Since(begun) }, "30s").Should(BeNumerically(">=", outage))
		for _, f := range fleet {
			Eventually(f.status).Should(HaveField("State", status.StateDegraded))
		}
		through.proxy.Heal()
		healed, lasted := time.Now(), time.Since(begun)
		before := len(through.proxy.Past(faultproxy.All()))
		for i, f := range fleet {
			want := [2]int{ships, 0}
			if i < 6 {
				want = [2]int{2*ships + 1, ships}
			}
			Eventually(f.eventLog.addsAndDeletes, "60s").Should(Equal(want), f.gvr.Group)
			Eventually(f.status, "60s").Should(HaveField("State", status.StateSynced))
			f.eventLog.check()
		}
		took := time.Since(healed)
		AddReportEntry("recovered", fmt.Sprintf("after %v, outage %v, %d requests", took, lasted, len(through.proxy.Past(faultproxy.All()))-before))
		Expect(took).To(BeNumerically("<", 2*lasted+5*time.Second))
		Expect(len(through.proxy.Past(faultproxy.All()))-before).To(BeNumerically("<", 10*len(fleet)), "requests after the outage")
	})
})
