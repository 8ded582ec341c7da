package inprocess

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
)

// noTopLevelItems rejects custom resources with a top-level field "items". The API server
// would store such an object and later decode it as a list: the decoder of unstructured
// objects checks only that field. The watch cache uses this decoder and can't be filled
// while the object exists, so that no client can watch the type.
type noTopLevelItems struct{ *admission.Handler }

func newNoTopLevelItems() admission.Interface {
	return noTopLevelItems{admission.NewHandler(admission.Create, admission.Update)}
}

var _ admission.ValidationInterface = noTopLevelItems{}

func (noTopLevelItems) Validate(_ context.Context, attributes admission.Attributes, _ admission.ObjectInterfaces) error {
	obj, ok := attributes.GetObject().(runtime.Unstructured)
	if !ok { // a CustomResourceDefinition
		return nil
	}
	if _, found := obj.UnstructuredContent()["items"]; !found {
		return nil
	}
	const why = "Kubernetes decodes an object with this top-level field as a list, and can't serve watches of its type; put the field below spec"
	return apierrors.NewInvalid(attributes.GetKind().GroupKind(), attributes.GetName(),
		field.ErrorList{field.Forbidden(field.NewPath("items"), why)})
}
