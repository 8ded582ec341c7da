package churn

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// Observation is what a subject has seen of an object.
type Observation struct {
	Namespace       string
	Name            string
	UID             types.UID
	ResourceVersion string
	Serial          string // of the content
	Color           string
	Held            bool   // it has a finalizer
	Terminating     bool   // it has a deletionTimestamp
	Version         string // of the type; empty for metadata
	// Problem is what is wrong with the object itself: its parts are of different states, or its
	// form is wrong. It is empty if the object is whole.
	Problem string
	// Unknown means that a deletion had no final state: [cache.DeletedFinalStateUnknown].
	Unknown bool
}

// Key returns namespace/name, or the name.
func (o Observation) Key() string { return key(o.Namespace, o.Name) }

// hasContentOf reports whether both are the same, apart from names, UIDs and versions.
func (o Observation) hasContentOf(other Observation) bool {
	return o.Serial == other.Serial && o.Color == other.Color && o.Held == other.Held && o.Terminating == other.Terminating
}

// String describes the observation.
func (o Observation) String() string {
	more := ""
	if o.Held {
		more = ", with a finalizer"
	}
	if o.Terminating {
		more += ", terminating"
	}
	return fmt.Sprintf("%s at %s (content %s, color %q, UID %s%s)", o.Key(), o.ResourceVersion, o.Serial, o.Color, o.UID, more)
}

// Form is the form in which a subject gets objects.
type Form string

// The forms.
const (
	Whole       Form = ""            // *unstructured.Unstructured as the server has it
	Metadata    Form = "metadata"    // only metadata
	Transformed Form = "transformed" // by [Transform]
	Typed       Form = "typed"       // *[Thing]
)

// Thing is the Go type of the objects of scripts.
type Thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec ThingSpec `json:"spec"`
}

// ThingSpec is the content of a Thing.
type ThingSpec struct {
	Serial  string `json:"serial"`
	Payload string `json:"payload"`
	List    []any  `json:"list"`
}

// DeepCopyObject implements [runtime.Object].
func (t *Thing) DeepCopyObject() runtime.Object {
	c := &Thing{TypeMeta: t.TypeMeta, Spec: t.Spec}
	t.DeepCopyInto(&c.ObjectMeta)
	c.Spec.List = runtime.DeepCopyJSONValue(t.Spec.List).([]any)
	return c
}

// Transform replaces the spec of an object by its serial. It accepts its own result.
func Transform(obj any) (any, error) {
	if last, unknown := obj.(cache.DeletedFinalStateUnknown); unknown {
		obj = last.Obj
	}
	u, is := obj.(*unstructured.Unstructured)
	if !is {
		return obj, nil
	}
	if serial, found, _ := unstructured.NestedString(u.Object, "spec", "serial"); found {
		delete(u.Object, "spec")
		u.Object["transformed"] = serial
	}
	return u, nil
}

// Observe reads an object that a subject has got in a form.
func Observe(obj any, form Form) Observation {
	unknown := false
	if last, is := obj.(cache.DeletedFinalStateUnknown); is {
		obj, unknown = last.Obj, true
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return Observation{Problem: fmt.Sprintf("an object of type %T: %v", obj, err)}
	}
	seen := Observation{
		Namespace: accessor.GetNamespace(), Name: accessor.GetName(), UID: accessor.GetUID(),
		ResourceVersion: accessor.GetResourceVersion(), Serial: accessor.GetAnnotations()[serialAnnotation],
		Color: accessor.GetLabels()[ColorLabel], Unknown: unknown,
		Held: len(accessor.GetFinalizers()) > 0, Terminating: accessor.GetDeletionTimestamp() != nil,
	}
	if typed, is := obj.(runtime.Object); is && form != Metadata {
		seen.Version = typed.GetObjectKind().GroupVersionKind().Version
	}
	if payload := accessor.GetAnnotations()[payloadAnnotation]; payload != payloadOf(seen.Serial) {
		seen.Problem = fmt.Sprintf("one annotation has content %s, and another one is %s", seen.Serial, payload)
		return seen
	}
	seen.Problem = problemOf(obj, form, seen.Serial)
	return seen
}

// problemOf returns what is wrong with the content of an object whose annotations have this serial.
func problemOf(obj any, form Form, serial string) string {
	want := specOf(serial)
	switch u := obj.(type) {
	case *metav1.PartialObjectMetadata:
		if form == Metadata {
			return ""
		}
	case *Thing:
		has := map[string]any{"serial": u.Spec.Serial, "payload": u.Spec.Payload, "list": u.Spec.List}
		switch {
		case form != Typed:
		case fmt.Sprint(has) != fmt.Sprint(want): // types of numbers are those of encoding/json
			return fmt.Sprintf("the annotation has content %s, and the spec is %v", serial, u.Spec)
		default:
			return ""
		}
	case *unstructured.Unstructured:
		switch {
		case form == Transformed && (u.Object["transformed"] != serial || u.Object["spec"] != nil):
			return "the transform was not called"
		case form == Whole && !reflect.DeepEqual(u.Object["spec"], want):
			return fmt.Sprintf("the annotation has content %s, and the spec is %v", serial, u.Object["spec"])
		case form == Transformed || form == Whole:
			return ""
		}
	}
	return fmt.Sprintf("an object of form %q has the type %T", form, obj)
}

func observe(obj *unstructured.Unstructured) Observation { return Observe(obj, Whole) }
