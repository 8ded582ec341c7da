package envtest_test

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/lister"
	"github.com/gvrkit/gvrkit/status"
)

var _ = Describe("The cache of a lease", onEachServer(func(at *apiServer) {
	It("has own writes after AtLeast", func(ctx SpecContext) {
		f := leaseType(ctx, at, 3)
		f.synced(ctx)
		namespace := f.namespace(ctx)
		ships := f.client.Resource(f.gvr).Namespace(namespace)
		const name = "ship-0000"
		for size := range int64(50) {
			written, err := ships.Patch(ctx, name, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"size":%d}}`, 1000+size), metav1.PatchOptions{})
			Expect(err).NotTo(HaveOccurred())
			Expect(f.lease.AtLeast(ctx, written.GetResourceVersion())).To(Succeed())
			cached, err := f.lease.Unstructured().Namespace(namespace).Get(name)
			Expect(err).NotTo(HaveOccurred())
			Expect(cached.Object["spec"]).To(Equal(map[string]any{"size": 1000 + size}), "write %d", size)
		}

		Expect(ships.Delete(ctx, name, metav1.DeleteOptions{})).To(Succeed())
		rest, err := ships.List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(f.lease.AtLeast(ctx, rest.GetResourceVersion())).To(Succeed())
		Expect(f.lease.Informer().GetStore().ListKeys()).To(HaveLen(2))

		never, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		err = f.lease.AtLeast(never, "999999999999")
		Expect(err).To(MatchError(status.ErrVersionLost))
		Expect(never.Err()).NotTo(HaveOccurred(), "a version that the server does not have is an error at once")
	})

	It("is queried by fields, sorted and in pages", func(ctx SpecContext) {
		f := leaseType(ctx, at, 0)
		f.synced(ctx)
		namespace := f.namespace(ctx)
		for i := range 30 {
			obj := newObject(f.gvr.GroupVersion().WithKind("Ship"), fmt.Sprintf("s%02d", i), i%7, map[string]string{"odd": fmt.Sprint(i % 2)})
			f.create(ctx, f.gvr, namespace, obj)
		}
		last, err := f.client.Resource(f.gvr).List(ctx, metav1.ListOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(f.lease.AtLeast(ctx, last.GetResourceVersion())).To(Succeed())
		reader := f.lease.Unstructured()
		result, err := reader.Query(lister.Query{
			Namespace: namespace, Where: "spec.size>3,metadata.labels.odd=1", SortBy: "spec.size", Descending: true, Offset: 2, Limit: 3,
		})
		Expect(err).NotTo(HaveOccurred())
		var want, got []string // s13 has size 6, and so on
		for size := 6; size > 3; size-- {
			for i := range 30 {
				if i%7 == size && i%2 == 1 {
					want = append(want, fmt.Sprintf("s%02d", i))
				}
			}
		}
		for _, obj := range result.Items {
			got = append(got, obj.GetName())
		}
		Expect(result.Total).To(Equal(len(want)))
		Expect(got).To(Equal(want[2:5]))
	})
}))
