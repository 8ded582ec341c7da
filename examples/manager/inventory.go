package main

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/dynamicinformer"
)

var inventoryKind = schema.GroupKind{Group: "example.com", Kind: "Inventory"}

// newInventory returns an empty inventory of a version.
func newInventory(version string) *unstructured.Unstructured {
	inventory := &unstructured.Unstructured{}
	inventory.SetGroupVersionKind(inventoryKind.WithVersion(version))
	return inventory
}

// getInventory returns an inventory in the preferred version of its type. If it is not found, the type may be absent.
func getInventory(ctx context.Context, c client.Client, name string) (*unstructured.Unstructured, error) {
	mapping, err := c.RESTMapper().RESTMapping(inventoryKind)
	if err != nil {
		return nil, err
	}
	inventory := newInventory(mapping.GroupVersionKind.Version)
	return inventory, c.Get(ctx, client.ObjectKey{Name: name}, inventory)
}

// isNotFound reports whether an object, or its type, does not exist.
func isNotFound(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// inventories reconciles inventories: each one has a counter. It has one worker.
type inventories struct {
	manager  ctrl.Manager
	factory  *dynamicinformer.Factory
	to       report
	counters map[string]*counter // by the name of the inventory
}

// addInventories adds the controller of inventories to mgr. It is an ordinary controller: if the type is deleted, it gets
// the deletion of each inventory.
func addInventories(mgr ctrl.Manager, factory *dynamicinformer.Factory, to report) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("inventory").
		For(newInventory("v1")).
		Watches(newInventory("v1alpha1"), &handler.EnqueueRequestForObject{}). // a cluster may serve one of the versions, or both
		WithEventFilter(predicate.GenerationChangedPredicate{}).               // not for each change of the status
		WithOptions(controller.Options{SkipNameValidation: new(true)}).        // a test may run several managers
		Complete(&inventories{manager: mgr, factory: factory, to: to, counters: map[string]*counter{}})
}

// Reconcile adds the counter of an inventory, replaces or removes it.
func (i *inventories) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	inventory, err := getInventory(ctx, i.manager.GetClient(), request.Name)
	if isNotFound(err) {
		return reconcile.Result{}, i.remove(ctx, request.Name)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	resource, _, _ := unstructured.NestedString(inventory.Object, "spec", "resource")
	if c := i.counters[request.Name]; c != nil && c.uid == inventory.GetUID() && c.resource == resource {
		return reconcile.Result{}, nil
	}
	if err := i.remove(ctx, request.Name); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, i.add(ctx, inventory, resource)
}

// add adds a counter to the manager, which runs it as long as it is the leader.
func (i *inventories) add(ctx context.Context, inventory *unstructured.Unstructured, resource string) error {
	name := inventory.GetName()
	// The resource may be installed later. Of its versions, the lease reads the preferred one.
	lease, err := i.factory.AcquireRef(ctx, resource, dynamicinformer.WithAllowAbsent(), dynamicinformer.WithLeaseName("inventory "+name))
	if _, is := errors.AsType[*discovery.RefError](err); is {
		return reconcile.TerminalError(err) // not a name of a resource: no retry
	}
	if err != nil {
		return err
	}
	c := &counter{
		inventory: name, uid: inventory.GetUID(), resource: resource,
		lease: lease, client: i.manager.GetClient(), log: i.manager.GetLogger(), to: i.to, ended: make(chan struct{}),
	}
	i.to(fmt.Sprintf("%s: the controller of %s is added", name, resource))
	if err := i.manager.Add(c); err != nil {
		lease.Release()
		return err
	}
	i.counters[name] = c
	return nil
}

// remove removes the counter of an inventory, if there is one, and waits for its end.
func (i *inventories) remove(ctx context.Context, name string) error {
	c := i.counters[name]
	if c == nil {
		return nil
	}
	c.lease.Release() // ends the counter
	select {
	case <-c.ended:
	case <-ctx.Done(): // the manager ends
		return ctx.Err()
	}
	delete(i.counters, name)
	i.to(fmt.Sprintf("%s: the controller of %s is removed", name, c.resource))
	return nil
}
