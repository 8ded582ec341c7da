package packed

import (
	"errors"
	"fmt"
	"iter"
	"reflect"
	"sync"
	"sync/atomic"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
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
// copies, and don't keep the object in memory. A nil or zero Object has no fields.
type Object struct {
	tape atomic.Pointer[packed.Tape] // replaced if its dictionary is
	// tree is what Unstructured has returned last, while a caller uses it or the garbage collector has not run. It is not kept longer: a
	// worker that reads 64 IPAMBlocks in turn, in a heap of 4 MB, finds at least 96 % of the trees (BenchmarkObject_Unstructured), and more in
	// a larger heap, which is collected less often.
	tree atomic.Pointer[weak.Pointer[unstructured.Unstructured]]
	// values are what the index functions of a cache have returned for it.
	values packed.Values
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
	packed.ValuesOf = func(object any) *packed.Values {
		if o, is := object.(*Object); is {
			return &o.values
		}
		return nil
	}
	packed.Forget = func(packer any) { packer.(*Packer).packer.Forget() }
	packed.Observe = func(packer any, observer func(object any)) { packer.(*Packer).packer.Observe(observer) }
}

// read implements wire.Read.
func (p *Packer) read(from *wire.Scanner, drop *wire.Drop, missing metav1.TypeMeta) (runtime.Object, bool) {
	tape, ok := p.packer.Read(from, drop, missing)
	if !ok {
		return nil, false
	}
	return newObject(tape), true
}

// Size returns the approximate number of bytes of what objects of the packer have in
// common.
func (p *Packer) Size() int { return p.packer.Dictionary().Size() }

// Renew replaces the packer's dictionary, which has what its objects have in common, if the dictionary is large and live, the objects in use, use
// less than half of it. It reports whether it did. After that, it packs the objects of live again, which takes about as long as unpacking and
// packing each of them. In any case, it packs those again that were packed during an earlier call. Renew reads live twice. Other objects of the
// packer stay valid, and keep the old dictionary in memory. Without Renew, the dictionary keeps what deleted objects had in common, up to about 35 MB.
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

// Pack returns obj in packed form. It does not change obj, and the result does not refer to it. It returns an error if
// obj is nil or empty, or has a value of a Go type that JSON is not decoded to, such as int.
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
	return o.unpacked(packed.Tape.Content)
}

// unpacked returns the last tree, if it is in use, and otherwise another one with what content returns.
func (o *Object) unpacked(content func(packed.Tape) map[string]any) *unstructured.Unstructured {
	for {
		last := o.tree.Load()
		if last != nil {
			if tree := last.Value(); tree != nil {
				return tree
			}
		}
		tree := o.unpack(content)
		if now := weak.Make(tree); o.tree.CompareAndSwap(last, &now) { // otherwise another caller has unpacked it
			return tree
		}
	}
}

// unpack returns another tree.
func (o *Object) unpack(content func(packed.Tape) map[string]any) *unstructured.Unstructured {
	tape := o.read()
	observe := tape.Observer()
	if observe == nil {
		return &unstructured.Unstructured{Object: content(tape)}
	}
	tree := &unstructured.Unstructured{Object: tape.OwnContent()}
	observe(tree)
	return tree
}

// UnstructuredLike is [Object.Unstructured] for an object of which other is another state, such as the new object of an update. It
// unpacks only what differs: the results of both share the rest.
func (o *Object) UnstructuredLike(other *Object) *unstructured.Unstructured {
	if o == nil || other == nil {
		return o.Unstructured()
	}
	return o.unpacked(func(tape packed.Tape) map[string]any {
		return tape.ContentLike(other.read(), other.Unstructured().Object)
	})
}

// MarshalJSON implements json.Marshaler, as [unstructured.Unstructured] does.
func (o *Object) MarshalJSON() ([]byte, error) { return o.Unstructured().MarshalJSON() }

// Field returns the value at a path of member names, and whether there is one. Its type is one of those that
// [unstructured.Unstructured] has: nil, bool, int64, float64, string, []any or map[string]any. It is read-only.
func (o *Object) Field(path ...string) (value any, found bool) { return o.read().Field(path...) }

// AppendJSON appends the object as JSON to b. Members are in the order in which they were packed, and a float has a point or an
// exponent. It does not unpack the object. It returns false, after a part of the object, if a string is not valid UTF-8 or a float is not
// finite, which no decoder returns, and if o is nil or zero.
func (o *Object) AppendJSON(b []byte) (_ []byte, ok bool) { return o.read().AppendJSON(b) }

// converters has the converter of each type T of As, by the type of *T.
var converters sync.Map

// As unpacks an object to T, such as appsv1.Deployment. Fields that T does not have are dropped. The result
// belongs to the caller. The error names the field that does not fit, without its value.
func As[T any, P interface {
	*T
	runtime.Object
}](o *Object) (P, error) {
	converter, known := converters.Load(reflect.TypeFor[P]())
	if !known {
		converter, _ = converters.LoadOrStore(reflect.TypeFor[P](), gotype.NewConverter[P]())
	}
	object, err := converter.(*gotype.Converter[P]).Decode(o, func() map[string]any { return o.Unstructured().DeepCopy().Object })
	if err != nil {
		return nil, fmt.Errorf("packed: %s %q: %w", o.kind(), o.GetName(), err)
	}
	return object, nil
}

func (o *Object) kind() string { return o.read().Text("kind") }

// GetName implements metav1.Object. Reading the name, namespace, UID, resourceVersion, labels or owners
// does not read the rest of the object.
func (o *Object) GetName() string { return o.read().Name() }

// GetNamespace implements metav1.Object.
func (o *Object) GetNamespace() string { return o.read().Namespace() }

// GetUID implements metav1.Object.
func (o *Object) GetUID() types.UID { return types.UID(o.read().UID()) }

// GetResourceVersion implements metav1.Object.
func (o *Object) GetResourceVersion() string { return o.read().ResourceVersion() }

// GetLabels implements metav1.Object. The caller owns the map. [Object.Labels] costs less.
func (o *Object) GetLabels() map[string]string { return o.read().LabelMap() }

// Labels returns the labels for a selector, without a map of them. A result of its Get keeps the object in memory.
func (o *Object) Labels() labels.Labels { return labelsOf{o} }

// GetOwnerReferences implements metav1.Object. The caller owns the slice.
func (o *Object) GetOwnerReferences() []metav1.OwnerReference {
	value, _ := o.read().OwnerReferences()
	elements, is := value.([]any)
	if !is {
		return nil
	}
	owners := make([]metav1.OwnerReference, 0, len(elements))
	for _, element := range elements {
		owner, is := element.(map[string]any)
		if !is {
			return nil
		}
		owners = append(owners, metav1.OwnerReference{
			APIVersion: as[string](owner["apiVersion"]), Kind: as[string](owner["kind"]), Name: as[string](owner["name"]),
			UID: types.UID(as[string](owner["uid"])), Controller: pointer[bool](owner["controller"]),
			BlockOwnerDeletion: pointer[bool](owner["blockOwnerDeletion"]),
		})
	}
	return owners
}

// as returns value, or zero if it is of another type.
func as[T any](value any) T {
	of, _ := value.(T)
	return of
}

// pointer returns a pointer to value, or nil if it is of another type.
func pointer[T any](value any) *T {
	of, is := value.(T)
	if !is {
		return nil
	}
	return &of
}

// metadata returns a field of the metadata; nil if there is none.
func (o *Object) metadata(field string) any {
	value, _ := o.read().Field("metadata", field)
	return value
}

// GetAnnotations implements metav1.Object. The caller owns the map.
func (o *Object) GetAnnotations() map[string]string { return o.read().Texts("metadata", "annotations") }

// GetGenerateName implements metav1.Object.
func (o *Object) GetGenerateName() string { return o.read().Text("metadata", "generateName") }

// GetSelfLink implements metav1.Object.
func (o *Object) GetSelfLink() string { return o.read().Text("metadata", "selfLink") }

// GetGeneration implements metav1.Object.
func (o *Object) GetGeneration() int64 { return as[int64](o.metadata("generation")) }

// GetCreationTimestamp implements metav1.Object.
func (o *Object) GetCreationTimestamp() metav1.Time {
	var at metav1.Time
	_ = at.UnmarshalQueryParameter(o.read().Text("metadata", "creationTimestamp")) // as Unstructured does
	return at
}

// GetDeletionTimestamp implements metav1.Object.
func (o *Object) GetDeletionTimestamp() *metav1.Time {
	text := o.read().Text("metadata", "deletionTimestamp")
	if text == "" {
		return nil
	}
	var at metav1.Time
	if _ = at.UnmarshalQueryParameter(text); at.IsZero() {
		return nil
	}
	return &at
}

// GetDeletionGracePeriodSeconds implements metav1.Object.
func (o *Object) GetDeletionGracePeriodSeconds() *int64 {
	return pointer[int64](o.metadata("deletionGracePeriodSeconds"))
}

// GetFinalizers implements metav1.Object. The caller owns the slice.
func (o *Object) GetFinalizers() []string {
	elements, is := o.metadata("finalizers").([]any)
	if !is {
		return nil
	}
	finalizers := make([]string, 0, len(elements))
	for _, element := range elements {
		finalizer, is := element.(string)
		if !is {
			return nil
		}
		finalizers = append(finalizers, finalizer)
	}
	return finalizers
}

// GetManagedFields implements metav1.Object. The caller owns the slice.
func (o *Object) GetManagedFields() []metav1.ManagedFieldsEntry {
	fields := o.metadata("managedFields")
	if fields == nil {
		return nil
	}
	only := unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"managedFields": fields}}}
	return only.GetManagedFields()
}

// GetObjectKind implements runtime.Object. The result has the object's kind; it can't be set.
func (o *Object) GetObjectKind() schema.ObjectKind {
	version, err := schema.ParseGroupVersion(o.read().Text("apiVersion"))
	if err != nil {
		return objectKind{}
	}
	return objectKind(version.WithKind(o.kind()))
}

// DeepCopyObject implements runtime.Object. It returns o, which never changes.
func (o *Object) DeepCopyObject() runtime.Object { return o }

// labelsOf are the labels of an object.
type labelsOf struct{ *Object }

// Has implements labels.Labels.
func (l labelsOf) Has(name string) bool {
	_, found := l.Lookup(name)
	return found
}

// Get implements labels.Labels.
func (l labelsOf) Get(name string) string {
	value, _ := l.Lookup(name)
	return value
}

// Lookup implements labels.Labels.
func (l labelsOf) Lookup(name string) (value string, exists bool) { return l.read().Label(name) }

type objectKind schema.GroupVersionKind

func (k objectKind) GroupVersionKind() schema.GroupVersionKind { return schema.GroupVersionKind(k) }

func (objectKind) SetGroupVersionKind(schema.GroupVersionKind) { readOnly("SetGroupVersionKind") }
