package fakecluster

import (
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	apisharding "k8s.io/apimachinery/pkg/sharding"
)

// selection selects the objects of a list or watch.
type selection struct {
	namespace string // empty: all
	labels    labels.Selector
	fields    fields.Selector
	shards    []apisharding.ShardRangeRequirement // nil: all
}

// newSelection parses the selectors of opts. The selectable fields are those of all custom
// resources: metadata.name and metadata.namespace.
// A selector of shards is ignored if sharded is false, as by a server without the feature.
func newSelection(namespace string, opts metav1.ListOptions, sharded bool) (selection, error) {
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
	selected := selection{namespace: namespace, labels: byLabel, fields: byField}
	if sharded {
		selected.shards, err = parseShards(opts.ShardSelector)
	}
	return selected, err
}

var shardRange = regexp.MustCompile(`^shardRange\(object\.metadata\.uid, '(0x[0-9a-f]{16})', '(0x1?[0-9a-f]{16})'\)$`)

// parseShards parses a selector of shards. The error for one that is not valid is that of an API server.
func parseShards(selector string) (shards []apisharding.ShardRangeRequirement, err error) {
	if selector == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(selector, " || ") {
		match := shardRange.FindStringSubmatch(part)
		if match == nil {
			return nil, apierrors.NewInternalError(fmt.Errorf("invalid shard selector %q", selector))
		}
		shards = append(shards, apisharding.ShardRangeRequirement{Key: "object.metadata.uid", Start: match[1], End: match[2]})
	}
	return shards, nil
}

func (s selection) matches(obj *unstructured.Unstructured) bool {
	return (s.namespace == "" || obj.GetNamespace() == s.namespace) &&
		s.labels.Matches(labels.Set(obj.GetLabels())) &&
		s.fields.Matches(fields.Set{"metadata.name": obj.GetName(), "metadata.namespace": obj.GetNamespace()}) &&
		s.matchesShards(obj)
}

func (s selection) matchesShards(obj *unstructured.Unstructured) bool {
	if s.shards == nil {
		return true
	}
	matches, err := apisharding.NewSelector(s.shards...).Matches(obj)
	return err == nil && matches
}
