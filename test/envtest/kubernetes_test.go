package envtest_test

import (
	"context"
	"errors"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

// These specs need a server with the whole Kubernetes API: core types and RBAC.

var (
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	pods       = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	rbac       = schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
)

var _ = Describe("Core types on "+kubeAPIServer.name, func() {
	It("are watched like custom resources", func(ctx SpecContext) {
		d, label := connect(kubeAPIServer), unique("core")
		f := d.factory(only(label))
		got := map[schema.GroupVersionResource]*events{}
		for _, gvr := range []schema.GroupVersionResource{configMaps, pods, blocks} {
			got[gvr] = listen(f.ForResource(gvr).Informer())
		}
		f.Start(ctx)
		Expect(f.WaitForSync(ctx)).To(Succeed())
		d.create(ctx, configMaps, label, newCore("ConfigMap", label, nil))
		d.create(ctx, pods, label, newCore("Pod", label, map[string]any{
			"containers": []any{map[string]any{"name": "c", "image": "nothing"}},
		}))
		d.create(ctx, blocks, "", newBlock(label, label))
		Eventually(got[configMaps].all).Should(Equal([]string{"add " + label + "/" + label}))
		Eventually(got[pods].all).Should(Equal([]string{"add " + label + "/" + label}))
		Eventually(got[blocks].all).Should(Equal([]string{"add " + label}))
	})

	It("that can't be watched are rejected with their verbs", func(ctx SpecContext) {
		d := connect(kubeAPIServer)
		reviews := schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "tokenreviews"}
		statuses := schema.GroupVersionResource{Version: "v1", Resource: "componentstatuses"} // can be listed and not watched
		f := d.factory()
		f.Start(ctx)
		for gvr, verbs := range map[schema.GroupVersionResource][]string{reviews: {"create"}, statuses: {"get", "list"}} {
			_, err := f.Acquire(ctx, gvr)
			Expect(err).To(MatchError(discovery.ErrVerbNotSupported))
			Expect(err).To(MatchError(HaveSuffix("it supports " + strings.Join(verbs, ", "))))
			missing, is := errors.AsType[*discovery.VerbError](err)
			Expect(is).To(BeTrue())
			Expect(missing.Verbs).To(Equal(verbs))
		}
		Expect(f.Status()).To(BeEmpty())
		f.ForResource(statuses)
		f.Start(ctx)
		_ = notSynced(ctx, f, status.ReasonVerbNotSupported, "")
	})

	It("that can't be watched are listed with WithPolling", func(ctx SpecContext) {
		d := connect(kubeAPIServer)
		f := d.factory(dynamicinformer.WithPolling(time.Second))
		f.Start(ctx)
		statuses := schema.GroupVersionResource{Version: "v1", Resource: "componentstatuses"} // they have no resourceVersion
		lease, err := f.Acquire(ctx, statuses)
		Expect(err).NotTo(HaveOccurred())
		got := listen(lease.Informer())
		Expect(lease.WaitForSync(ctx)).To(Succeed())
		Expect(lease.Unstructured().Get("etcd-0")).NotTo(BeNil())
		Eventually(func() uint64 { return lease.Status().Traffic.Lists }).Should(BeNumerically(">", 3))
		Expect(lease.Status().State).To(Equal(status.StateSynced))
		Expect(lease.Status().String()).To(ContainSubstring("listed every 1s"))
		Eventually(got.all).Should(ConsistOf("add scheduler", "add controller-manager", "add etcd-0"), "equal states are no events")
	})

	DescribeTable("are resolved by a discovery client that is",
		func(ctx SpecContext, form func(clientdiscovery.DiscoveryInterface) clientdiscovery.DiscoveryInterface) {
			d := connect(kubeAPIServer)
			client, err := clientdiscovery.NewDiscoveryClientForConfigAndClient(d.config, d.http)
			Expect(err).NotTo(HaveOccurred())
			resolver, err := discovery.NewFromDiscovery(form(client))
			Expect(err).NotTo(HaveOccurred())
			for ref, want := range map[string]schema.GroupVersionResource{
				"pods":                     pods,
				"pods.v1":                  pods,
				"configmaps":               configMaps,
				"deployments":              {Group: "apps", Version: "v1", Resource: "deployments"},
				"ipamblocks":               blocks,
				"horizontalpodautoscalers": {Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
			} {
				res, err := resolver.Resolve(ctx, ref)
				Expect(err).NotTo(HaveOccurred())
				Expect(res.GVR).To(Equal(want), ref)
			}
			res, err := resolver.Resolve(ctx, "events")
			Expect(err).NotTo(HaveOccurred())
			Expect(res.GVR.Group).To(BeEmpty(), "also in events.k8s.io; kubectl uses the core group")
			_, err = resolver.Resolve(ctx, "deploymant")
			Expect(err).To(MatchError(ContainSubstring("did you mean deployments.apps?")))
		},
		Entry("aggregated", func(d clientdiscovery.DiscoveryInterface) clientdiscovery.DiscoveryInterface { return d }),
		Entry("legacy", clientdiscovery.DiscoveryInterface.WithLegacy),
	)
})

var _ = Describe("A user who is limited by RBAC on "+kubeAPIServer.name, func() {
	It("gets the forbidden verbs, and syncs when they are granted", func(ctx SpecContext) {
		d := connectAsUser(unique("eve"))
		f := d.factory()
		f.ForResource(widgets)
		f.Start(ctx)
		err := notSynced(ctx, f, status.ReasonForbidden, "cannot list")
		Expect(apierrors.IsForbidden(err)).To(BeTrue())
		Expect(err).To(MatchError(ContainSubstring(d.user)))

		grant(ctx, d.user, "", widgets, "list", "watch")
		Expect(f.WaitForSync(ctx)).To(Succeed())
	})

	It("watches the one namespace that is allowed", func(ctx SpecContext) {
		d, label := connectAsUser(unique("adam")), unique("allowed")
		admin := connect(kubeAPIServer)
		admin.create(ctx, widgets, label, newWidget("in", label))
		admin.create(ctx, widgets, label+"-other", newWidget("out", label))
		grant(ctx, d.user, label, widgets, "list", "watch")
		f := d.factory(dynamicinformer.WithNamespace(label))
		got := listen(f.ForResource(widgets).Informer())
		f.Start(ctx)
		Expect(f.WaitForSync(ctx)).To(Succeed())
		Eventually(got.all).Should(Equal([]string{"add " + label + "/in"}))

		everywhere := d.factory()
		everywhere.ForResource(widgets)
		everywhere.Start(ctx)
		_ = notSynced(ctx, everywhere, status.ReasonForbidden, "")
	})
})

func newCore(kind, label string, spec map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind}}
	obj.SetName(label)
	obj.SetLabels(map[string]string{"spec": label})
	if spec != nil {
		obj.Object["spec"] = spec
	}
	return obj
}

// userConnection is the connection of a user who may only read discovery.
type userConnection struct {
	*connection
	user string
}

func connectAsUser(user string) userConnection {
	GinkgoHelper()
	added, err := environment.AddUser(envtest.User{Name: user, Groups: []string{"system:authenticated"}}, nil)
	Expect(err).NotTo(HaveOccurred())
	return userConnection{connection: connectAs(kubeAPIServer, added.Config()), user: user}
}

// grant allows user the verbs on gvr in namespace, or in all namespaces if it is empty. It returns when the server knows
// that.
func grant(ctx context.Context, user, namespace string, gvr schema.GroupVersionResource, verbs ...string) {
	GinkgoHelper()
	admin := connect(kubeAPIServer) //nolint:contextcheck // the connection ends with the spec
	kind, prefix := "Role", ""
	if namespace == "" {
		kind, prefix = "ClusterRole", "cluster"
	}
	apply := func(resource string, object map[string]any) {
		object["apiVersion"] = rbac.String()
		obj := &unstructured.Unstructured{Object: object}
		obj.SetName(user)
		_, err := admin.client.Resource(rbac.WithResource(prefix+resource)).Namespace(namespace).Create(ctx, obj, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	list := []any{}
	for _, verb := range verbs {
		list = append(list, verb)
	}
	apply("roles", map[string]any{"kind": kind, "rules": []any{map[string]any{
		"apiGroups": []any{gvr.Group}, "resources": []any{gvr.Resource}, "verbs": list,
	}}})
	apply("rolebindings", map[string]any{
		"kind":     kind + "Binding",
		"roleRef":  map[string]any{"apiGroup": rbac.Group, "kind": kind, "name": user},
		"subjects": []any{map[string]any{"apiGroup": rbac.Group, "kind": "User", "name": user}},
	})
	reviews := schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews"}
	for _, verb := range verbs {
		review := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"user": user, "resourceAttributes": map[string]any{
			"group": gvr.Group, "version": gvr.Version, "resource": gvr.Resource, "verb": verb, "namespace": namespace,
		}}}}
		review.SetGroupVersionKind(reviews.GroupVersion().WithKind("SubjectAccessReview"))
		Eventually(func() (bool, error) {
			answer, err := admin.client.Resource(reviews).Create(ctx, review, metav1.CreateOptions{})
			if err != nil {
				return false, err
			}
			allowed, _, err := unstructured.NestedBool(answer.Object, "status", "allowed")
			return allowed, err
		}).Should(BeTrue(), "%s may %s", user, verb)
	}
}
