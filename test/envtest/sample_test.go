package envtest_test

import (
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	ours "github.com/gvrkit/gvrkit/test/envtest/sample/ours"
	upstream "github.com/gvrkit/gvrkit/test/envtest/sample/upstream"
)

var _ = Describe("The program that articles on client-go show", onEachServer(func(at *apiServer) {
	It("differs from its gvrkit form in one import line", func() {
		before, err := os.ReadFile("sample/upstream/sample.go")
		Expect(err).NotTo(HaveOccurred())
		after, err := os.ReadFile("sample/ours/sample.go")
		Expect(err).NotTo(HaveOccurred())
		changed := strings.Replace(string(before), `"k8s.io/client-go/dynamic/dynamicinformer"`, `"github.com/gvrkit/gvrkit/dynamicinformer"`, 1)
		Expect(string(after)).To(Equal(changed))
	})

	DescribeTable("prints the same with",
		func(ctx SpecContext, run func(*rest.Config, <-chan struct{}, chan<- string) error) {
			d, name := connect(at), unique("article")
			d.create(ctx, blocks, "", newBlock(name, name))
			printed, stop, ended := make(chan string, 100), make(chan struct{}), make(chan error, 1)
			go func() { ended <- run(d.config, stop, printed) }()
			var lines []string
			seen := func() []string {
				for len(printed) > 0 {
					lines = append(lines, <-printed)
				}
				return lines
			}
			Eventually(func() int { return len(seen()) }).Should(BeNumerically(">=", 2))
			Expect(lines[:2]).To(ConsistOf("added "+name, "synced")) // in either order
			Eventually(seen).Should(ContainElement("updated "+name), "the resync of 5 s")
			Expect(d.client.Resource(blocks).Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
			Eventually(seen).Should(ContainElement("deleted " + name))
			close(stop)
			Eventually(ended).Should(Receive(BeNil()))
		},
		Entry("client-go", upstream.Run),
		Entry("gvrkit", ours.Run),
	)
}))
