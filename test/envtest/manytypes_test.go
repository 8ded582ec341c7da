package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/test/envtest/fixture"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// defineMany is define for many CRDs, which are created and deleted in parallel.
func (d *connection) defineMany(ctx context.Context, label string, crds []*unstructured.Unstructured) {
	GinkgoHelper()
	client := d.client.Resource(definitions)
	of := metav1.ListOptions{LabelSelector: "spec=" + label}
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // a cleanup has its own context
		// A server ends a request after a minute.
		Eventually(func() error { return client.DeleteCollection(ctx, metav1.DeleteOptions{}, of) }, "5m").Should(Succeed())
		Eventually(func() (int, error) {
			left, err := client.List(ctx, of)
			if err != nil {
				return 0, err
			}
			for i := range left.Items {
				fixture.ResumeDeletion(ctx, d.client, &left.Items[i])
			}
			return len(left.Items), nil
		}, "3m", "500ms").Should(BeZero())
	})
	var (
		wg   sync.WaitGroup
		todo = make(chan *unstructured.Unstructured)
		errs = make(chan error, len(crds))
	)
	for range 8 {
		wg.Go(func() {
			for crd := range todo {
				_, err := client.Create(ctx, crd, metav1.CreateOptions{})
				errs <- err
			}
		})
	}
	for _, crd := range crds {
		crd.SetLabels(map[string]string{"spec": label})
		todo <- crd
	}
	close(todo)
	wg.Wait()
	close(errs)
	for err := range errs {
		Expect(err).NotTo(HaveOccurred())
	}
}

var _ = Describe("A group of many types", onEachServer(func(at *apiServer) {
	It("is known after two requests for documents, and needs no more requests", func(ctx SpecContext) {
		types := 300
		if at.whole {
			types = 60 // each takes a second
		}
		group := ownGroup("crowd")
		var crds []*unstructured.Unstructured
		for i := range types {
			crds = append(crds, newCRD(group, fmt.Sprintf("Ship%03d", i), "v1"))
		}
		admin, began := connect(at), time.Now()
		admin.defineMany(ctx, group, crds)
		Eventually(func() (int, error) { // until the documents have them all
			found, err := admin.resolver.ResolveAll(ctx, discovery.Selector{Groups: []string{group}})
			return len(found), err
		}, "5m", "250ms").Should(Equal(types))
		created := time.Now()
		AddReportEntry("types created", created.Sub(began).String())
		// Documents may not have new CRDs yet, so a resolver requests them again for 10 s.
		Eventually(func() time.Duration { return time.Since(created) }, "20s").Should(BeNumerically(">", 11*time.Second))

		d := connect(at)
		r := d.live()
		Eventually(func() discovery.SourceState { return r.Status().CRDs.State }).Should(Equal(discovery.SourceCurrent))
		d.quiet()
		var failed []error
		Expect(d.costs(func() {
			for i := range types {
				gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: fmt.Sprintf("ship%03ds", i)}
				_, err := r.Validate(ctx, gvr)
				_, short := r.Resolve(ctx, gvr.Resource)
				failed = append(failed, err, short)
			}
		})).To(BeZero())
		Expect(errors.Join(failed...)).NotTo(HaveOccurred())
		Expect(r.ResolveAll(ctx, discovery.Selector{Groups: []string{group}})).To(HaveLen(types))
		d.quiet()
		Expect(d.proxy.Requests(faultproxy.AnyDiscovery())).To(Equal(2))
	})
}))
