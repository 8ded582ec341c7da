package churn

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// finalizer is the finalizer of objects that are held.
const finalizer = "churn.gvrkit.io/hold"

// resource returns the client of an object of a type that is served.
func (w *writer) resource(typ, namespace string) dynamic.ResourceInterface {
	i, _ := w.world.Incarnation(typ)
	return w.client.Resource(w.world.Resource(typ, i.Served[0])).Namespace(namespace)
}

// hold adds the finalizer to an object that exists and is not being deleted.
func (w *writer) hold(ctx context.Context, typ, object string) error {
	i, n := w.world.Incarnation(typ)
	if n < 0 {
		return nil
	}
	namespace, name := w.locate(object, i.Namespaced)
	if state, exists := w.world.state(typ, key(namespace, name)); !exists || state.Held {
		return nil
	}
	return w.setFinalizers(ctx, typ, namespace, name, fmt.Sprintf("[%q]", finalizer))
}

// setFinalizers changes the finalizers of an object.
func (w *writer) setFinalizers(ctx context.Context, typ, namespace, name, finalizers string) error {
	body := fmt.Appendf(nil, `{"metadata":{"finalizers":%s}}`, finalizers)
	return until(ctx, "change the finalizers of an object", func() (bool, error) {
		begun := time.Now()
		obj, err := w.resource(typ, namespace).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
		if err != nil {
			return false, err
		}
		w.world.wrote(typ, obj, begun)
		return true, nil
	})
}

// free removes the finalizer from an object.
func (w *writer) free(ctx context.Context, typ, object string) error {
	i, n := w.world.Incarnation(typ)
	if n < 0 {
		return nil
	}
	namespace, name := w.locate(object, i.Namespaced)
	return w.freeIn(ctx, typ, namespace, name)
}

// freeIn is free for an object by its name on the servers. If it was the last one of a CRD that waits, the CRD ends.
func (w *writer) freeIn(ctx context.Context, typ, namespace, name string) error {
	i, _ := w.world.Incarnation(typ)
	if err := w.release(ctx, typ, namespace, name); err != nil || !i.Terminating || len(w.world.Objects(typ)) > 0 {
		return err
	}
	return w.undefine(ctx, typ)
}

// release removes the finalizer from an object, which may complete its deletion.
func (w *writer) release(ctx context.Context, typ, namespace, name string) error {
	state, exists := w.world.state(typ, key(namespace, name))
	switch {
	case !exists || !state.Held:
		return nil
	case !state.Terminating:
		return w.setFinalizers(ctx, typ, namespace, name, "null")
	}
	w.world.deleted(typ, key(namespace, name), time.Now())
	return until(ctx, "remove the finalizer of an object", func() (bool, error) {
		_, err := w.resource(typ, namespace).Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		return err == nil, err
	})
}

// releaseAll removes the finalizers of all objects of a type.
func (w *writer) releaseAll(ctx context.Context, typ string) error {
	for _, o := range w.world.held(typ) {
		if err := w.release(ctx, typ, o.Namespace, o.Name); err != nil {
			return err
		}
	}
	return nil
}

// terminate deletes a CRD. If there are objects with finalizers, it returns when they are all that is left.
func (w *writer) terminate(ctx context.Context, typ string) error {
	i, n := w.world.Incarnation(typ)
	held := w.world.held(typ)
	if n < 0 || i.Terminating || w.world.ConversionFails(typ, i.Served[0]) {
		return nil
	}
	if len(held) == 0 {
		return w.undefine(ctx, typ)
	}
	if err := w.quicken(ctx, typ); err != nil { // deletions soon after the creation may fail
		return err
	}
	begun := time.Now()
	for _, o := range w.world.Objects(typ) {
		if !o.States[0].Held {
			w.world.deleted(typ, o.Key(), begun)
		}
	}
	w.world.terminating(typ)
	name := w.definitionName(typ)
	if err := w.client.Resource(definitions).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	return until(ctx, "wait until a CRD waits for its objects", func() (bool, error) {
		crd, err := w.client.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		w.resume(ctx, crd)
		list, err := w.client.Resource(w.world.Resource(typ, i.Served[0])).List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) > len(held) || slices.ContainsFunc(list.Items, isNotDeleted) {
			return false, err
		}
		for i := range list.Items {
			w.world.wrote(typ, &list.Items[i], begun)
		}
		return true, nil
	})
}

func isNotDeleted(obj unstructured.Unstructured) bool { return obj.GetDeletionTimestamp() == nil }

// waits records that the deletion of an object waits for its finalizer.
func (w *writer) waits(ctx context.Context, typ, namespace, name string, begun time.Time) error {
	obj, err := w.resource(typ, namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if obj.GetDeletionTimestamp() == nil {
		return apierrors.NewInternalError(fmt.Errorf("%s %s/%s is not being deleted", typ, namespace, name))
	}
	w.world.wrote(typ, obj, begun)
	return nil
}
