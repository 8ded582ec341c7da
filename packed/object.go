package packed

import (
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/internal/gotype"
	"github.com/gvrkit/gvrkit/internal/packed"
	"github.com/gvrkit/gvrkit/internal/wire"
)

// Object is an object in packed form. It never changes, so all callers may share it, and it is safe for concurrent
// use. It implements [metav1.Object] and [runtime.Object] for reading, with the results of
// [unstructured.Unstructured]. Its setters panic: to change an object, unpack it with [Object.Unstructured], and
// change a DeepCopy of that.
//
// Each method reads the packed bytes again: keep a result that is needed more than once. Strings of results are
// copies, and don't keep the object in memory.
type Object struct {
	tape atomic.Pointer[packed.Tape] // replaced if its dictionary is
	// tree is what Unstructured has returned last, while somebody uses it or the garbage collector has not run.
	tree atomic.Pointer[weak.Pointer[unstructured.Unstructured]]
}

var (
	_ metav1.Object  = (*Object)(nil)
	_ runtime.Object = (*Object)(nil)
)

// Packer packs the objects of one type: what these have in common is stored once. It is safe for concurrent use.
// Create one with [NewPacker].
type Packer struct{ packer *packed.Packer }

// NewPacker returns a packer for the objects of one type.
func NewPacker() *Packer { return &Packer{packed.NewPacker()} }

func init() {
	packed.Reader = func(packer any) wire.Read { return packer.(*Packer).read }
}

// read implements wire.Read.
func (p *Packer) read(from *wire.Scanner, drop *wire.Drop, missing metav1.TypeMeta) (runtime.Object, bool) {
	tape, ok := p.packer.Read(from, drop, missing)
	if !ok {
		return nil, false
	}
	return newObject(tape), true
}

// Size returns the number of bytes of what objects of the packer have in common, about.
func (p *Packer) Size() int { return p.packer.Dictionary().Size() }

// Renew stores again what the objects of this packer have in common, if less than half of that is used by live, which are the
// objects that are in use. Then it packs these again, which takes about as long as to unpack and pack each. Other objects of the packer stay
// valid, and keep what they had in common in memory. Without Renew, what deleted objects had in common stays, up to some 25 MB.
func (p *Packer) Renew(live iter.Seq[*Object]) (renewed bool) {
	renewed = p.packer.Renew(func(yield func(packed.Tape) bool) {
		for o := range live {
			if !yield(o.read()) {
				return
			}
		}
	})
	for o := range live { // also those that were packed while an earlier call renewed
		tape := o.read()
		if again := p.packer.Repack(tape); again != tape {
			o.tape.Store(&again)
		}
	}
	return renewed
}

// Pack returns obj in packed form. It does not change obj, and the result does not refer to it. The error says that
// obj has a value of a Go type that JSON is not decoded to, such as int.
func (p *Packer) Pack(obj *unstructured.Unstructured) (*Object, error) {
	if obj == nil || obj.Object == nil {
		return nil, errors.New("packed: the object is nil or empty")
	}
	tape, ok := p.packer.FromContent(obj.Object)
	if !ok {
		return nil, fmt.Errorf("packed: kind %q, name %q: the object has a value of a Go type that JSON is not decoded to, such as int", obj.GetKind(), obj.GetName())
	}
	return newObject(tape), nil
}

func newObject(tape packed.Tape) *Object {
	o := &Object{}
	o.tape.Store(&tape)
	return o
}

// read returns the tape; the zero one of a zero Object.
func (o *Object) read() packed.Tape {
	if o == nil {
		return packed.Tape{}
	}
	if tape := o.tape.Load(); tape != nil {
		return *tape
	}
	return packed.Tape{}
}

// Size returns the number of bytes of the object, without what it has in common with others of its type.
func (o *Object) Size() int { return o.read().Size() }

// Unstructured unpacks the object. The result is read-only, since all callers and other objects share it or parts of it: call DeepCopy
// before the first write. While a caller uses the result, and until the garbage collector runs, further calls return the same one.
func (o *Object) Unstructured() *unstructured.Unstructured {
	if o == nil {
		return &unstructured.Unstructured{}
	}
	if tree := o.last(); tree != nil {
		return tree
	}
	return o.keep(o.read().Content())
}

// last returns what keep has returned last, or nil if it is no longer in use.
func (o *Object) last() *unstructured.Unstructured {
	if last := o.tree.Load(); last != nil {
		return last.Value()
	}
	return nil
}

// keep returns an object with content, which last returns from now on.
func (o *Object) keep(content map[string]any) *unstructured.Unstructured {
	tree := &unstructured.Unstructured{Object: content}
	last := weak.Make(tree)
	o.tree.Store(&last)
	return tree
}

// UnstructuredLike is as Unstructured, for an object of which other is another state, such as the later one of an update. It unpacks
// only what differs: the results of both have the rest in common.
func (o *Object) UnstructuredLike(other *Object) *unstructured.Unstructured {
	if o == nil || other == nil {
		return o.Unstructured()
	}
	if tree := o.last(); tree != nil {
		return tree
	}
	return o.keep(o.read().ContentLike(other.read(), other.Unstructured().Object))
}

// MarshalJSON implements json.Marshaler, as [unstructured.Unstructured] does.
func (o *Object) MarshalJSON() ([]byte, error) { return o.Unstructured().MarshalJSON() }

// Field returns the value at a path of member names, and whether there is one. Its type is one of those that
// [unstructured.Unstructured] has: nil, bool, int64, float64, string, []any or map[string]any. It is read-only.
func (o *Object) Field(path ...string) (value any, found bool) { return o.read().Field(path...) }

// As unpacks an object to T, such as appsv1.Deployment. Fields that T does not have are dropped. The result
// belongs to the caller. The error names the field that does not fit, without its value.
func As[T any, P interface {
	*T
	runtime.Object
}](o *Object) (P, error) {
	object, err := gotype.NewConverter[P]().Convert(o.Unstructured().DeepCopy().Object)
	if err != nil {
		return nil, fmt.Errorf("packed: %s %q: %w", o.kind(), o.GetName(), err)
	}
	return object, nil
}

// text returns a string field; empty if there is none.
func (o *Object) text(path ...string) string {
	value, _ := o.Field(path...)
	text, _ := value.(string)
	return text
}

func (o *Object) kind() string { return o.text("kind") }

// metadata returns an object with one field of the metadata.
func (o *Object) metadata(field string) *unstructured.Unstructured {
	value, found := o.Field("metadata", field)
	return only(field, value, found)
}

// only returns an object whose metadata has at most that field.
func only(field string, value any, found bool) *unstructured.Unstructured {
	metadata := map[string]any{}
	if found {
		metadata[field] = value
	}
	return &unstructured.Unstructured{Object: map[string]any{"metadata": metadata}}
}

// GetName implements metav1.Object. Name, namespace, UID, resourceVersion, labels and owners are at hand: reading them
// does not read the rest of the object.
func (o *Object) GetName() string { return o.read().Name() }

// GetNamespace implements metav1.Object.
func (o *Object) GetNamespace() string { return o.read().Namespace() }

// GetUID implements metav1.Object.
func (o *Object) GetUID() types.UID { return types.UID(o.read().UID()) }

// GetResourceVersion implements metav1.Object.
func (o *Object) GetResourceVersion() string { return o.read().ResourceVersion() }

// GetLabels implements metav1.Object. The caller owns the map.
func (o *Object) GetLabels() map[string]string {
	value, found := o.read().Labels()
	return only("labels", value, found).GetLabels()
}

// GetOwnerReferences implements metav1.Object. The caller owns the slice.
func (o *Object) GetOwnerReferences() []metav1.OwnerReference {
	value, found := o.read().OwnerReferences()
	return only("ownerReferences", value, found).GetOwnerReferences()
}

// GetAnnotations implements metav1.Object. The caller owns the map.
func (o *Object) GetAnnotations() map[string]string {
	return o.metadata("annotations").GetAnnotations()
}

// GetGenerateName implements metav1.Object.
func (o *Object) GetGenerateName() string { return o.text("metadata", "generateName") }

// GetSelfLink implements metav1.Object.
func (o *Object) GetSelfLink() string { return o.text("metadata", "selfLink") }

// GetGeneration implements metav1.Object.
func (o *Object) GetGeneration() int64 { return o.metadata("generation").GetGeneration() }

// GetCreationTimestamp implements metav1.Object.
func (o *Object) GetCreationTimestamp() metav1.Time {
	return o.metadata("creationTimestamp").GetCreationTimestamp()
}

// GetDeletionTimestamp implements metav1.Object.
func (o *Object) GetDeletionTimestamp() *metav1.Time {
	return o.metadata("deletionTimestamp").GetDeletionTimestamp()
}

// GetDeletionGracePeriodSeconds implements metav1.Object.
func (o *Object) GetDeletionGracePeriodSeconds() *int64 {
	return o.metadata("deletionGracePeriodSeconds").GetDeletionGracePeriodSeconds()
}

// GetFinalizers implements metav1.Object. The caller owns the slice.
func (o *Object) GetFinalizers() []string { return o.metadata("finalizers").GetFinalizers() }

// GetManagedFields implements metav1.Object.
func (o *Object) GetManagedFields() []metav1.ManagedFieldsEntry {
	return o.metadata("managedFields").GetManagedFields()
}

// GetObjectKind implements runtime.Object. The result has the object's kind; it can't be set.
func (o *Object) GetObjectKind() schema.ObjectKind {
	gv, err := schema.ParseGroupVersion(o.text("apiVersion"))
	if err != nil {
		return objectKind{}
	}
	return objectKind(gv.WithKind(o.kind()))
}

// DeepCopyObject implements runtime.Object. It returns o, which never changes.
func (o *Object) DeepCopyObject() runtime.Object { return o }

type objectKind schema.GroupVersionKind

func (k objectKind) GroupVersionKind() schema.GroupVersionKind { return schema.GroupVersionKind(k) }

func (objectKind) SetGroupVersionKind(schema.GroupVersionKind) { readOnly("SetGroupVersionKind") }
