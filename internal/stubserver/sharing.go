package stubserver

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// InCommon returns, for each path, the number of maps and slices that objects share.
func InCommon(objects []*unstructured.Unstructured) map[string]int {
	uses := map[uintptr]int{}
	for _, object := range objects {
		parts(object.Object, "", func(_ string, at uintptr) { uses[at]++ })
	}
	common := map[string]int{}
	for _, object := range objects {
		parts(object.Object, "", func(path string, at uintptr) {
			if uses[at] > 1 {
				common[path]++
			}
		})
	}
	return common
}

// InBoth returns the number of maps and slices that objects of first share with objects of
// second.
func InBoth(first, second []*unstructured.Unstructured) (common int) {
	uses := map[uintptr]bool{}
	for _, object := range first {
		parts(object.Object, "", func(_ string, at uintptr) { uses[at] = true })
	}
	for _, object := range second {
		parts(object.Object, "", func(_ string, at uintptr) {
			if uses[at] {
				common++
			}
		})
	}
	return common
}

// MuchInCommon reports whether objects share many parts, but neither themselves nor their
// metadata.
func MuchInCommon(objects []*unstructured.Unstructured) bool {
	common, shared := InCommon(objects), 0
	for _, count := range common {
		shared += count
	}
	return shared > 4*len(objects) && common[""]+common[".metadata"] == 0
}

// parts calls visit with each map and slice in value, and its address. Empty slices have no
// address.
func parts(value any, path string, visit func(path string, at uintptr)) {
	switch value := value.(type) {
	case map[string]any:
		visit(path, reflect.ValueOf(value).Pointer())
		for key, below := range value {
			parts(below, path+"."+key, visit)
		}
	case []any:
		if len(value) > 0 {
			visit(path, reflect.ValueOf(value).Pointer())
		}
		for i, below := range value {
			parts(below, fmt.Sprintf("%s[%d]", path, i), visit)
		}
	}
}
