package envtest_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/gvrkit/gvrkit/test/envtest/controlplane"
	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

// apiServer is an API server that specs run on.
type apiServer struct {
	name string
	// start starts the server. The cleanup of the suite stops it.
	start func(ctx context.Context) *rest.Config
	// whole means that the server has the whole Kubernetes API: it serves core types, and
	// requires that namespaces exist.
	whole bool

	config *rest.Config // set by start, before any spec
}

var (
	embeddedServer = &apiServer{name: "the embedded server", start: startEmbedded}
	kubeAPIServer  = &apiServer{name: "kube-apiserver " + controlplane.Version(), start: startControlPlane, whole: true}

	apiServers = []*apiServer{embeddedServer, kubeAPIServer}

	environment *envtest.Environment // of kubeAPIServer
)

// onEachServer returns a function for Describe that runs specs on every server.
func onEachServer(specs func(at *apiServer)) func() {
	return func() {
		for _, at := range apiServers {
			Context("on "+at.name, func() { specs(at) })
		}
	}
}

func startEmbedded(ctx context.Context) *rest.Config {
	GinkgoHelper()
	server, err := embedded.Start(ctx)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Stop)
	return server.Config()
}

func startControlPlane(ctx context.Context) *rest.Config {
	GinkgoHelper()
	var err error
	environment, err = controlplane.Start(ctx, GinkgoWriter)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(environment.Stop)
	return environment.Config
}

// install applies CRDs and waits until they can be used.
func (at *apiServer) install(ctx context.Context, crds ...*unstructured.Unstructured) {
	GinkgoHelper()
	Expect(embedded.InstallCRDs(ctx, at.config, crds...)).To(Succeed())
}

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// ensureNamespace creates namespace if the server requires that. It does not delete the namespace
// later, because a test control plane does not complete such a deletion.
func (at *apiServer) ensureNamespace(ctx context.Context, client dynamic.Interface, namespace string) {
	GinkgoHelper()
	if !at.whole || namespace == "" {
		return
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	obj.SetName(namespace)
	_, err := client.Resource(namespaces).Create(ctx, obj, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		Expect(err).NotTo(HaveOccurred())
	}
}
