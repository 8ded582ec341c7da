package metaproto

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/internal/undecodable"
	"github.com/gvrkit/gvrkit/internal/wire"
)

// outcome is the result of a decoder.
type outcome struct {
	object runtime.Object
	kind   *schema.GroupVersionKind
	err    string
}

func outcomeOf(s runtime.Serializer, data []byte) outcome {
	object, kind, err := s.Decode(data, nil, nil)
	if err != nil {
		return outcome{err: err.Error()}
	}
	return outcome{object, kind, ""}
}

// sameAsClientGo checks that objects, lists and events with message have the results of client-go. If there is an error, it is
// that of an *undecodable.Object.
func sameAsClientGo(t *testing.T, message []byte) {
	t.Helper()
	theirs := infoOf(t, stock(), runtime.ContentTypeProtobuf).Serializer
	for name, d := range decoders() {
		ours := infoOf(t, Negotiated(stock(), d), runtime.ContentTypeProtobuf).Serializer
		for _, data := range [][]byte{response(objectKind, message), response(listKind, message), message} {
			want := outcomeOf(theirs, data)
			for range sightings {
				got := outcomeOf(ours, slices.Clone(data))
				if bad, is := got.object.(*undecodable.Object); is {
					got = outcome{err: bad.Err.Error()}
				}
				if !reflect.DeepEqual(want, got) && !strings.Contains(want.err, "is missing in") && len(want.err) <= 900 {
					t.Fatalf("%s: %q (-client-go +ours):\n%s\n%s", name, data, want.err, cmp.Diff(fmt.Sprintf("%#v", want), fmt.Sprintf("%#v", got)))
				}
			}
		}
		sameItems(t, name, d, message)
	}
}

// sameItems checks that message, as an item of a list, is decoded as client-go does.
func sameItems(t *testing.T, name string, d *Decoder, message []byte) {
	t.Helper()
	want := &metav1.PartialObjectMetadata{}
	err := want.Unmarshal(message)
	switch got := d.item(slices.Clone(message)).(type) {
	case *undecodable.Object:
		if err == nil || err.Error() != got.Err.Error() {
			t.Errorf("%s: %q: %v, client-go has %v", name, message, got.Err, err)
		}
	case *metav1.PartialObjectMetadata:
		if err != nil || !reflect.DeepEqual(want, got) {
			t.Errorf("%s: %q: error %v (-client-go +ours):\n%s", name, message, err, cmp.Diff(want, got))
		}
	}
}

func TestDecoder_DecodesAsClientGo(t *testing.T) {
	seeds := uint64(4000)
	if testing.Short() {
		seeds = 400
	}
	for seed := range seeds {
		r := newRandom(seed)
		message := marshalled(r.object())
		if seed%2 == 1 {
			message = r.damaged(message, 4)
		}
		sameAsClientGo(t, message)
	}
}

// client-go merges the managed fields of an entry that has them twice.
func TestDecoder_ManagedFieldsOfAnEntryTwice(t *testing.T) {
	part := func(of protowire.Number, parts ...[]byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, of, protowire.BytesType), bytes.Join(parts, nil))
	}
	const metadata, managedFields, fieldsV1, raw = 1, 17, 7, 1
	first := part(fieldsV1, part(raw, []byte(`{"f:spec":{}}`)))
	for _, second := range [][]byte{part(fieldsV1), part(fieldsV1, part(raw)), part(fieldsV1, part(raw, []byte(`{}`))), part(fieldsV1, part(2, []byte("x")))} {
		sameAsClientGo(t, part(metadata, part(managedFields, first, second)))
	}
}

// Most messages are decoded in one pass: otherwise the test above would compare client-go with itself.
func TestDecoder_OrdinaryMessagesAreNotLeftToClientGo(t *testing.T) {
	all, ordinary := 0, 0
	for seed := range uint64(500) {
		r := newRandom(seed)
		object := r.object()
		for i := range object.ManagedFields {
			if fields := object.ManagedFields[i].FieldsV1; fields != nil && fields.Size() == 0 {
				object.ManagedFields[i].FieldsV1 = nil // client-go encodes it as a message without fields
			}
		}
		for _, d := range decoders() {
			all++
			if _, ok := d.object(marshalled(object)); ok {
				ordinary++
			}
		}
	}
	if ordinary != all {
		t.Errorf("%d of %d messages are ordinary", ordinary, all)
	}
}

func FuzzMetadata(f *testing.F) {
	for seed := range uint64(30) {
		r := newRandom(seed)
		f.Add(marshalled(r.object()))
		f.Add(r.damaged(marshalled(r.object()), 4))
	}
	f.Fuzz(sameAsClientGo)
}

// ordinaryObject is metadata as most objects have it.
func ordinaryObject(name string) *metav1.PartialObjectMetadata {
	yes := true
	o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "ns", UID: "3f6ae4a5-6e0b-4e6c-8a57-8b0b6a3c9d10", ResourceVersion: "1000000001", Generation: 3, CreationTimestamp: at(1_700_000_000),
		Labels: map[string]string{"app": "web", "tier": "front"}, Annotations: map[string]string{"note": "of " + name},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web", UID: "u-web", Controller: &yes}},
		Finalizers:      []string{"example.com/wait"},
	}}
	created, later := at(1_700_000_000), at(1_700_000_999)
	o.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kubectl", Operation: "Apply", APIVersion: "v1", Time: &created, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)},
		{Manager: "controller", Operation: "Update", APIVersion: "v1", Time: &later, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`), Subresource: "status"},
	}
	return o
}

func TestDecoder_EqualPartsAreShared(t *testing.T) {
	for name, d := range decoders() {
		var last [2]*metav1.PartialObjectMetadata
		for range sightings {
			for i := range last {
				o, ok := d.object(marshalled(ordinaryObject(fmt.Sprint("object-", i))))
				if !ok {
					t.Fatal("it is not ordinary")
				}
				last[i] = o
			}
		}
		a, b := last[0], last[1]
		for part, same := range map[string]bool{
			"labels":        reflect.ValueOf(a.Labels).Pointer() == reflect.ValueOf(b.Labels).Pointer(),
			"owners":        &a.OwnerReferences[0] == &b.OwnerReferences[0],
			"finalizers":    &a.Finalizers[0] == &b.Finalizers[0],
			"managedFields": a.ManagedFields[1].FieldsV1 == b.ManagedFields[1].FieldsV1,
			"times":         a.ManagedFields[0].Time == &a.CreationTimestamp,
		} {
			if same != d.Shared {
				t.Errorf("%s: %s are shared: %t", name, part, same)
			}
		}
		if a.Annotations["note"] == b.Annotations["note"] {
			t.Errorf("%s: different annotations are shared", name)
		}
	}
}

// A program may write to objects that are not shared. Removed parts do not stay in memory as parts of others.
func TestDecoder_OwnObjectsCanBeChanged(t *testing.T) {
	d := decoders()["own"]
	message := marshalled(ordinaryObject("a"))
	for range sightings {
		o, ok := d.object(message)
		if diff := cmp.Diff(ordinaryObject("a"), o); diff != "" || !ok {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		o.Labels["app"], o.Annotations["note"], o.Finalizers[0], o.OwnerReferences[0].Name = "x", "x", "x", "x"
		*o.OwnerReferences[0].Controller = false
		o.ManagedFields[0].Time.Time = o.ManagedFields[1].Time.Time
		o.ManagedFields[0].FieldsV1.SetRawString("{}")
		o.ManagedFields[0].Manager = "x"
	}
}

// A transform may remove managed fields, which then take no memory.
func TestDecoder_ManagedFieldsAreNoPartOfOwnObjects(t *testing.T) {
	for name, d := range decoders() {
		o, _ := d.object(marshalled(ordinaryObject("a")))
		distance := uintptr(unsafe.Pointer(&o.ManagedFields[0])) - uintptr(unsafe.Pointer(o))
		if together := distance < unsafe.Sizeof(withTwo{}); together != d.Shared {
			t.Errorf("%s: one allocation: %t", name, together)
		}
	}
}

func TestDecoder_Allocations(t *testing.T) {
	d := decoders()["shared"]
	message := marshalled(ordinaryObject("a"))
	for range sightings {
		d.object(message)
	}
	// The object with its managed fields, and the string with its name, UID and version.
	if got := testing.AllocsPerRun(100, func() { d.object(message) }); got > 2 {
		t.Errorf("%.0f allocations, want 2", got)
	}
}

var bigAnnotation = strings.Repeat("x", 10_000)

func TestDecoder_LeavesFieldsOut(t *testing.T) {
	object := ordinaryObject("a")
	object.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = bigAnnotation
	object.GenerateName = "a-"
	object.SetSelfLink("/a")
	deleted, seconds := at(1_700_000_001), int64(30)
	object.DeletionTimestamp, object.DeletionGracePeriodSeconds = &deleted, &seconds
	for name, tc := range map[string]struct {
		paths [][]string
		want  func(*metav1.ObjectMeta)
	}{
		"managedFields": {[][]string{{"metadata", "managedFields"}}, func(m *metav1.ObjectMeta) { m.ManagedFields = nil }},
		"last applied": {[][]string{{"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"}}, func(m *metav1.ObjectMeta) {
			delete(m.Annotations, "kubectl.kubernetes.io/last-applied-configuration")
		}},
		"all annotations": {[][]string{{"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"}, {"metadata", "annotations", "note"}}, func(m *metav1.ObjectMeta) {
			m.Annotations = nil
		}},
		"a label":    {[][]string{{"metadata", "labels", "app"}}, func(m *metav1.ObjectMeta) { delete(m.Labels, "app") }},
		"all labels": {[][]string{{"metadata", "labels"}}, func(m *metav1.ObjectMeta) { m.Labels = nil }},
		"many": {[][]string{
			{"metadata", "generateName"},
			{"metadata", "selfLink"},
			{"metadata", "generation"},
			{"metadata", "creationTimestamp"},
			{"metadata", "deletionTimestamp"},
			{"metadata", "deletionGracePeriodSeconds"},
			{"metadata", "annotations"},
			{"metadata", "ownerReferences"},
			{"metadata", "finalizers"},
		}, func(m *metav1.ObjectMeta) {
			*m = metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion, Labels: m.Labels, ManagedFields: m.ManagedFields}
		}},
		"metadata": {[][]string{{"metadata"}}, func(m *metav1.ObjectMeta) {
			*m = metav1.ObjectMeta{Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion}
		}},
		"other fields": {[][]string{{"spec"}, {"metadata", "name"}, {"metadata", "uid"}, {"metadata", "managedFields", "time"}, {"kind"}}, func(*metav1.ObjectMeta) {}},
	} {
		want := object.DeepCopy()
		tc.want(&want.ObjectMeta)
		for of, d := range decoders(tc.paths...) {
			for range sightings {
				got, ok := d.object(marshalled(object))
				if diff := cmp.Diff(want, got); diff != "" || !ok {
					t.Errorf("%s, %s (-want +got):\n%s", name, of, diff)
				}
			}
			completed := object.DeepCopy()
			if d.Complete(completed); !cmp.Equal(want, completed) {
				t.Errorf("%s, %s: completed (-want +got):\n%s", name, of, cmp.Diff(want, completed))
			}
			list := &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{*object.DeepCopy()}}
			if d.Complete(list); !cmp.Equal(*want, list.Items[0]) {
				t.Errorf("%s, %s: completed in a list (-want +got):\n%s", name, of, cmp.Diff(*want, list.Items[0]))
			}
		}
	}
}

// Fields that are not named are left out, if some are.
func TestDecoder_KeepsOnlyTheNamedFields(t *testing.T) {
	object := ordinaryObject("a")
	identity := metav1.ObjectMeta{Name: object.Name, Namespace: object.Namespace, UID: object.UID, ResourceVersion: object.ResourceVersion}
	for name, tc := range map[string]struct {
		keep, drop []string
		want       func(m *metav1.ObjectMeta)
	}{
		"nothing of metadata": {[]string{"spec"}, nil, func(*metav1.ObjectMeta) {}},
		"metadata":            {[]string{"metadata"}, nil, func(m *metav1.ObjectMeta) { *m = object.ObjectMeta }},
		"labels":              {[]string{"metadata.labels"}, nil, func(m *metav1.ObjectMeta) { m.Labels = object.Labels }},
		"a label": {[]string{"metadata.labels.app", "metadata.finalizers"}, nil, func(m *metav1.ObjectMeta) {
			m.Labels, m.Finalizers = map[string]string{"app": object.Labels["app"]}, object.Finalizers
		}},
		"labels but one":  {[]string{"metadata.labels"}, []string{"metadata.labels.app"}, func(m *metav1.ObjectMeta) { m.Labels = maps.Clone(object.Labels); delete(m.Labels, "app") }},
		"an absent label": {[]string{"metadata.labels.absent"}, nil, func(*metav1.ObjectMeta) {}},
	} {
		d := &wire.Drop{}
		var keep [][]string
		for _, path := range tc.keep {
			keep = append(keep, strings.Split(path, "."))
		}
		d.Keep(keep...)
		for _, path := range tc.drop {
			d.Add(strings.Split(path, ".")...)
		}
		want := &metav1.PartialObjectMetadata{TypeMeta: object.TypeMeta, ObjectMeta: identity}
		tc.want(&want.ObjectMeta)
		for of, d := range decodersOf(d) {
			for range sightings {
				got, ok := d.object(marshalled(object))
				if diff := cmp.Diff(want, got); diff != "" || !ok {
					t.Errorf("%s, %s (-want +got):\n%s", name, of, diff)
				}
			}
			completed := object.DeepCopy()
			if d.Complete(completed); !cmp.Equal(want, completed) {
				t.Errorf("%s, %s: completed (-want +got):\n%s", name, of, cmp.Diff(want, completed))
			}
		}
	}
}

// An annotation marks the end of the initial events of a watch-list. Without it, they would never end.
func TestDecoder_KeepsTheBookmarkThatEndsInitialEvents(t *testing.T) {
	bookmark := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "9", Generation: 1, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true", "note": "x"},
	}}
	for name, d := range decoders([]string{"metadata"}, []string{"metadata", "annotations", metav1.InitialEventsAnnotationKey}) {
		got, ok := d.object(marshalled(bookmark))
		if diff := cmp.Diff(bookmark, got); diff != "" || !ok {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if d.Complete(got); !cmp.Equal(bookmark, got) {
			t.Errorf("%s: completed: %v", name, got)
		}
	}
}

// The parts that decoders have in common belong to no response.
func TestDecoder_KeepsNoResponse(t *testing.T) {
	for name, d := range decoders() {
		data := response(objectKind, marshalled(ordinaryObject("a")))
		for range sightings {
			read := slices.Clone(data)
			o, ok := d.Object(read)
			copy(read, bytes.Repeat([]byte{'x'}, len(read)))
			if diff := cmp.Diff(ordinaryObject("a"), o); diff != "" || !ok {
				t.Fatalf("%s (-want +got):\n%s", name, diff)
			}
		}
	}
}

// metadataOf returns metadata with that manager and fields, which has nothing in common with that of another call.
func metadataOf(manager, fields string) *metav1.PartialObjectMetadata {
	entry := metav1.ManagedFieldsEntry{Manager: strings.Clone(manager), Operation: "Update", APIVersion: strings.Clone("v1"), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields)}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Namespace: strings.Clone("ns"), ManagedFields: []metav1.ManagedFieldsEntry{entry, {}},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: strings.Clone("v1"), Kind: strings.Clone("A"), Name: "b"}},
	}}
}

// Decoders are used concurrently, for objects that they decode and for those of client-go.
func TestDecoder_SharesOnlyEqualParts(t *testing.T) {
	d := decoders()["shared"]
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 2000 {
				want := metadataOf(fmt.Sprint("manager-", i%1000), fmt.Sprintf(`{"f:%d":{}}`, i%1500))
				completed := want.DeepCopy()
				d.Complete(completed)
				decoded, _ := d.object(marshalled(want))
				for name, got := range map[string]*metav1.PartialObjectMetadata{"completed": completed, "decoded": decoded} {
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("%s (-want +got):\n%s", name, diff)
						return
					}
				}
			}
		})
	}
	all.Wait()
	var objects [2]*metav1.PartialObjectMetadata
	for range sightings {
		for i := range objects {
			objects[i] = metadataOf("m", `{"f:a":{}}`)
			d.Complete(objects[i])
		}
	}
	if objects[0].ManagedFields[0].FieldsV1 != objects[1].ManagedFields[0].FieldsV1 {
		t.Error("equal fields of client-go's objects are not shared")
	}
	large := strings.Repeat(" ", 5000)
	for range sightings {
		for i := range objects {
			objects[i], _ = d.object(marshalled(metadataOf("m", large)))
		}
	}
	if objects[0].ManagedFields[0].FieldsV1 == objects[1].ManagedFields[0].FieldsV1 {
		t.Error("a large part is kept in memory")
	}
}
