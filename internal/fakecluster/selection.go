package fakecluster

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// selection selects the objects of a list or watch.
type selection struct {
	namespace string // empty: all
	labels    labels.Selector
	fields    fields.Selector
}

// newSelection parses the selectors of opts. The selectable fields are those of all custom
// resources: metadata.name and metadata.namespace.
func newSelection(namespace string, opts metav1.ListOptions) (selection, error) {
	byLabel, err := labels.Parse(opts.LabelSelector)
	if err != nil {
		return selection{}, apierrors.NewBadRequest(err.Error())
	}
	byField, err := fields.ParseSelector(opts.FieldSelector)
	if err != nil {
		return selection{}, apierrors.NewBadRequest(err.Error())
	}
	for _, req := range byField.Requirements() {
		if req.Field != "metadata.name" && req.Field != "metadata.namespace" {
			return selection{}, apierrors.NewBadRequest("field label not supported: " + req.Field)
		}
	}
	return selection{namespace: namespace, labels: byLabel, fields: byField}, nil
}

func (s selection) matches(obj *unstructured.Unstructured) bool {
	return (s.namespace == "" || obj.GetNamespace() == s.namespace) &&
		s.labels.Matches(labels.Set(obj.GetLabels())) &&
		s.fields.Matches(fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()})
}
