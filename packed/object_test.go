package packed_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/gvrkit/gvrkit/packed"
)

func parse(tb testing.TB, text string) *unstructured.Unstructured {
	tb.Helper()
	obj := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal([]byte(text), &obj.Object); err != nil {
		tb.Fatal(err)
	}
	return obj
}

func pack(tb testing.TB, p *packed.Packer, obj *unstructured.Unstructured) *packed.Object {
	tb.Helper()
	object, err := p.Pack(obj)
	if err != nil {
		tb.Fatal(err)
	}
	return object
}

const whole = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"ns","uid":"01234567-89ab-cdef-0123-456789abcdef","resourceVersion":"12345678",
 "generation":7,"generateName":"a-","selfLink":"/a","creationTimestamp":"2026-01-02T03:04:05Z","deletionTimestamp":"2026-01-02T03:04:06Z","deletionGracePeriodSeconds":30,
 "labels":{"app":"x"},"annotations":{"note":"y"},"finalizers":["f"],"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u","controller":true}],
 "managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{}}}]},
 "spec":{"nodeName":"node","containers":[{"name":"c","image":"i"}]}}`

// Getters return what those of an unstructured object return, whatever the values are.
func TestObject_GettersAreThoseOfUnstructured(t *testing.T) {
	texts := []string{whole, `{}`, `{"metadata":null}`, `{"metadata":1}`, `{"metadata":{}}`, `{"metadata":{"name":"x","labels":{}}}`, `{"kind":"A","apiVersion":"a/b/c"}`, `{"kind":1}`}
	fields := []string{
		"name", "namespace", "uid", "resourceVersion", "generation", "generateName", "selfLink", "creationTimestamp", "deletionTimestamp",
		"deletionGracePeriodSeconds", "labels", "annotations", "finalizers", "ownerReferences", "managedFields",
	}
	for _, field := range fields {
		for _, value := range []string{`1`, `1.5`, `null`, `""`, `"x"`, `"2026-13-01"`, `[]`, `["x",1]`, `["x"]`, `[{"uid":1}]`, `[{"uid":"x","name":null}]`, `{}`, `{"a":1}`, `{"a":"b"}`, `{"a":null}`, `{"a":"b","x":1}`, `true`} {
			texts = append(texts, fmt.Sprintf(`{"metadata":{%q:%s}}`, field, value))
		}
	}
	p := packed.NewPacker()
	for range 3 { // the dictionary grows
		for _, text := range texts {
			obj := parse(t, text)
			want, got := reflect.ValueOf(obj), reflect.ValueOf(pack(t, p, obj))
			n := 0
			for i := range got.NumMethod() {
				name := got.Type().Method(i).Name
				if !strings.HasPrefix(name, "Get") || name == "GetObjectKind" {
					continue
				}
				n++
				w, g := want.MethodByName(name).Call(nil)[0].Interface(), got.Method(i).Call(nil)[0].Interface()
				if !reflect.DeepEqual(w, g) {
					t.Errorf("%s of %s is %#v, want %#v", name, text, g, w)
				}
			}
			if n != 15 {
				t.Fatalf("%d getters", n)
			}
			o := got.Interface().(*packed.Object)
			for _, text := range []string{"a", "a=b", "a!=b", "!a", "x", "a in (b,c)"} {
				selector, err := labels.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				if w, g := selector.Matches(labels.Set(obj.GetLabels())), selector.Matches(o.Labels()); w != g {
					t.Errorf("%s selects %v: %v, want %v", text, obj.Object, g, w)
				}
			}
			if w, g := obj.GroupVersionKind(), o.GetObjectKind().GroupVersionKind(); w != g {
				t.Errorf("kind of %s is %v, want %v", text, g, w)
			}
			if diff := cmp.Diff(obj.Object, o.Unstructured().Object); diff != "" {
				t.Errorf("%s (-want +got):\n%s", text, diff)
			}
		}
	}
}

// A selector, and the getters that controllers call for each event, must cost little. The least of five packers
// counts: in a dictionary, whose hash has a random seed, two words may have the same slot, and one is then written out.
func TestObject_GettersAllocateLittle(t *testing.T) {
	var objects []*packed.Object
	for range 5 {
		p := packed.NewPacker()
		for range 30 { // the last one refers to the dictionary
			pack(t, p, parse(t, whole))
		}
		objects = append(objects, pack(t, p, parse(t, whole)))
	}
	other := labels.SelectorFromSet(labels.Set{"app": "other"})
	for name, test := range map[string]struct {
		call func(o *packed.Object)
		most float64
	}{
		"a selector":           {func(o *packed.Object) { other.Matches(o.Labels()) }, 0},
		"GetGeneration":        {func(o *packed.Object) { o.GetGeneration() }, 0},
		"GetDeletionTimestamp": {func(o *packed.Object) { o.GetDeletionTimestamp() }, 2},
		"GetFinalizers":        {func(o *packed.Object) { o.GetFinalizers() }, 5},
		"GetAnnotations":       {func(o *packed.Object) { o.GetAnnotations() }, 4},
		"GetLabels":            {func(o *packed.Object) { o.GetLabels() }, 4},
		"GetOwnerReferences":   {func(o *packed.Object) { o.GetOwnerReferences() }, 13},
	} {
		least := math.Inf(1)
		for _, o := range objects {
			least = min(least, testing.AllocsPerRun(100, func() { test.call(o) }))
		}
		if least > test.most {
			t.Errorf("%s: %v allocations, at most %v wanted", name, least, test.most)
		}
	}
}

// A program that tries to change a packed object is told what to do.
func TestObject_SettersPanic(t *testing.T) {
	o := pack(t, packed.NewPacker(), parse(t, whole))
	before := o.Unstructured()
	v := reflect.ValueOf(o)
	n := 0
	for i := range v.NumMethod() {
		method := v.Type().Method(i)
		if !strings.HasPrefix(method.Name, "Set") {
			continue
		}
		n++
		func() {
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, method.Name+" on a packed object") || !strings.Contains(text, "Unstructured().DeepCopy()") {
					t.Errorf("%s panics with %q", method.Name, text)
				}
			}()
			v.Method(i).Call([]reflect.Value{reflect.Zero(method.Type.In(1))})
		}()
	}
	if n != 15 {
		t.Errorf("%d setters", n)
	}
	defer func() {
		if recover() == nil {
			t.Error("the kind can be set")
		}
		if diff := cmp.Diff(before, o.Unstructured()); diff != "" {
			t.Errorf("the object has changed:\n%s", diff)
		}
	}()
	o.GetObjectKind().SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
}

func TestAs_UnpacksToAGoType(t *testing.T) {
	p := packed.NewPacker()
	pod, err := packed.As[corev1.Pod](pack(t, p, parse(t, whole)))
	if err != nil || pod.Name != "a" || pod.Spec.NodeName != "node" || pod.Spec.Containers[0].Image != "i" || !metav1.IsControlledBy(pod, &corev1.Node{ObjectMeta: metav1.ObjectMeta{UID: "u"}}) {
		t.Errorf("%+v, %v", pod, err)
	}
	o := pack(t, p, parse(t, `{"kind":"Pod","metadata":{"name":"b"},"spec":{"nodeName":{"password":"secret"}}}`))
	if pod, err := packed.As[corev1.Pod](o); err == nil || !strings.Contains(err.Error(), `packed: Pod "b"`) || strings.Contains(err.Error(), "secret") {
		t.Errorf("%+v, %v", pod, err)
	}
}

// loose is a Go type with fields of any type.
type loose struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec map[string]any `json:"spec"`
}

func (l *loose) DeepCopyObject() kruntime.Object { panic("not called") }

// mode decodes itself.
type mode string

func (m *mode) UnmarshalJSON(data []byte) error {
	if *m = mode(strings.ToUpper(string(data))); *m == `"BAD"` {
		return errors.New("the mode is bad")
	}
	return nil
}

type moded struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Mode mode `json:"mode"`
}

func (m *moded) DeepCopyObject() kruntime.Object { panic("not called") }

func TestAs_AStringThatDecodesItselfMayRefuseItsValue(t *testing.T) {
	p := packed.NewPacker()
	if got, err := packed.As[moded](pack(t, p, parse(t, `{"mode":"good"}`))); err != nil || got.Mode != `"GOOD"` {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := packed.As[moded](pack(t, p, parse(t, `{"mode":"bad"}`))); err == nil {
		t.Errorf("a refused value: %+v", got)
	}
}

// Fields that keep JSON have the text that Go's encoder, and so the server, would write.
func TestAs_KeepsTheTextOfManagedFields(t *testing.T) {
	const fields = `{"f:spec":{"k:{\"name\":\"a\\\\b\"}":{".":{}}}}`
	object := pack(t, packed.NewPacker(), parse(t, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","managedFields":[{"fieldsV1":`+fields+`}]}}`))
	pod, err := packed.As[corev1.Pod](object)
	if err != nil {
		t.Fatal(err)
	}
	if got := pod.ManagedFields[0].FieldsV1.GetRawString(); got != fields {
		t.Errorf("fields are %s, want %s", got, fields)
	}
}

// What As returns belongs to the caller: a write does not change other objects. An object whose integer field has a float is not
// decoded from JSON, but converted from its tree.
func TestAs_SharesNothing(t *testing.T) {
	for _, generation := range []string{"7", "7.0"} {
		text := `{"kind":"A","apiVersion":"g/v1","metadata":{"name":"a","generation":` + generation + `,"labels":{"app":"x"}},"spec":{"ports":[{"http":1000,"https":2000,"metrics":3000,"admin":4000}]}}`
		p := packed.NewPacker()
		var objects []*packed.Object
		for range 8 { // the last ones have values in common
			objects = append(objects, pack(t, p, parse(t, text)))
		}
		tree := objects[6].Unstructured()
		l, err := packed.As[loose](objects[6])
		if err != nil || l.Generation != 7 {
			t.Fatalf("%+v, %v", l, err)
		}
		l.Labels["app"], l.Spec["ports"].([]any)[0].(map[string]any)["http"] = "other", 1
		for i, o := range objects {
			if diff := cmp.Diff(parse(t, text), o.Unstructured()); diff != "" {
				t.Errorf("generation %s: object %d has changed:\n%s", generation, i, diff)
			}
		}
		runtime.KeepAlive(tree) // otherwise the garbage collector may drop it before it is compared
	}
}

// While the tree of an object is in use, all callers get that tree.
func TestObject_UnpacksOnceForAll(t *testing.T) {
	o := pack(t, packed.NewPacker(), parse(t, whole))
	use := func() weak.Pointer[unstructured.Unstructured] {
		first := o.Unstructured()
		runtime.GC()
		if o.Unstructured() != first {
			t.Error("unpacked again while the object is in use")
		}
		return weak.Make(first)
	}
	for last := use(); last.Value() != nil; {
		runtime.GC() // it fails by the timeout of the test
	}
	if diff := cmp.Diff(parse(t, whole), o.Unstructured()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := json.Marshal(o)
	want, wantErr := json.Marshal(parse(t, whole))
	if err != nil || wantErr != nil || string(text) != string(want) {
		t.Errorf("%s, error %v", text, err)
	}
}

func TestPacker_RenewDropsWhatOnlyDeletedObjectsHaveInCommon(t *testing.T) {
	p := packed.NewPacker()
	var objects []*packed.Object
	for i := range 8192 {
		objects = append(objects, pack(t, p, parse(t, fmt.Sprintf(`{"kind":"A","apiVersion":"g/v1","metadata":{"name":"a%d"},"spec":{"color":"color-%d","size":"size-%d"}}`, i, i/8, i/8))))
	}
	before, live := p.Size(), objects[:2400]
	if p.Renew(slices.Values(objects)) {
		t.Error("renewed although all is in use")
	}
	if !p.Renew(slices.Values(live)) || p.Renew(slices.Values(live)) || 3*p.Size() > 2*before {
		t.Errorf("%d bytes, before %d", p.Size(), before)
	}
	for i, o := range objects { // those that are not live stay valid
		if color, _ := o.Field("spec", "color"); o.GetName() != fmt.Sprintf("a%d", i) || color != fmt.Sprintf("color-%d", i/8) {
			t.Fatalf("object %d is %v", i, o.Unstructured())
		}
	}
}

// An object may be packed before a renewal and cached after it.
func TestPacker_RenewPacksObjectsOfEarlierDictionariesAgain(t *testing.T) {
	p := packed.NewPacker()
	object := func() *packed.Object { return pack(t, p, parse(t, whole)) }
	late := object()
	for i := range 8192 {
		pack(t, p, parse(t, fmt.Sprintf(`{"kind":"A","apiVersion":"g/v1","metadata":{"name":"a%d"},"spec":{"color":"color-%d","size":"size-%d"}}`, i, i/8, i/8)))
	}
	live := object()
	if !p.Renew(slices.Values([]*packed.Object{live})) {
		t.Fatal("not renewed")
	}
	for range 200 { // what they have in common enters the dictionary; two texts may have one mark, and delay each other
		object()
	}
	if p.Renew(slices.Values([]*packed.Object{live, late})) {
		t.Error("renewed again")
	}
	next := object()
	same := func(a, b *packed.Object) bool {
		labels := func(u *unstructured.Unstructured) uintptr {
			return reflect.ValueOf(u.Object["metadata"].(map[string]any)["labels"]).Pointer()
		}
		second := b.Unstructured()
		first := a.UnstructuredLike(b)
		defer runtime.KeepAlive(second) // the garbage collector drops a tree that is not in use
		defer runtime.KeepAlive(first)
		return labels(first) == labels(second)
	}
	if !same(late, next) {
		t.Error("they have no dictionary in common")
	}
}

// An update of an object has most parts in common with the earlier state.
func TestObject_UnstructuredLikeUnpacksOnlyWhatDiffers(t *testing.T) {
	p := packed.NewPacker()
	for range 200 { // what they have in common enters the dictionary; two texts may have one mark, and delay each other
		pack(t, p, parse(t, whole))
	}
	before := pack(t, p, parse(t, whole))
	changed := parse(t, whole)
	changed.SetResourceVersion("4711")
	changed.SetGeneration(4711)
	after := pack(t, p, changed)
	later, old := after.Unstructured(), before.UnstructuredLike(after)
	if diff := cmp.Diff(parse(t, whole), old); diff != "" || before.Unstructured() != old || before.UnstructuredLike(after) != old {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(changed, later); diff != "" {
		t.Errorf("later object (-want +got):\n%s", diff)
	}
	if reflect.ValueOf(old.Object["spec"]).Pointer() != reflect.ValueOf(later.Object["spec"]).Pointer() {
		t.Error("equal parts are unpacked twice")
	}
	runtime.KeepAlive(later) // otherwise the garbage collector may drop it before it is used twice
	runtime.KeepAlive(old)
	var none *packed.Object
	if none.UnstructuredLike(after).Object != nil || before.UnstructuredLike(nil) != old {
		t.Error("nil")
	}
}

// fill packs objects, not live, until their texts are most of the dictionary.
func fill(t *testing.T, p *packed.Packer, generation int) {
	t.Helper()
	for i := range 4800 {
		pack(t, p, &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"color": fmt.Sprintf("color-%d-%d", generation, i/8), "size": fmt.Sprintf("size-%d-%d", generation, i/8),
		}}})
	}
}

// A write to an unpacked object is a bug of the program. It does not become a part of the packed objects.
func TestPacker_RenewPacksWhatWasPackedBefore(t *testing.T) {
	const text = `{"kind":"A","apiVersion":"g/v1","metadata":{"name":"a"},"spec":{"ports":[{"http":1000,"https":2000,"metrics":3000,"admin":4000}]}}`
	p := packed.NewPacker()
	var live []*packed.Object
	for range 8 { // the last ones have values in common
		live = append(live, pack(t, p, parse(t, text)))
	}
	fill(t, p, 0)
	tree := live[6].Unstructured()
	tree.Object["spec"].(map[string]any)["ports"].([]any)[0].(map[string]any)["http"] = "changed"
	if !p.Renew(slices.Values(live)) {
		t.Fatal("not renewed")
	}
	for i, o := range live {
		if o == live[6] {
			continue // the program has the tree
		}
		if diff := cmp.Diff(parse(t, text), o.Unstructured()); diff != "" {
			t.Errorf("object %d has changed:\n%s", i, diff)
		}
	}
	runtime.KeepAlive(tree)
}

// Readers and the renewal of what the objects have in common do not disturb each other: all readers of an object have the same
// content, and, at one time, the same tree.
func TestObject_ReadersDuringRenewals(t *testing.T) {
	p := packed.NewPacker()
	var want []*unstructured.Unstructured
	var live []*packed.Object
	for i := range 64 {
		want = append(want, parse(t, fmt.Sprintf(`{"kind":"A","apiVersion":"g/v1","metadata":{"name":"a%d","labels":{"app":"x"}},"spec":{"zone":"zone-%d","ports":[{"http":1000,"https":2000,"admin":%d}]}}`, i, i%4, i%3)))
		live = append(live, pack(t, p, want[i]))
	}
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for reader := range 16 {
		readers.Go(func() {
			for i := reader; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				n := i % len(live)
				zone, _ := live[n].Field("spec", "zone")
				if live[n].GetLabels()["app"] != "x" || zone != fmt.Sprint("zone-", n%4) || live[n].GetName() != want[n].GetName() || !reflect.DeepEqual(live[n].Unstructured(), want[n]) {
					t.Errorf("object %d is %v", n, live[n].Unstructured())
					return
				}
			}
		})
	}
	for generation := range 2 {
		fill(t, p, generation)
		if !p.Renew(slices.Values(live)) {
			t.Error("not renewed")
		}
	}
	close(stop)
	readers.Wait()
	var trees [16]*unstructured.Unstructured
	for n := range live {
		for reader := range trees {
			readers.Go(func() { trees[reader] = live[n].Unstructured() })
		}
		readers.Wait()
		for _, tree := range trees {
			if tree != trees[0] {
				t.Fatal("concurrent readers of an object have different trees")
			}
		}
		runtime.GC() // the next ones are unpacked again
	}
}

func TestPacker_BadInputIsAnError(t *testing.T) {
	p := packed.NewPacker()
	for name, obj := range map[string]*unstructured.Unstructured{
		"nil": nil, "empty": {}, "int": {Object: map[string]any{"kind": "A", "metadata": map[string]any{"name": "x"}, "spec": 1}},
	} {
		if o, err := p.Pack(obj); err == nil || o != nil {
			t.Errorf("%s: %v, %v", name, o, err)
		}
	}
	var none *packed.Object
	for _, o := range []*packed.Object{none, {}} {
		if o.GetName() != "" || o.GetLabels() != nil || o.Size() != 0 || o.Unstructured().Object != nil {
			t.Errorf("%#v has content", o)
		}
	}
}

func ExampleObject() {
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "crd.projectcalico.org/v1", "kind": "IPAMBlock",
		"metadata": map[string]any{"name": "10-0-0-0-26"},
		"spec":     map[string]any{"cidr": "10.0.0.0/26", "affinity": "host:node-1"},
	}}
	block, err := packed.NewPacker().Pack(obj)
	if err != nil {
		fmt.Println(err)
		return
	}
	cidr, _ := block.Field("spec", "cidr")
	fmt.Println(block.GetName(), cidr)
	// Output: 10-0-0-0-26 10.0.0.0/26
}
