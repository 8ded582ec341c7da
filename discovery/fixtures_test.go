package discovery_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/internal/fakecluster"
)

var (
	pods         = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	deployments  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	widgets      = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	widgetsBeta  = schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "widgets"}
	flanges      = schema.GroupVersionResource{Group: "example.com", Version: "v1beta1", Resource: "flanges"}
	gizmos       = schema.GroupVersionResource{Group: "acme.io", Version: "stable", Resource: "gizmos"}
	sprockets    = schema.GroupVersionResource{Group: "v1.acme.io", Version: "v2", Resource: "sprockets"}
	calicoBlocks = schema.GroupVersionResource{Group: "projectcalico.org", Version: "v3", Resource: "ipamblocks"}
	crdBlocks    = schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"}
	reviews      = schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "tokenreviews"}
)

// all is every verb that an informer needs, and more.
var all = metav1.Verbs{"watch", "list", "get", "create"}

// The groups of a server, each small. Theirs is the server's order of groups.
var (
	coreGroup = group{versions: []version{{name: "v1", resources: []metav1.APIResource{
		{Name: "pods", SingularName: "pod", Kind: "Pod", Namespaced: true, Verbs: all, ShortNames: []string{"po"}, Categories: []string{"all"}},
		{Name: "pods/log", Kind: "Pod", Namespaced: true, Verbs: metav1.Verbs{"get"}},
		{Name: "componentstatuses", SingularName: "componentstatus", Kind: "ComponentStatus", Verbs: metav1.Verbs{"list", "get"}, ShortNames: []string{"cs"}},
	}}}}
	appsGroup = group{name: "apps", versions: []version{{name: "v1", resources: []metav1.APIResource{
		{Name: "deployments", SingularName: "deployment", Kind: "Deployment", Namespaced: true, Verbs: all, ShortNames: []string{"deploy"}},
		{Name: "deployments/scale", Group: "autoscaling", Version: "v1", Kind: "Scale", Namespaced: true, Verbs: metav1.Verbs{"get", "update"}},
	}}}}
	reviewGroup = group{name: "authentication.k8s.io", versions: []version{{name: "v1", resources: []metav1.APIResource{
		{Name: "tokenreviews", SingularName: "tokenreview", Kind: "TokenReview", Verbs: metav1.Verbs{"create"}},
	}}}}
	// The preferred version is not the first, and flanges are not in it.
	exampleGroup = group{name: "example.com", preferred: "v1", versions: []version{
		{name: "v1beta1", resources: []metav1.APIResource{
			{Name: "widgets", SingularName: "widget", Kind: "Widget", Namespaced: true, Verbs: all},
			{Name: "flanges", SingularName: "flange", Kind: "Flange", Namespaced: true, Verbs: all},
		}},
		{name: "v1", resources: []metav1.APIResource{
			{Name: "widgets", SingularName: "widget", Kind: "Widget", Namespaced: true, Verbs: all},
		}},
	}}
	// A version may have any name.
	acmeGroup = group{name: "acme.io", versions: []version{{name: "stable", resources: []metav1.APIResource{
		{Name: "gizmos", SingularName: "gizmo", Kind: "Gizmo", Verbs: all},
	}}}}
	// A group may begin like a version.
	v1AcmeGroup = group{name: "v1.acme.io", versions: []version{{name: "v2", resources: []metav1.APIResource{
		{Name: "sprockets", SingularName: "sprocket", Kind: "Sprocket", Verbs: all},
	}}}}
	// A cluster with Calico serves ipamblocks twice.
	calicoGroup    = blocksGroup("projectcalico.org", "v3")
	crdCalicoGroup = blocksGroup("crd.projectcalico.org", "v1")
)

func blocksGroup(name, versionName string) group {
	return group{name: name, versions: []version{{name: versionName, resources: []metav1.APIResource{
		{Name: "ipamblocks", SingularName: "ipamblock", Kind: "IPAMBlock", Verbs: all},
	}}}}
}

// everything is a server's groups, in an order that is not the alphabet's.
func everything() []group {
	return []group{coreGroup, appsGroup, reviewGroup, exampleGroup, acmeGroup, v1AcmeGroup, calicoGroup, crdCalicoGroup}
}

// stale returns g with a version whose resources the server can't tell.
func stale(g group, versionName string) group {
	vs := make([]version, len(g.versions))
	for i, v := range g.versions {
		v.stale = v.stale || v.name == versionName
		vs[i] = v
	}
	g.versions = vs
	return g
}

// refuse answers with a Status, as an API server does.
func refuse(code int, reason metav1.StatusReason) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		writeJSON(w, "application/json", metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Code: int32(code), Reason: reason, Message: string(reason) + " says the server",
		})
	}
}

// say answers 200 with body.
func say(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(body))
	}
}

// hang answers nothing until the client gives up.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// The types of a server in memory.
var (
	podType    = fakecluster.Type{GVR: pods, Kind: "Pod", Namespaced: true}
	widgetType = fakecluster.Type{GVR: widgets, Kind: "Widget", Namespaced: true}
	gizmoType  = fakecluster.Type{GVR: gizmos, Kind: "Gizmo"}
)

// fromCluster returns a resolver of a server in memory, which a bubble may hold.
func fromCluster(t *testing.T, cluster *fakecluster.Cluster, opts ...discovery.Option) *discovery.Resolver {
	t.Helper()
	r, err := discovery.NewFromDiscovery(cluster.Discovery(), opts...)
	if err != nil {
		t.Fatalf("NewFromDiscovery: %v", err)
	}
	return r
}

// hangAt makes discovery requests for gv hang until the client gives up; the empty
// one is the request for all groups.
func hangAt(cluster *fakecluster.Cluster, gv schema.GroupVersion) {
	cluster.Intercept(func(ctx context.Context, req fakecluster.Request) error {
		if req.GVR.GroupVersion() == gv {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
}

// checkKind checks that err matches sentinel and no other of the package.
func checkKind(t *testing.T, err, sentinel error) {
	t.Helper()
	for _, kind := range []error{
		discovery.ErrNotServed, discovery.ErrInconclusive, discovery.ErrAmbiguous,
		discovery.ErrVerbNotSupported, discovery.ErrInvalidRef, discovery.ErrNotEstablished,
	} {
		// What is not established is not served.
		want := errors.Is(sentinel, kind) || sentinel == discovery.ErrNotEstablished && kind == discovery.ErrNotServed //nolint:errorlint // the value
		if got := errors.Is(err, kind); got != want {
			t.Errorf("errors.Is(%v, %v) = %v, want %v", err, kind, got, want)
		}
	}
}

// asType returns the E in err, which matches sentinel and no other.
func asType[E error](t *testing.T, err, sentinel error) E {
	t.Helper()
	var typed E
	if !errors.As(err, &typed) {
		t.Fatalf("error is %T %v, want a %T", err, err, typed)
	}
	checkKind(t, err, sentinel)
	return typed
}
