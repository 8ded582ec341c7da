package churn

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

var (
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	namespaces  = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// patience is how long a write is retried. API servers reject writes for about a second after
// a CRD has been created.
const patience = 60 * time.Second

// writer writes to a server, past the proxy, and records the results in the world.
type writer struct {
	world  *World
	client dynamic.Interface
	// behind writes to the aggregated server. Nil: there is none, or types were never moved to it.
	behind *writer
	// converter is the conversion webhook. Nil: no type has had it.
	converter *converter
}

// serving returns the writer to the server that serves the types.
func (w *writer) serving() *writer {
	if w.behind != nil && w.world.Moved() {
		return w.behind
	}
	return w
}

// until calls do until it is done, fails, or patience has run out.
func until(ctx context.Context, what string, do func() (done bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		done, err := do()
		if done || err != nil && !transient(err) {
			return err
		}
		if wait(ctx, 20*time.Millisecond) != nil {
			if err == nil {
				err = ctx.Err()
			}
			return fmt.Errorf("churn: %s: %w", what, err)
		}
	}
}

// transient reports whether a write that has failed may succeed soon, and has had no effect.
func transient(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsConflict(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err)
}

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// ensureNamespaces creates Namespace objects if the server has them.
func (w *writer) ensureNamespaces(ctx context.Context, names ...string) error {
	for _, name := range names {
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
		obj.SetName(name)
		_, err := w.client.Resource(namespaces).Create(ctx, obj, metav1.CreateOptions{})
		switch {
		case apierrors.IsNotFound(err): // no such type
			return nil
		case err != nil && !apierrors.IsAlreadyExists(err):
			return err
		}
	}
	w.world.mu.Lock()
	defer w.world.mu.Unlock()
	w.world.namespaces = map[string]namespaceTruth{}
	return nil
}

// change carries out an operation on a type. Types that are moved stay as they are.
func (w *writer) change(ctx context.Context, op Op) error {
	if w.world.Moved() {
		return nil
	}
	switch op.Verb {
	case Serve:
		return w.serve(ctx, op)
	case Terminate:
		return w.terminate(ctx, op.Arg("type"))
	case Undefine, Redefine:
		if err := w.undefine(ctx, op.Arg("type")); err != nil || op.Verb == Undefine {
			return err
		}
	}
	return w.define(ctx, op)
}

// write carries out an operation on objects.
func (w *writer) write(ctx context.Context, op Op) error {
	typ, object, color := op.Arg("type"), op.Arg("object"), op.With["color"]
	if i, n := w.world.Incarnation(typ); n >= 0 && w.world.ConversionFails(typ, i.Served[0]) {
		return nil // the server would not accept it
	}
	switch op.Verb {
	case Fill:
		return w.fill(ctx, op)
	case Hold:
		return w.hold(ctx, typ, object)
	case Free:
		return w.free(ctx, typ, object)
	case Update:
		return w.put(ctx, typ, object, color, false, true)
	case Delete, Replace:
		if err := w.remove(ctx, typ, object); err != nil || op.Verb == Delete {
			return err
		}
	}
	return w.put(ctx, typ, object, color, true, false)
}

func versionsOf(op Op) []string {
	if versions := op.List("versions"); versions != nil {
		return versions
	}
	return []string{"v1"}
}

// allVersions are the versions of each type. Versions that are not served exist, so that any of
// them can be the only one.
var allVersions = []string{"v1", "v1beta1"}

func (w *writer) definition(typ string, namespaced bool, served []string) *unstructured.Unstructured {
	scope := "Cluster"
	if namespaced {
		scope = "Namespaced"
	}
	plural := w.world.Resource(typ, "").Resource
	crd := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"group": w.world.Group, "scope": scope, "versions": versions(served),
		"names": map[string]any{"plural": plural, "singular": typ, "kind": kindOf(typ)},
	}}}
	crd.SetAPIVersion(definitions.GroupVersion().String())
	crd.SetKind("CustomResourceDefinition")
	crd.SetName(w.definitionName(typ))
	return crd
}

func (w *writer) definitionName(typ string) string {
	return w.world.Resource(typ, "").GroupResource().String()
}

func versions(served []string) []any {
	var list []any
	for i, version := range allVersions {
		list = append(list, map[string]any{
			"name": version, "served": slices.Contains(served, version), "storage": i == 0,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		})
	}
	return list
}

// define creates a CRD. It does not wait until the type is served.
func (w *writer) define(ctx context.Context, op Op) error {
	typ := op.Arg("type")
	if _, n := w.world.Incarnation(typ); n >= 0 {
		return nil
	}
	i := Incarnation{Namespaced: op.With["scope"] != "Cluster", Served: versionsOf(op), Webhook: op.With["conversion"] == "webhook"}
	crd := w.definition(typ, i.Namespaced, i.Served)
	if i.Webhook {
		if err := w.useConverter(); err != nil {
			return err
		}
		crd.Object["spec"].(map[string]any)["conversion"] = w.converter.conversion(typ)
	}
	i.created = time.Now()
	created, err := w.client.Resource(definitions).Create(ctx, crd, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	i.UID = created.GetUID()
	w.world.defined(typ, i)
	return nil
}

// undefine deletes a CRD, and waits until it is gone.
func (w *writer) undefine(ctx context.Context, typ string) error {
	if _, n := w.world.Incarnation(typ); n < 0 {
		return nil
	}
	w.mend(typ, false)
	if err := w.releaseAll(ctx, typ); err != nil {
		return err
	}
	w.world.undefined(typ, time.Now())
	crds, name := w.client.Resource(definitions), w.definitionName(typ)
	err := until(ctx, "delete a CRD", func() (bool, error) {
		err := crds.Delete(ctx, name, metav1.DeleteOptions{})
		return err == nil || apierrors.IsNotFound(err), ignoreNotFound(err)
	})
	if err != nil {
		return err
	}
	return until(ctx, "wait for the end of a CRD", func() (bool, error) {
		crd, err := crds.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			w.resume(ctx, crd)
		}
		return apierrors.IsNotFound(err), ignoreNotFound(err)
	})
}

// ignoreNotFound returns nil for NotFound.
func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// resume makes the server try the deletion of a CRD again. Deletions soon after the creation may
// fail, since the storage is initializing, and the server would try again after minutes.
func (w *writer) resume(ctx context.Context, crd *unstructured.Unstructured) {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if fields, is := c.(map[string]any); is && fields["reason"] == "InstanceDeletionFailed" {
			annotation := fmt.Appendf(nil, `{"metadata":{"annotations":{"resumed":%q}}}`, time.Now().Format(time.RFC3339Nano))
			_, _ = w.client.Resource(definitions).Patch(ctx, crd.GetName(), types.MergePatchType, annotation, metav1.PatchOptions{}) // it may be deleted now
		}
	}
}

// serve sets the served versions of a type.
func (w *writer) serve(ctx context.Context, op Op) error {
	typ, served := op.Arg("type"), versionsOf(op)
	if i, n := w.world.Incarnation(typ); n < 0 || i.Terminating {
		return nil
	}
	body, err := json.Marshal(map[string]any{"spec": map[string]any{"versions": versions(served)}})
	if err != nil {
		return err
	}
	_, err = w.client.Resource(definitions).Patch(ctx, w.definitionName(typ), types.MergePatchType, body, metav1.PatchOptions{})
	if err == nil {
		w.world.serves(typ, served)
	}
	return err
}

// quicken sets an earlier time in the condition Established of a CRD. Without that, the server
// delays each creation for two seconds.
func (w *writer) quicken(ctx context.Context, typ string) error {
	crds := w.client.Resource(definitions)
	return until(ctx, "wait until a CRD is established", func() (bool, error) {
		crd, err := crds.Get(ctx, w.definitionName(typ), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
		for _, c := range conditions {
			fields, _ := c.(map[string]any)
			if fields["type"] != "Established" || fields["status"] != "True" {
				continue
			}
			if at, err := time.Parse(time.RFC3339, fmt.Sprint(fields["lastTransitionTime"])); err == nil && time.Since(at) > 3*time.Second {
				return true, nil
			}
			fields["lastTransitionTime"] = time.Now().Add(-5 * time.Second).UTC().Format(time.RFC3339)
			if err := unstructured.SetNestedSlice(crd.Object, conditions, "status", "conditions"); err != nil {
				return false, err
			}
			_, err := crds.UpdateStatus(ctx, crd, metav1.UpdateOptions{})
			return err == nil, err
		}
		return false, nil
	})
}

// locate returns namespace and name of an object of a script on the servers, for a type with this scope.
func (w *writer) locate(object string, namespaced bool) (namespace, name string) {
	namespace, name = split(object, namespaced)
	return w.world.namespace(namespace), name
}

// split returns namespace and name of an object of a script, for a type with this scope.
func split(object string, namespaced bool) (namespace, name string) {
	namespace, name, found := strings.Cut(object, "/")
	switch {
	case !found && namespaced:
		return "a", object
	case !found:
		return "", object
	case !namespaced:
		return "", namespace + "-" + name
	}
	return namespace, name
}

// put creates an object, or updates it if it exists. Create and update say which of them
// may happen.
func (w *writer) put(ctx context.Context, typ, object, color string, create, update bool) error {
	i, n := w.world.Incarnation(typ)
	if n < 0 {
		return nil
	}
	namespace, name := w.locate(object, i.Namespaced)
	exists := w.world.exists(typ, key(namespace, name))
	if exists && !update || !exists && (!create || i.Terminating || !w.world.accepts(namespace)) {
		return nil
	}
	client := w.client.Resource(w.world.Resource(typ, i.Served[0])).Namespace(namespace)
	want := w.world.content(typ, i.Served[0], namespace, name, w.world.nextSerial(), color)
	if !exists {
		if err := w.quicken(ctx, typ); err != nil {
			return err
		}
	}
	return until(ctx, "write an object", func() (bool, error) {
		var got *unstructured.Unstructured
		var err error
		begun := time.Now()
		if exists {
			got, err = overwrite(ctx, client, want, color)
		} else {
			got, err = client.Create(ctx, want, metav1.CreateOptions{})
		}
		if exists && apierrors.IsNotFound(err) {
			w.confirm(ctx)
			if !w.world.exists(typ, key(namespace, name)) {
				return true, nil
			}
		}
		if err != nil {
			return false, err
		}
		w.world.wrote(typ, got, begun)
		return true, nil
	})
}

// overwrite updates the object with the name of want, and keeps its finalizers and, without a color, its labels.
func overwrite(ctx context.Context, client dynamic.ResourceInterface, want *unstructured.Unstructured, color string) (*unstructured.Unstructured, error) {
	got, err := client.Get(ctx, want.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	want.SetResourceVersion(got.GetResourceVersion())
	want.SetFinalizers(got.GetFinalizers())
	if color == "" {
		want.SetLabels(got.GetLabels())
	}
	return client.Update(ctx, want, metav1.UpdateOptions{})
}

// remove deletes an object, if it exists.
func (w *writer) remove(ctx context.Context, typ, object string) error {
	i, n := w.world.Incarnation(typ)
	if n < 0 {
		return nil
	}
	namespace, name := w.locate(object, i.Namespaced)
	if !w.world.exists(typ, key(namespace, name)) {
		return nil
	}
	return w.delete(ctx, typ, namespace, name)
}

// delete deletes an object that exists.
func (w *writer) delete(ctx context.Context, typ, namespace, name string) error {
	client, begun := w.resource(typ, namespace), time.Now()
	state, _ := w.world.state(typ, key(namespace, name))
	if !state.Held {
		w.world.deleted(typ, key(namespace, name), begun)
	}
	err := until(ctx, "delete an object", func() (bool, error) {
		err := client.Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) && w.lists(ctx, typ) { // a server that is behind has deleted it: see confirm
			if err = client.Delete(ctx, name, metav1.DeleteOptions{}); apierrors.IsNotFound(err) {
				w.confirm(ctx)
				return true, nil
			}
		}
		return err == nil, err
	})
	if err == nil && state.Held && w.world.exists(typ, key(namespace, name)) {
		err = w.waits(ctx, typ, namespace, name, begun)
	}
	return err
}

// lists reports whether a type can be listed.
func (w *writer) lists(ctx context.Context, typ string) bool {
	i, n := w.world.Incarnation(typ)
	if n < 0 {
		return false
	}
	_, err := w.client.Resource(w.world.Resource(typ, i.Served[0])).List(ctx, metav1.ListOptions{Limit: 1})
	return err == nil
}

// confirm records the deletion of objects that the server does not have: with two API servers, the one that learns late of the end
// of a CRD may delete objects of the next CRD with its name. It ignores types that can't be listed now.
func (w *writer) confirm(ctx context.Context) {
	for _, typ := range w.world.Types() {
		i, n := w.world.Incarnation(typ)
		if n < 0 {
			continue
		}
		list, err := w.client.Resource(w.world.Resource(typ, i.Served[0])).List(ctx, metav1.ListOptions{})
		if err != nil {
			continue
		}
		has := map[types.UID]bool{}
		for _, obj := range list.Items {
			has[obj.GetUID()] = true
		}
		for _, o := range w.world.Objects(typ) {
			if !has[o.UID] {
				w.world.deleted(typ, o.Key(), o.States[0].At) // at any time since
			}
		}
	}
}

// advance makes the server's versions grow if there is a type, and writes objects of each type, in each namespace and color. A restore that follows makes
// the versions smaller: only a subject that has got later ones than the server then has can notice it.
func (w *writer) advance(ctx context.Context) error {
	for _, typ := range w.world.Types() {
		_, n := w.world.Incarnation(typ)
		if n < 0 {
			continue
		}
		for n := range 40 {
			annotation := fmt.Appendf(nil, `{"metadata":{"annotations":{"advanced":"%d"}}}`, n)
			if _, err := w.client.Resource(definitions).Patch(ctx, w.definitionName(typ), types.MergePatchType, annotation, metav1.PatchOptions{}); err != nil {
				return err
			}
		}
		for _, namespace := range []string{"a", "b", "c"} {
			for _, color := range []string{"red", "blue"} {
				object := namespace + "/last-" + color
				for _, op := range []Op{NewOp(Create, []string{typ, object}, "color", color), NewOp(Update, []string{typ, object})} {
					if err := w.write(ctx, op); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// fill writes many objects.
func (w *writer) fill(ctx context.Context, op Op) error {
	count := number(op.With["count"], 10)
	for n := range count {
		if err := w.put(ctx, op.Arg("type"), fmt.Sprintf("%s/f%d", op.Arg("namespace"), n), "", true, true); err != nil {
			return err
		}
	}
	return nil
}
