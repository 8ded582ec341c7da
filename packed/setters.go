package packed

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// readOnly panics. The setters are here only because metav1.Object has them.
func readOnly(setter string) {
	panic("packed: " + setter + " on a packed object, which is read-only: change Unstructured().DeepCopy()")
}

// SetNamespace panics, as do all setters.
func (*Object) SetNamespace(string) { readOnly("SetNamespace") }

// SetName panics.
func (*Object) SetName(string) { readOnly("SetName") }

// SetGenerateName panics.
func (*Object) SetGenerateName(string) { readOnly("SetGenerateName") }

// SetUID panics.
func (*Object) SetUID(types.UID) { readOnly("SetUID") }

// SetResourceVersion panics.
func (*Object) SetResourceVersion(string) { readOnly("SetResourceVersion") }

// SetGeneration panics.
func (*Object) SetGeneration(int64) { readOnly("SetGeneration") }

// SetSelfLink panics.
func (*Object) SetSelfLink(string) { readOnly("SetSelfLink") }

// SetCreationTimestamp panics.
func (*Object) SetCreationTimestamp(metav1.Time) { readOnly("SetCreationTimestamp") }

// SetDeletionTimestamp panics.
func (*Object) SetDeletionTimestamp(*metav1.Time) { readOnly("SetDeletionTimestamp") }

// SetDeletionGracePeriodSeconds panics.
func (*Object) SetDeletionGracePeriodSeconds(*int64) { readOnly("SetDeletionGracePeriodSeconds") }

// SetLabels panics.
func (*Object) SetLabels(map[string]string) { readOnly("SetLabels") }

// SetAnnotations panics.
func (*Object) SetAnnotations(map[string]string) { readOnly("SetAnnotations") }

// SetFinalizers panics.
func (*Object) SetFinalizers([]string) { readOnly("SetFinalizers") }

// SetOwnerReferences panics.
func (*Object) SetOwnerReferences([]metav1.OwnerReference) { readOnly("SetOwnerReferences") }

// SetManagedFields panics.
func (*Object) SetManagedFields([]metav1.ManagedFieldsEntry) { readOnly("SetManagedFields") }
