package envtest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/metrics"
	"github.com/gvrkit/gvrkit/status"
)

// scraper reads a registry over HTTP, as Prometheus does.
type scraper struct{ server *httptest.Server }

func newScraper(registry *prometheus.Registry) *scraper {
	s := &scraper{httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))}
	DeferCleanup(s.server.Close)
	return s
}

// series returns all series, as "name{label="value"} 1".
func (s *scraper) series(ctx context.Context) []string {
	GinkgoHelper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.server.URL, nil)
	Expect(err).NotTo(HaveOccurred())
	res, err := s.server.Client().Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer res.Body.Close() //nolint:errcheck // read only
	body, err := io.ReadAll(res.Body)
	Expect(err).NotTo(HaveOccurred())
	Expect(res.StatusCode).To(Equal(http.StatusOK), string(body))
	var all []string
	for line := range strings.Lines(string(body)) {
		if !strings.HasPrefix(line, "#") {
			all = append(all, strings.TrimSpace(line))
		}
	}
	return all
}

var _ = Describe("Metrics on "+embeddedServer.name, func() {
	It("are scraped while types and leases are created and removed, without leaks", func(ctx SpecContext) {
		const types, cycles = 4, 2
		d := connect(embeddedServer)
		name, err := cache.NewInformerName(unique("metrics"))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(name.Release)
		informers := metrics.NewInformerMetrics()
		f := d.startedFactory(dynamicinformer.WithInformerMetrics(name, informers))
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(metrics.NewCollector(f), informers)
		s := newScraper(registry)
		keep, err := f.Acquire(ctx, widgets)
		Expect(err).NotTo(HaveOccurred())
		Expect(keep.WaitForSync(ctx)).To(Succeed())
		const kept = `{group="example.com",resource="widgets",version="v1"} 1`
		Expect(s.series(ctx)).To(ContainElements("gvrkit_informer_leases"+kept, "gvrkit_informer_handlers"+strings.Replace(kept, " 1", " 0", 1),
			`gvrkit_informer_state{group="example.com",resource="widgets",state="Synced",version="v1"} 1`,
			`gvrkit_informers{state="Synced"} 1`))
		base := len(s.series(ctx))
		group := ownGroup("metrics")
		of := func(all []string) (ofGroup []string) {
			for _, line := range all {
				if strings.Contains(line, group) {
					ofGroup = append(ofGroup, line)
				}
			}
			return ofGroup
		}

		over := make(chan struct{})
		var scrapers, all sync.WaitGroup
		scrapers.Go(func() {
			defer GinkgoRecover()
			for {
				s.series(ctx)
				select {
				case <-over:
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
		for i := range types {
			all.Go(func() {
				defer GinkgoRecover()
				gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: fmt.Sprintf("boat%ds", i)}
				for range cycles {
					l, err := f.Acquire(ctx, gvr, dynamicinformer.WithAllowAbsent())
					Expect(err).NotTo(HaveOccurred())
					state := func(state status.State) string {
						return fmt.Sprintf("gvrkit_informer_state{group=%q,resource=%q,state=%q,version=%q} 1", gvr.Group, gvr.Resource, state, gvr.Version)
					}
					Eventually(s.series).WithContext(ctx).Should(ContainElement(state(status.StateNotServed)))
					crd := newCRD(group, fmt.Sprintf("Boat%d", i), "v1")
					_, err = d.client.Resource(definitions).Create(ctx, crd, metav1.CreateOptions{})
					Expect(err).NotTo(HaveOccurred())
					Eventually(s.series, "60s").WithContext(ctx).Should(ContainElement(state(status.StateSynced)))
					Eventually(s.series).WithContext(ctx).Should(ContainElement(fmt.Sprintf("gvrkit_informer_queued_items{group=%q,name=%q,resource=%q,version=%q} 0",
						gvr.Group, name.Name(), gvr.Resource, gvr.Version)))
					d.undefine(ctx, crd.GetName())
					Eventually(s.series, "60s").WithContext(ctx).Should(ContainElement(state(status.StateNotServed)))
					l.Release()
					Eventually(func() []string { return of(s.series(ctx)) }).ShouldNot(ContainElement(ContainSubstring(gvr.Resource)))
				}
			})
		}
		all.Wait()
		close(over)
		scrapers.Wait()
		Expect(of(s.series(ctx))).To(BeEmpty())
		Expect(s.series(ctx)).To(HaveLen(base))
		keep.Release()
		Expect(f.Shutdown(ctx)).To(Succeed())
		Expect(s.series(ctx)).NotTo(ContainElement(ContainSubstring("group=")))
	})
})
