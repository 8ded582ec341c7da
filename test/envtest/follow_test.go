package envtest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/metrics"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// followLog records the callbacks of Follow, and the events of the handlers of its leases.
type followLog struct {
	events

	held <-chan struct{} // the calls about types that start block until it is closed; nil: they don't block

	mu      sync.Mutex
	calls   []string        // "start name", "stop name evidence"
	started map[string]bool // by the name of the CRD
}

func (b *followLog) funcs() dynamicinformer.FollowFuncs {
	return dynamicinformer.FollowFuncs{
		Started: func(l *dynamicinformer.Lease) {
			defer GinkgoRecover()
			name := l.Status().GVR.GroupResource().String()
			b.mu.Lock()
			b.calls = append(b.calls, "start "+name)
			twice := b.started[name]
			b.started[name] = true
			b.mu.Unlock()
			Expect(twice).To(BeFalse(), name)
			if b.held != nil {
				<-b.held
			}
			if _, err := l.AddEventHandler(b); err != nil {
				Expect(err).To(MatchError(dynamicinformer.ErrReleased))
			}
		},
		Stopped: func(res discovery.Resource, evidence discovery.Evidence) {
			defer GinkgoRecover()
			name := res.GVR.GroupResource().String()
			b.mu.Lock()
			b.calls = append(b.calls, strings.TrimSpace(fmt.Sprintf("stop %s %s", name, evidence.Kind)))
			started := b.started[name]
			delete(b.started, name)
			b.mu.Unlock()
			Expect(started).To(BeTrue(), name)
			if evidence.Kind == discovery.CRDDeleted {
				Expect(evidence.CRDUID).To(Equal(res.CRDUID))
			}
		},
	}
}

// of returns the callbacks for one type.
func (b *followLog) of(name string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.calls), func(line string) bool { return strings.Fields(line)[1] != name })
}

// count returns the number of started types.
func (b *followLog) count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.started)
}

// follow follows the types that s selects until the spec ends, or stop is called.
func (d *connection) follow(f *dynamicinformer.Factory, s discovery.Selector, opts ...dynamicinformer.FollowOption) (recorder *followLog, stop func()) {
	GinkgoHelper()
	recorder = &followLog{started: map[string]bool{}}
	return recorder, d.followWith(f, s, recorder, opts...)
}

// followWith is follow with a log.
func (d *connection) followWith(f *dynamicinformer.Factory, s discovery.Selector, recorder *followLog, opts ...dynamicinformer.FollowOption) (stop func()) {
	GinkgoHelper()
	started := make(chan struct{})
	end := untilEnd(func(ctx context.Context) error {
		f.Start(ctx)
		close(started)
		return f.Follow(ctx, s, recorder.funcs(), opts...)
	})
	<-started
	stop = sync.OnceFunc(func() {
		end()
		if len(f.Follows()) == 0 { // another one may have leases
			Expect(f.Status()).To(BeEmpty())
		}
		Expect(recorder.count()).To(BeZero())
	})
	DeferCleanup(stop)
	return stop
}

// expectShown expects that the page and the metrics of f have the n broken types of group with their
// reason, and no type of the group well.
func expectShown(ctx context.Context, f *dynamicinformer.Factory, group string, n int, well string) {
	GinkgoHelper()
	answer := httptest.NewRecorder()
	f.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, "/?state=Degraded&format=text", http.NoBody))
	Expect(answer.Code).To(Equal(http.StatusOK))
	Expect(strings.Count(answer.Body.String(), group)).To(BeNumerically(">=", n))
	Expect(answer.Body.String()).To(SatisfyAll(ContainSubstring("Unavailable"), Not(ContainSubstring(well))))

	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(metrics.NewCollector(f))
	var reasons []string
	for _, series := range newScraper(registry).series(ctx) {
		if strings.HasPrefix(series, "gvrkit_informer_reason{") {
			reasons = append(reasons, series)
		}
	}
	Expect(reasons).To(HaveLen(n))
	Expect(reasons).To(HaveEach(SatisfyAll(ContainSubstring(group), ContainSubstring(`reason="Unavailable"`))))
}

var _ = Describe("Following types", onEachServer(func(at *apiServer) {
	It("syncs all types that can be listed, and reports the reasons for the others", func(ctx SpecContext) {
		wellTypes, brokenTypes := 290, 10
		if at.whole {
			wellTypes = 25 // each takes a second
		}
		well, broken := ownGroup("well"), ownGroup("broken")
		var crds []*unstructured.Unstructured
		for i := range wellTypes {
			crds = append(crds, newCRD(well, fmt.Sprintf("Ship%03d", i), "v1"))
		}
		for i := range brokenTypes {
			crds = append(crds, newCRD(broken, fmt.Sprintf("Wreck%d", i), "v1"))
		}
		admin, began := connect(at), time.Now()
		admin.defineMany(ctx, well, crds)
		AddReportEntry("types created", time.Since(began).String())

		d := connect(at)
		d.proxy.Inject(faultproxy.All(faultproxy.Group(broken), faultproxy.Verb("list", "watch")), faultproxy.Fail(503))
		f, err := dynamicinformer.NewForConfig(d.config) // it reports each failed attempt
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(f.Shutdown(ctx)).To(Succeed()) }, NodeTimeout(time.Minute))
		began = time.Now()
		recorder, stop := d.follow(f, discovery.Selector{Groups: []string{well, broken}})
		states := func() map[string]int {
			count := map[string]int{}
			for _, s := range f.Status() {
				count[fmt.Sprint(s.GVR.Group == broken, s.State, s.Reason)]++
			}
			return count
		}
		Eventually(states, "3m", "100ms").Should(Equal(map[string]int{
			fmt.Sprint(false, status.StateSynced, ""):                        wellTypes,
			fmt.Sprint(true, status.StateDegraded, status.ReasonUnavailable): brokenTypes,
		}))
		AddReportEntry("types of the first group synced", time.Since(began).String())
		Eventually(recorder.count).Should(Equal(wellTypes+brokenTypes), "an informer may sync before the call for it")
		wreck := schema.GroupVersionResource{Group: broken, Version: "v1", Resource: "wreck0s"}
		Eventually(func() string { return f.Explain(wreck).String() }).Should(SatisfyAll( // the first request is a watch-list; a list follows
			ContainSubstring("wreck0s.v1."+broken), ContainSubstring(`lease of "follow"`), ContainSubstring("Cannot list: "), ContainSubstring("Unavailable")))
		expectShown(ctx, f, broken, brokenTypes, well)

		d.proxy.Heal()
		Eventually(func() int { return states()[fmt.Sprint(true, status.StateSynced, "")] }, "60s").Should(Equal(brokenTypes))

		ship := crds[0]
		admin.undefine(ctx, ship.GetName())
		Eventually(func() []string { return recorder.of(ship.GetName()) }).Should(Equal([]string{"start " + ship.GetName(), "stop " + ship.GetName() + " CRDDeleted"}))
		Eventually(f.Status).Should(HaveLen(wellTypes + brokenTypes - 1))
		_, err = admin.client.Resource(definitions).Create(ctx, ship, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() []string { return recorder.of(ship.GetName()) }).Should(HaveLen(3))
		Eventually(func() int { return states()[fmt.Sprint(false, status.StateSynced, "")] }, "30s").Should(Equal(wellTypes))
		stop()
		Eventually(func() int {
			return d.proxy.OpenWatches(faultproxy.Any(faultproxy.Group(well), faultproxy.Group(broken)))
		}).Should(BeZero())
	}, NodeTimeout(10*time.Minute))

	It("sends handlers the deletions of a removed type, and distinguishes it from the next type with its name", func(ctx SpecContext) {
		const ships = 200
		fl := leaseType(ctx, at, ships)
		d := connect(at)
		f := d.factory()
		recorder, _ := d.follow(f, discovery.Selector{Groups: []string{fl.gvr.Group}})
		Eventually(recorder.all).Should(HaveLen(ships))
		name := fl.crd.GetName()
		start, end := "start "+name, "stop "+name+" CRDDeleted"
		want := []string{start}
		for range 2 {
			fl.undefine(ctx, name)
			fl.again(ctx, nil)
			want = append(want, end, start)
			Eventually(func() []string { return recorder.of(name) }, "60s").Should(Equal(want))
		}
		Eventually(recorder.all).Should(HaveLen(2 * ships))
		fl.createShips(ctx, 3)
		Eventually(recorder.all).Should(HaveLen(2*ships + 3))
	}, NodeTimeout(3*time.Minute))

	It("starts and stops by labels, categories and versions", func(ctx SpecContext) {
		admin := connect(at)
		group := ownGroup("picked")
		crd := newCRD(group, "Ship", "v1")
		admin.define(ctx, crd)
		d := connect(at)
		f := d.factory()
		byLabel, _ := d.follow(f, discovery.Selector{Groups: []string{group}, CRDLabels: labels.SelectorFromSet(labels.Set{"team": "net"})})
		byCategory, _ := d.follow(f, discovery.Selector{Groups: []string{group}, Categories: []string{"fleet"}})
		name := crd.GetName()
		start, end := "start "+name, "stop "+name
		metadata := func(team any) map[string]any {
			return map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": team}}}
		}
		names := func(categories ...string) map[string]any {
			return map[string]any{"spec": map[string]any{"names": map[string]any{"categories": categories}}}
		}
		admin.patch(ctx, definitions, name, metadata("net"))
		Eventually(func() []string { return byLabel.of(name) }).Should(Equal([]string{start}))
		Expect(byCategory.of(name)).To(BeEmpty())
		admin.patch(ctx, definitions, name, names("fleet"))
		Eventually(func() []string { return byCategory.of(name) }).Should(Equal([]string{start}))
		admin.patch(ctx, definitions, name, metadata(nil))
		Eventually(func() []string { return byLabel.of(name) }).Should(Equal([]string{start, end}))
		admin.patch(ctx, definitions, name, names())
		Eventually(func() []string { return byCategory.of(name) }).Should(Equal([]string{start, end}))
	})

	It("starts and stops by names, with exceptions and a limit", func(ctx SpecContext) {
		admin, name := connect(at), unique("vessel")
		ships, boats, rafts := newNamedCRD("Ship", name), newNamedCRD("Boat", name), newNamedCRD("Raft", unique("flat"))
		admin.define(ctx, ships)
		d := connect(at)
		f := d.factory()
		byName, _ := d.follow(f, discovery.Selector{Names: []string{name}})
		limited, _ := d.follow(f, discovery.Selector{
			Groups: []string{groupOf(ships), groupOf(boats), groupOf(rafts)}, Except: []schema.GroupResource{{Group: groupOf(ships), Resource: "ships"}},
		}, dynamicinformer.WithTypeLimit(1))
		started := func(r *followLog, crd *unstructured.Unstructured) func() []string {
			return func() []string { return r.of(crd.GetName()) }
		}
		Eventually(started(byName, ships)).Should(Equal([]string{"start " + ships.GetName()}))
		Consistently(limited.count, "500ms").Should(BeZero(), "ships are an exception")
		admin.define(ctx, rafts)
		Eventually(started(limited, rafts)).Should(Equal([]string{"start " + rafts.GetName()}))

		admin.define(ctx, boats) // the name has two meanings, and the limit is reached
		_, err := d.resolver.Await(ctx, schema.GroupVersionResource{Group: groupOf(boats), Version: "v1", Resource: "boats"})
		Expect(err).NotTo(HaveOccurred())
		Consistently(func() int { return byName.count() + limited.count() }, "1s").Should(Equal(2))
		Expect(byName.of(boats.GetName())).To(BeEmpty())
		Expect(limited.of(boats.GetName())).To(BeEmpty())

		admin.undefine(ctx, ships.GetName())
		Eventually(started(byName, ships)).Should(Equal([]string{"start " + ships.GetName(), "stop " + ships.GetName() + " CRDDeleted"}))
		Eventually(started(byName, boats)).Should(Equal([]string{"start " + boats.GetName()}), "another group has the name")
		admin.undefine(ctx, rafts.GetName())
		Eventually(started(limited, boats)).Should(Equal([]string{"start " + boats.GetName()}), "there is room again")
		Expect(limited.of(ships.GetName())).To(BeEmpty())
	})
}))
