package envtest_test

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/yaml"
)

// TestMain allows the goroutines that ginkgo leaves behind (onsi/ginkgo#1364): one, and another one if specs run in parallel.
func TestMain(m *testing.M) {
	const ginkgo = "github.com/onsi/ginkgo/v2/internal/interrupt_handler.(*InterruptHandler).registerForInterrupts"
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction(ginkgo+".func1"), goleak.IgnoreTopFunction(ginkgo+".func2"))
}

func TestEnvtest(t *testing.T) {
	RegisterFailHandler(Fail)
	klog.SetLogger(GinkgoLogr) // both are shown for specs that fail
	log.SetLogger(GinkgoLogr)
	SetDefaultEventuallyTimeout(30 * time.Second)
	SetDefaultEventuallyPollingInterval(10 * time.Millisecond)
	RunSpecs(t, "gvrkit on a real API server")
}

// All specs share the servers and these types. Each spec uses its own label or namespace.
var _ = BeforeSuite(func(ctx SpecContext) {
	for _, at := range apiServers {
		By("starting " + at.name)
		at.config = at.start(ctx)
		// The manifest of the example is a CRD of this repository for IPAMBlocks.
		at.install(ctx, manifest("../../examples/ipamblock/crd.yaml"), manifest("testdata/widgets.yaml"))
	}
}, NodeTimeout(30*time.Minute)) // the first start of a server builds it

// An APIService without its server would make discovery inconclusive for all later specs.
var _ = BeforeEach(func(ctx SpecContext) {
	client, err := dynamic.NewForConfig(kubeAPIServer.config)
	Expect(err).NotTo(HaveOccurred())
	all, err := client.Resource(apiServices).List(ctx, metav1.ListOptions{})
	Expect(err).NotTo(HaveOccurred())
	for _, service := range all.Items {
		_, remote, err := unstructured.NestedMap(service.Object, "spec", "service")
		Expect(err).NotTo(HaveOccurred())
		Expect(remote).To(BeFalse(), "an earlier spec did not delete %s", service.GetName())
	}
})

func manifest(path string) *unstructured.Unstructured {
	GinkgoHelper()
	content, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	obj := &unstructured.Unstructured{}
	Expect(yaml.Unmarshal(content, &obj.Object)).To(Succeed())
	return obj
}
