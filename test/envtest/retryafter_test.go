package envtest_test

import (
	"errors"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// again returns the time from which the server may be asked again, from err.
func again(err error) time.Time {
	GinkgoHelper()
	var inconclusive *discovery.InconclusiveError
	Expect(errors.As(err, &inconclusive)).To(BeTrue(), "%v", err)
	return inconclusive.Again
}

var _ = Describe("A server that responds with Retry-After", onEachServer(func(at *apiServer) {
	// An overloaded server responds with 429, and a starting server with 503.
	for _, code := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		prefix := "with " + http.StatusText(code) + ", "

		It(prefix+"gets no more requests for that group version until then, and requests for other ones", func(ctx SpecContext) {
			d := connect(at)
			ofWidgets := faultproxy.Path("/apis/" + widgets.GroupVersion().String())
			d.proxy.Inject(ofWidgets, faultproxy.RetryAfter(code, 30*time.Second))
			asked := time.Now()
			_, err := d.resolver.Validate(ctx, widgets)
			Expect(err).To(MatchError(discovery.ErrInconclusive))
			first := again(err)
			Expect(first).To(BeTemporally("~", asked.Add(30*time.Second), 10*time.Second))
			for range 10 {
				_, err := d.resolver.Validate(ctx, widgets)
				Expect(err).To(MatchError(discovery.ErrInconclusive))
				Expect(again(err)).To(BeTemporally("~", first, time.Second))
			}
			Expect(d.proxy.Requests(ofWidgets)).To(Equal(1))
			_, err = d.resolver.Validate(ctx, blocks)
			Expect(err).NotTo(HaveOccurred())
		})

		It(prefix+"gets the next request at the time that it has set, and not earlier", func(ctx SpecContext) {
			d := connect(at)
			ofWidgets := faultproxy.Path("/apis/" + widgets.GroupVersion().String())
			d.proxy.Inject(ofWidgets, faultproxy.Times(1, faultproxy.RetryAfter(code, 2*time.Second)))
			_, err := d.resolver.Validate(ctx, widgets)
			when := again(err)
			Eventually(func() error { _, err := d.resolver.Validate(ctx, widgets); return err }).Should(Succeed())
			Expect(time.Now()).To(BeTemporally(">", when.Add(-100*time.Millisecond)))
			Expect(d.proxy.Requests(ofWidgets)).To(Equal(2))
		})

		It(prefix+"for all groups, gets no more requests for discovery, and known types are kept", func(ctx SpecContext) {
			h := newShipGroup(ctx, at)
			h.quiet()
			h.proxy.Inject(faultproxy.Path("/apis"), faultproxy.RetryAfter(code, 30*time.Second))
			before := h.proxy.Requests(faultproxy.Path("/apis"))
			asked := time.Now()
			for range 10 {
				_, err := h.resolver.ResolveGK(ctx, h.kind("Crane"))
				Expect(err).To(MatchError(discovery.ErrInconclusive), "the type may exist")
				Expect(again(err)).To(BeTemporally("~", asked.Add(30*time.Second), 10*time.Second))
			}
			Expect(h.proxy.Requests(faultproxy.Path("/apis")) - before).To(Equal(1))
			_, err := h.resolver.ResolveGK(ctx, h.ship)
			Expect(err).NotTo(HaveOccurred())
			h.admin.define(ctx, newCRD(h.group, "Pier", "v1"))
			Eventually(func() error { _, err := h.resolver.ResolveGK(ctx, h.kind("Pier")); return err }).Should(Succeed(), "the CRD shows the type")
			Expect(h.proxy.Requests(faultproxy.Path("/apis")) - before).To(Equal(1))
		})
	}
}))
