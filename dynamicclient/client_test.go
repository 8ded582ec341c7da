package dynamicclient_test

import (
	"context"
	"math"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/gvrkit/gvrkit/internal/stubserver"
)

var pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// fullWidget is an object to write, with a value of each type.
func fullWidget() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "a", "namespace": "ns", "labels": map[string]any{"x": "<y>"}},
		"spec":     map[string]any{"int": int64(1) << 60, "float": 1.5, "list": []any{nil, true, "\u2028"}, "none": map[string]any{}},
	}}
}

// created creates obj; the name is needed for subresources only.
func created(obj *unstructured.Unstructured, opts metav1.CreateOptions, subresources ...string) call {
	return func(ctx context.Context, c dynamic.Interface) (any, error) {
		return widgetsOf(c).Create(ctx, obj, opts, subresources...)
	}
}

func updated(obj *unstructured.Unstructured, opts metav1.UpdateOptions, subresources ...string) call {
	return func(ctx context.Context, c dynamic.Interface) (any, error) {
		return widgetsOf(c).Update(ctx, obj, opts, subresources...)
	}
}

func patched(kind types.PatchType, patch string, subresources ...string) call {
	return func(ctx context.Context, c dynamic.Interface) (any, error) {
		return widgetsOf(c).Patch(ctx, "a", kind, []byte(patch), metav1.PatchOptions{FieldManager: "me", Force: new(true)}, subresources...)
	}
}

func applied(obj *unstructured.Unstructured, subresources ...string) call {
	return func(ctx context.Context, c dynamic.Interface) (any, error) {
		return widgetsOf(c).Apply(ctx, "a", obj, metav1.ApplyOptions{FieldManager: "me", Force: true}, subresources...)
	}
}

func deleted(opts metav1.DeleteOptions, subresources ...string) call {
	return func(ctx context.Context, c dynamic.Interface) (any, error) {
		return nil, widgetsOf(c).Delete(ctx, "a", opts, subresources...)
	}
}

func TestClient_WritesAsClientGo(t *testing.T) {
	managed := fullWidget()
	managed.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m"}})
	widget := []stubserver.Reply{stubserver.JSON(widgetA)}
	serve(t).checkAll(t, []exchange{
		{name: "create", replies: []stubserver.Reply{stubserver.Respond(201, "application/json", widgetA)}, call: created(fullWidget(), metav1.CreateOptions{DryRun: []string{"All"}, FieldManager: "me", FieldValidation: "Strict"})},
		{name: "create a subresource", replies: widget, call: created(fullWidget(), metav1.CreateOptions{}, "eviction")},
		{name: "create a subresource of what has no name", call: created(&unstructured.Unstructured{Object: map[string]any{}}, metav1.CreateOptions{}, "eviction"), fails: "name is required"},
		{name: "create without a kind", replies: widget, call: created(&unstructured.Unstructured{Object: map[string]any{"spec": nil}}, metav1.CreateOptions{})},
		{name: "create without a namespace", replies: widget, call: func(ctx context.Context, c dynamic.Interface) (any, error) {
			return c.Resource(blocks).Create(ctx, fullWidget(), metav1.CreateOptions{})
		}},
		{name: "create and get no body", replies: []stubserver.Reply{stubserver.Respond(201, "application/json", "")}, call: created(fullWidget(), metav1.CreateOptions{}), fails: "0-length response"},
		{name: "update", replies: widget, call: updated(fullWidget(), metav1.UpdateOptions{FieldManager: "me"})},
		{name: "update the scale", replies: []stubserver.Reply{stubserver.JSON(scale)}, call: updated(fullWidget(), metav1.UpdateOptions{}, "scale")},
		{name: "update the status", replies: widget, call: func(ctx context.Context, c dynamic.Interface) (any, error) {
			return widgetsOf(c).UpdateStatus(ctx, fullWidget(), metav1.UpdateOptions{DryRun: []string{"All"}})
		}},
		{name: "merge patch", replies: widget, call: patched(types.MergePatchType, `{"spec":{"replicas":null}}`)},
		{name: "JSON patch of the status", replies: widget, call: patched(types.JSONPatchType, `[{"op":"remove","path":"/status/x"}]`, "status")},
		{name: "strategic merge patch", replies: widget, call: patched(types.StrategicMergePatchType, `{}`)},
		{name: "apply patch", replies: widget, call: patched(types.ApplyYAMLPatchType, "kind: Widget\n")},
		{name: "apply", replies: widget, call: applied(fullWidget())},
		{name: "apply the scale", replies: []stubserver.Reply{stubserver.JSON(scale)}, call: applied(fullWidget(), "scale")},
		{name: "apply managed fields", replies: widget, call: applied(managed), fails: "cannot apply an object with managed fields"},
		{name: "apply the status", replies: widget, call: func(ctx context.Context, c dynamic.Interface) (any, error) {
			return widgetsOf(c).ApplyStatus(ctx, "a", fullWidget(), metav1.ApplyOptions{FieldManager: "me"})
		}},
	})
}

func TestClient_DeletesAsClientGo(t *testing.T) {
	opts := metav1.DeleteOptions{
		GracePeriodSeconds: new(int64(0)), PropagationPolicy: new(metav1.DeletePropagationForeground), DryRun: []string{"All"},
		Preconditions: &metav1.Preconditions{UID: new(types.UID("0b1e")), ResourceVersion: new("7")},
	}
	collection := func(ctx context.Context, c dynamic.Interface) (any, error) {
		return nil, widgetsOf(c).DeleteCollection(ctx, opts, metav1.ListOptions{LabelSelector: "x=y", Limit: 3})
	}
	serve(t).checkAll(t, []exchange{
		{name: "answered with a Status", replies: []stubserver.Reply{stubserver.JSON(success)}, call: deleted(opts)},
		{name: "answered with the object", replies: []stubserver.Reply{stubserver.JSON(widgetA)}, call: deleted(opts)},
		{name: "accepted", replies: []stubserver.Reply{stubserver.Respond(202, "application/json", widgetA)}, call: deleted(metav1.DeleteOptions{})},
		{name: "answered with nothing", replies: []stubserver.Reply{stubserver.Respond(200, "application/json", "")}, call: deleted(metav1.DeleteOptions{})},
		{name: "of a subresource", replies: []stubserver.Reply{stubserver.JSON(success)}, call: deleted(metav1.DeleteOptions{}, "binding")},
		{name: "of many", replies: []stubserver.Reply{stubserver.JSON(stubserver.WidgetList(widgetA, widgetB))}, call: collection},
		{name: "of many, refused", replies: []stubserver.Reply{stubserver.Respond(403, "application/json", stubserver.Failure(403, "Forbidden"))}, call: collection, fails: "it failed"},
	})
}

func TestClient_ReadsAsClientGo(t *testing.T) {
	const (
		podList   = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","remainingItemCount":3,"continue":"c"},"items":[{"metadata":{"name":"p"},"spec":{}},{"kind":"Other","metadata":{}},{"apiVersion":"v2"}]}`
		table     = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"columnDefinitions":[{"name":"Name","type":"string","format":"name","description":"d","priority":0}],"rows":[{"cells":["a",1,1.5,null],"object":` + widgetA + `}]}`
		partial   = `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"a","creationTimestamp":null}}`
		partials  = `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}},` + partial + `]}`
		nullItems = `{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{"resourceVersion":"9"},"items":null}`
		noItems   = `{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{"resourceVersion":"9"}}`
	)
	some := metav1.ListOptions{LabelSelector: "x in (y,z)", FieldSelector: "metadata.name=a", Limit: 2, Continue: "t/o=k", ResourceVersion: "7", ResourceVersionMatch: metav1.ResourceVersionMatchExact, TimeoutSeconds: new(int64(5))}
	all := metav1.ListOptions{}
	byName := func(namespace, name string, opts metav1.GetOptions) call {
		return func(ctx context.Context, c dynamic.Interface) (any, error) {
			return c.Resource(pods).Namespace(namespace).Get(ctx, name, opts)
		}
	}
	serve(t).checkAll(t, []exchange{
		{name: "get", replies: []stubserver.Reply{stubserver.JSON(widgetA)}, call: get()},
		{name: "get at a version", replies: []stubserver.Reply{stubserver.JSON(widgetA)}, call: byName("ns", "a b?", metav1.GetOptions{ResourceVersion: "7"})},
		{name: "get without a name", call: byName("ns", "", metav1.GetOptions{}), fails: "name is required"},
		{name: "get by a name that is a path", call: byName("ns", "../a", metav1.GetOptions{}), fails: "invalid resource name"},
		{name: "get in a namespace that is a path", call: byName("..", "a", metav1.GetOptions{}), fails: "invalid namespace"},
		{name: "get the scale", replies: []stubserver.Reply{stubserver.JSON(scale)}, call: get("scale")},
		{name: "get partial metadata", replies: []stubserver.Reply{stubserver.JSON(partial)}, call: get()},
		{name: "get a table", replies: []stubserver.Reply{stubserver.JSON(table)}, call: get()},
		{name: "get a list", replies: []stubserver.Reply{stubserver.JSON(stubserver.WidgetList(widgetA))}, call: get()},
		{name: "get a success Status", replies: []stubserver.Reply{stubserver.JSON(success)}, call: get()},
		{name: "get a failure Status with 200", replies: []stubserver.Reply{stubserver.JSON(expired)}, call: get()},
		{name: "list", replies: []stubserver.Reply{stubserver.JSON(stubserver.WidgetList(widgetA, widgetB))}, call: list(all)},
		{name: "list some", replies: []stubserver.Reply{stubserver.JSON(stubserver.WidgetList(widgetA, widgetB))}, call: list(some)},
		{name: "list none", replies: []stubserver.Reply{stubserver.JSON(noList)}, call: list(all)},
		{name: "list null items", replies: []stubserver.Reply{stubserver.JSON(nullItems)}, call: list(all)},
		{name: "list no items", replies: []stubserver.Reply{stubserver.JSON(noItems)}, call: list(all)},
		{name: "list items first", replies: []stubserver.Reply{stubserver.JSON(`{"items":[` + widgetA + `],"metadata":{"resourceVersion":"9"},"kind":"WidgetList","apiVersion":"example.com/v1"}`)}, call: list(all)},
		{name: "list pods, whose items have no kind", replies: []stubserver.Reply{stubserver.JSON(podList)}, call: listOf(pods)},
		{name: "list partial metadata", replies: []stubserver.Reply{stubserver.JSON(partials)}, call: list(all)},
		{name: "list a table", replies: []stubserver.Reply{stubserver.JSON(table)}, call: list(all)},
		{name: "list a single object", replies: []stubserver.Reply{stubserver.JSON(widgetA)}, call: list(all)},
		{name: "list a Status", replies: []stubserver.Reply{stubserver.JSON(expired)}, call: list(all)},
		{name: "list, indented", replies: []stubserver.Reply{stubserver.JSON(indented(t, stubserver.WidgetList(widgetA, widgetB)))}, call: list(all)},
	})
}

func TestClient_ListsInPagesAsClientGo(t *testing.T) {
	first := `{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{"resourceVersion":"9","continue":"two","remainingItemCount":1},"items":[` + widgetA + `]}`
	serve(t).check(t, exchange{
		replies: []stubserver.Reply{stubserver.JSON(first), stubserver.JSON(stubserver.WidgetList(widgetB))},
		call: func(ctx context.Context, c dynamic.Interface) (any, error) {
			var pages []*unstructured.UnstructuredList
			for opts := (metav1.ListOptions{Limit: 1}); ; {
				page, err := widgetsOf(c).List(ctx, opts)
				if err != nil {
					return pages, err
				}
				pages = append(pages, page)
				if opts.Continue = page.GetContinue(); opts.Continue == "" {
					return pages, nil
				}
			}
		},
	})
}

func TestClient_KeepsTheSignOfZero(t *testing.T) {
	for name, newClient := range newClientFuncs {
		got := serve(t).outcome(t, exchange{replies: []stubserver.Reply{stubserver.JSON(widgetA)}, call: get()}, newClient)
		spec := got.Value.(*unstructured.Unstructured).Object["spec"].(map[string]any)
		if zero, ok := spec["zero"].(float64); !ok || zero != 0 || !math.Signbit(zero) {
			t.Errorf("%s: -0.0 is read as %v (%T)", name, spec["zero"], spec["zero"])
		}
	}
}
