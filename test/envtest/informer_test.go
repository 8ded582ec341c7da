package envtest_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

var _ = Describe("An informer", onEachServer(func(at *apiServer) {
	DescribeTable("delivers adds, updates and deletes of",
		func(ctx SpecContext, gvr schema.GroupVersionResource, namespace, prefix string, newObject func(name, label string) *unstructured.Unstructured) {
			d, label := connect(at), unique("events")
			d.create(ctx, gvr, namespace, newObject(label+"-before", label))
			f := d.factory(only(label))
			generic := f.ForResource(gvr)
			got := listen(generic.Informer())
			f.Start(ctx)
			Expect(f.WaitForSync(ctx, dynamicinformer.WithResources(gvr))).To(Succeed())

			obj := d.create(ctx, gvr, namespace, newObject(label+"-a", label))
			obj.SetAnnotations(map[string]string{"changed": "true"})
			client := d.client.Resource(gvr).Namespace(namespace)
			_, err := client.Update(ctx, obj, metav1.UpdateOptions{})
			Expect(err).NotTo(HaveOccurred())
			Eventually(func() (string, error) {
				cached, err := generic.Lister().Get(prefix + label + "-a")
				if err != nil {
					return "", err
				}
				return cached.(*unstructured.Unstructured).GetAnnotations()["changed"], nil
			}).Should(Equal("true"))
			Expect(client.Delete(ctx, label+"-a", metav1.DeleteOptions{})).To(Succeed())

			Eventually(got.all).Should(Equal([]string{
				"add " + prefix + label + "-before",
				"add " + prefix + label + "-a",
				"update " + prefix + label + "-a",
				"delete " + prefix + label + "-a",
			}))
			left, err := generic.Lister().List(labels.Everything())
			Expect(err).NotTo(HaveOccurred())
			Expect(left).To(HaveLen(1))
		},
		Entry("a cluster-scoped type", blocks, "", "", newBlock),
		Entry("a namespaced type", widgets, "here", "here/", newWidget),
	)

	It("keeps all values of a block", func(ctx SpecContext) {
		d, label := connect(at), unique("exact")
		created := d.create(ctx, blocks, "", newBlock(label, label))
		f := d.factory(only(label))
		generic := f.ForResource(blocks)
		f.Start(ctx)
		Expect(f.WaitForSync(ctx)).To(Succeed())
		cached, err := generic.Lister().Get(label)
		Expect(err).NotTo(HaveOccurred())
		Expect(cached).To(Equal(created))
	})

	It("applies label selector and namespace to list and watch", func(ctx SpecContext) {
		d, label := connect(at), unique("filter")
		d.create(ctx, widgets, label, newWidget("listed", label))
		d.create(ctx, widgets, label, newWidget("listed-other-label", "other"))
		d.create(ctx, widgets, label+"-elsewhere", newWidget("listed-elsewhere", label))
		f := d.factory(only(label), dynamicinformer.WithNamespace(label))
		got := listen(f.ForResource(widgets).Informer())
		f.Start(ctx)
		Expect(f.WaitForSync(ctx)).To(Succeed())
		d.create(ctx, widgets, label, newWidget("watched-other-label", "other"))
		d.create(ctx, widgets, label+"-elsewhere", newWidget("watched-elsewhere", label))
		d.create(ctx, widgets, label, newWidget("watched", label)) // after its event, there are no more events for earlier objects
		Eventually(got.all).Should(ContainElement("add " + label + "/watched"))
		Expect(got.all()).To(Equal([]string{"add " + label + "/listed", "add " + label + "/watched"}))
	})

	It("shares one watch between all users of a resource", func(ctx SpecContext) {
		d, label := connect(at), unique("share")
		f := d.factory(only(label))
		first, second := listen(f.ForResource(blocks).Informer()), listen(f.ForResource(blocks).Informer())
		f.Start(ctx)
		f.Start(ctx)
		third := listen(f.ForResource(blocks).Informer())
		Expect(f.WaitForSync(ctx)).To(Succeed())
		d.create(ctx, blocks, "", newBlock(label, label))
		for _, got := range []*events{first, second, third} {
			Eventually(got.all).Should(Equal([]string{"add " + label}))
		}
		ofBlocks := faultproxy.Resource(blocks.Group, blocks.Resource)
		Expect(d.proxy.OpenWatches(ofBlocks)).To(Equal(1))
		Expect(d.proxy.Requests(faultproxy.All(ofBlocks, faultproxy.Verb("watch")))).To(Equal(1))
		Expect(d.proxy.Requests(faultproxy.All(ofBlocks, faultproxy.Verb("list")))).To(BeZero(), "the watch has initial events")
	})

	It("sends an update for cached objects after each resync period", func(ctx SpecContext) {
		d, label := connect(at), unique("resync")
		d.create(ctx, blocks, "", newBlock(label, label))
		f := d.factory(only(label), dynamicinformer.WithResync(time.Second))
		got := listen(f.ForResource(blocks).Informer())
		f.Start(ctx)
		Eventually(func() int { return len(got.all()) }).Should(BeNumerically(">=", 3))
		Expect(got.all()[:3]).To(Equal([]string{"add " + label, "update " + label, "update " + label}))
		ofBlocks := faultproxy.Resource(blocks.Group, blocks.Resource)
		Expect(d.proxy.Requests(faultproxy.All(ofBlocks, faultproxy.Verb("list", "watch")))).To(Equal(1), "a resync sends no request")
	})

	It("stores transformed objects", func(ctx SpecContext) {
		d, label := connect(at), unique("transform")
		d.create(ctx, blocks, "", newBlock(label, label))
		f := d.factory(only(label), dynamicinformer.WithTransform(func(obj any) (any, error) {
			if u, ok := obj.(*unstructured.Unstructured); ok {
				delete(u.Object["metadata"].(map[string]any), "managedFields")
			}
			return obj, nil
		}))
		generic := f.ForResource(blocks)
		f.Start(ctx)
		Expect(f.WaitForSync(ctx)).To(Succeed())
		for _, name := range []string{label, label + "-watched"} {
			if name != label {
				d.create(ctx, blocks, "", newBlock(name, label))
			}
			Eventually(func() error { _, err := generic.Lister().Get(name); return err }).Should(Succeed())
			cached, err := generic.Lister().Get(name)
			Expect(err).NotTo(HaveOccurred())
			Expect(cached.(*unstructured.Unstructured).GetManagedFields()).To(BeEmpty())
		}
	})

	It("leaves no goroutine and no watch after the shutdown of the factory", func(ctx SpecContext) {
		d, label := connect(at), unique("leak")
		before := goleak.IgnoreCurrent()
		f := d.factory(only(label))
		listen(f.ForResource(blocks).Informer())
		listen(f.ForResource(widgets).Informer())
		f.Start(ctx)
		Expect(f.WaitForSync(ctx)).To(Succeed())
		Expect(f.Shutdown(ctx)).To(Succeed())
		Eventually(func() int { return d.proxy.OpenWatches(faultproxy.All()) }).Should(BeZero())
		// Only goroutines of the connection pools of client and proxy may be left.
		Eventually(func() error {
			return goleak.Find(before,
				goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
				goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
				goleak.IgnoreAnyFunction("net/http.(*Transport).dialConn.gowrap1"),
				goleak.IgnoreAnyFunction("net/http.(*Transport).dialConn.gowrap2"),
				goleak.IgnoreAnyFunction("net/http.(*Server).Serve.gowrap3"),
				goleak.IgnoreAnyFunction("net/http.(*conn).serve"),
				goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"),
			)
		}).Should(Succeed())
	})
}))
