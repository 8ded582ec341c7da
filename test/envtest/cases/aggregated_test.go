package cases

import (
	"encoding/json"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/test/envtest/fixture"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// laggingDiscovery runs on kube-apiserver: the embedded server has no aggregated servers.
func laggingDiscovery(s *scenario) string {
	s = newScenarioOn(s.T, s.implementation, fixture.StartKubeAPIServer(s.T).Config)
	upToDate := s.proxy.Inject(faultproxy.AnyDiscovery(), faultproxy.StaleDiscovery())
	mapper, kind := s.mapper(s), schema.GroupKind{Group: s.gvr.Group, Kind: "Ship"}
	if _, err := mapper.RESTMapping(kind); !meta.IsNoMatchError(err) {
		s.Fatalf("a kind that is not served: %v", err)
	}
	w := s.watch(s.gvr)
	s.aggregate()
	s.observe()
	before := s.proxy.Requests(s.ofType())
	upToDate()
	const interval = 10 * time.Second // that of gvrkit while documents lack a type; that of the restart loop is shorter
	isSynced := func() bool { return w.wait(s.ctx, 0) == synced }
	eventually(s.ctx, interval, func() bool {
		_, err := mapper.RESTMapping(kind)
		return err == nil && s.log.counts().adds >= 3 && isSynced() // the handler has the objects before that
	})
	if !isSynced() {
		return "not " + synced
	}
	found := "the RESTMapper returns the kind"
	if _, err := mapper.RESTMapping(kind); meta.IsNoMatchError(err) {
		found = "the RESTMapper returns NoMatch"
	}
	return fmt.Sprintf("%s for the type while discovery is behind; 10 s after that: %s, and %s", count(before, "request"), s.log, found)
}

// aggregate starts an aggregated server with three ships, until the end of the test. It returns when its APIService is available.
func (s *scenario) aggregate() {
	s.Helper()
	var ships []json.RawMessage
	for i := range 3 {
		ships = append(ships, s.ship(name(i), "7", `{"size":1}`))
	}
	objects, documents := s.list("7", ships, nil), "/apis/"+s.gvr.GroupVersion().String()
	behind := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case documents:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(metav1.APIResourceList{
				TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: s.gvr.GroupVersion().String(),
				APIResources: []metav1.APIResource{{Name: s.gvr.Resource, SingularName: "ship", Kind: "Ship", Namespaced: true, Verbs: metav1.Verbs{"list", "watch"}}},
			})
		case documents + "/" + s.gvr.Resource:
			objects.ServeHTTP(w, r)
		default:
			http.NotFound(w, r)
		}
	}))
	behind.Config.ErrorLog = stdlog.New(io.Discard, "", 0) // kube-apiserver often closes connections early
	behind.StartTLS()
	s.Cleanup(func() {
		behind.CloseClientConnections() // ends watches
		behind.Close()
	})
	_, text, err := net.SplitHostPort(behind.Listener.Addr().String())
	s.check(err)
	port, err := strconv.Atoi(text)
	s.check(err)
	s.add(schema.GroupVersionResource{Version: "v1", Resource: "services"}, "default", "Service", "behind",
		map[string]any{"type": "ExternalName", "externalName": "localhost"})
	apiServices := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	s.add(apiServices, "", "APIService", s.gvr.Version+"."+s.gvr.Group, map[string]any{
		"group": s.gvr.Group, "version": s.gvr.Version, "groupPriorityMinimum": int64(1000), "versionPriority": int64(15),
		"service":               map[string]any{"namespace": "default", "name": "behind", "port": int64(port)},
		"insecureSkipTLSVerify": true,
	})
	s.must("an available APIService", func() bool {
		obj, err := s.admin.Resource(apiServices).Get(s.ctx, s.gvr.Version+"."+s.gvr.Group, metav1.GetOptions{})
		s.check(err)
		conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions")
		for _, each := range conditions {
			if c := each.(map[string]any); c["type"] == "Available" && c["status"] == "True" {
				return true
			}
		}
		return false
	})
}

// add creates an object with this spec.
func (s *scenario) add(gvr schema.GroupVersionResource, namespace, kind, name string, spec map[string]any) {
	s.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	obj.SetGroupVersionKind(gvr.GroupVersion().WithKind(kind))
	obj.SetName(name)
	_, err := s.admin.Resource(gvr).Namespace(namespace).Create(s.ctx, obj, metav1.CreateOptions{})
	s.check(err)
}
