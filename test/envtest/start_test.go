package envtest_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/test/envtest/embedded"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// readBytes counts the bytes that clients of a configuration read from responses other than those
// about objects of a group, after decompression.
type readBytes struct {
	group string
	count atomic.Int64

	mu             sync.Mutex
	first, objects time.Time // of the first request, and of the first one for objects
}

func (b *readBytes) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		ofObjects := strings.HasPrefix(req.URL.Path, "/apis/"+b.group+"/v1/")
		b.note(ofObjects)
		res, err := next.RoundTrip(req)
		if err == nil && !ofObjects {
			res.Body = countedBody{res.Body, &b.count}
		}
		return res, err
	})
}

func (b *readBytes) note(ofObjects bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first.IsZero() {
		b.first = time.Now()
	}
	if ofObjects && b.objects.IsZero() {
		b.objects = time.Now()
	}
}

// waited returns the time from the first request to the first one for objects.
func (b *readBytes) waited() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.objects.Sub(b.first)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

type countedBody struct {
	io.ReadCloser
	count *atomic.Int64
}

func (b countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.count.Add(int64(n))
	return n, err
}

// A program that lists CRDs would read 17 MB of this server.
var _ = Describe("A program that starts on a server with 200 CRDs of 85 KB", Ordered, func() {
	const types = 200
	var (
		at    *apiServer
		group = ownGroup("big")
		gvrs  []schema.GroupVersionResource
	)
	BeforeAll(func(ctx SpecContext) {
		server, err := embedded.Start(ctx)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Stop)
		at = &apiServer{name: "an embedded server", config: server.Config()}
		long := strings.Repeat("A schema with long descriptions is not rare. ", 85_000/45)
		var crds []*unstructured.Unstructured
		for i := range types {
			crd := newCRD(group, fmt.Sprintf("Ship%03d", i), "v1")
			versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
			Expect(err).NotTo(HaveOccurred())
			Expect(unstructured.SetNestedField(versions[0].(map[string]any), long, "schema", "openAPIV3Schema", "description")).To(Succeed())
			Expect(unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")).To(Succeed())
			crds = append(crds, crd)
			gvrs = append(gvrs, schema.GroupVersionResource{Group: group, Version: "v1", Resource: fmt.Sprintf("ship%03ds", i)})
		}
		admin := connect(at)
		var wg sync.WaitGroup
		errs := make(chan error, types)
		for batch := range 8 {
			wg.Go(func() {
				for i := batch; i < types; i += 8 {
					_, err := admin.client.Resource(definitions).Create(ctx, crds[i], metav1.CreateOptions{})
					errs <- err
				}
			})
		}
		wg.Wait()
		close(errs)
		for err := range errs {
			Expect(err).NotTo(HaveOccurred())
		}
		Eventually(func() (int, error) { // until the documents have them all
			found, err := admin.resolver.ResolveAll(ctx, discovery.Selector{Groups: []string{group}})
			return len(found), err
		}, "1m", "250ms").Should(Equal(types))
		// Of CRDs that were written a moment ago, documents may be behind: they are asked for again.
		made := time.Now()
		Eventually(func() time.Duration { return time.Since(made) }, "20s").Should(BeNumerically(">", 11*time.Second))
	}, NodeTimeout(5*time.Minute))

	DescribeTable("sends few requests before its first list, and reads no schemas", func(ctx SpecContext, wanted int, acquire bool) {
		d := connect(at)
		read := &readBytes{group: group}
		cfg := rest.CopyConfig(d.config)
		cfg.Wrap(read.wrap)
		f, err := dynamicinformer.NewForConfig(cfg)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(f.Shutdown(ctx)).To(Succeed()) }, NodeTimeout(time.Minute))
		if acquire {
			f.Start(context.Background()) //nolint:forbidigo // it ends with the factory's shutdown
		}
		for _, gvr := range gvrs[:wanted] {
			if !acquire {
				f.ForResource(gvr)
				continue
			}
			lease, err := f.Acquire(ctx, gvr)
			Expect(err).NotTo(HaveOccurred())
			if gvr == gvrs[0] { // its list starts beside the next Acquire, which may send requests
				Expect(lease.WaitForSync(ctx)).To(Succeed())
			}
		}
		f.Start(context.Background()) //nolint:forbidigo // the same; it may be started already
		Expect(f.WaitForSync(ctx)).To(Succeed())
		d.quiet()
		Expect(f.Shutdown(ctx)).To(Succeed())

		var before []string
		for _, request := range d.proxy.Past(faultproxy.All()) {
			if request.Group == group && request.Resource != "" {
				break
			}
			if request.Verb != "watch" { // of CRDs: it is opened later, and may arrive earlier
				before = append(before, request.Path+"?"+request.Query)
			}
		}
		AddReportEntry("start", fmt.Sprintf("%d requests before the first list in %v, %d bytes: %q", len(before), read.waited(), read.count.Load(), before))
		most := 4
		if read.waited() > time.Second { // on a busy machine: a question that has waited for two seconds sends a request of its own
			most++
		}
		Expect(len(before)).To(BeNumerically("<=", most))
		Expect(read.count.Load()).To(BeNumerically("<=", 400_000))
	},
		Entry("of one type", NodeTimeout(2*time.Minute), 1, false),
		Entry("of all types", NodeTimeout(2*time.Minute), types, false),
		Entry("of one type, which is acquired", NodeTimeout(2*time.Minute), 1, true),
		Entry("of all types, which are acquired one after another", NodeTimeout(2*time.Minute), types, true),
	)
})
