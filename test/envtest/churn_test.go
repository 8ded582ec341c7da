package envtest_test

import (
	"runtime"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/cache"

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
		d.http.CloseIdleConnections()
		Eventually(runtime.NumGoroutine).Should(BeNumerically("<=", base+5)) // those of connections to the server
	})
})
