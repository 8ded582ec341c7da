package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/gvrkit/gvrkit/controllerruntime"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// counter is a controller that writes the number of objects of a resource to an inventory. It is a runnable of the manager, and
// ends with its lease.
type counter struct {
	inventory string
	uid       types.UID // of the inventory
	resource  string
	lease     *dynamicinformer.Lease
	client    client.Client
	log       logr.Logger
	to        report
	ended     chan struct{} // closes when Start returns
}

// Start runs the controller until its lease is released, or ctx ends. Then its handler is removed, and with the last lease on
// the resource, the informer and its watch end.
func (c *counter) Start(ctx context.Context) error {
	defer close(c.ended)
	defer c.lease.Release() // the manager may end before the inventory is deleted

	var waiting sync.WaitGroup
	defer waiting.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	waiting.Go(func() {
		select {
		case <-c.lease.Done():
			cancel()
		case <-ctx.Done():
		}
	})
	controller, err := controller.NewUnmanaged("counter", controller.Options{
		Reconciler:         c,
		Logger:             c.log,
		SkipNameValidation: new(true),     // each inventory has such a controller
		CacheSyncTimeout:   math.MaxInt64, // a resource that can't be listed yet, such as a forbidden one, does not end the manager
	})
	if err != nil {
		return err
	}
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: c.inventory}}
	objects := controllerruntime.Source(c.lease,
		handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, *unstructured.Unstructured) []reconcile.Request {
			return []reconcile.Request{request} // all events of the resource are about one inventory
		}),
		predicate.TypedFuncs[*unstructured.Unstructured]{
			UpdateFunc: func(event.TypedUpdateEvent[*unstructured.Unstructured]) bool { return false }, // the number is the same
		})
	start := source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		queue.Add(request) // also if there are no objects
		return nil
	})
	if err := errors.Join(controller.Watch(objects), controller.Watch(start)); err != nil {
		return err
	}
	if err := controller.Start(ctx); !errors.Is(err, dynamicinformer.ErrReleased) {
		return err
	}
	return nil
}

// Reconcile writes the number of objects to the status of the inventory.
func (c *counter) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	objects, err := c.lease.Lister().List(labels.Everything())
	if err != nil {
		return reconcile.Result{}, err
	}
	inventory, err := getInventory(ctx, c.client, c.inventory)
	if err == nil {
		status := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"objects":%d}}`, len(objects)))
		err = c.client.Status().Patch(ctx, inventory, status)
	}
	if isNotFound(err) {
		// The controller will be removed, or, just after the installation of the CRD, one of several API servers does not serve it yet.
		return reconcile.Result{RequeueAfter: time.Second}, nil
	}
	if err == nil {
		c.to(fmt.Sprintf("%s: status.objects is %d", c.inventory, len(objects)))
	}
	return reconcile.Result{}, err
}
