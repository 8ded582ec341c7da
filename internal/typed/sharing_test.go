package typed

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// metadataOf returns metadata with that manager and fields, which has nothing in common with that of another call.
func metadataOf(manager, fields string) metav1.ObjectMeta {
	entry := metav1.ManagedFieldsEntry{Manager: strings.Clone(manager), Operation: "Update", APIVersion: strings.Clone("v1"), FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{}}
	entry.FieldsV1.SetRawBytes([]byte(fields))
	return metav1.ObjectMeta{
		Name: "a", Namespace: strings.Clone("ns"), ManagedFields: []metav1.ManagedFieldsEntry{entry, {}},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: strings.Clone("v1"), Kind: strings.Clone("A"), Name: "b"}},
	}
}

func TestCommon_SharesOnlyEqualParts(t *testing.T) {
	c := newCommon()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 5000 {
				manager, fields := fmt.Sprint("manager-", i%1000), fmt.Sprintf(`{"f:%d":{}}`, i%1500)
				got := metadataOf(manager, fields)
				c.share(&got)
				if diff := cmp.Diff(metadataOf(manager, fields), got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
					return
				}
			}
		})
	}
	all.Wait()
	first, second, large := metadataOf("m", `{"f:a":{}}`), metadataOf("m", `{"f:a":{}}`), metadataOf("m", strings.Repeat(" ", maxCommon+1))
	for _, meta := range []*metav1.ObjectMeta{&first, &second, &large} {
		c.share(meta)
	}
	if first.ManagedFields[0].FieldsV1 != second.ManagedFields[0].FieldsV1 {
		t.Error("equal fields are not shared")
	}
	again := metadataOf("m", strings.Repeat(" ", maxCommon+1))
	if c.share(&again); again.ManagedFields[0].FieldsV1 == large.ManagedFields[0].FieldsV1 {
		t.Error("a large part is kept in memory")
	}
}

// A transform may write to objects.
func TestSharing_NotWithATransform(t *testing.T) {
	s := stubserver.New(t)
	item := `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"a","managedFields":[{"manager":"m","fieldsType":"FieldsV1","fieldsV1":{"f:a":{}}}]}}`
	s.Prepare(stubserver.JSON(partialList(item + "," + item)))
	_, ours := metadataClients(t, s)
	ours, transformed := Sharing(ours)
	for _, own := range []bool{false, true, false} {
		transformed.Store(own)
		list, err := ours.List(t.Context(), widgets, "", metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		items := list.(*metav1.PartialObjectMetadataList).Items
		if shared := items[0].ManagedFields[0].FieldsV1 == items[1].ManagedFields[0].FieldsV1; shared == own {
			t.Errorf("shared: %t, with a transform: %t", shared, own)
		}
	}
}
