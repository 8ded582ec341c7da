package controllerruntime

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Gizmo is a Go type with many types of fields.
type Gizmo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Size     int32                `json:"size,omitempty"`
	Wide     int64                `json:"wide,omitempty"`
	Ratio    *float64             `json:"ratio,omitempty"`
	Port     intstr.IntOrString   `json:"port"`
	At       *metav1.Time         `json:"at,omitempty"`
	Every    metav1.Duration      `json:"every"`
	Quantity resource.Quantity    `json:"quantity"`
	Raw      runtime.RawExtension `json:"raw"`
	Bytes    []byte               `json:"bytes,omitempty"`
	List     []string             `json:"list,omitempty"`
	Pointers []*int               `json:"pointers,omitempty"`
	Parts    map[string]Part      `json:"parts,omitempty"`
	Next     *Part                `json:"next,omitempty"`
}

// Part is a part of a Gizmo.
type Part struct {
	Text   string            `json:"text,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

func (p Part) copied() Part { return Part{p.Text, maps.Clone(p.Labels)} }

func pointerTo[T any](p *T) *T {
	if p == nil {
		return nil
	}
	copied := *p
	return &copied
}

// DeepCopyObject implements runtime.Object.
func (g *Gizmo) DeepCopyObject() runtime.Object {
	other := *g
	g.DeepCopyInto(&other.ObjectMeta)
	other.Ratio, other.At = pointerTo(g.Ratio), g.At.DeepCopy()
	other.Quantity, other.Raw = g.Quantity.DeepCopy(), *g.Raw.DeepCopy()
	other.Bytes, other.List, other.Pointers = bytes.Clone(g.Bytes), slices.Clone(g.List), slices.Clone(g.Pointers)
	for n, p := range other.Pointers {
		other.Pointers[n] = pointerTo(p)
	}
	other.Parts = maps.Clone(g.Parts)
	for name, part := range other.Parts {
		other.Parts[name] = part.copied()
	}
	if g.Next != nil {
		next := g.Next.copied()
		other.Next = &next
	}
	return &other
}

// GizmoList is a list of gizmos.
type GizmoList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Gizmo `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *GizmoList) DeepCopyObject() runtime.Object {
	other := &GizmoList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta}
	for _, item := range l.Items {
		other.Items = append(other.Items, *item.DeepCopyObject().(*Gizmo))
	}
	return other
}

// Gizmo2 and Gizmo2List are those of another version.
type (
	Gizmo2     struct{ Gizmo }
	Gizmo2List struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`

		Items []*Gizmo2 `json:"items"`
	}
)

// DeepCopyObject implements runtime.Object.
func (g *Gizmo2) DeepCopyObject() runtime.Object {
	return &Gizmo2{*g.Gizmo.DeepCopyObject().(*Gizmo)}
}

// DeepCopyObject implements runtime.Object.
func (l *Gizmo2List) DeepCopyObject() runtime.Object {
	other := &Gizmo2List{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta}
	for _, item := range l.Items {
		other.Items = append(other.Items, item.DeepCopyObject().(*Gizmo2))
	}
	return other
}

// Gadget and GadgetList are those of a cluster-scoped kind.
type (
	Gadget     struct{ Gizmo }
	GadgetList struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`

		Items []Gadget `json:"items"`
	}
)

// DeepCopyObject implements runtime.Object.
func (g *Gadget) DeepCopyObject() runtime.Object {
	return &Gadget{*g.Gizmo.DeepCopyObject().(*Gizmo)}
}

// DeepCopyObject implements runtime.Object.
func (l *GadgetList) DeepCopyObject() runtime.Object {
	other := &GadgetList{TypeMeta: l.TypeMeta, ListMeta: l.ListMeta}
	for _, item := range l.Items {
		other.Items = append(other.Items, *item.DeepCopyObject().(*Gadget))
	}
	return other
}

// kind is a kind of the test.
type kind struct {
	schema.GroupVersionKind
	schema.GroupVersionResource
	namespaced, served bool
	object             func() client.Object
	list               func() client.ObjectList
}

var example, otherVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}, schema.GroupVersion{Group: "example.com", Version: "v2"}

const servedKinds = 4 // the first ones of kinds

var kinds = []kind{
	{example.WithKind("Gizmo"), example.WithResource("gizmos"), true, true, func() client.Object { return &Gizmo{} }, func() client.ObjectList { return &GizmoList{} }},
	{example.WithKind("Gadget"), example.WithResource("gadgets"), false, true, func() client.Object { return &Gadget{} }, func() client.ObjectList { return &GadgetList{} }},
	{
		corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithResource("configmaps"), true, true,
		func() client.Object { return &corev1.ConfigMap{} }, func() client.ObjectList { return &corev1.ConfigMapList{} },
	},
	{
		otherVersion.WithKind("Gizmo"), otherVersion.WithResource("gizmos"), true, true,
		func() client.Object { return &Gizmo2{} }, func() client.ObjectList { return &Gizmo2List{} },
	},
	{example.WithKind("Widget"), example.WithResource("widgets"), true, false, func() client.Object { return &Widget{} }, func() client.ObjectList { return &WidgetList{} }},
}

// in returns an empty object of a form.
func (k kind) in(as representation) client.Object {
	switch as {
	case asUnstructured:
		return newUnstructured(k.GroupVersionKind)
	case asMetadata:
		return newMetadata(k.GroupVersionKind)
	}
	return k.object()
}

// listIn returns an empty list of a form.
func (k kind) listIn(as representation) client.ObjectList {
	of := k.GroupVersionKind
	of.Kind += "List"
	switch as {
	case asUnstructured:
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(of)
		return list
	case asMetadata:
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(of)
		return list
	}
	return k.list()
}

var forms = []representation{asStructured, asUnstructured, asMetadata}

// gizmoOf returns the gizmo in an object, or nil.
func gizmoOf(object any) *Gizmo {
	switch object := object.(type) {
	case *Gizmo:
		return object
	case *Gadget:
		return &object.Gizmo
	case *Gizmo2:
		return &object.Gizmo
	}
	return nil
}

// textOf returns an object as a text in which nil and empty values differ.
func textOf(object any) string {
	if tree, is := object.(*unstructured.Unstructured); is {
		return fmt.Sprintf("%#v", tree.Object)
	}
	data, err := json.Marshal(object)
	if err != nil {
		return err.Error()
	}
	var content any // the JSON that some fields keep may have another order of fields
	if err := json.Unmarshal(data, &content); err != nil {
		return err.Error()
	}
	text := fmt.Sprintf("%T %v", object, content)
	if o, is := object.(metav1.Object); is {
		text += fmt.Sprint(" nil: ", o.GetLabels() == nil, o.GetAnnotations() == nil, o.GetFinalizers() == nil, o.GetOwnerReferences() == nil)
	}
	if g := gizmoOf(object); g != nil {
		text += fmt.Sprint(" nil: ", g.List == nil, g.Pointers == nil, g.Parts == nil, g.Bytes == nil, g.Raw.Raw == nil)
	}
	return text
}

// spoil changes all parts of an object that belongs to the caller.
func spoil(object client.Object) {
	for _, texts := range []map[string]string{object.GetLabels(), object.GetAnnotations()} {
		spoilTexts(texts)
	}
	switch object := object.(type) {
	case *unstructured.Unstructured:
		spoilTree(object.Object)
		return
	case *corev1.ConfigMap:
		spoilTexts(object.Data)
		for _, value := range object.BinaryData {
			spoilBytes(value)
		}
	default:
		if gizmo := gizmoOf(object); gizmo != nil {
			spoilGizmo(gizmo)
		}
	}
	for n := range object.GetFinalizers() {
		object.GetFinalizers()[n] = "spoiled"
	}
	for _, owner := range object.GetOwnerReferences() {
		*owner.Controller = !*owner.Controller
	}
	for _, entry := range object.GetManagedFields() {
		spoilBytes(entry.FieldsV1.GetRawBytes())
	}
}

func spoilGizmo(gizmo *Gizmo) {
	spoilBytes(gizmo.Bytes)
	spoilBytes(gizmo.Raw.Raw)
	for n := range gizmo.List {
		gizmo.List[n] = "spoiled"
	}
	for _, p := range gizmo.Pointers {
		if p != nil {
			*p = 77
		}
	}
	for name, part := range gizmo.Parts {
		spoilTexts(part.Labels)
		delete(gizmo.Parts, name)
	}
	if gizmo.Ratio != nil {
		*gizmo.Ratio = 77
	}
	if gizmo.At != nil {
		gizmo.At.Time = time.Unix(1, 0)
	}
	if gizmo.Next != nil {
		gizmo.Next.Text = "spoiled"
	}
}

func spoilTexts(texts map[string]string) {
	for key := range texts {
		texts[key] = "spoiled"
	}
}

func spoilBytes(bytes []byte) {
	for n := range bytes {
		bytes[n] = 'X'
	}
}

func spoilTree(value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			spoilTree(member)
			value[key] = "spoiled"
		}
	case []any:
		for n, element := range value {
			spoilTree(element)
			value[n] = "spoiled"
		}
	}
}

// randomValue returns a random JSON value.
func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(9); {
	case n == 0:
		return nil
	case n == 1:
		return r.IntN(2) == 0
	case n == 2:
		return int64(r.IntN(1 << 30))
	case n == 3:
		return r.Float64()
	case n == 4 || depth == 0:
		return one(r, "", "text", "ünï \u2028 <&>", strings.Repeat("long", 50))
	case n < 7:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, randomValue(r, depth-1))
		}
		return list
	}
	object := map[string]any{}
	for range r.IntN(4) {
		object[one(r, "a", "b", "ü", "apiVersion")] = randomValue(r, depth-1)
	}
	return object
}

// fillGizmo sets random fields of a gizmo.
func fillGizmo(r *rand.Rand, object map[string]any) {
	maybe := func(name string, values ...any) {
		switch r.IntN(4) {
		case 0:
			delete(object, name)
		case 1:
			if name != "port" && name != "every" { // their types do not accept null
				object[name] = nil
			}
		default:
			object[name] = values[r.IntN(len(values))]
		}
	}
	maybe("size", int64(0), int64(1), int64(2), int64(-1))
	maybe("wide", int64(0), int64(1<<62), int64(-1<<62))
	maybe("ratio", 0.5, 1e100, int64(3), int64(0))
	maybe("port", int64(80), "http", "")
	maybe("at", "2024-01-02T03:04:05Z")
	maybe("every", "1h0m0s", "5s")
	maybe("quantity", "100m", "1Gi", int64(5), 1.5)
	maybe("raw", randomValue(r, 3))
	maybe("bytes", "", "YWJj")
	maybe("list", []any{}, []any{"a", ""}, []any{nil, "b"})
	maybe("pointers", []any{}, []any{nil, int64(1)})
	maybe("parts", map[string]any{}, map[string]any{"a": map[string]any{"text": "x", "labels": map[string]any{"a": "b"}}, "b": nil, "c": map[string]any{}})
	maybe("next", map[string]any{}, map[string]any{"labels": map[string]any{}, "text": nil})
	maybe("unknown", randomValue(r, 3))
}

// fillMetadata sets random metadata.
func fillMetadata(r *rand.Rand, object *unstructured.Unstructured) {
	object.SetLabels(one(r, nil, map[string]string{"app": "x"}, map[string]string{"app": "y", "tier": ""}, map[string]string{"app": "z", "tier": "1"}))
	object.SetAnnotations(one(r, nil, map[string]string{}, map[string]string{"a": "b"}))
	object.SetFinalizers(one(r, nil, []string{}, []string{"f"}))
	object.SetGeneration(int64(r.IntN(3)))
	object.SetCreationTimestamp(metav1.Time{Time: time.Unix(int64(r.IntN(1e9)), 0)})
	if r.IntN(3) == 0 {
		controller := r.IntN(2) == 0
		object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: "u", Controller: &controller}})
	}
	if r.IntN(3) == 0 {
		object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Update", FieldsV1: metav1.NewFieldsV1(`{"f:b":{".":{}},"f:a":{}}`)}})
	}
	if r.IntN(8) == 0 {
		object.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(5, 0)})
	}
}

// randomObject returns an object of a kind: the former one, if that is not nil, with other values.
func randomObject(r *rand.Rand, k kind, former *unstructured.Unstructured) *unstructured.Unstructured {
	object := former
	if object == nil {
		object = newUnstructured(k.GroupVersionKind)
	}
	if k.Kind == "ConfigMap" {
		object.Object["data"] = one[any](r, nil, map[string]any{}, map[string]any{"a": "b", "c": "ü"})
		object.Object["binaryData"] = one[any](r, nil, map[string]any{}, map[string]any{"a": "YWJj"})
	} else {
		fillGizmo(r, object.Object)
	}
	fillMetadata(r, object)
	return object
}

func newGizmoScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := newScheme()
	scheme.AddKnownTypes(example, &Gizmo{}, &GizmoList{}, &Gadget{}, &GadgetList{})
	metav1.AddToGroupVersion(scheme, otherVersion)
	scheme.AddKnownTypeWithName(otherVersion.WithKind("Gizmo"), &Gizmo2{})
	scheme.AddKnownTypeWithName(otherVersion.WithKind("GizmoList"), &Gizmo2List{})
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return scheme
}

// one returns a random element.
func one[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }
