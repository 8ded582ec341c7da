package envtest_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/envtest/fixture"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// leasedType is a type of one spec, which creates and deletes it, and a lease on it.
type leasedType struct {
	*connection
	factory  *dynamicinformer.Factory
	gvr      schema.GroupVersionResource
	crd      *unstructured.Unstructured
	lease    *dynamicinformer.Lease
	eventLog *eventLog
	created  int // the number of times that the type has been created
}

// leaseAbsentType acquires a lease on a type that does not exist yet.
func leaseAbsentType(ctx context.Context, at *apiServer, opts ...dynamicinformer.LeaseOption) *leasedType {
	GinkgoHelper()
	d := connect(at)                                             //nolint:contextcheck // the connection ends with the spec
	f := &leasedType{connection: d, factory: d.startedFactory()} //nolint:contextcheck // so does the factory
	f.acquire(ctx, opts...)
	f.eventLog = newEventLog(f.lease)
	return f
}

// acquire acquires a lease on a type that does not exist yet.
func (f *leasedType) acquire(ctx context.Context, opts ...dynamicinformer.LeaseOption) {
	GinkgoHelper()
	group := ownGroup("fleet")
	f.crd = newCRD(group, "Ship", "v1")
	f.gvr = schema.GroupVersionResource{Group: group, Version: "v1", Resource: "ships"}
	var err error
	f.lease, err = f.factory.Acquire(ctx, f.gvr, append([]dynamicinformer.LeaseOption{dynamicinformer.WithAllowAbsent()}, opts...)...)
	Expect(err).NotTo(HaveOccurred())
}

// leaseType creates a type with this number of ships, and acquires a lease on it.
func leaseType(ctx context.Context, at *apiServer, ships int, opts ...dynamicinformer.LeaseOption) *leasedType {
	GinkgoHelper()
	f := leaseAbsentType(ctx, at, opts...)
	f.define(ctx, f.crd)
	f.created++
	f.createShips(ctx, ships)
	f.synced(ctx)
	Eventually(f.eventLog.addsAndDeletes).Should(Equal([2]int{ships, 0}))
	return f
}

// createShips creates this number of ships, as soon as the server serves their type.
func (f *leasedType) createShips(ctx context.Context, ships int) {
	GinkgoHelper()
	client := f.client.Resource(f.gvr).Namespace(f.namespace(ctx))
	var all sync.WaitGroup
	failed := make(chan error, ships)
	for worker := range 8 {
		all.Go(func() {
			for i := worker; i < ships; i += 8 {
				ship := newObject(f.gvr.GroupVersion().WithKind("Ship"), fmt.Sprintf("ship-%04d", i), i, map[string]string{"generation": fmt.Sprint(f.created)})
				if err := retryUntilServed(ctx, func() error {
					_, err := client.Create(ctx, ship, metav1.CreateOptions{})
					return err
				}); err != nil {
					failed <- err
				}
			}
		})
	}
	all.Wait()
	close(failed)
	Expect(<-failed).NotTo(HaveOccurred())
}

// resize updates this number of ships.
func (f *leasedType) resize(ctx context.Context, ships, size int) {
	GinkgoHelper()
	for i := range ships {
		body := fmt.Appendf(nil, `{"spec":{"size":%d}}`, size)
		_, err := f.client.Resource(f.gvr).Namespace(f.namespace(ctx)).Patch(ctx, fmt.Sprintf("ship-%04d", i), types.MergePatchType, body, metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
}

// namespace returns the namespace of ships, or "" if they are cluster-scoped.
func (f *leasedType) namespace(ctx context.Context) string {
	if scope, _, _ := unstructured.NestedString(f.crd.Object, "spec", "scope"); scope == "Cluster" {
		return ""
	}
	f.at.ensureNamespace(ctx, f.client, "harbor")
	return "harbor"
}

// again creates the type again, after change of its CRD if change is not nil.
func (f *leasedType) again(ctx context.Context, change func(crd *unstructured.Unstructured)) {
	GinkgoHelper()
	if change != nil {
		change(f.crd)
	}
	_, err := f.client.Resource(definitions).Create(ctx, f.crd, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	f.created++
}

// againUnseen deletes the CRD and creates it again, with new objects, while f's requests for CRDs and for
// the objects fail.
func (f *leasedType) againUnseen(ctx context.Context, admin *connection, ships int) {
	GinkgoHelper()
	f.proxy.Inject(faultproxy.Any(f.requests("list", "watch"), faultproxy.Resource(definitions.Group, definitions.Resource)), faultproxy.Fail(503))
	f.proxy.CutWatches(faultproxy.All())
	admin.undefine(ctx, f.crd.GetName())
	f.proxy.Heal()
	f.proxy.Inject(f.requests("list", "watch"), faultproxy.Fail(503))
	f.again(ctx, func(crd *unstructured.Unstructured) { crd.SetResourceVersion(""); crd.SetUID("") })
	f.createShips(ctx, ships)
	f.proxy.Heal()
}

// leaseAlone acquires another lease on the type, which has this number of ships, with a connection and a factory of its own.
func (f *leasedType) leaseAlone(ctx context.Context, ships int, opts ...dynamicinformer.LeaseOption) *leasedType {
	GinkgoHelper()
	d := connect(f.at)                                                                       //nolint:contextcheck // the connection ends with the spec
	other := &leasedType{connection: d, factory: d.startedFactory(), gvr: f.gvr, crd: f.crd} //nolint:contextcheck // so does the factory
	var err error
	other.lease, err = other.factory.Acquire(ctx, other.gvr, opts...)
	Expect(err).NotTo(HaveOccurred())
	other.eventLog = newEventLog(other.lease)
	other.synced(ctx)
	Eventually(other.eventLog.addsAndDeletes).Should(Equal([2]int{ships, 0}))
	return other
}

// ships returns the version and the size of each object in the cache.
func (f *leasedType) ships() (texts []string) {
	GinkgoHelper()
	all, err := f.lease.Unstructured().List(labels.Everything())
	Expect(err).NotTo(HaveOccurred())
	for _, ship := range all {
		size, _, _ := unstructured.NestedInt64(ship.Object, "spec", "size")
		texts = append(texts, fmt.Sprintf("%s, size %d", ship.GetAPIVersion(), size))
	}
	return texts
}

// serveOnly changes which versions of the type are served.
func (f *leasedType) serveOnly(ctx context.Context, versions ...string) {
	GinkgoHelper()
	list, _, err := unstructured.NestedSlice(f.crd.Object, "spec", "versions")
	Expect(err).NotTo(HaveOccurred())
	for _, each := range list {
		version := each.(map[string]any)
		version["served"] = slices.Contains(versions, version["name"].(string))
	}
	f.patch(ctx, definitions, f.crd.GetName(), map[string]any{"spec": map[string]any{"versions": list}})
}

// synced waits until the lease's informer has synced.
func (f *leasedType) synced(ctx context.Context) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	Expect(f.lease.WaitForSync(ctx)).To(Succeed())
}

func (f *leasedType) status() status.Informer { return f.lease.Status() }

// requests matches requests for the objects of the type.
func (f *leasedType) requests(verbs ...string) faultproxy.Match {
	of := faultproxy.Resource(f.gvr.Group, f.gvr.Resource)
	if len(verbs) == 0 {
		return of
	}
	return faultproxy.All(of, faultproxy.Verb(verbs...))
}

var _ = Describe("A lease on a type that is created and deleted", onEachServer(func(at *apiServer) {
	It("waits for the type without requests for its objects", func(ctx SpecContext) {
		f := leaseAbsentType(ctx, at)
		Eventually(func() status.Reason { return f.status().Reason }).Should(Equal(status.ReasonNotFound))
		wait, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		Expect(f.lease.WaitForSync(wait)).To(MatchError(discovery.ErrNotServed))
		Expect(f.status().State).To(Equal(status.StateNotServed))
		Expect(f.proxy.Requests(f.requests())).To(BeZero())
		f.define(ctx, f.crd)
		f.created++
		f.createShips(ctx, 3)
		f.synced(ctx)
		Eventually(f.eventLog.addsAndDeletes).Should(Equal([2]int{3, 0}))
		f.eventLog.check()
	})

	It("reports that another CRD has the names, and syncs when they are free", func(ctx SpecContext) {
		f := leaseAbsentType(ctx, at)
		other := newCRD(f.gvr.Group, "Vessel", "v1")
		Expect(unstructured.SetNestedField(other.Object, "Ship", "spec", "names", "kind")).To(Succeed())
		f.define(ctx, other)
		Eventually(func() (discovery.Resource, error) {
			return f.resolver.ResolveGR(ctx, schema.GroupResource{Group: f.gvr.Group, Resource: "vessels"})
		}).Should(HaveField("GVK.Kind", "Ship"))
		f.define(ctx, f.crd)
		Eventually(func() status.Reason { return f.status().Reason }).Should(Equal(status.ReasonNamesNotAccepted))
		Expect(f.proxy.Requests(f.requests())).To(BeZero())
		f.undefine(ctx, other.GetName())
		f.synced(ctx)
	})

	for name, meanwhile := range map[string]func(f *leasedType) (undo func()){
		"with its watch open": func(*leasedType) func() { return func() {} },
		"with its watch cut in the middle of the deletions": func(f *leasedType) func() {
			done := make(chan struct{})
			go func() {
				defer GinkgoRecover()
				defer close(done)
				Eventually(func() int { return f.eventLog.addsAndDeletes()[1] }).Should(BeNumerically(">", 0))
				f.proxy.CutWatches(f.requests())
			}()
			return func() { <-done }
		},
		"while its requests fail": func(f *leasedType) func() {
			f.proxy.Inject(f.requests("list", "watch"), faultproxy.Fail(503))
			f.proxy.CutWatches(f.requests())
			return f.proxy.Heal
		},
	} {
		It("gets one deletion for each object when the type is deleted "+name, func(ctx SpecContext) {
			const ships = 1000
			f := leaseType(ctx, at, ships)
			undo := meanwhile(f)
			f.undefine(ctx, f.crd.GetName())
			Eventually(f.eventLog.addsAndDeletes, "60s").Should(Equal([2]int{ships, ships}))
			undo()
			Eventually(f.status).Should(SatisfyAll(
				HaveField("State", status.StateNotServed), HaveField("Evidence.Kind", discovery.CRDDeleted), HaveField("Objects", 0)))
			Eventually(func() int { return f.proxy.OpenWatches(f.requests()) }).Should(BeZero())
			before := f.proxy.Requests(f.requests())
			Consistently(func() int { return f.proxy.Requests(f.requests()) }, "2s").Should(Equal(before))
			Expect(f.lease.Informer().GetStore().ListKeys()).To(BeEmpty())

			f.again(ctx, nil)
			f.createShips(ctx, 10)
			f.synced(ctx)
			Eventually(f.eventLog.addsAndDeletes).Should(Equal([2]int{ships + 10, ships}))
			Expect(f.status().Generation).To(Equal(1))
			f.eventLog.check()
		})
	}

	It("keeps its cache with KeepCache, and empties it for another type", func(ctx SpecContext) {
		f := leaseType(ctx, at, 20, dynamicinformer.WithRemovalPolicy(dynamicinformer.KeepCache))
		f.proxy.Inject(f.requests("list", "watch"), faultproxy.Fail(503))
		f.proxy.CutWatches(f.requests())
		f.undefine(ctx, f.crd.GetName())
		Eventually(f.status).Should(SatisfyAll(
			HaveField("State", status.StateNotServed), HaveField("Objects", 20), HaveField("StaleSince", Not(BeZero()))))
		Expect(f.eventLog.addsAndDeletes()).To(Equal([2]int{20, 0}))
		Expect(f.lease.Lister().List(labels.Everything())).To(HaveLen(20))
		f.proxy.Heal()
		f.again(ctx, nil)
		f.createShips(ctx, 5)
		f.synced(ctx)
		Eventually(f.eventLog.addsAndDeletes, "60s").Should(Equal([2]int{25, 20}))
		f.eventLog.check()
	})

	It("recognises a type that was created again while watches and discovery failed", func(ctx SpecContext) {
		f := leaseType(ctx, at, 20)
		f.againUnseen(ctx, connect(at), 15)
		Eventually(f.eventLog.addsAndDeletes, "60s").Should(Equal([2]int{35, 20}))
		f.eventLog.check()
	})

	It("follows a type that is created again with another scope", func(ctx SpecContext) {
		f := leaseType(ctx, at, 5)
		f.undefine(ctx, f.crd.GetName())
		f.again(ctx, func(crd *unstructured.Unstructured) {
			Expect(unstructured.SetNestedField(crd.Object, "Cluster", "spec", "scope")).To(Succeed())
		})
		f.createShips(ctx, 3)
		f.synced(ctx)
		Eventually(f.eventLog.addsAndDeletes).Should(Equal([2]int{8, 5}))
		Expect(f.lease.Informer().GetStore().ListKeys()).To(ConsistOf("ship-0000", "ship-0001", "ship-0002"))
		Expect(f.lease.Resource().Namespaced).To(BeFalse())
		f.eventLog.check()
	})

	It("keeps its cache while its version is not served, and changes to another version if its policy allows that", func(ctx SpecContext) {
		f := leaseAbsentType(ctx, at)
		serve(f.crd, "v1", "v2")
		f.define(ctx, f.crd)
		f.created++
		f.createShips(ctx, 20)
		f.synced(ctx)
		preferred, err := f.factory.Acquire(ctx, f.gvr, dynamicinformer.WithVersionPolicy(discovery.FollowPreferred()))
		Expect(err).NotTo(HaveOccurred())
		Expect(preferred.WaitForSync(ctx)).To(Succeed())
		// Documents may have v1 before v2.
		Eventually(preferred.Status).Should(SatisfyAll(HaveField("State", status.StateSynced), HaveField("Resource.GVR.Version", "v2")))
		moving := newEventLog(preferred)
		Eventually(moving.addsAndDeletes).Should(Equal([2]int{20, 0}))
		Eventually(f.eventLog.addsAndDeletes).Should(Equal([2]int{20, 0}))

		f.serveOnly(ctx, "v2")
		Eventually(f.status).Should(SatisfyAll(HaveField("State", status.StateDegraded), HaveField("Reason", status.ReasonVersionNotServed), HaveField("Objects", 20)))
		f.serveOnly(ctx, "v1")
		Eventually(f.status).Should(HaveField("State", status.StateSynced))
		Eventually(preferred.Status).Should(SatisfyAll(HaveField("State", status.StateSynced), HaveField("Resource.GVR.Version", "v1")))
		Eventually(func() string {
			obj, err := preferred.Lister().ByNamespace("harbor").Get("ship-0000")
			Expect(err).NotTo(HaveOccurred())
			return obj.(*unstructured.Unstructured).GetAPIVersion()
		}).Should(Equal(f.gvr.Group + "/v1"))
		Expect(f.eventLog.addsAndDeletes()).To(Equal([2]int{20, 0}))
		Expect(moving.addsAndDeletes()).To(Equal([2]int{20, 0}))
		f.eventLog.check()
		moving.check()
	})

	It("changes once to a version that is added and preferred, if its policy allows that", func(ctx SpecContext) {
		const ships, rounds = 20, 3
		f := leaseAbsentType(ctx, at)
		f.lease.Release() // it is on v1
		serve(f.crd, "v1beta1", "v1")
		f.crd.Object["spec"].(map[string]any)["versions"].([]any)[1].(map[string]any)["served"] = false // no document ever had it
		f.gvr.Version = "v1beta1"
		f.define(ctx, f.crd)
		f.created++
		f.createShips(ctx, ships)
		exact := f.leaseAlone(ctx, ships)
		preferred := f.leaseAlone(ctx, ships, dynamicinformer.WithVersionPolicy(discovery.FollowPreferred()))
		Expect(preferred.lease.Resource().GVR.Version).To(Equal("v1beta1"))

		f.serveOnly(ctx, "v1beta1", "v1")
		for round := range rounds { // half of them change while the version does
			f.resize(ctx, ships/2, 1000+round)
		}
		Eventually(preferred.status).Should(SatisfyAll(HaveField("State", status.StateSynced), HaveField("Resource.GVR.Version", "v1")))
		Eventually(preferred.ships).Should(HaveEach(HavePrefix(f.gvr.Group + "/v1,")))
		f.resize(ctx, ships, 77)
		for l, want := range map[*leasedType]struct {
			versions  []string
			unchanged int // an object of another version is an update with an equal resourceVersion
		}{
			exact:     {[]string{"v1beta1"}, 0},
			preferred: {[]string{"v1beta1", "v1"}, ships},
		} {
			version := want.versions[len(want.versions)-1]
			Eventually(l.ships).Should(HaveEach(fmt.Sprintf("%s/%s, size 77", f.gvr.Group, version)))
			Eventually(l.status).Should(SatisfyAll(
				HaveField("State", status.StateSynced), HaveField("Resource.GVR.Version", version), HaveField("Handlers", HaveEach(HaveField("Backlog", 0)))))
			Expect(l.eventLog.addsAndDeletes()).To(Equal([2]int{ships, 0}))
			Expect(l.eventLog.changes()).To(BeNumerically("<=", rounds*ships/2+ships), "no change comes twice")
			Expect(l.eventLog.repeats()).To(BeNumerically("<=", want.unchanged))
			l.eventLog.check()
			var versions []string
			for _, request := range l.proxy.Past(l.requests("list", "watch")) {
				versions = append(versions, request.Version)
			}
			Expect(slices.Compact(versions)).To(Equal(want.versions))
			Eventually(func() int { return l.proxy.OpenWatches(l.requests()) }).Should(Equal(1))
		}
	})

	It("keeps its cache through short failures", func(ctx SpecContext) {
		f := leaseType(ctx, at, 20)
		for i, code := range []int{404, 503} {
			before := f.proxy.Requests(f.requests())
			heal := f.proxy.Inject(f.requests("list", "watch"), faultproxy.Fail(code))
			f.proxy.CutWatches(f.requests())
			Eventually(f.status).Should(SatisfyAll(HaveField("State", status.StateDegraded), HaveField("Objects", 20)))
			f.resize(ctx, 5, code)
			Eventually(func() int { return f.proxy.Requests(f.requests()) }).Should(BeNumerically(">", before+2), "requests that fail")
			heal()
			Eventually(f.status).Should(HaveField("State", status.StateSynced))
			Eventually(f.eventLog.changes).Should(Equal(5 * (i + 1)))
		}
		Expect(f.eventLog.addsAndDeletes()).To(Equal([2]int{20, 0}))
		// After a failure, one object is requested before events are passed on, to see whether versions have gone back. If that
		// request failed with the next failure, all objects would be listed.
		lists, versions := f.requests("list"), faultproxy.Query("limit", "1")
		Expect(f.proxy.Requests(faultproxy.All(lists, faultproxy.Not(versions)))).To(BeZero())
		Expect(f.proxy.Requests(faultproxy.All(lists, versions))).To(BeNumerically("<=", 2))
		f.eventLog.check()
	})

	for what, write := range writesThatChangeNoType {
		It("has no events after writes to a CRD that do not change its type: "+what, func(ctx SpecContext) {
			connected := time.Now()
			f, writer := leaseAbsentType(ctx, at), connect(at)
			Expect(unstructured.SetNestedMap(f.crd.Object, fixture.ConversionWebhook(0), "spec", "conversion")).To(Succeed())
			f.define(ctx, f.crd)
			f.createShips(ctx, 5)
			f.synced(ctx)
			f.quiet()
			documents := func() int { return f.proxy.Requests(faultproxy.Path("/apis")) }
			requests := func() int { return f.proxy.Requests(faultproxy.Any(f.requests(), faultproxy.AnyDiscovery())) }
			lists := func() int { return f.proxy.Requests(f.requests("list")) }
			watches := func() int { return f.proxy.Requests(f.requests("watch")) }
			asked, listed, watched, before := documents(), lists(), watches(), requests()
			begun := time.Now()
			rate := time.NewTicker(time.Second / 50) // a slow server gets fewer writes in a second
			defer rate.Stop()
			for i := range 500 {
				<-rate.C
				write.do(ctx, writer, f.crd.GetName(), i+1)
			}
			if write.ofSpec {
				// The server replaces the storage of the type and ends its watches. A watch of the new storage can't begin at an earlier version.
				Eventually(watches).WithTimeout(time.Minute).Should(BeNumerically(">", watched))
			} else {
				// Both documents are requested once a minute, less a tenth. A slow server may take that long for the writes.
				polls := func() int { return 2 * int(time.Since(connected)/(50*time.Second)) }
				Consistently(func() int { return requests() - before - polls() }, "2s").Should(BeNumerically("<=", 0))
			}
			f.resize(ctx, 5, 77)
			Eventually(f.eventLog.changes).Should(Equal(5))
			Expect(f.eventLog.addsAndDeletes()).To(Equal([2]int{5, 0}))
			Eventually(f.status).Should(HaveField("State", status.StateSynced))
			Expect(lists()-listed).To(BeNumerically("<=", watches()-watched), "lists without the end of a watch")
			// A resolver that runs has a gap of half a second between requests, after a few shorter ones.
			Expect(documents()-asked).To(BeNumerically("<=", 5+int(2*time.Since(begun).Seconds())), "discovery is not requested more often while the spec is written")
			f.eventLog.check()
		})
	}
}))

// writesThatChangeNoType are the writes of operators to CRDs.
var writesThatChangeNoType = map[string]struct {
	ofSpec bool
	do     func(ctx context.Context, writer *connection, crd string, i int)
}{
	"annotations": {false, func(ctx context.Context, writer *connection, crd string, i int) {
		writer.patch(ctx, definitions, crd, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"note": fmt.Sprint(i)}}})
	}},
	"the caBundle of the conversion webhook": {true, func(ctx context.Context, writer *connection, crd string, i int) {
		writer.patch(ctx, definitions, crd, map[string]any{"spec": map[string]any{"conversion": fixture.ConversionWebhook(i)}})
	}},
	"a condition of the status": {false, func(ctx context.Context, writer *connection, crd string, i int) {
		read, err := writer.client.Resource(definitions).Get(ctx, crd, metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		heartbeat := map[string]any{"type": "Heartbeat", "status": "True", "reason": "Alive", "message": fmt.Sprint(i), "lastTransitionTime": "2026-01-01T00:00:00Z"}
		all := append(slices.DeleteFunc(conditions(read), func(c any) bool { return c.(map[string]any)["type"] == heartbeat["type"] }), heartbeat)
		writer.patch(ctx, definitions, crd, map[string]any{"status": map[string]any{"conditions": all}}, "status")
	}},
}

var _ = Describe("A lease under RBAC, on "+kubeAPIServer.name, func() {
	It("reports the forbidden verbs, continues when they are granted, and keeps its cache when they are revoked", func(ctx SpecContext) {
		d, admin, label := connectAsUser(unique("sailor")), connect(kubeAPIServer), unique("rbac")
		admin.create(ctx, blocks, "", newBlock(label, label))
		f := d.startedFactory()
		l, err := f.Acquire(ctx, blocks, dynamicinformer.WithLabelSelector("spec="+label))
		Expect(err).NotTo(HaveOccurred())
		recorder := newEventLog(l)
		Expect(l.WaitForSync(ctx, dynamicinformer.WithFailFast())).To(Satisfy(apierrors.IsForbidden))
		Expect(l.Status()).To(SatisfyAll(HaveField("State", status.StateDegraded), HaveField("Reason", status.ReasonForbidden), HaveField("StaleSince", BeZero())))
		grant(ctx, d.user, "", blocks, "list", "watch")
		Eventually(func() status.State { l.Retry(); return l.Status().State }).Should(Equal(status.StateSynced))
		Eventually(recorder.addsAndDeletes).Should(Equal([2]int{1, 0}))

		Expect(admin.client.Resource(rbac.WithResource("clusterrolebindings")).Delete(ctx, d.user, metav1.DeleteOptions{})).To(Succeed())
		Eventually(func() status.Reason {
			d.proxy.CutWatches(faultproxy.Resource(blocks.Group, blocks.Resource))
			return l.Status().Reason
		}).WithPolling(500 * time.Millisecond).Should(Equal(status.ReasonForbidden))
		Expect(l.Status()).To(SatisfyAll(HaveField("State", status.StateDegraded), HaveField("Objects", 1), HaveField("StaleSince", Not(BeZero()))))
		Expect(recorder.addsAndDeletes()).To(Equal([2]int{1, 0}))
		recorder.check()
	})
})
