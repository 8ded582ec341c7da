package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

var _ = Describe("Discovery", onEachServer(func(at *apiServer) {
	DescribeTable("resolves",
		func(ctx SpecContext, ref string, want schema.GroupVersionResource, namespaced bool) {
			res, err := connect(at).resolver.Resolve(ctx, ref)
			Expect(err).NotTo(HaveOccurred())
			Expect(res.GVR).To(Equal(want))
			Expect(res.Namespaced).To(Equal(namespaced))
			Expect(res.Verbs).To(ContainElements("list", "watch"))
		},
		Entry("a plural", "ipamblocks", blocks, false),
		Entry("plural.group", "ipamblocks.crd.projectcalico.org", blocks, false),
		Entry("plural.version.group", "ipamblocks.v1.crd.projectcalico.org", blocks, false),
		Entry("a namespaced type", "widgets", widgets, true),
	)

	It("validates a served type with one request", func(ctx SpecContext) {
		d := connect(at)
		res, err := d.resolver.Validate(ctx, blocks)
		Expect(err).NotTo(HaveOccurred())
		Expect(res.GVK).To(Equal(blocks.GroupVersion().WithKind("IPAMBlock")))
		Expect(d.proxy.Requests(faultproxy.All())).To(Equal(1))
	})

	It("rejects a type that is not served, with the served versions", func(ctx SpecContext) {
		d := connect(at)
		_, err := d.resolver.Resolve(ctx, "ipamblcks")
		Expect(err).To(MatchError(discovery.ErrNotServed))
		Expect(err).To(MatchError(ContainSubstring("did you mean ipamblocks.crd.projectcalico.org?")))

		_, err = d.resolver.Validate(ctx, blocks.GroupResource().WithVersion("v2"))
		Expect(err).To(MatchError(discovery.ErrNotServed))
		Expect(err).To(MatchError(ContainSubstring("it is served in v1")))
		Expect(meta.IsNoMatchError(err)).To(BeTrue())

		pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
		_, err = d.resolver.Validate(ctx, pods)
		if at.whole {
			Expect(err).NotTo(HaveOccurred())
		} else {
			Expect(err).To(MatchError(discovery.ErrNotServed), "this server has no core group")
		}
	})

	It("rejects a type that can't be listed", func(ctx SpecContext) {
		d := connect(at)
		_, err := d.resolver.Validate(ctx, blocks.GroupVersion().WithResource("ipamblocks/status"))
		Expect(err).To(MatchError(discovery.ErrInvalidRef))

		d.proxy.Answer(faultproxy.Path("/apis/example.com/v1"), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":[
				{"name":"widgets","kind":"Widget","namespaced":true,"verbs":["create","get"]}]}`))
		}))
		_, err = d.resolver.Validate(ctx, widgets)
		Expect(err).To(MatchError(discovery.ErrVerbNotSupported))
	})

	It("does not report a group whose server is down as not served", func(ctx SpecContext) {
		d := connect(at)
		d.proxy.Answer(faultproxy.Path("/apis/example.com/v1"), faultproxy.Status(http.StatusInternalServerError, "InternalError", "down"))
		_, err := d.resolver.Validate(ctx, widgets)
		Expect(err).To(MatchError(discovery.ErrInconclusive))
		Expect(err).NotTo(MatchError(discovery.ErrNotServed))
		_, err = d.resolver.Validate(ctx, blocks)
		Expect(err).NotTo(HaveOccurred(), "other groups are not affected")
	})
}))

var _ = Describe("A factory with discovery", onEachServer(func(at *apiServer) {
	It("makes an informer wait until its CRD is installed", func(ctx SpecContext) {
		d := connect(at)
		gvr := schema.GroupVersionResource{Group: "late.example.com", Version: "v1", Resource: "gizmos"}
		f := d.factory()
		got := listen(f.ForResource(gvr).Informer())
		f.Start(ctx)
		err := notSynced(ctx, f, status.ReasonNotFound, "", gvr)
		Expect(meta.IsNoMatchError(err)).To(BeTrue())
		Expect(d.proxy.Requests(faultproxy.Resource(gvr.Group, gvr.Resource))).To(BeZero())

		at.install(ctx, manifest("testdata/gizmos.yaml"))
		Expect(f.WaitForSync(ctx, dynamicinformer.WithResources(gvr))).To(Succeed())
		d.create(ctx, gvr, "ns", newObject(gvr.GroupVersion().WithKind("Gizmo"), "a", 1, nil))
		Eventually(got.all).Should(Equal([]string{"add ns/a"}))
	})

	It("ignores the namespace for a cluster-scoped type", func(ctx SpecContext) {
		d, label := connect(at), unique("scope")
		d.create(ctx, blocks, "", newBlock(label, label))
		f := d.factory(only(label), dynamicinformer.WithNamespace("somewhere"))
		generic := f.ForResource(blocks)
		f.Start(ctx)
		Expect(f.WaitForSync(ctx)).To(Succeed())
		Expect(generic.Lister().Get(label)).NotTo(BeNil())
	})

	It("names the user without permission before the wait ends", func(ctx SpecContext) {
		d := connect(at)
		d.proxy.Answer(faultproxy.Resource(widgets.Group, widgets.Resource), faultproxy.Status(http.StatusForbidden, "Forbidden", `user "eve" may not`))
		f := d.factory()
		f.ForResource(widgets)
		f.ForResource(blocks)
		f.Start(ctx)
		Expect(f.WaitForSync(ctx, dynamicinformer.WithResources(blocks))).To(Succeed(), "other types are not affected")
		err := notSynced(ctx, f, status.ReasonForbidden, `widgets.v1.example.com: not synced: cannot list`)
		Expect(err).To(MatchError(ContainSubstring(`user "eve" may not`)))
	})

	It("is complete if it is created from a rest.Config", func(ctx SpecContext) {
		d := connect(at)
		f, err := dynamicinformer.NewForConfig(d.config)
		Expect(err).NotTo(HaveOccurred())
		f.ForResource(blocks)
		f.Start(ctx)
		Expect(f.WaitForSync(ctx)).To(Succeed())
		Expect(f.Shutdown(ctx)).To(Succeed())
		requests := d.proxy.Requests(faultproxy.Any(faultproxy.Path("/apis"), faultproxy.Resource(definitions.Group, definitions.Resource)))
		Expect(requests).NotTo(BeZero(), "requests of discovery")
	})
}))

// notSynced waits until this is the reason why gvrs are not synced and the error of a wait has the text, and returns the
// error. The first request is a watch-list, and a list follows if it fails.
func notSynced(ctx context.Context, f *dynamicinformer.Factory, want status.Reason, text string, gvrs ...schema.GroupVersionResource) error {
	GinkgoHelper()
	var err error
	Eventually(func() (status.Reason, error) {
		short, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		defer cancel()
		err = f.WaitForSync(short, dynamicinformer.WithResources(gvrs...))
		var notSynced *status.NotSyncedError
		if !errors.As(err, &notSynced) {
			return "", fmt.Errorf("not a NotSyncedError: %w", err)
		}
		if !strings.Contains(err.Error(), text) {
			return "", fmt.Errorf("no %q: %w", text, err)
		}
		return notSynced.Reason, nil
	}).Should(Equal(want))
	return err
}
