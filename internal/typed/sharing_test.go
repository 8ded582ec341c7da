package typed

import (
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gvrkit/gvrkit/internal/gotype"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/stubserver"
	"github.com/gvrkit/gvrkit/internal/wire"
)

// A transform may write to objects.
func TestSharing_NotWithATransform(t *testing.T) {
	item := `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"a","managedFields":[{"manager":"m","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}}}]}}`
	object := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:a":{}}`)}}}}
	list := &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{object, object}}
	list.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"))
	metadata := func(t *testing.T, s *stubserver.Server) (source.Client, *atomic.Bool) {
		t.Helper()
		_, ours := metadataClients(t, s)
		return Sharing(ours)
	}
	ofType := func(t *testing.T, s *stubserver.Server) (source.Client, *atomic.Bool) {
		t.Helper()
		client, transformed, err := New(NewServer(s.RESTConfig(), s.Client(), nil), gotype.Of[*widget]{}, wire.Shared)
		if err != nil {
			t.Fatal(err)
		}
		return client, transformed
	}
	for name, test := range map[string]struct {
		client func(*testing.T, *stubserver.Server) (source.Client, *atomic.Bool)
		reply  stubserver.Reply
	}{
		"metadata in JSON":     {metadata, stubserver.JSON(partialList(item + "," + item))},
		"metadata in protobuf": {metadata, stubserver.Respond(200, "application/vnd.kubernetes.protobuf", string(encoded(t, list)))},
		"a Go type":            {ofType, stubserver.JSON(stubserver.WidgetList(stubserver.SimilarWidget(0), stubserver.SimilarWidget(1)))},
	} {
		t.Run(name, func(t *testing.T) {
			s := stubserver.New(t)
			s.Prepare(test.reply)
			ours, transformed := test.client(t, s)
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
				fields := func(i int) *metav1.FieldsV1 { return items[i].(metav1.Object).GetManagedFields()[0].FieldsV1 }
				if shared := fields(0) == fields(1); shared == own {
					t.Errorf("shared: %t, with a transform: %t", shared, own)
				}
			}
		})
	}
}
