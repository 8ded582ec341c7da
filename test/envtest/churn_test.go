package envtest_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

var _ = Describe("Leases on "+embeddedServer.name, func() {
	It("are acquired and released by the thousand without leaks", func(ctx SpecContext) {
		d := connect(embeddedServer)
		f := d.startedFactory()
		keep, err := f.Acquire(ctx, widgets)
		Expect(err).NotTo(HaveOccurred())
		Expect(keep.WaitForSync(ctx)).To(Succeed())
		base := runtime.NumGoroutine()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() {
				defer GinkgoRecover()
				for i := range 100 {
					gvr := blocks
					if i%2 == 0 {
						gvr = widgets
					}
					l, err := f.Acquire(ctx, gvr)
					Expect(err).NotTo(HaveOccurred())
					if i%10 == 0 {
						_, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{})
						Expect(err).NotTo(HaveOccurred())
					}
					l.Release()
					<-l.Done()
				}
			})
		}
		all.Wait()
		ofBlocks := faultproxy.Resource(blocks.Group, blocks.Resource)
		Eventually(func() int { return d.proxy.OpenWatches(ofBlocks) }).Should(BeZero())
		Expect(d.proxy.OpenWatches(faultproxy.Resource(widgets.Group, widgets.Resource))).To(Equal(1))
		Expect(f.Status()).To(HaveLen(1))
		Eventually(runtime.NumGoroutine).Should(BeNumerically("<=", base+20)) // connections of the proxy
	})
})

// soakSize returns the number of CRDs, and how often they are created and deleted. GVRKIT_SOAK
// sets both, such as 40x200, for a long run.
func soakSize() (crds, cycles int) {
	GinkgoHelper()
	size, set := os.LookupEnv("GVRKIT_SOAK")
	if !set {
		return 8, 5
	}
	_, err := fmt.Sscanf(size, "%dx%d", &crds, &cycles)
	Expect(err).NotTo(HaveOccurred(), "GVRKIT_SOAK must be CRDs x cycles, such as 40x200")
	return crds, cycles
}

// The server delays a create by 2 s soon after a CRD is established. Therefore only the first cycle
// creates objects.
var _ = Describe("Types on "+embeddedServer.name, func() {
	It("are created and deleted by the hundred without leaks of their informers", func(ctx SpecContext) {
		crds, cycles := soakSize()
		d := connect(embeddedServer)
		f := d.factory()
		// The log would use memory of the test.
		f.Start(klog.NewContext(context.Background(), klog.Logger{})) //nolint:forbidigo // the factory ends by Shutdown
		group := ownGroup("soak")
		settle := func() (goroutines int, heap uint64) {
			runtime.GC()
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			return runtime.NumGoroutine(), stats.HeapAlloc
		}
		leases := make([]*dynamicinformer.Lease, crds)
		recorders := make([]*eventLog, crds)
		for i := range leases {
			var err error
			gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: fmt.Sprintf("boat%ds", i)}
			leases[i], err = f.Acquire(ctx, gvr, dynamicinformer.WithAllowAbsent())
			Expect(err).NotTo(HaveOccurred())
			recorders[i] = newEventLog(leases[i])
		}
		cycle := func(objects bool) {
			var all sync.WaitGroup
			for i, l := range leases {
				all.Go(func() {
					defer GinkgoRecover()
					crd := newCRD(group, fmt.Sprintf("Boat%d", i), "v1")
					_, err := d.client.Resource(definitions).Create(ctx, crd, metav1.CreateOptions{})
					Expect(err).NotTo(HaveOccurred())
					wait, cancel := context.WithTimeout(ctx, time.Minute)
					defer cancel()
					Expect(l.WaitForSync(wait)).To(Succeed())
					if objects {
						boat := newObject(schema.GroupVersionKind{Group: group, Version: "v1", Kind: fmt.Sprintf("Boat%d", i)}, "boat", i, nil)
						Expect(retryUntilServed(ctx, func() error {
							_, err := d.client.Resource(l.Resource().GVR).Namespace("harbor").Create(ctx, boat, metav1.CreateOptions{})
							return err
						})).To(Succeed())
						Eventually(recorders[i].addsAndDeletes).Should(Equal([2]int{1, 0}))
					}
					d.undefine(ctx, crd.GetName())
					Eventually(l.Status, "60s").Should(HaveField("State", status.StateNotServed))
				})
			}
			all.Wait()
			d.proxy.Forget()
		}
		cycle(true) // allocates what later cycles use again
		goroutines, heap := settle()
		for i := range cycles {
			cycle(false)
			if i%10 == 9 {
				now, bytes := settle()
				GinkgoWriter.Printf("%d cycles of %d types: %d goroutines, %d MB\n", i+1, crds, now, bytes>>20)
			}
		}
		Expect(d.proxy.OpenWatches(func(r faultproxy.Request) bool { return r.Group == group })).To(BeZero())
		Eventually(func() int { now, _ := settle(); return now }, "60s", "1s").Should(BeNumerically("<=", goroutines+10))
		_, after := settle()
		Expect(after).To(BeNumerically("<", heap+heap/2+8<<20))
		for _, recorder := range recorders {
			Expect(recorder.addsAndDeletes()).To(Equal([2]int{1, 1}))
			recorder.check()
		}
	})
})
