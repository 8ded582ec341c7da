package envtest_test

import (
	"runtime/pprof"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/test/envtest/fixture"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

var _ = Describe("Leases on "+embeddedServer.name, func() {
	It("are acquired and released by the thousand without leaks", func(ctx SpecContext) {
		label := unique("churn")
		pprof.SetGoroutineLabels(pprof.WithLabels(ctx, pprof.Labels("spec", label))) // those that it starts have them, too
		goroutines := func() (int, error) { return fixture.InformerGoroutines(label) }
		d := connect(embeddedServer)
		f := d.startedFactory()
		for _, gvr := range []schema.GroupVersionResource{widgets, blocks} { // the resolver keeps a watch of the CRD of each
			l, err := f.Acquire(ctx, gvr)
			Expect(err).NotTo(HaveOccurred())
			Expect(l.WaitForSync(ctx)).To(Succeed())
			if gvr == blocks {
				l.Release()
			}
		}
		d.quiet()
		base, err := goroutines()
		Expect(err).NotTo(HaveOccurred())
		Expect(base).NotTo(BeZero())
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
					Expect(len(f.Status())).To(BeNumerically("<=", 2), "one informer of each type")
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
		Eventually(goroutines).Should(BeNumerically("<=", base))
		Expect(f.Shutdown(ctx)).To(Succeed())
		Eventually(goroutines).Should(BeZero())
	})
})
