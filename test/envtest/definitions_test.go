package envtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/test/faultproxy"
)

// The functions of this file are for specs that create types, and for running resolvers.

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// ownGroup returns a group that no other spec uses.
func ownGroup(prefix string) string { return unique(prefix) + ".example.com" }

// newCRD returns the CRD of a namespaced kind that is served in versions, and stored in the
// first version.
func newCRD(group, kind string, versions ...string) *unstructured.Unstructured {
	singular := strings.ToLower(kind)
	crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": group,
		"scope": "Namespaced",
		"names": map[string]any{"plural": singular + "s", "singular": singular, "kind": kind},
	}}}
	crd.SetAPIVersion(definitions.GroupVersion().String())
	crd.SetKind("CustomResourceDefinition")
	crd.SetName(singular + "s." + group)
	serve(crd, versions...)
	return crd
}

// serve sets the versions of crd; all are served.
func serve(crd *unstructured.Unstructured, versions ...string) {
	var list []any
	for i, version := range versions {
		list = append(list, map[string]any{
			"name": version, "served": true, "storage": i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			}},
		})
	}
	crd.Object["spec"].(map[string]any)["versions"] = list
}

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
	err := d.client.Resource(definitions).Delete(ctx, name, metav1.DeleteOptions{})
	if !apierrors.IsNotFound(err) {
		Expect(err).NotTo(HaveOccurred())
	}
	Eventually(func() error {
		crd, err := d.client.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			d.resume(ctx, crd)
		}
		return err
	}).WithPolling(100 * time.Millisecond).Should(Satisfy(apierrors.IsNotFound))
}

// resume makes the server retry the deletion of a CRD, if it has failed. Of CRDs that are deleted
// soon after their creation, about one in a hundred fails, because the storage is initializing. If
// the server's update of the condition then has a conflict, the server would retry only after
// minutes, at its resync.
func (d *connection) resume(ctx context.Context, crd *unstructured.Unstructured) {
	for _, condition := range conditions(crd) {
		if condition.(map[string]any)["reason"] == "InstanceDeletionFailed" {
			annotation := fmt.Appendf(nil, `{"metadata":{"annotations":{"resumed":%q}}}`, unique("resumed"))
			_, _ = d.client.Resource(definitions).Patch(ctx, crd.GetName(), types.MergePatchType, annotation, metav1.PatchOptions{}) // it may be deleted now
		}
	}
}

// conditions returns the conditions of a CRD.
func conditions(crd *unstructured.Unstructured) []any {
	list, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	return list
}

// patch changes fields of an object at cluster scope.
func (d *connection) patch(ctx context.Context, gvr schema.GroupVersionResource, name string, fields map[string]any) *unstructured.Unstructured {
	GinkgoHelper()
	body, err := json.Marshal(fields)
	Expect(err).NotTo(HaveOccurred())
	patched, err := d.client.Resource(gvr).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
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
// an answer is uncertain, and otherwise once a minute.
func (d *connection) quiet() {
	GinkgoHelper()
	var (
		seen  = -1
		since time.Time
	)
	Eventually(func() time.Duration {
		if now := d.proxy.Requests(faultproxy.All()); now != seen {
			seen, since = now, time.Now()
		}
		return time.Since(since)
	}).Should(BeNumerically(">", 2500*time.Millisecond))
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
	n := &groupEvents{}
	untilEnd(func(ctx context.Context) error {
		for event := range d.resolver.Subscribe(ctx) {
			if event.Resource.GVR.Group == group {
				n.mu.Lock()
				n.past = append(n.past, event)
				n.mu.Unlock()
			}
		}
		return nil
	})
	return n
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
