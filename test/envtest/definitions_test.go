package envtest_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/test/envtest/fixture"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// The functions of this file are for specs that create types, and for running resolvers.

var (
	definitions      = fixture.Definitions
	newCRD           = fixture.NewCRD
	serve            = fixture.Serve
	newObject        = fixture.NewObject
	retryUntilServed = fixture.RetryUntilServed
)

// ownGroup returns a group that no other spec uses.
func ownGroup(prefix string) string { return unique(prefix) + ".example.com" }

// define creates crds, and deletes them at the end of the spec. It does not wait until they are
// served.
func (d *connection) define(ctx context.Context, crds ...*unstructured.Unstructured) {
	GinkgoHelper()
	for _, crd := range crds {
		_, err := d.client.Resource(definitions).Create(ctx, crd, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { d.undefine(ctx, crd.GetName()) }) //nolint:contextcheck // a cleanup has its own context
	}
}

// undefine deletes a CRD, if it exists, and waits until it is gone.
func (d *connection) undefine(ctx context.Context, name string) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	Expect(fixture.Undefine(ctx, d.client, name)).To(Succeed())
}

// conditions returns the conditions of a CRD.
func conditions(crd *unstructured.Unstructured) []any {
	list, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	return list
}

// patch changes fields of an object at cluster scope.
func (d *connection) patch(ctx context.Context, gvr schema.GroupVersionResource, name string, fields map[string]any, subresources ...string) *unstructured.Unstructured {
	GinkgoHelper()
	body, err := json.Marshal(fields)
	Expect(err).NotTo(HaveOccurred())
	patched, err := d.client.Resource(gvr).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{}, subresources...)
	Expect(err).NotTo(HaveOccurred())
	return patched
}

// live runs the connection's resolver until the spec ends. It returns when the resolver has read
// the discovery documents.
func (d *connection) live() *discovery.Resolver {
	GinkgoHelper()
	untilEnd(d.resolver.Run)
	Eventually(func() discovery.SourceState { return d.resolver.Status().Documents.State }).Should(Equal(discovery.SourceCurrent))
	return d.resolver
}

// quiet waits until the running resolver sends no more requests: it sends requests every 2 s while
// an answer is uncertain, and otherwise once a minute. The time begins again while a request is in flight and
// after a pause of this process, since the resolver's next request may be late then.
func (d *connection) quiet() {
	GinkgoHelper()
	var (
		seen          = -1
		since, before time.Time
	)
	Eventually(func() time.Duration {
		now, count := time.Now(), d.proxy.Requests(faultproxy.All())
		if count != seen || d.inFlight.Load() > 0 || now.Sub(before) > 200*time.Millisecond {
			seen, since = count, now
		}
		before = now
		return now.Sub(since)
	}, "60s").Should(BeNumerically(">", 2500*time.Millisecond))
}

// costs returns the number of requests during do.
func (d *connection) costs(do func()) int {
	before := d.proxy.Requests(faultproxy.All())
	do()
	return d.proxy.Requests(faultproxy.All()) - before
}

// groupEvents records the events of one group that a subscriber gets.
type groupEvents struct {
	mu   sync.Mutex
	past []discovery.Event
}

// groupEvents subscribes to the events of group, until the spec ends.
func (d *connection) groupEvents(group string) *groupEvents {
	return d.heldGroupEvents(group, nil)
}

// heldGroupEvents is groupEvents with a loop that is blocked in the iteration of its first event until held is closed. Nil
// does not block.
func (d *connection) heldGroupEvents(group string, held <-chan struct{}) *groupEvents {
	n := &groupEvents{}
	untilEnd(func(ctx context.Context) error {
		for event := range d.resolver.Subscribe(ctx) {
			if event.Resource.GVR.Group == group {
				n.mu.Lock()
				n.past = append(n.past, event)
				n.mu.Unlock()
				block(ctx, held)
			}
		}
		return nil
	})
	return n
}

// block waits until held is closed or ctx ends. It does not wait for nil.
func block(ctx context.Context, held <-chan struct{}) {
	if held == nil {
		return
	}
	select {
	case <-held:
	case <-ctx.Done():
	}
}

// all returns the events so far.
func (n *groupEvents) all() []discovery.Event {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]discovery.Event(nil), n.past...)
}

// addedAndRemoved returns the events so far without those of type Changed.
func (n *groupEvents) addedAndRemoved() []discovery.Event {
	return slices.DeleteFunc(n.all(), func(event discovery.Event) bool { return event.Type == discovery.Changed })
}

// texts returns the events so far as strings.
func (n *groupEvents) texts() []string {
	var lines []string
	for _, event := range n.all() {
		lines = append(lines, event.String())
	}
	return lines
}
