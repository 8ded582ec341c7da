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

// rewoundLeases are leases on the widgets of a server whose etcd is restored, on objects and on their metadata.
type rewoundLeases struct {
	lease, metadata *dynamicinformer.Lease
	log             *eventLog
	events          *events
}

// acquire acquires the leases from a factory with the options, and waits until they are synced.
func (s rewoundServer) acquire(ctx context.Context, opts ...dynamicinformer.Option) rewoundLeases {
	GinkgoHelper()
	factory, err := dynamicinformer.NewForConfig(s.Config(), opts...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(factory.Shutdown(ctx)).To(Succeed()) }, NodeTimeout(time.Minute)) //nolint:contextcheck // it ends the factory
	factory.Start(context.WithoutCancel(ctx))
	var l rewoundLeases
	l.lease, err = factory.Acquire(ctx, widgets)
	Expect(err).NotTo(HaveOccurred())
	l.metadata, err = factory.Acquire(ctx, widgets, dynamicinformer.WithMetadataOnly())
	Expect(err).NotTo(HaveOccurred())
	Expect(l.lease.WaitForSync(ctx)).To(Succeed())
	Expect(l.metadata.WaitForSync(ctx)).To(Succeed())
	l.log, l.events = newEventLog(l.lease), listen(l.lease.Informer())
	return l
}

var _ = Describe("A server whose etcd is restored", func() {
	// A restore takes seconds, so there is one for the caches of both kinds.
	It("is noticed, also with a packed cache, and client-go's informer stays silent", func(ctx SpecContext) {
		restorable, err := fixture.StartRestorable(ctx, GinkgoT().TempDir())
		DeferCleanup(func() { Expect(restorable.Stop()).To(Succeed()) })
		Expect(err).NotTo(HaveOccurred())
		server := rewoundServer{restorable}
		Expect(embedded.InstallCRDs(ctx, server.Behind(), manifest("testdata/widgets.yaml"))).To(Succeed())

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
		ours := map[string]rewoundLeases{"": server.acquire(ctx), "packed": server.acquire(ctx, dynamicinformer.WithPackedCache())}
		Expect(cache.WaitForCacheSync(ctx.Done(), upstreams.HasSynced)).To(BeTrue())

		again := server.widget(ctx, "changed", 2)
		server.widget(ctx, "added", 1)
		server.remove(ctx, "removed")
		last := ""
		for size := range 5 {
			last = server.widget(ctx, "added", int64(10+size))
		}
		same := server.version(ctx, "same")
		before := []string{"same@" + same + " 1", "changed@" + again + " 2", "added@" + last + " 14"}
		Eventually(upstreams.GetStore).Should(have(before...))
		for name, l := range ours {
			Eventually(l.lease.Informer().GetStore).Should(have(before...), name)
			Eventually(l.events.all).Should(HaveLen(3+8), "%s: the initial objects, and each change", name)
		}

		begun := time.Now()
		Expect(server.Restore(ctx, func() error {
			// The new history has the same version of the same object, with another state.
			Expect(server.widget(ctx, "changed", 3)).To(Equal(again))
			return nil
		})).To(Succeed())
		after := []string{"same@" + same + " 1", "changed@" + again + " 3", "removed@" + removed + " 1"}
		Expect(kept).NotTo(Equal(again))
		for name, l := range ours {
			Eventually(l.lease.Informer().GetStore, "40s").Should(have(after...), name)
			AddReportEntry("healed "+name, fmt.Sprintf("%v after the restore began", time.Since(begun)))
			Eventually(l.metadata.Informer().GetStore, "40s").Should(WithTransform(func(store cache.Store) []string { return store.ListKeys() },
				ConsistOf("default/same", "default/changed", "default/removed")), name)
			Eventually(l.lease.Status).Should(HaveField("State", status.StateSynced), name)
			Expect(l.lease.Status().Traffic.Failures[status.ReasonRewound]).To(Equal(uint64(1)), name)
			l.log.check()
			Eventually(func() []string { return l.events.all()[3+8:] }).Should(ConsistOf(
				"update default/changed", "add default/removed", "delete default/added"), name)
		}

		Consistently(upstreams.GetStore, "10s").Should(have(before...), "client-go's informer")
		Eventually(func() (int, error) { // other writes of the server may have that version
			return resourceversion.CompareResourceVersion(server.widget(ctx, "same", time.Now().UnixNano()), last)
		}).Should(BeNumerically(">=", 0))
		server.widget(ctx, "later", 1)
		Eventually(upstreams.GetStore().ListKeys).Should(ContainElement("default/later"))
		Expect(upstreams.GetStore().ListKeys()).To(ContainElement("default/added"), "client-go has the lost object for ever")
		Expect(upstreams.GetStore().ListKeys()).NotTo(ContainElement("default/removed"))
		version := server.widget(ctx, "later", 2)
		for name, l := range ours {
			Eventually(l.lease.Informer().GetStore().ListKeys).Should(ContainElement("default/later"), name)
			Expect(l.lease.AtLeast(ctx, version)).To(Succeed(), name)
			l.log.check()
		}
	}, NodeTimeout(4*time.Minute))
})

// version returns the resourceVersion of a widget.
func (s rewoundServer) version(ctx context.Context, name string) string {
	GinkgoHelper()
	obj, err := s.widgets().Get(ctx, name, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	return obj.GetResourceVersion()
}
