package soak_test

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/packed"
)

// boat is the Go type of the objects.
type boat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec boatSpec `json:"spec"`
}

type boatSpec struct {
	State   string   `json:"state"`
	Payload string   `json:"payload"`
	Parts   []string `json:"parts"`
}

// DeepCopyObject implements [runtime.Object].
func (b *boat) DeepCopyObject() runtime.Object {
	c := *b
	b.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Parts = append([]string(nil), b.Spec.Parts...)
	return &c
}

// specOf is the spec of an object whose annotation is state.
func specOf(state string) boatSpec {
	return boatSpec{State: state, Payload: secret + strings.Repeat(" "+state, 30), Parts: []string{"hull", "mast " + state}}
}

// unstructured returns the spec as the server has it.
func (s boatSpec) unstructured() map[string]any {
	var parts []any
	for _, part := range s.Parts {
		parts = append(parts, part)
	}
	return map[string]any{"state": s.State, "payload": s.Payload, "parts": parts}
}

// newBoat returns the object that the write of a revision sends.
func (l *ledger) newBoat(namespace, name string, number, revision int) *unstructured.Unstructured {
	state := stateOf(number, revision)
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": specOf(state).unstructured()}}
	obj.SetGroupVersionKind(l.gvr.GroupVersion().WithKind(l.kind))
	obj.SetNamespace(namespace)
	obj.SetName(name)
	obj.SetAnnotations(map[string]string{stateAnnotation: state})
	obj.SetLabels(map[string]string{colorLabel: colorOf(number, revision)})
	return obj
}

// seen is what a program has seen of an object.
type seen struct {
	key      string
	number   int
	revision int
	uid      types.UID
	version  uint64
	color    string
	problem  string // what is wrong with the object itself; empty: nothing
}

// String describes the observation.
func (s seen) String() string {
	return fmt.Sprintf("%s, object %d, revision %d at %d, %s", s.key, s.number, s.revision, s.version, s.color)
}

// observe reads an object of an event or a cache. Its type must be that of the example.
func observe(obj any, example any) seen {
	switch deleted := obj.(type) {
	case cache.DeletedFinalStateUnknown:
		obj = deleted.Obj
	case cache.DeletedObject[*packed.Object]:
		obj = deleted.OptionalObj
	}
	if reflect.TypeOf(obj) != reflect.TypeOf(example) {
		return seen{problem: fmt.Sprintf("an object is a %T, and not a %T", obj, example)}
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return seen{problem: err.Error()}
	}
	state := accessor.GetAnnotations()[stateAnnotation]
	s := seen{key: accessor.GetNamespace() + "/" + accessor.GetName(), uid: accessor.GetUID(), color: accessor.GetLabels()[colorLabel]}
	if _, err := fmt.Sscanf(state, "%d/%d", &s.number, &s.revision); err != nil {
		s.problem = fmt.Sprintf("the annotation of %s is %q", s.key, state)
		return s
	}
	if s.version, err = strconv.ParseUint(accessor.GetResourceVersion(), 10, 64); err != nil {
		s.problem = fmt.Sprintf("%s: %v", s.key, err)
	}
	if s.color != colorOf(s.number, s.revision) {
		s.problem = fmt.Sprintf("the color of %v is not that of its state", s)
	}
	var spec any
	var want any = specOf(state).unstructured()
	switch obj := obj.(type) {
	case *unstructured.Unstructured:
		spec = obj.Object["spec"]
	case *packed.Object:
		spec, _ = obj.Field("spec")
	case *boat:
		spec, want = obj.Spec, specOf(state)
	default: // metadata
		return s
	}
	if !reflect.DeepEqual(spec, want) {
		s.problem = fmt.Sprintf("the spec of %v is %v", s, spec)
	}
	return s
}
