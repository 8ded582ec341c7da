package typed

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// A transform may write to objects.
func TestSharing_NotWithATransform(t *testing.T) {
	item := `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"a","managedFields":[{"manager":"m","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}}}]}}`
	object := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:a":{}}`)}}}}
	list := &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{object, object}}
	list.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"))
	for format, reply := range map[string]stubserver.Reply{
		"JSON":     stubserver.JSON(partialList(item + "," + item)),
		"protobuf": stubserver.Respond(200, "application/vnd.kubernetes.protobuf", string(encoded(t, list))),
	} {
		s := stubserver.New(t)
		s.Prepare(reply)
		_, ours := metadataClients(t, s)
		ours, transformed := Sharing(ours)
		for _, own := range []bool{false, false, false, true, false} {
			transformed.Store(own)
			var items []runtime.Object
			for range 2 { // parts are shared when they have been decoded before
				list, err := ours.List(t.Context(), widgets, "", metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				items = contents(t, list)[3].([]runtime.Object)
			}
			fields := func(i int) *metav1.FieldsV1 {
				return items[i].(*metav1.PartialObjectMetadata).ManagedFields[0].FieldsV1
			}
			if shared := fields(0) == fields(1); shared == own {
				t.Errorf("%s: shared: %t, with a transform: %t", format, shared, own)
			}
		}
	}
}
