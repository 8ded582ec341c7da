package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

var blocksGVR = schema.GroupVersionResource{Group: "crd.projectcalico.org", Version: "v1", Resource: "ipamblocks"}

const (
	byNode          = "node" // the index of blocks by the nodes of their allocations
	workers         = 2
	shutdownTimeout = 10 * time.Second
)

// controller reconciles blocks. The key of a block in the queue is its name.
type controller struct {
	blocks, nodes *dynamicinformer.Lease
	client        dynamic.NamespaceableResourceInterface // of nodes
	queue         workqueue.TypedRateLimitingInterface[string]
	report        func(block string, addresses []string)

	mu    sync.Mutex
	found map[string][]string // the last reported addresses of each block, if there are any
}

// run runs the controller until ctx ends, and then returns nil. It calls report with the addresses of
// a block that are allocated on nodes that do not exist, after each change of these addresses.
func run(ctx context.Context, cfg *rest.Config, nodesGVR schema.GroupVersionResource, report func(block string, addresses []string)) (err error) {
	factory, err := dynamicinformer.NewForConfig(cfg)
	if err != nil {
		return err
	}
	factory.Start(ctx)
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		err = errors.Join(err, factory.Shutdown(ctx))
	}()

	nodes, err := factory.Acquire(ctx, nodesGVR)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	blocks, err := factory.Acquire(ctx, blocksGVR,
		dynamicinformer.WithAllowAbsent(), // Calico may be installed later
		dynamicinformer.WithIndexers(cache.Indexers{byNode: nodesOf}))
	if err != nil {
		return unlessEnded(ctx, err)
	}
	c := &controller{
		blocks: blocks,
		nodes:  nodes,
		client: factory.Client().Resource(nodesGVR),
		queue:  workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]()),
		report: report,
		found:  map[string][]string{},
	}
	return c.run(ctx)
}

func (c *controller) run(ctx context.Context) error {
	defer c.queue.ShutDown()
	if _, err := c.blocks.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueue,
		UpdateFunc: func(_, block any) { c.enqueue(block) },
		DeleteFunc: c.enqueue, // also if the type itself is deleted
	}); err != nil {
		return unlessEnded(ctx, err)
	}
	if _, err := c.nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueueBlocksOf,
		DeleteFunc: c.enqueueBlocksOf,
	}); err != nil {
		return unlessEnded(ctx, err)
	}
	if err := c.nodes.WaitForSync(ctx, dynamicinformer.WithFailFast()); err != nil {
		return unlessEnded(ctx, err)
	}

	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	c.queue.ShutDown()
	running.Wait()
	return nil
}

// unlessEnded returns nil after the end of ctx, and otherwise err.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// next reconciles the next block of the queue. It returns false after the queue was shut down.
func (c *controller) next(ctx context.Context) bool {
	key, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	switch err := c.reconcile(ctx, key); {
	case err == nil:
		c.queue.Forget(key)
	case errors.Is(err, errUnreadable): // a retry can't help; a change adds the block to the queue
		utilruntime.HandleErrorWithContext(ctx, err, "Leave block until it changes", "block", key)
		c.queue.Forget(key)
	default:
		utilruntime.HandleErrorWithContext(ctx, err, "Retry block", "block", key)
		c.queue.AddRateLimited(key)
	}
	return true
}

// reconcile compares the allocations of a block with the nodes that exist.
func (c *controller) reconcile(ctx context.Context, name string) error {
	obj, err := c.blocks.Lister().Get(name)
	if apierrors.IsNotFound(err) {
		c.publish(name, nil)
		return nil
	}
	if err != nil {
		return err
	}
	allocations, err := allocationsOf(obj.(*unstructured.Unstructured)) // read-only
	if err != nil {
		return err
	}
	var addresses []string
	for _, allocated := range allocations {
		gone, err := c.gone(ctx, allocated.node)
		if err != nil {
			return err
		}
		if gone {
			addresses = append(addresses, allocated.address.String())
		}
	}
	c.publish(name, addresses)
	return nil
}

// gone reports whether a node does not exist. The cache of nodes may be older than the cache of
// blocks, so gone asks the API server about a node that is not in the cache.
func (c *controller) gone(ctx context.Context, node string) (bool, error) {
	_, err := c.nodes.Lister().Get(node)
	if apierrors.IsNotFound(err) {
		_, err = c.client.Get(ctx, node, metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// publish reports addresses if they differ from the last report. The queue gives a block to one
// worker at a time, so the reports of one block are in order.
func (c *controller) publish(block string, addresses []string) {
	c.mu.Lock()
	changed := !slices.Equal(c.found[block], addresses)
	if len(addresses) == 0 {
		delete(c.found, block)
	} else {
		c.found[block] = addresses
	}
	c.mu.Unlock()
	if changed {
		c.report(block, addresses)
	}
}

// enqueue adds a block to the queue.
func (c *controller) enqueue(block any) {
	if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(block); err == nil {
		c.queue.Add(key)
	}
}

// enqueueBlocksOf adds the blocks with an allocation on a node to the queue.
func (c *controller) enqueueBlocksOf(node any) {
	name, err := cache.DeletionHandlingMetaNamespaceKeyFunc(node)
	if err != nil {
		return
	}
	blocks, err := c.blocks.Informer().GetIndexer().IndexKeys(byNode, name)
	if err != nil {
		return
	}
	for _, block := range blocks {
		c.queue.Add(block)
	}
}

// nodesOf is the index function of blocks. A block that can't be read is in no index, and
// reconcile reports why.
func nodesOf(obj any) ([]string, error) {
	block, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, nil
	}
	allocations, err := allocationsOf(block)
	if err != nil {
		return nil, nil
	}
	nodes := make([]string, 0, len(allocations))
	for _, allocated := range allocations {
		nodes = append(nodes, allocated.node)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes), nil
}
