package envtest_test

import (
	"fmt"
	"maps"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

var _ = Describe("A handler with WithCoalescing and WithHandlerRecovery", onEachServer(func(at *apiServer) {
	It("gets the last states of objects, and goes on after a panic", func(ctx SpecContext) {
		const ships, sizes = 10, 5
		f := leaseType(ctx, at, ships)
		l, err := f.factory.Acquire(ctx, f.gvr, dynamicinformer.WithCoalescing(0), dynamicinformer.WithHandlerRecovery(), dynamicinformer.WithLeaseName("slow"))
		Expect(err).NotTo(HaveOccurred())
		begun, proceed := make(chan struct{}), make(chan struct{})
		release := sync.OnceFunc(func() { close(proceed) })
		DeferCleanup(release)
		var (
			once sync.Once
			mu   sync.Mutex
			last = map[string]int64{}
		)
		handle := func(obj any) {
			once.Do(func() { close(begun) })
			<-proceed
			ship := obj.(*unstructured.Unstructured)
			size, _, _ := unstructured.NestedInt64(ship.Object, "spec", "size")
			if ship.GetName() == "ship-0003" && size == 100 {
				panic("too large")
			}
			mu.Lock()
			defer mu.Unlock()
			last[ship.GetName()] = size
		}
		_, err = l.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, obj any) { handle(obj) }})
		Expect(err).NotTo(HaveOccurred())
		Eventually(begun).Should(BeClosed())
		handler := func() status.Handler {
			for _, h := range l.Status().Handlers {
				if h.Lease == "slow" {
					return h
				}
			}
			return status.Handler{}
		}
		for size := range sizes {
			f.resize(ctx, ships, 50+size)
		}
		// One addition is in progress; each object has one event that waits.
		Eventually(handler).Should(SatisfyAll(HaveField("Backlog", ships+1), HaveField("Merged", uint64(ships+ships*sizes-ships-1))))
		release()
		Eventually(handler).Should(SatisfyAll(HaveField("Backlog", 0), HaveField("Delivered", uint64(ships+1))))
		sizesOf := func() map[string]int64 {
			mu.Lock()
			defer mu.Unlock()
			return maps.Clone(last)
		}
		want := map[string]int64{}
		for i := range ships {
			want[fmt.Sprintf("ship-%04d", i)] = 50 + sizes - 1
		}
		Eventually(sizesOf).Should(Equal(want))

		f.resize(ctx, ships, 100)
		Eventually(handler).Should(SatisfyAll(HaveField("Panics", uint64(1)), HaveField("Reason", status.ReasonHandlerPanicked), HaveField("LastFailed", "harbor/ship-0003")))
		f.resize(ctx, ships, 101)
		Eventually(handler).Should(HaveField("Reason", status.Reason("")))
		for name := range want {
			want[name] = 101
		}
		Eventually(sizesOf).Should(Equal(want))
	})
}))
