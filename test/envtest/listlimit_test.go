package envtest_test

import (
	"bytes"
	"fmt"
	"net/http"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// concurrentLists counts the lists and watch-lists that pass a proxy. They wait until proceed is closed, and then each is
// delayed.
type concurrentLists struct {
	proceed chan struct{}

	mu        sync.Mutex
	now, most int
}

func (c *concurrentLists) begin() (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now++
	c.most = max(c.most, c.now)
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now--
	})
}

func (c *concurrentLists) highest() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

// fault is the fault of a proxy for requests that are lists or watches.
func (c *concurrentLists) fault(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if faultproxy.ParseRequest(r).Verb == "watch" && r.URL.Query().Get("sendInitialEvents") != "true" {
			next.ServeHTTP(w, r)
			return
		}
		end := c.begin()
		defer end()
		select {
		case <-c.proceed:
		case <-r.Context().Done():
			return
		}
		select {
		case <-time.After(300 * time.Millisecond):
		case <-r.Context().Done():
			return
		}
		if faultproxy.ParseRequest(r).Verb == "list" {
			end() // before its client has the response and may send the next one
		}
		r.Header.Del("Accept-Encoding") // initialEvents reads the response
		next.ServeHTTP(&initialEvents{ResponseWriter: w, end: end}, r)
	})
}

// initialEvents calls end when the initial events of a watch-list are complete.
type initialEvents struct {
	http.ResponseWriter
	end  func()
	last []byte // the end of the previous part
}

func (w *initialEvents) Write(part []byte) (int, error) {
	if w.last = append(w.last, part...); bytes.Contains(w.last, []byte("initial-events-end")) {
		w.end()
	}
	w.last = w.last[max(0, len(w.last)-100):]
	return w.ResponseWriter.Write(part)
}

func (w *initialEvents) Flush() { w.ResponseWriter.(http.Flusher).Flush() }

var _ = Describe("A factory with a limit for first lists", onEachServer(func(at *apiServer) {
	DescribeTable("sends not more lists at a time", func(ctx SpecContext, want int, opts ...dynamicinformer.Option) {
		const types, objects = 8, 25
		group := ownGroup("limit")
		var crds []*unstructured.Unstructured
		for i := range types {
			crds = append(crds, newCRD(group, fmt.Sprintf("Ship%d", i), "v1"))
		}
		d := connect(at)
		d.defineMany(ctx, group, crds)
		Eventually(func() (int, error) {
			found, err := d.resolver.ResolveAll(ctx, discovery.Selector{Groups: []string{group}})
			return len(found), err
		}, "1m", "250ms").Should(Equal(types))
		var gvrs []schema.GroupVersionResource
		for i := range types {
			gvr := schema.GroupVersionResource{Group: group, Version: "v1", Resource: fmt.Sprintf("ship%ds", i)}
			gvrs = append(gvrs, gvr)
			Eventually(func() error { // a new type refuses requests for a moment
				_, err := d.client.Resource(gvr).List(ctx, metav1.ListOptions{})
				return err
			}, "30s", "250ms").Should(Succeed())
		}
		for i := range objects {
			d.create(ctx, gvrs[0], "default", newObject(gvrs[0].GroupVersion().WithKind("Ship0"), fmt.Sprintf("s%d", i), 1, nil))
		}

		lists := &concurrentLists{proceed: make(chan struct{})}
		d.proxy.Inject(faultproxy.All(faultproxy.Verb("list", "watch"), faultproxy.Group(group)), lists.fault)
		f := d.factory(append(opts, dynamicinformer.WithPageSize(10))...)
		for _, gvr := range gvrs {
			f.ForResource(gvr)
		}
		f.Start(ctx)
		Eventually(func() (reasons []status.Reason) {
			for _, i := range f.Status() {
				reasons = append(reasons, i.Reason)
			}
			return reasons
		}).Should(ContainElement(status.ReasonQueued))
		Eventually(lists.highest).Should(Equal(want))
		close(lists.proceed)
		Expect(f.WaitForSync(ctx)).To(Succeed())
		Expect(lists.highest()).To(Equal(want))
		Expect(f.Status()[0].Objects).To(Equal(objects))
		Expect(f.Shutdown(ctx)).To(Succeed())
	},
		Entry("with watch-lists", NodeTimeout(2*time.Minute), 3, dynamicinformer.WithListConcurrency(3)),
		Entry("with lists", NodeTimeout(2*time.Minute), 3, dynamicinformer.WithListConcurrency(3), dynamicinformer.WithWatchListPolicy(dynamicinformer.WatchListNever)),
		Entry("with a budget", NodeTimeout(2*time.Minute), 1, dynamicinformer.WithListBudget(1)),
	)
}))
