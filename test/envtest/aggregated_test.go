package envtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
)

// These specs are about groups of aggregated API servers.

var (
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
)

// behindService returns the APIService for v1 of group on a service in the default namespace.
func behindService(group, service string, port int) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": group, "version": "v1", "groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
		"service":               map[string]any{"namespace": "default", "name": service, "port": int64(port)},
		"insecureSkipTLSVerify": true,
	}}}
	obj.SetAPIVersion(apiServices.GroupVersion().String())
	obj.SetKind("APIService")
	obj.SetName("v1." + group)
	return obj
}

// backend is an aggregated API server behind kube-apiserver that serves ships in v1 of a group
// while it is up.
type backend struct {
	connection *connection
	ships      schema.GroupVersionResource
	down       atomic.Bool
	empty      atomic.Bool // ships are not served
	handler    shipHandler // serves the ships
}

// startBackend starts a backend and registers it, both until the end of the spec.
func startBackend(ctx context.Context, d *connection) *backend {
	GinkgoHelper()
	b, service, port := startBackendUnregistered(ctx, d)
	d.create(ctx, apiServices, "", behindService(b.ships.Group, service, port))
	return b
}

// startBackendUnregistered starts a backend with a service and without an APIService.
func startBackendUnregistered(ctx context.Context, d *connection) (b *backend, service string, port int) {
	GinkgoHelper()
	b = &backend{connection: d, ships: schema.GroupVersionResource{Group: ownGroup("behind"), Version: "v1", Resource: "ships"}}
	b.handler.gvr = b.ships
	server := httptest.NewUnstartedServer(b)
	server.Config.ErrorLog = log.New(GinkgoWriter, "", 0) // kube-apiserver often closes connections early
	server.StartTLS()
	DeferCleanup(func() {
		server.CloseClientConnections() // ends watches
		server.Close()
	})
	_, number, err := net.SplitHostPort(server.Listener.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	port, err = strconv.Atoi(number)
	Expect(err).NotTo(HaveOccurred())
	service = unique("backend")
	d.create(ctx, services, "default", newCore("Service", service, map[string]any{"type": "ExternalName", "externalName": "localhost"}))
	return b, service, port
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case b.down.Load():
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	case b.handler.serves(r):
		b.handler.ServeHTTP(w, r)
		return
	case r.URL.Path != "/apis/"+b.ships.GroupVersion().String():
		http.NotFound(w, r)
		return
	}
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: b.ships.GroupVersion().String(),
	}
	if !b.empty.Load() {
		list.APIResources = []metav1.APIResource{{Name: "ships", SingularName: "ship", Kind: "Ship", Namespaced: true, Verbs: metav1.Verbs{"list", "watch"}}}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(list)
}

// touch makes kube-apiserver request the backend's documents now. It does so once a minute without
// touch.
func (b *backend) touch(ctx context.Context) {
	GinkgoHelper()
	b.connection.patch(ctx, apiServices, "v1."+b.ships.Group, map[string]any{"metadata": map[string]any{"annotations": map[string]any{"touched": unique("touch")}}})
}

var _ = Describe("Discovery of groups of aggregated API servers, on "+kubeAPIServer.name, func() {
	It("is inconclusive for a group whose server is down, and resolves all other groups", func(ctx SpecContext) {
		h := newShipGroup(ctx, kubeAPIServer)
		idle := connect(kubeAPIServer).resolver // does not run
		events := h.groupEvents(h.group)
		group := ownGroup("noserver")
		h.admin.create(ctx, apiServices, "", behindService(group, unique("noserver"), 443))

		for _, r := range []*discovery.Resolver{h.resolver, idle} {
			lost := schema.GroupVersionResource{Group: group, Version: "v1", Resource: "ships"}
			Eventually(func() error { _, err := r.Resolve(ctx, "ships."+group); return err }).Should(MatchError(discovery.ErrInconclusive))
			_, err := r.ResolveGVR(ctx, lost)
			Expect(err).To(MatchError(discovery.ErrInconclusive))
			Expect(err).NotTo(MatchError(discovery.ErrNotServed))
			_, err = r.RESTMapper().KindFor(lost.GroupResource().WithVersion(""))
			Expect(err).To(MatchError(discovery.ErrInconclusive))
			Expect(meta.IsNoMatchError(err)).To(BeFalse())

			for _, ref := range []string{"ships." + h.group, "widgets", "ipamblocks", "pods", "deployments.apps"} {
				_, err := r.Resolve(ctx, ref)
				Expect(err).NotTo(HaveOccurred(), ref)
			}
			_, err = r.Resolve(ctx, "cranes."+h.group)
			Expect(err).To(MatchError(discovery.ErrNotServed))
			all, err := r.ResolveAll(ctx, discovery.Selector{})
			Expect(err).To(MatchError(discovery.ErrInconclusive), "the list may be incomplete")
			Expect(len(all)).To(BeNumerically(">", 20))
			Expect(r.ResolveAll(ctx, discovery.Selector{Groups: []string{h.group}})).To(HaveLen(1))
		}
		Eventually(events.texts).Should(Equal([]string{"Added ships.v2." + h.group}))

		Expect(h.admin.client.Resource(apiServices).Delete(ctx, "v1."+group, metav1.DeleteOptions{})).To(Succeed())
		for _, r := range []*discovery.Resolver{h.resolver, idle} {
			Eventually(func() error { _, err := r.Resolve(ctx, "ships."+group); return err }).Should(MatchError(discovery.ErrNotServed))
		}
	})

	It("keeps the types of an aggregated server while it is down", func(ctx SpecContext) {
		d, admin := connect(kubeAPIServer), connect(kubeAPIServer)
		r := d.live()
		b := startBackend(ctx, admin)
		events := d.groupEvents(b.ships.Group)
		Eventually(events.texts).Should(Equal([]string{"Added ships.v1." + b.ships.Group}))
		Eventually(func() (discovery.Resource, error) { return r.ResolveGVR(ctx, b.ships) }).Should(HaveField("Backing", discovery.BackingAggregated))
		unknown := func() error { _, err := r.Resolve(ctx, "nothings."+b.ships.Group); return err }
		Eventually(unknown).Should(MatchError(discovery.ErrNotServed))

		b.down.Store(true)
		b.touch(ctx)
		Eventually(unknown).Should(MatchError(discovery.ErrInconclusive), "once the documents show the failure")
		Expect(r.ResolveGVR(ctx, b.ships)).To(HaveField("Versions", []string{"v1"}))
		Consistently(events.texts, "6s", "100ms").Should(HaveLen(1))

		b.down.Store(false)
		b.touch(ctx)
		Eventually(unknown).Should(MatchError(discovery.ErrNotServed))
		Expect(events.texts()).To(HaveLen(1))
	})

	It("reports types that an aggregated server or a deleted APIService no longer serves", func(ctx SpecContext) {
		d, admin := connect(kubeAPIServer), connect(kubeAPIServer)
		d.live()
		b := startBackend(ctx, admin)
		events := d.groupEvents(b.ships.Group)
		// refreshed makes the resolver read the documents, as it does once a minute.
		refreshed := func() ([]string, error) {
			_, err := d.resolver.Resolve(ctx, unique("nothing")+"."+b.ships.Group)
			if errors.Is(err, discovery.ErrNotServed) {
				err = nil
			}
			return events.texts(), err
		}
		added, removed := "Added ships.v1."+b.ships.Group, "Removed ships.v1."+b.ships.Group+" (NotListed)"
		Eventually(events.texts).Should(Equal([]string{added}))

		b.empty.Store(true)
		b.touch(ctx)
		Eventually(refreshed, "30s", "250ms").Should(Equal([]string{added, removed}))
		b.empty.Store(false)
		b.touch(ctx)
		Eventually(refreshed, "30s", "250ms").Should(Equal([]string{added, removed, added}))

		Expect(admin.client.Resource(apiServices).Delete(ctx, "v1."+b.ships.Group, metav1.DeleteOptions{})).To(Succeed())
		Eventually(events.texts).Should(Equal([]string{added, removed, added, removed}))
		_, err := d.resolver.ResolveGVR(ctx, b.ships)
		Expect(err).To(MatchError(discovery.ErrNotServed))
	})
})
