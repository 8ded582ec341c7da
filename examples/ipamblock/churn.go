package main

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/status"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// absence is the time between the deletion and the creation of the CRD.
const absence = time.Second

// churn deletes the CRD of a running informer, and creates the CRD and a block again. The informer
// continues without a restart of the program.
type churn struct {
	client dynamic.Interface
	crd    *unstructured.Unstructured
	lease  *dynamicinformer.Lease
	view   *viewer
}

// run returns when the viewer has all events.
func (c *churn) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, eventsTimeout)
	defer cancel()
	crds, before := c.client.Resource(definitions), c.view.count()
	if err := crds.Delete(ctx, c.crd.GetName(), metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete %s: %w", c.crd.GetName(), err)
	}
	if err := c.await(ctx, status.StateNotServed); err != nil {
		return err
	}
	if err := c.view.waitFor(ctx, func(now counts) bool { return now.Deleted-before.Deleted >= before.Added-before.Deleted }); err != nil {
		return fmt.Errorf("wait for the deletions: %w", err)
	}
	select {
	case <-time.After(absence):
	case <-ctx.Done():
		return ctx.Err()
	}
	if _, err := crds.Create(ctx, c.crd, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create %s again: %w", c.crd.GetName(), err)
	}
	if err := c.lease.WaitForSync(ctx); err != nil {
		return err
	}
	block := newBlock(demoBlocks[0].cidr, demoBlocks[0].node, demoSize)
	for {
		_, err := c.client.Resource(blockGVR).Create(ctx, block, metav1.CreateOptions{})
		if err == nil {
			break
		}
		if !apierrors.IsNotFound(err) && !apierrors.IsTooManyRequests(err) {
			return fmt.Errorf("create block %s: %w", demoBlocks[0].cidr, err)
		}
		if err := pause(ctx); err != nil { // an established type may not be served yet
			return err
		}
	}
	return c.view.waitFor(ctx, func(now counts) bool { return now.Added > before.Added })
}

// await waits until the informer is in state.
func (c *churn) await(ctx context.Context, state status.State) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for now := range c.lease.Watch(ctx) {
		if now.State == state {
			return nil
		}
	}
	return fmt.Errorf("the informer is not %s: %w", state, context.Cause(ctx))
}
