package envtest_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

var (
	blocks  = schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"}
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
)

// connection is the connection of one spec to the server, through a proxy that counts requests. It
// is closed at the end of the spec.
type connection struct {
	at       *apiServer
	proxy    *faultproxy.Proxy
	config   *rest.Config
	http     *http.Client
	client   dynamic.Interface
	resolver *discovery.Resolver
	inFlight *atomic.Int64 // the requests that the server has not begun to answer
}

func connect(at *apiServer) *connection { GinkgoHelper(); return connectAs(at, at.config) }

// connectAs is connect with the credentials of as.
func connectAs(at *apiServer, as *rest.Config) *connection {
	GinkgoHelper()
	behind, err := rest.HTTPClientFor(as)
	Expect(err).NotTo(HaveOccurred())
	inFlight := &atomic.Int64{}
	proxy, err := faultproxy.Start(as.Host, roundTripper(func(req *http.Request) (*http.Response, error) {
		inFlight.Add(1)
		defer inFlight.Add(-1)
		return behind.Transport.RoundTrip(req)
	}))
	Expect(err).NotTo(HaveOccurred())
	config := &rest.Config{Host: proxy.URL(), QPS: -1}
	front, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		front.CloseIdleConnections()
		Expect(proxy.Close()).To(Succeed())
		behind.CloseIdleConnections()
	})
	client, err := dynamicclient.NewForHTTPClient(config, front)
	Expect(err).NotTo(HaveOccurred())
	resolver, err := discovery.NewForConfigAndClient(config, front)
	Expect(err).NotTo(HaveOccurred())
	return &connection{at: at, proxy: proxy, config: config, http: front, client: client, resolver: resolver, inFlight: inFlight}
}

// factory returns a factory with discovery that is shut down at the end of the spec.
func (d *connection) factory(opts ...dynamicinformer.Option) *dynamicinformer.Factory {
	GinkgoHelper()
	f, err := dynamicinformer.New(d.client, append([]dynamicinformer.Option{dynamicinformer.WithDiscovery(d.resolver)}, opts...)...)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(f.Shutdown(ctx)).To(Succeed()) }, NodeTimeout(time.Minute))
	return f
}

// startedFactory returns a started factory with discovery that is shut down at the end of the spec.
func (d *connection) startedFactory(opts ...dynamicinformer.Option) *dynamicinformer.Factory {
	GinkgoHelper()
	f := d.factory(opts...)
	f.Start(context.Background()) //nolint:forbidigo // the factory ends by Shutdown
	return f
}

// untilEnd runs a function until the spec ends or stop is called. The function must return nil.
func untilEnd(run func(ctx context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // it outlives the running node
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		Eventually(ended).Should(Receive(BeNil()))
	})
	DeferCleanup(stop)
	return stop
}

var serial atomic.Int64

// unique returns a name that no other spec uses.
func unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, serial.Add(1)) }

// only limits a factory to the objects with the label of a spec.
func only(label string) dynamicinformer.Option {
	return dynamicinformer.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "spec=" + label })
}

func newBlock(name, label string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"cidr": "192.0.2.0/30", "affinity": "host:node-a", "strictAffinity": false,
		"allocations": []any{nil, int64(0), nil, nil}, "unallocated": []any{int64(0), int64(2), int64(3)},
		"attributes": []any{map[string]any{"handle_id": "h"}}, "sequenceNumber": int64(1) << 60,
	}}}
	obj.SetAPIVersion(blocks.GroupVersion().String())
	obj.SetKind("IPAMBlock")
	obj.SetName(name)
	obj.SetLabels(map[string]string{"spec": label})
	return obj
}

func newWidget(name, label string) *unstructured.Unstructured {
	return newObject(widgets.GroupVersion().WithKind("Widget"), name, 1, map[string]string{"spec": label})
}

// create creates obj, and deletes it at the end of the spec.
func (d *connection) create(ctx context.Context, gvr schema.GroupVersionResource, namespace string, obj *unstructured.Unstructured) *unstructured.Unstructured {
	GinkgoHelper()
	d.at.ensureNamespace(ctx, d.client, namespace)
	client := d.client.Resource(gvr).Namespace(namespace)
	created, err := client.Create(ctx, obj, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { //nolint:contextcheck // a cleanup has its own context
		_ = client.Delete(ctx, obj.GetName(), metav1.DeleteOptions{}) // the spec may have deleted it
	})
	return created
}

// events is a handler that records events, as "add ns/name".
type events struct {
	mu   sync.Mutex
	past []string
}

func (e *events) record(what string, obj any) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		key = err.Error()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.past = append(e.past, what+" "+key)
}

func (e *events) OnAdd(obj any, _ bool) { e.record("add", obj) }
func (e *events) OnUpdate(_, obj any)   { e.record("update", obj) }
func (e *events) OnDelete(obj any)      { e.record("delete", obj) }
func (e *events) OnMoved(obj any)       { e.record("move", obj) }

// all returns the events so far.
func (e *events) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.past...)
}

func listen(informer cache.SharedIndexInformer) *events {
	GinkgoHelper()
	e := &events{}
	_, err := informer.AddEventHandler(e)
	Expect(err).NotTo(HaveOccurred())
	return e
}
