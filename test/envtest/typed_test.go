package envtest_test

import (
	"fmt"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/listers"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// ship is the Go type of a ship.
type ship struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		Size int64 `json:"size"`
	} `json:"spec"`
}

func (s *ship) DeepCopyObject() runtime.Object {
	c := *s
	s.DeepCopyInto(&c.ObjectMeta)
	return &c
}

var _ = Describe("A typed lease", onEachServer(func(at *apiServer) {
	It("serves the objects that fit the type, and names those that do not", func(ctx SpecContext) {
		const good, bad = 97, 3
		whole := leaseAbsentType(ctx, at)
		whole.define(ctx, whole.crd)
		whole.created++
		whole.createShips(ctx, good)
		for i := range bad {
			object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": "large"}}}
			object.SetGroupVersionKind(whole.gvr.GroupVersion().WithKind("Ship"))
			object.SetName(fmt.Sprintf("bad-%d", i))
			whole.create(ctx, whole.gvr, whole.namespace(ctx), object)
		}
		d := connect(at)
		f, err := dynamicinformer.NewForConfig(d.config)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(f.Shutdown(ctx)).To(Succeed()) })
		f.Start(ctx)
		for _, policy := range []dynamicinformer.WatchListPolicy{dynamicinformer.WatchListAuto, dynamicinformer.WatchListNever} {
			l, err := dynamicinformer.AcquireTyped[*ship](ctx, f, whole.gvr, dynamicinformer.WithWatchListPolicy(policy), dynamicinformer.WithSeparateInformer())
			Expect(err).NotTo(HaveOccurred())
			Expect(l.WaitForSync(ctx)).To(Succeed())
			Expect(l.Status()).To(SatisfyAll(HaveField("State", status.StateDegraded), HaveField("Reason", status.ReasonDecodeFailed),
				HaveField("FailedObjects", uint64(bad)), HaveField("LastFailed", HavePrefix("harbor/bad-")), HaveField("Err", MatchError(ContainSubstring("spec.size")))))
			Expect(leftOut(l.Status())).To(Equal([]string{"harbor/bad-0", "harbor/bad-1", "harbor/bad-2"}))
			for _, o := range l.Status().Quarantine.Objects {
				object, err := whole.client.Resource(whole.gvr).Namespace("harbor").Get(ctx, strings.TrimPrefix(o.Key, "harbor/"), metav1.GetOptions{})
				Expect(err).NotTo(HaveOccurred())
				Expect(o).To(SatisfyAll(HaveField("UID", object.GetUID()), HaveField("Reason", status.ReasonDecodeFailed), HaveField("Err", MatchError(ContainSubstring("spec.size")))))
			}
			Expect(f.Explain(whole.gvr).String()).To(ContainSubstring("harbor/bad-2 has been left out"))
			Expect(l.Lister().List(labels.Everything())).To(HaveLen(good))
			one, err := listers.NewNamespaced(l.Lister(), "harbor").Get("ship-0042")
			Expect(err).NotTo(HaveOccurred())
			Expect(one.Spec.Size).To(Equal(int64(42)))
			Expect(one.Kind).To(Equal("Ship"))
			l.Release()
		}
		l, err := dynamicinformer.AcquireTyped[*ship](ctx, f, whole.gvr)
		Expect(err).NotTo(HaveOccurred())
		Expect(l.WaitForSync(ctx)).To(Succeed())
		_, err = whole.client.Resource(whole.gvr).Namespace("harbor").Patch(ctx, "bad-1", types.MergePatchType, []byte(`{"spec":{"size":1152921504606846977}}`), metav1.PatchOptions{})
		Expect(err).NotTo(HaveOccurred())
		Eventually(func() (int64, error) {
			one, err := listers.NewNamespaced(l.Lister(), "harbor").Get("bad-1")
			if err != nil {
				return 0, err
			}
			return one.Spec.Size, nil
		}).Should(Equal(int64(1<<60 + 1)))
		Eventually(func() []string { return leftOut(l.Status()) }).Should(Equal([]string{"harbor/bad-0", "harbor/bad-2"}))
		var deletions atomic.Int64
		_, err = l.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { deletions.Add(1) }})
		Expect(err).NotTo(HaveOccurred())
		Expect(whole.client.Resource(whole.gvr).Namespace("harbor").Delete(ctx, "bad-0", metav1.DeleteOptions{})).To(Succeed())
		Eventually(func() []string { return leftOut(l.Status()) }).Should(Equal([]string{"harbor/bad-2"}))
		whole.undefine(ctx, whole.crd.GetName())
		Eventually(func() ([]*ship, error) { return l.Lister().List(labels.Everything()) }, "60s").Should(BeEmpty())
		Eventually(l.Status).Should(SatisfyAll(HaveField("State", status.StateNotServed), HaveField("Quarantine", status.Quarantine{})))
		Eventually(deletions.Load).Should(BeNumerically(">=", good+1))
		l.Release()
		Eventually(l.Done()).Should(BeClosed())
		Expect(deletions.Load()).To(Equal(int64(good+1)), "bad-1 was good at last; bad-0 and bad-2 never were")
	})
}))

var _ = Describe("A typed lease with WithStrictDecoding", onEachServer(func(at *apiServer) {
	It("fails as in client-go while one object can't be decoded", func(ctx SpecContext) {
		whole := leaseType(ctx, at, 2)
		f, err := dynamicinformer.NewForConfig(connect(at).config)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(f.Shutdown(ctx)).To(Succeed()) })
		f.Start(ctx)
		l, err := dynamicinformer.AcquireTyped[*ship](ctx, f, whole.gvr, dynamicinformer.WithStrictDecoding())
		Expect(err).NotTo(HaveOccurred())
		Expect(l.WaitForSync(ctx)).To(Succeed())
		ships := whole.client.Resource(whole.gvr).Namespace("harbor")
		bad := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": "large"}}}
		bad.SetGroupVersionKind(whole.gvr.GroupVersion().WithKind("Ship"))
		bad.SetName("bad")
		_, err = ships.Create(ctx, bad, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		failures := func(of *dynamicinformer.TypedLease[*ship]) func() uint64 {
			return func() uint64 { return of.Status().Traffic.Failures[status.ReasonDecodeFailed] }
		}
		Eventually(failures(l)).Should(BeNumerically(">", 0), "a watch")
		later, err := dynamicinformer.AcquireTyped[*ship](ctx, f, whole.gvr, dynamicinformer.WithStrictDecoding(), dynamicinformer.WithSeparateInformer())
		Expect(err).NotTo(HaveOccurred())
		Eventually(failures(later)).Should(BeNumerically(">", 0), "a list")
		Eventually(later.Status).Should(SatisfyAll(HaveField("State", status.StateDegraded), HaveField("Listed", false), HaveField("FailedObjects", uint64(0))))

		Expect(ships.Delete(ctx, "bad", metav1.DeleteOptions{})).To(Succeed())
		for _, each := range []*dynamicinformer.TypedLease[*ship]{l, later} {
			Eventually(func() status.State { each.Retry(); return each.Status().State }, "60s", "250ms").Should(Equal(status.StateSynced))
			Expect(each.Lister().List(labels.Everything())).To(HaveLen(2))
		}
	})
}))

// leftOut returns the keys of the objects that are left out.
func leftOut(i status.Informer) (keys []string) {
	for _, o := range i.Quarantine.Objects {
		keys = append(keys, o.Key)
	}
	return keys
}

var _ = Describe("A typed lease on a built-in type", func() {
	It("has its kind, and its options reach list and watch", func(ctx SpecContext) {
		configMaps := corev1.SchemeGroupVersion.WithResource("configmaps")
		d, label := connect(kubeAPIServer), unique("typed")
		newConfigMap := func(name, label string) *unstructured.Unstructured {
			object := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": name}}}
			object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
			object.SetName(name)
			object.SetLabels(map[string]string{"spec": label})
			return object
		}
		d.create(ctx, configMaps, label, newConfigMap("listed", label))
		d.create(ctx, configMaps, label, newConfigMap("other", "other"))
		f, err := dynamicinformer.NewForConfig(d.config)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(f.Shutdown(ctx)).To(Succeed()) })
		f.Start(ctx)
		for _, policy := range []dynamicinformer.WatchListPolicy{dynamicinformer.WatchListAuto, dynamicinformer.WatchListNever} {
			l, err := dynamicinformer.AcquireTyped[*corev1.ConfigMap](ctx, f, configMaps, dynamicinformer.WithNamespace(label), dynamicinformer.WithSeparateInformer(),
				dynamicinformer.WithLabelSelector("spec="+label), dynamicinformer.WithWatchListPolicy(policy))
			Expect(err).NotTo(HaveOccurred())
			Expect(l.WaitForSync(ctx)).To(Succeed())
			Eventually(func() ([]string, error) {
				all, err := l.Lister().List(labels.Everything())
				var found []string
				for _, each := range all {
					found = append(found, each.APIVersion+" "+each.Kind+" "+each.Data["a"])
				}
				return found, err
			}).Should(ConsistOf("v1 ConfigMap listed"))
			d.create(ctx, configMaps, label, newConfigMap(fmt.Sprintf("other-%d", policy), "other"))
			watched := d.create(ctx, configMaps, label, newConfigMap(fmt.Sprintf("watched-%d", policy), label))
			Eventually(func() ([]string, error) {
				all, err := l.Lister().List(labels.Everything())
				var found []string
				for _, each := range all {
					found = append(found, each.Kind+" "+each.Name)
				}
				return found, err
			}).Should(ConsistOf("ConfigMap listed", "ConfigMap "+watched.GetName()))
			Expect(d.proxy.OpenWatches(faultproxy.Resource("", "configmaps"))).To(Equal(1))
			l.Release()
			Eventually(func() int { return d.proxy.OpenWatches(faultproxy.Resource("", "configmaps")) }).Should(BeZero())
			Expect(d.client.Resource(configMaps).Namespace(label).Delete(ctx, watched.GetName(), metav1.DeleteOptions{})).To(Succeed())
		}
	})
})
