package envtest_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/envtest/embedded"
	"github.com/gvrkit/gvrkit/test/envtest/fixture"
)

// rewoundServer is a server whose etcd is restored.
type rewoundServer struct{ *fixture.Restorable }

// widget sets the size of a widget, which is created if it does not exist, and returns its resourceVersion.
func (s rewoundServer) widget(ctx context.Context, name string, size int64) string {
	GinkgoHelper()
	client := s.widgets()
	obj, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		obj, err = client.Create(ctx, newObject(widgets.GroupVersion().WithKind("Widget"), name, int(size), nil), metav1.CreateOptions{})
	} else {
		Expect(unstructured.SetNestedField(obj.Object, size, "spec", "size")).To(Succeed())
		obj, err = client.Update(ctx, obj, metav1.UpdateOptions{})
	}
	Expect(err).NotTo(HaveOccurred())
	return obj.GetResourceVersion()
}

// remove deletes a widget.
func (s rewoundServer) remove(ctx context.Context, name string) {
	GinkgoHelper()
	Expect(s.widgets().Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
}

// widgets returns a client of the server that does not go through its address.
func (s rewoundServer) widgets() dynamic.ResourceInterface {
	GinkgoHelper()
	client, err := dynamic.NewForConfig(s.Behind())
	Expect(err).NotTo(HaveOccurred())
	return client.Resource(widgets).Namespace("default")
}

// have matches a store with these widgets, as "name@version size".
func have(want ...string) types.GomegaMatcher {
	return WithTransform(func(store cache.Store) (got []string) {
		for _, item := range store.List() {
			obj := item.(metav1.Object)
			text := obj.GetName() + "@" + obj.GetResourceVersion()
			if tree, is := item.(*unstructured.Unstructured); is {
				size, _, _ := unstructured.NestedInt64(tree.Object, "spec", "size")
				text += fmt.Sprint(" ", size)
			}
			got = append(got, text)
		}
		return got
	}, ConsistOf(want))
}

var _ = Describe("A server whose etcd is restored", func() {
	var server rewoundServer

	BeforeEach(func(ctx SpecContext) {
		restorable, err := fixture.StartRestorable(ctx, GinkgoT().TempDir())
		DeferCleanup(func() { Expect(restorable.Stop()).To(Succeed()) })
		Expect(err).NotTo(HaveOccurred())
		server = rewoundServer{restorable}
		Expect(embedded.InstallCRDs(ctx, server.Behind(), manifest("testdata/widgets.yaml"))).To(Succeed())
	})

	for name, packed := range map[string]bool{"": false, " with a packed cache": true} {
		It("is noticed"+name+", and client-go's informer stays silent", func(ctx SpecContext) {
			server.widget(ctx, "same", 1)
			kept, removed := server.widget(ctx, "changed", 1), server.widget(ctx, "removed", 1)
			Expect(server.BackUp(ctx)).To(Succeed())

			client, err := dynamic.NewForConfig(server.Config())
			Expect(err).NotTo(HaveOccurred())
			theirs := upstream.NewDynamicSharedInformerFactory(client, 0)
			upstreams := theirs.ForResource(widgets).Informer()
			stop := make(chan struct{})
			theirs.Start(stop)
			DeferCleanup(func() { close(stop); theirs.Shutdown() })

			var options []dynamicinformer.Option
			if packed {
				options = append(options, dynamicinformer.WithPackedCache())
			}
			factory, err := dynamicinformer.NewForConfig(server.Config(), options...)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func(ctx SpecContext) { Expect(factory.Shutdown(ctx)).To(Succeed()) }, NodeTimeout(time.Minute))
			factory.Start(context.Background()) //nolint:forbidigo // the factory ends by Shutdown
			lease, err := factory.Acquire(ctx, widgets)
			Expect(err).NotTo(HaveOccurred())
			meta, err := factory.Acquire(ctx, widgets, dynamicinformer.WithMetadataOnly())
			Expect(err).NotTo(HaveOccurred())
			Expect(lease.WaitForSync(ctx)).To(Succeed())
			Expect(meta.WaitForSync(ctx)).To(Succeed())
			Expect(cache.WaitForCacheSync(ctx.Done(), upstreams.HasSynced)).To(BeTrue())
			log, events := newEventLog(lease), listen(lease.Informer())

			again := server.widget(ctx, "changed", 2)
			server.widget(ctx, "added", 1)
			server.remove(ctx, "removed")
			last := ""
			for size := range 5 {
				last = server.widget(ctx, "added", int64(10+size))
			}
			same := server.version(ctx, "same")
			before := []string{"same@" + same + " 1", "changed@" + again + " 2", "added@" + last + " 14"}
			Eventually(lease.Informer().GetStore).Should(have(before...))
			Eventually(upstreams.GetStore).Should(have(before...))
			Eventually(events.all).Should(HaveLen(3+8), "the initial objects, and each change")

			begun := time.Now()
			Expect(server.Restore(ctx, func() error {
				// The new history has the same version of the same object, with another state.
				Expect(server.widget(ctx, "changed", 3)).To(Equal(again))
				return nil
			})).To(Succeed())
			after := []string{"same@" + same + " 1", "changed@" + again + " 3", "removed@" + removed + " 1"}
			Eventually(lease.Informer().GetStore, "40s").Should(have(after...))
			AddReportEntry("healed", fmt.Sprintf("%v after the restore began", time.Since(begun)))
			Eventually(meta.Informer().GetStore, "40s").Should(WithTransform(func(store cache.Store) []string { return store.ListKeys() },
				ConsistOf("default/same", "default/changed", "default/removed")))
			Eventually(lease.Status).Should(HaveField("State", status.StateSynced))
			Expect(lease.Status().Traffic.Failures[status.ReasonRewound]).To(Equal(uint64(1)))
			Expect(kept).NotTo(Equal(again))
			log.check()
			Eventually(func() []string { return events.all()[3+8:] }).Should(ConsistOf(
				"update default/changed", "add default/removed", "delete default/added"))

			Consistently(upstreams.GetStore, "10s").Should(have(before...), "client-go's informer")
			Eventually(func() (int, error) { // other writes of the server may have that version
				return resourceversion.CompareResourceVersion(server.widget(ctx, "same", time.Now().UnixNano()), last)
			}).Should(BeNumerically(">=", 0))
			server.widget(ctx, "later", 1)
			Eventually(lease.Informer().GetStore().ListKeys).Should(ContainElement("default/later"))
			Eventually(upstreams.GetStore().ListKeys).Should(ContainElement("default/later"))
			Expect(upstreams.GetStore().ListKeys()).To(ContainElement("default/added"), "client-go has the lost object for ever")
			Expect(upstreams.GetStore().ListKeys()).NotTo(ContainElement("default/removed"))
			Expect(lease.AtLeast(ctx, server.widget(ctx, "later", 2))).To(Succeed())
			log.check()
		}, NodeTimeout(3*time.Minute))
	}
})

// version returns the resourceVersion of a widget.
func (s rewoundServer) version(ctx context.Context, name string) string {
	GinkgoHelper()
	obj, err := s.widgets().Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return obj.GetResourceVersion()
}
