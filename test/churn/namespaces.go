package churn

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// ownNamespaces are the namespaces of a script that come and go. Each run has its own Namespace objects for them. The others, a, b and
// c, always exist, and all runs have the same.
var ownNamespaces = []string{"d1", "d2"}

// runLabel is the label of a run's own Namespace objects. Its value is the run.
const runLabel = "churn.gvrkit.io/run"

// namespaceTruth is a Namespace object that exists.
type namespaceTruth struct {
	color       string // the label
	terminating bool
}

// run returns a name that only this run has.
func (w *World) run() string { return strings.TrimSuffix(w.Group, ".example.com") }

// namespace returns the name that a namespace of a script has on the servers.
func (w *World) namespace(name string) string {
	if slices.Contains(ownNamespaces, name) {
		return name + "-" + w.run()
	}
	return name
}

// NamespaceSelector returns the selector of the run's own Namespace objects with a color.
func (w *World) NamespaceSelector(color string) string {
	return fmt.Sprintf("%s=%s,%s=%s", runLabel, w.run(), ColorLabel, color)
}

// HasNamespaces reports whether the servers have Namespace objects.
func (w *World) HasNamespaces() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.namespaces != nil
}

// SelectedNamespaces returns the sets of namespaces that have been selected by a color. They change with the Namespace objects.
func (w *World) SelectedNamespaces(color string) *NamespaceSets {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.selected[color] == nil {
		w.selected[color] = &NamespaceSets{}
		w.selected[color].Change(w.withColorLocked(color)...)
	}
	return w.selected[color]
}

func (w *World) withColorLocked(color string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(w.namespaces)) {
		if w.namespaces[name].color == color {
			names = append(names, name)
		}
	}
	return names
}

// changeNamespaces records a write to Namespace objects. It must be called before the subject can notice the write.
func (w *World) changeNamespaces(change func(namespaces map[string]namespaceTruth)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w.namespaces)
	for color, sets := range w.selected {
		sets.Change(w.withColorLocked(color)...)
	}
}

// ownNamespace returns the Namespace object with this name on the servers.
func (w *World) ownNamespace(name string) (truth namespaceTruth, exists bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	truth, exists = w.namespaces[name]
	return truth, exists
}

// accepts reports whether objects can be created in a namespace.
func (w *World) accepts(namespace string) bool {
	if !w.HasNamespaces() || !strings.HasSuffix(namespace, "-"+w.run()) {
		return true
	}
	truth, exists := w.ownNamespace(namespace)
	return exists && !truth.terminating
}

// setNamespace creates a Namespace object, or changes its label.
func (w *writer) setNamespace(ctx context.Context, op Op) error {
	name, color := w.world.namespace(op.Arg("namespace")), op.With["color"]
	truth, exists := w.world.ownNamespace(name)
	if !w.world.HasNamespaces() || exists == (op.Verb == NewNamespace) {
		return nil
	}
	w.world.changeNamespaces(func(namespaces map[string]namespaceTruth) {
		namespaces[name] = namespaceTruth{color, truth.terminating}
	})
	if exists {
		body := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, ColorLabel, color)
		_, err := w.client.Resource(namespaces).Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
		return err
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	obj.SetName(name)
	obj.SetLabels(map[string]string{runLabel: w.world.run(), ColorLabel: color})
	_, err := w.client.Resource(namespaces).Create(ctx, obj, metav1.CreateOptions{})
	return err
}

// endNamespace deletes a Namespace object with the objects in it, as the controller of namespaces does: the namespace is terminating
// until the objects are gone.
func (w *writer) endNamespace(ctx context.Context, op Op) error {
	name := w.world.namespace(op.Arg("namespace"))
	if _, exists := w.world.ownNamespace(name); !exists || w.world.Moved() {
		return nil
	}
	w.world.changeNamespaces(func(namespaces map[string]namespaceTruth) {
		namespaces[name] = namespaceTruth{namespaces[name].color, true}
	})
	if err := w.client.Resource(namespaces).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		return err
	}
	for _, typ := range w.world.Types() {
		w.mend(typ, false)
		for _, o := range w.world.Objects(typ) {
			if o.Namespace != name {
				continue
			}
			if err := wait(ctx, milliseconds(op)); err != nil {
				return err
			}
			if err := w.delete(ctx, typ, o.Namespace, o.Name); err != nil {
				return err
			}
			if err := w.freeIn(ctx, typ, o.Namespace, o.Name); err != nil {
				return err
			}
		}
	}
	w.world.changeNamespaces(func(namespaces map[string]namespaceTruth) { delete(namespaces, name) })
	return w.finalize(ctx, name)
}

// finalize completes the deletion of a Namespace object.
func (w *writer) finalize(ctx context.Context, name string) error {
	client := w.client.Resource(namespaces)
	return until(ctx, "delete a namespace", func() (bool, error) {
		obj, err := client.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		unstructured.RemoveNestedField(obj.Object, "spec", "finalizers")
		_, err = client.Update(ctx, obj, metav1.UpdateOptions{}, "finalize")
		return false, ignoreNotFound(err)
	})
}

// endNamespaces deletes all Namespace objects of the run. Their objects must be gone.
func (w *writer) endNamespaces(ctx context.Context) error {
	w.world.mu.Lock()
	names := slices.Collect(maps.Keys(w.world.namespaces))
	w.world.mu.Unlock()
	for _, name := range names {
		if err := w.client.Resource(namespaces).Delete(ctx, name, metav1.DeleteOptions{}); ignoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return err
		}
		if err := w.finalize(ctx, name); err != nil {
			return err
		}
	}
	return nil
}
