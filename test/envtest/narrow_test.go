package envtest_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// leaseExisting leases the informer on a type that exists already, with two ships.
func (f *leasedType) leaseExisting(ctx context.Context, as *connection) {
	GinkgoHelper()
	f.connection = as
	f.factory = f.connection.factory()    //nolint:contextcheck // it goes with the spec, not with ctx
	f.factory.Start(context.Background()) //nolint:contextcheck,forbidigo // it ends with the factory's shutdown
	var err error
	f.lease, err = f.factory.Acquire(ctx, f.gvr)
	Expect(err).NotTo(HaveOccurred())
	f.eventLog = newEventLog(f.lease)
	f.synced(ctx)
	Eventually(f.eventLog.addsAndDeletes).Should(Equal([2]int{2, 0}))
}

// leaseNarrowly is leaseExisting with a new connection, whose resolver requests only the type. If the server does not respond to it within a
// second, as on a busy machine, the resolver requests all types: then another one begins.
func (f *leasedType) leaseNarrowly(ctx context.Context) {
	GinkgoHelper()
	for range 20 {
		begun := time.Now()
		f.leaseExisting(ctx, connect(f.at)) //nolint:contextcheck // the connection ends with the spec
		Eventually(f.lease.Resource).Should(HaveField("Backing", discovery.BackingCRD))
		if f.resolver.Status().Narrow || time.Since(begun) < time.Second {
			return
		}
	}
}

// discoveries returns the requests that are not for objects of f, sorted.
func (f *leasedType) discoveries() []string {
	var asked []string
	for _, r := range f.proxy.Past(faultproxy.All()) {
		if r.Resource == f.gvr.Resource {
			continue
		}
		line := strings.TrimSpace(r.Verb + " " + r.Path)
		if at := strings.Index(r.Query, "fieldSelector="); at >= 0 {
			name, _, _ := strings.Cut(r.Query[at:], "&")
			line += " " + name
		}
		asked = append(asked, line)
	}
	slices.Sort(asked)
	return asked
}

var _ = Describe("A factory with an informer on one type", onEachServer(func(at *apiServer) {
	Context("of a server with several", Ordered, func() {
		var free []*leasedType
		BeforeAll(func(ctx SpecContext) {
			d := connect(at)
			for i := range 6 {
				group := ownGroup(fmt.Sprintf("narrow%d", i))
				f := &leasedType{connection: d, crd: newCRD(group, "Ship", "v1"), gvr: schema.GroupVersionResource{Group: group, Version: "v1", Resource: "ships"}}
				serve(f.crd, "v1", "v2")
				f.define(ctx, f.crd)
				f.created++
				free = append(free, f)
			}
			for _, f := range free {
				f.createShips(ctx, 2)
			}
			defined := time.Now()
			Eventually(func() time.Duration { return time.Since(defined) }, "30s").Should(BeNumerically(">", 12*time.Second), "the age of the CRDs")
		})
		next := func() *leasedType {
			f := free[0]
			free = free[1:]
			return f
		}

		It("requests only that type, until the program asks something else", func(ctx SpecContext) {
			f := next()
			f.leaseNarrowly(ctx)
			crds, apis := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/apiregistration.k8s.io/v1/apiservices"
			ofCRD, ofAPI := " fieldSelector=metadata.name%3Dships."+f.gvr.Group, " fieldSelector=metadata.name%3Dv1."+f.gvr.Group
			want := []string{"get /apis/" + f.gvr.GroupVersion().String(), "list " + crds + ofCRD, "list " + apis + ofAPI, "watch " + crds + ofCRD}
			if at.whole {
				want = append(want, "watch "+apis+ofAPI)
			}
			requested := func() []string {
				return slices.CompactFunc(slices.Sorted(slices.Values(f.discoveries())), func(a, b string) bool {
					return a == b && a == "list "+apis+ofAPI && !at.whole // it is not found, so it is repeated
				})
			}
			Eventually(requested).Should(ConsistOf(want))
			past := f.proxy.Past(faultproxy.All())
			objects := slices.IndexFunc(past, func(r faultproxy.Request) bool { return r.Resource == f.gvr.Resource })
			earlier := slices.DeleteFunc(past[:objects], func(r faultproxy.Request) bool { return r.Verb == "watch" }) // watches are opened at the same time
			Expect(len(earlier)).To(BeNumerically("<=", 3))
			Consistently(requested, "2s").Should(ConsistOf(want))
			now := f.resolver.Status()
			Expect(now).To(SatisfyAll(HaveField("Running", true), HaveField("Narrow", true), HaveField("Types", 1)))
			Eventually(f.lease.Resource).Should(SatisfyAll(HaveField("Backing", discovery.BackingCRD), HaveField("CRDUID", Not(BeEmpty()))))

			Expect(f.resolver.Resolve(ctx, "ships.v2."+f.gvr.Group)).To(HaveField("Versions", []string{"v2", "v1"}))
			Eventually(f.resolver.Status).Should(SatisfyAll(HaveField("Narrow", false), HaveField("Types", BeNumerically(">", 6))))
			Eventually(func() []string { return f.lease.Status().Resource.Versions }).Should(Equal([]string{"v2", "v1"}))
			Expect(f.status()).To(SatisfyAll(HaveField("State", status.StateSynced), HaveField("Generation", 0)))
			f.eventLog.check()
			Expect(f.eventLog.addsAndDeletes()).To(Equal([2]int{2, 0}))
		})

		It("deletes each object when the CRD is deleted, and begins a generation when it is back", func(ctx SpecContext) {
			f := next()
			f.leaseNarrowly(ctx)
			Expect(f.resolver.Status().Narrow).To(BeTrue())
			f.undefine(ctx, f.crd.GetName())
			Eventually(f.status).Should(SatisfyAll(
				HaveField("State", status.StateNotServed), HaveField("Evidence.Kind", discovery.CRDDeleted), HaveField("Objects", 0)))
			Eventually(f.eventLog.addsAndDeletes).Should(Equal([2]int{2, 2}))
			f.again(ctx, nil)
			f.createShips(ctx, 3)
			f.synced(ctx)
			Eventually(f.eventLog.addsAndDeletes).Should(Equal([2]int{5, 2}))
			Expect(f.status()).To(HaveField("Generation", 1))
			f.eventLog.check()
		})

		It("notices that the CRD was created again while no request for CRDs succeeded", func(ctx SpecContext) {
			f := next()
			f.leaseExisting(ctx, connect(at))
			f.againUnseen(ctx, connect(at), 3)
			Eventually(f.eventLog.addsAndDeletes, "60s").Should(Equal([2]int{5, 2}))
			f.eventLog.check()
		})

		It("keeps what it has while its version is not served", func(ctx SpecContext) {
			f := next()
			f.leaseExisting(ctx, connect(at))
			serveOnly := func(version string) {
				list, _, err := unstructured.NestedSlice(f.crd.Object, "spec", "versions")
				Expect(err).NotTo(HaveOccurred())
				for _, each := range list {
					each.(map[string]any)["served"] = version == "" || each.(map[string]any)["name"] == version
				}
				f.patch(ctx, definitions, f.crd.GetName(), map[string]any{"spec": map[string]any{"versions": list}})
			}
			serveOnly("v2")
			Eventually(f.status).Should(SatisfyAll(HaveField("State", status.StateDegraded), HaveField("Reason", status.ReasonVersionNotServed), HaveField("Objects", 2)))
			serveOnly("")
			Eventually(f.status, "60s").Should(HaveField("State", status.StateSynced))
			Expect(f.eventLog.addsAndDeletes()).To(Equal([2]int{2, 0}))
			f.eventLog.check()
		})

		if !at.whole {
			return // it has no RBAC
		}
		It("works where the user may not read CRDs", func(ctx SpecContext) {
			f, user := next(), connectAsUser(unique("nancy"))
			grant(ctx, user.user, "", f.gvr, "list", "watch")
			f.leaseExisting(ctx, user.connection)
			Eventually(user.resolver.Status).Should(SatisfyAll(
				HaveField("Narrow", false), HaveField("CRDs.State", discovery.SourceForbidden), HaveField("APIServices.State", discovery.SourceForbidden)))
			Eventually(f.status).Should(SatisfyAll(HaveField("State", status.StateSynced), HaveField("Resource.Versions", []string{"v2", "v1"})))
		})
	})
}))
