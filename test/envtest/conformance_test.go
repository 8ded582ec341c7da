package envtest_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	upstream "k8s.io/client-go/dynamic/dynamicinformer"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// newFactory is a constructor of client-go or of gvrkit.
type newFactory func(client dynamic.Interface, resync time.Duration, namespace string, tweak dynamicinformer.TweakListOptionsFunc) upstream.DynamicSharedInformerFactory

func ofClientGo(client dynamic.Interface, resync time.Duration, namespace string, tweak dynamicinformer.TweakListOptionsFunc) upstream.DynamicSharedInformerFactory {
	return upstream.NewFilteredDynamicSharedInformerFactory(client, resync, namespace, tweak)
}

func ofGvrkit(client dynamic.Interface, resync time.Duration, namespace string, tweak dynamicinformer.TweakListOptionsFunc) upstream.DynamicSharedInformerFactory {
	return dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, resync, namespace, tweak)
}

// traffic is the number of requests of a scenario, which is the same for each implementation.
type traffic struct{ lists, watches int }

func (d *connection) traffic(gvr schema.GroupVersionResource) traffic {
	of := faultproxy.Resource(gvr.Group, gvr.Resource)
	return traffic{
		lists:   d.proxy.Requests(faultproxy.All(of, faultproxy.Verb("list"))),
		watches: d.proxy.Requests(faultproxy.All(of, faultproxy.Verb("watch"))),
	}
}

// These specs compare the two factories on real servers. More comparisons, with a fake server, are
// in package dynamicinformer.
var _ = Describe("The drop-in factory", onEachServer(func(at *apiServer) {
	for name, create := range map[string]newFactory{"client-go's": ofClientGo, "gvrkit's": ofGvrkit} {
		// start starts a factory with an informer on gvr, which runs until the spec ends.
		start := func(d *connection, gvr schema.GroupVersionResource, namespace, label string) (upstream.DynamicSharedInformerFactory, *events) {
			GinkgoHelper()
			factory := create(d.client, 0, namespace, func(o *metav1.ListOptions) { o.LabelSelector = "spec=" + label })
			got := listen(factory.ForResource(gvr).Informer())
			ctx, stop := context.WithCancel(context.Background()) //nolint:forbidigo // it outlives the running node
			DeferCleanup(func() { stop(); factory.Shutdown() })
			factory.Start(ctx.Done())
			return factory, got
		}

		It(name+" sends one watch request, which begins with the list", func(ctx SpecContext) {
			d, label := connect(at), unique("traffic")
			d.create(ctx, widgets, label, newWidget("listed", label))
			d.create(ctx, widgets, label, newWidget("not-selected", "other"))
			d.create(ctx, widgets, label+"-elsewhere", newWidget("listed", label))
			factory, got := start(d, widgets, label, label)
			Expect(factory.WaitForCacheSync(ctx.Done())).To(Equal(map[schema.GroupVersionResource]bool{widgets: true}))
			d.create(ctx, widgets, label, newWidget("watched", label))
			Eventually(got.all).Should(Equal([]string{"add " + label + "/listed", "add " + label + "/watched"}))
			Expect(d.traffic(widgets)).To(Equal(traffic{lists: 0, watches: 1}))
		})

		It(name+" delivers the deletions when its CRD is deleted, and repeats its requests", func(ctx SpecContext) {
			d, label := connect(at), unique("gone")
			gvr := schema.GroupVersionResource{Group: label + ".example.com", Version: "v1", Resource: "gizmos"}
			crd := manifest("testdata/gizmos.yaml")
			crd.SetName("gizmos." + gvr.Group)
			crd.Object["spec"].(map[string]any)["group"] = gvr.Group
			at.install(ctx, crd)
			for _, object := range []string{"a", "b"} {
				d.create(ctx, gvr, label, newObject(gvr.GroupVersion().WithKind("Gizmo"), object, 1, map[string]string{"spec": label}))
			}
			factory, got := start(d, gvr, "", label)
			Expect(factory.WaitForCacheSync(ctx.Done())).To(Equal(map[schema.GroupVersionResource]bool{gvr: true}))
			Expect(d.client.Resource(definitions).Delete(ctx, crd.GetName(), metav1.DeleteOptions{})).To(Succeed())
			Eventually(got.all).Should(ConsistOf(
				"add "+label+"/a", "add "+label+"/b", "delete "+label+"/a", "delete "+label+"/b"))
			before := d.traffic(gvr)
			Eventually(func() traffic { return d.traffic(gvr) }).ShouldNot(Equal(before))
		})
	}
}))
