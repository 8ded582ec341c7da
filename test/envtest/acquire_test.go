package envtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// annotate returns a transform that sets an annotation.
func annotate(value string) func(obj any) (any, error) {
	return func(obj any) (any, error) {
		obj.(metav1.Object).SetAnnotations(map[string]string{"annotated": value})
		return obj, nil
	}
}

// hold returns a fault whose requests wait until resume is closed.
func hold(resume <-chan struct{}) faultproxy.Fault {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-resume:
				next.ServeHTTP(w, r)
			case <-r.Context().Done():
				panic(http.ErrAbortHandler)
			}
		})
	}
}

var _ = Describe("Two leases on one type", onEachServer(func(at *apiServer) {
	for option, of := range map[string]struct {
		have, want func(a, b string) dynamicinformer.LeaseOption
		// texts are those of the values in the error.
		texts func(a, b string) (have, want string)
		// keys are those of the caches, and note is the annotation of their objects.
		haveKeys, wantKeys func(a, b string) []string
		haveNote, wantNote string
	}{
		"two selectors": {
			have: func(a, _ string) dynamicinformer.LeaseOption { return dynamicinformer.WithLabelSelector("spec=" + a) },
			want: func(_, b string) dynamicinformer.LeaseOption { return dynamicinformer.WithLabelSelector("spec=" + b) },
			texts: func(a, b string) (have, want string) {
				return fmt.Sprintf("%q", "spec="+a), fmt.Sprintf("%q", "spec="+b)
			},
			haveKeys: func(a, _ string) []string { return []string{a} },
			wantKeys: func(_, b string) []string { return []string{b} },
		},
		"two transforms": {
			have: func(_, _ string) dynamicinformer.LeaseOption { return dynamicinformer.WithTransform(annotate("first")) },
			want: func(_, _ string) dynamicinformer.LeaseOption {
				return dynamicinformer.WithTransform(annotate("second"))
			},
			texts:    func(_, _ string) (have, want string) { return "a function", "a function" },
			haveNote: "first", wantNote: "second",
		},
	} {
		It("conflict with an error that names both values, or are separate: "+option, func(ctx SpecContext) {
			d, a, b := connect(at), unique("a"), unique("b")
			d.create(ctx, blocks, "", newBlock(a, a))
			d.create(ctx, blocks, "", newBlock(b, b))
			f := d.startedFactory()
			first, err := f.Acquire(ctx, blocks, of.have(a, b))
			Expect(err).NotTo(HaveOccurred())
			Expect(first.WaitForSync(ctx)).To(Succeed())

			_, err = f.Acquire(ctx, blocks, of.want(a, b))
			have, want := of.texts(a, b)
			Expect(err).To(MatchError(dynamicinformer.ErrConflict))
			conflict, is := errors.AsType[*dynamicinformer.ConflictError](err)
			Expect(is).To(BeTrue())
			Expect([]string{conflict.Have, conflict.Want}).To(Equal([]string{have, want}))
			Expect(err.Error()).To(SatisfyAll(ContainSubstring("is "+have), ContainSubstring("not "+want), ContainSubstring("WithSeparateInformer")))
			Expect(f.Status()).To(HaveLen(1))

			second, err := f.Acquire(ctx, blocks, of.want(a, b), dynamicinformer.WithSeparateInformer())
			Expect(err).NotTo(HaveOccurred())
			Expect(second.WaitForSync(ctx)).To(Succeed())
			Expect(f.Status()).To(HaveLen(2))
			for _, each := range []struct {
				lease *dynamicinformer.Lease
				keys  func(a, b string) []string
				note  string
			}{{first, of.haveKeys, of.haveNote}, {second, of.wantKeys, of.wantNote}} {
				if each.keys != nil {
					Expect(each.lease.Informer().GetStore().ListKeys()).To(Equal(each.keys(a, b)))
					continue
				}
				Eventually(keysIn(each.lease)).Should(ContainElements(a, b))
				for _, obj := range each.lease.Informer().GetStore().List() {
					Expect(obj.(metav1.Object).GetAnnotations()).To(HaveKeyWithValue("annotated", each.note))
				}
			}
		})
	}
}))

var _ = Describe("Callers that acquire a type while its discovery hangs,", onEachServer(func(at *apiServer) {
	for when, started := range map[string]bool{"before the start of the factory": false, "after it": true} {
		It("are not affected when the context of the first one ends, and its next attempt succeeds, "+when, func(ctx SpecContext) {
			d, label, resume := connect(at), unique("hang"), make(chan struct{})
			d.create(ctx, blocks, "", newBlock(label, label))
			f := d.factory()
			if started {
				f.Start(context.Background()) //nolint:forbidigo // the factory ends by Shutdown
			}
			d.proxy.Inject(faultproxy.AnyDiscovery(), hold(resume))
			acquire := func(ctx context.Context) <-chan acquired {
				result := make(chan acquired, 1)
				go func() {
					l, err := f.Acquire(ctx, blocks, dynamicinformer.WithLabelSelector("spec="+label))
					result <- acquired{l, err}
				}()
				return result
			}
			firstCtx, cancel := context.WithCancel(ctx)
			defer cancel()
			first := acquire(firstCtx)
			Eventually(func() int { return d.proxy.Requests(faultproxy.AnyDiscovery()) }).Should(BeNumerically(">", 0))
			others := []<-chan acquired{acquire(ctx), acquire(ctx)}
			Consistently(others[0], "200ms").ShouldNot(Receive())
			cancel()
			var failed acquired
			Eventually(first).Should(Receive(&failed))
			Expect(failed.err).To(MatchError(context.Canceled))
			Expect(failed.err).NotTo(MatchError(discovery.ErrNotServed))
			others = append(others, acquire(ctx)) // the next attempt, before discovery responds
			for _, other := range others {
				Consistently(other, "100ms").ShouldNot(Receive())
			}
			close(resume)
			var leases []*dynamicinformer.Lease
			for _, other := range append(others, acquire(ctx)) {
				var result acquired
				Eventually(other).Should(Receive(&result))
				Expect(result.err).NotTo(HaveOccurred())
				leases = append(leases, result.lease)
			}
			f.Start(context.Background()) //nolint:forbidigo // the factory ends by Shutdown
			for _, lease := range leases {
				Expect(lease.WaitForSync(ctx)).To(Succeed())
				Expect(keysIn(lease)()).To(Equal([]string{label}))
			}
			Expect(f.Status()).To(HaveLen(1))
			Expect(leases[0].Status().Leases).To(Equal(len(leases)), "the first call has left no lease")
			Expect(d.proxy.OpenWatches(faultproxy.Resource(blocks.Group, blocks.Resource))).To(Equal(1))
		})
	}
}))

// acquired is the result of Acquire.
type acquired struct {
	lease *dynamicinformer.Lease
	err   error
}
