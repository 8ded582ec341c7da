package objectsize

import (
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	slotOfText = 4 * word // two strings in a map
	timeSize   = int(unsafe.Sizeof(metav1.Time{}))
)

// ofMetadata returns the bytes of the allocations of an object of metadata.
func ofMetadata(o *metav1.PartialObjectMetadata) int {
	return withPointers(int(unsafe.Sizeof(*o))) + texts(o.APIVersion, o.Kind) + ofObjectMeta(&o.ObjectMeta)
}

// ofObjectMeta returns the bytes of the allocations to which metadata refers. All objects have it, so that it is not visited by reflection.
func ofObjectMeta(m *metav1.ObjectMeta) int {
	size := texts(m.Name, m.GenerateName, m.Namespace, m.GetSelfLink(), string(m.UID), m.ResourceVersion)
	if m.DeletionTimestamp != nil {
		size += withPointers(timeSize)
	}
	if m.DeletionGracePeriodSeconds != nil {
		size += boxOfWord
	}
	size += ofTexts(m.Labels) + ofTexts(m.Annotations) + texts(m.Finalizers...)
	size += withPointers(cap(m.Finalizers) * int(unsafe.Sizeof("")))
	size += withPointers(cap(m.OwnerReferences) * int(unsafe.Sizeof(metav1.OwnerReference{})))
	for i := range m.OwnerReferences {
		owner := &m.OwnerReferences[i]
		size += texts(owner.APIVersion, owner.Kind, owner.Name, string(owner.UID))
		for _, flag := range [...]*bool{owner.Controller, owner.BlockOwnerDeletion} {
			if flag != nil {
				size++
			}
		}
	}
	size += withPointers(cap(m.ManagedFields) * int(unsafe.Sizeof(metav1.ManagedFieldsEntry{})))
	for i := range m.ManagedFields {
		entry := &m.ManagedFields[i]
		size += texts(entry.Manager, string(entry.Operation), entry.APIVersion, entry.FieldsType, entry.Subresource)
		if entry.Time != nil {
			size += withPointers(timeSize)
		}
		if entry.FieldsV1 != nil {
			size += withPointers(int(unsafe.Sizeof(*entry.FieldsV1))) + withoutPointers(len(entry.FieldsV1.GetRawBytes()))
		}
	}
	return size
}

func texts(all ...string) (size int) {
	for _, text := range all {
		size += withoutPointers(len(text))
	}
	return size
}

// ofTexts returns the bytes of labels or annotations.
func ofTexts(of map[string]string) int {
	if of == nil {
		return 0
	}
	size := int(mapSize(len(of), slotOfText))
	for key, value := range of {
		size += texts(key, value)
	}
	return size
}
