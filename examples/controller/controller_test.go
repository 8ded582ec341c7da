package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/workqueue"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// testNodes are custom resources instead of nodes: the embedded server has no built-in types.
var testNodes = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "nodes"}

// report is one call of the controller's report function.
type report struct {
	block     string
	addresses []string
}

// cluster is a server with a controller.
type cluster struct {
	*testing.T
	server  *embedded.Server
	client  dynamic.Interface
	reports chan report
}

// start starts a server, and the controller on it, before Calico's type is installed.
func start(t *testing.T) *cluster {
	t.Helper()
	server, err := embedded.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := server.InstallCRDFiles(t.Context(), "testdata/nodes.yaml"); err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	c := &cluster{T: t, server: server, client: client, reports: make(chan report, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, server.Config(), testNodes, func(block string, addresses []string) { c.reports <- report{block, addresses} })
	}()
	t.Cleanup(func() { // runs before the server stops
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return c
}

func (c *cluster) installBlocks() {
	c.Helper()
	if err := c.server.InstallCRDFiles(c.Context(), "../ipamblock/crd.yaml"); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) create(gvr schema.GroupVersionResource, kind, name string, spec map[string]any) {
	c.Helper()
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	obj.SetGroupVersionKind(gvr.GroupVersion().WithKind(kind))
	obj.SetName(name)
	if _, err := c.client.Resource(gvr).Create(c.Context(), obj, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) createNode(name string) {
	c.Helper()
	c.create(testNodes, "Node", name, nil)
}

// createBlock creates a block with an address for each node; "" is a free address.
func (c *cluster) createBlock(name, cidr string, nodes ...string) {
	c.Helper()
	allocations, attributes := make([]any, len(nodes)), []any{}
	for i, node := range nodes {
		if node != "" {
			allocations[i] = int64(len(attributes))
			attributes = append(attributes, map[string]any{"secondary": map[string]any{"node": node}})
		}
	}
	c.create(blocksGVR, "IPAMBlock", name, map[string]any{
		"cidr": cidr, "allocations": allocations, "attributes": attributes,
		"unallocated": []any{}, "strictAffinity": false, "deleted": false,
	})
}

func (c *cluster) delete(gvr schema.GroupVersionResource, name string) {
	c.Helper()
	if err := c.client.Resource(gvr).Delete(c.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.Fatal(err)
	}
}

// expect waits for the next report, which must be of block with these addresses.
func (c *cluster) expect(block string, addresses ...string) {
	c.Helper()
	select {
	case got := <-c.reports:
		if got.block != block || !slices.Equal(got.addresses, addresses) {
			c.Fatalf("reported %s %q, want %s %q", got.block, got.addresses, block, addresses)
		}
	case <-time.After(30 * time.Second):
		c.Fatalf("no report of %s %q", block, addresses)
	}
}

func TestController_ReportsChangesOfNodesAndBlocks(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.createNode("a")
	c.createNode("b")
	c.installBlocks()
	c.createBlock("two", "192.0.2.0/30", "a", "", "b")
	c.createBlock("one", "198.51.100.0/30", "", "missing")
	c.expect("one", "198.51.100.1")

	c.delete(testNodes, "b")
	c.expect("two", "192.0.2.2")
	c.delete(testNodes, "a")
	c.expect("two", "192.0.2.0", "192.0.2.2")
	c.createNode("b")
	c.expect("two", "192.0.2.0")
	c.delete(blocksGVR, "two")
	c.expect("two")
}

func TestController_RemovesBlocksWhenTheTypeIsDeleted(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.installBlocks()
	c.createBlock("one", "192.0.2.0/30", "missing")
	c.expect("one", "192.0.2.0")
	crds := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	c.delete(crds, "ipamblocks.crd.projectcalico.org")
	c.expect("one")
	c.installBlocks()
	c.createBlock("one", "192.0.2.0/30", "missing")
	c.expect("one", "192.0.2.0")
}

// Acquire asks for the resources of a group and version. The server responds to a request only for nodes, and not to that for
// the path silent.
func TestController_TheEndOfItsContextIsNoError(t *testing.T) {
	const nodesPath = "/api/v1"
	for name, silent := range map[string]string{"while it acquires nodes": nodesPath, "while it acquires blocks": "/apis/crd.projectcalico.org/v1"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case silent:
					cancel()
				case nodesPath:
					w.Header().Set("Content-Type", "application/json")
					_, _ = io.WriteString(w, `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"nodes","kind":"Node","verbs":["list","watch"]}]}`)
					return
				}
				<-r.Context().Done()
			}))
			defer server.Close()
			nodes := schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
			if err := run(ctx, &rest.Config{Host: server.URL}, nodes, func(string, []string) {}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestController_TheEndBeforeItHasHandlersIsNoError(t *testing.T) {
	factory, err := dynamicinformer.New(dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{testNodes: "NodeList", blocksGVR: "IPAMBlockList"}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	factory.Start(ctx)
	nodes, err := factory.Acquire(ctx, testNodes)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := factory.Acquire(ctx, blocksGVR)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := factory.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	if err := (&controller{nodes: nodes, blocks: blocks, queue: queue}).run(ctx); err != nil {
		t.Error(err)
	}
}

func TestController_AsksTheServerForNodesThatAreNotCached(t *testing.T) {
	node := &unstructured.Unstructured{}
	node.SetGroupVersionKind(testNodes.GroupVersion().WithKind("Node"))
	node.SetName("new")
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{testNodes: "NodeList"}, node)
	client.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "NodeList"}}, nil
	})
	client.PrependWatchReactor("nodes", clienttesting.DefaultWatchReactor(watch.NewFake(), nil)) // without events
	factory, err := dynamicinformer.New(client)
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context())
	nodes, err := factory.Acquire(t.Context(), testNodes)
	if err != nil {
		t.Fatal(err)
	}
	if err := nodes.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := &controller{nodes: nodes, client: client.Resource(testNodes)}
	for name, want := range map[string]bool{"new": false, "missing": true} {
		if gone, err := c.gone(t.Context(), name); gone != want || err != nil {
			t.Errorf("gone(%s) = %t, %v, want %t", name, gone, err, want)
		}
	}
	if err := factory.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// After an error of a request, the block is retried. A block that can't be read is not: only a change of it can help.
func TestController_DoesNotRetryABlockThatCannotBeRead(t *testing.T) {
	block := func(name, cidr string) *unstructured.Unstructured {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"cidr": cidr, "allocations": []any{int64(0)}, "attributes": []any{map[string]any{"secondary": map[string]any{"node": "missing"}}},
		}}}
		obj.SetGroupVersionKind(blocksGVR.GroupVersion().WithKind("IPAMBlock"))
		obj.SetName(name)
		return obj
	}
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{testNodes: "NodeList", blocksGVR: "IPAMBlockList"},
		block("unreadable", "192.0.2.0"), block("readable", "192.0.2.0/30"))
	client.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no response")
	})
	factory, err := dynamicinformer.New(client)
	if err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context())
	nodes, err := factory.Acquire(t.Context(), testNodes)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := factory.Acquire(t.Context(), blocksGVR)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(nodes.WaitForSync(t.Context()), blocks.WaitForSync(t.Context())); err != nil {
		t.Fatal(err)
	}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	defer queue.ShutDown()
	c := &controller{blocks: blocks, nodes: nodes, client: client.Resource(testNodes), queue: queue}
	for name, want := range map[string]int{"unreadable": 0, "readable": 1} {
		queue.Add(name)
		if c.next(t.Context()); queue.NumRequeues(name) != want {
			t.Errorf("%s: %d retries, want %d", name, queue.NumRequeues(name), want)
		}
	}
	if err := factory.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestProgram_RefusesAWrongCommandLine(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "kubeconfig")
	for _, tc := range []struct {
		args []string
		want string
	}{
		{[]string{"--kubeconfig", missing, "more"}, `unexpected argument "more"`},
		{[]string{"--nonsense"}, "-nonsense"},
		{[]string{"--kubeconfig", missing}, missing},
	} {
		if err := program(t.Context(), tc.args); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: error %v, want %q", tc.args, err, tc.want)
		}
	}
}
