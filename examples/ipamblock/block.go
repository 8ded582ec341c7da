package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// blockGroupVersion is the group version of Calico's IPAMBlocks.
var (
	blockGroupVersion = schema.GroupVersion{Group: "crd.projectcalico.org", Version: "v1"}
	blockGVR          = blockGroupVersion.WithResource("ipamblocks")
)

// block has the fields of an IPAMBlock that the viewer shows.
type block struct {
	Name            string `json:"name"`
	CIDR            string `json:"cidr"`
	Node            string `json:"node"`
	Used            int    `json:"used"`
	Size            int    `json:"size"`
	Deleting        bool   `json:"deleting,omitempty"`
	ResourceVersion string `json:"resourceVersion"`
}

// readBlock reads obj, which may be a cached object: it does not write to obj. A field that
// is missing, or that does not have Calico's type, is empty. An object that is not a block
// has only a name.
func readBlock(obj *unstructured.Unstructured) block {
	b := block{Name: obj.GetName(), ResourceVersion: obj.GetResourceVersion(), Node: "-"}
	if namespace := obj.GetNamespace(); namespace != "" {
		b.Name = namespace + "/" + b.Name
	}
	b.CIDR, _, _ = unstructured.NestedString(obj.Object, "spec", "cidr")
	b.Deleting, _, _ = unstructured.NestedBool(obj.Object, "spec", "deleted")
	if affinity, _, _ := unstructured.NestedString(obj.Object, "spec", "affinity"); affinity != "" {
		b.Node = strings.TrimPrefix(affinity, "host:")
	}
	allocations := slice(obj, "allocations")
	b.Size = len(allocations)
	for _, attribute := range allocations {
		if attribute != nil {
			b.Used++
		}
	}
	return b
}

// slice returns a list of the spec without copying it.
func slice(obj *unstructured.Unstructured, field string) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(obj.Object, "spec", field)
	list, _ := value.([]any)
	return list
}

// newBlock returns an empty block of size addresses, affine to node.
func newBlock(cidr, node string, size int) *unstructured.Unstructured {
	free := make([]any, size)
	for i := range free {
		free[i] = int64(i)
	}
	obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"cidr":                        cidr,
		"affinity":                    "host:" + node,
		"strictAffinity":              false,
		"deleted":                     false,
		"allocations":                 make([]any, size),
		"unallocated":                 free,
		"attributes":                  []any{},
		"sequenceNumber":              int64(0),
		"sequenceNumberForAllocation": map[string]any{},
	}}}
	obj.SetGroupVersionKind(blockGroupVersion.WithKind("IPAMBlock"))
	obj.SetName(blockName(cidr))
	return obj
}

// blockName returns Calico's name of the block with a CIDR.
func blockName(cidr string) string {
	return strings.NewReplacer(".", "-", ":", "-", "/", "-").Replace(cidr)
}

// allocate allocates the next free address of obj for pod. It writes to obj, which must not
// be a cached object.
func allocate(obj *unstructured.Unstructured, pod string) error {
	free := slice(obj, "unallocated")
	if len(free) == 0 {
		return fmt.Errorf("block %s is full", obj.GetName())
	}
	ordinal, ok := free[0].(int64)
	allocations := slice(obj, "allocations")
	if !ok || ordinal < 0 || int(ordinal) >= len(allocations) {
		return fmt.Errorf("block %s: unallocated begins with %v, which is not an address of the block", obj.GetName(), free[0])
	}
	attributes := slice(obj, "attributes")
	allocations[ordinal] = int64(len(attributes))
	attribute := map[string]any{
		"handle_id": "k8s-pod-network." + pod,
		"secondary": map[string]any{"pod": pod, "namespace": "demo"},
	}
	sequence, _, _ := unstructured.NestedInt64(obj.Object, "spec", "sequenceNumber")
	spec := obj.Object["spec"].(map[string]any)
	spec["unallocated"] = free[1:]
	spec["attributes"] = append(attributes, attribute)
	spec["sequenceNumber"] = sequence + 1
	return unstructured.SetNestedField(obj.Object, sequence, "spec", "sequenceNumberForAllocation", strconv.FormatInt(ordinal, 10))
}

// release frees the lowest allocated address of obj. It writes to obj, like allocate.
func release(obj *unstructured.Unstructured) error {
	allocations := slice(obj, "allocations")
	ordinal := slices.IndexFunc(allocations, func(attribute any) bool { return attribute != nil })
	if ordinal < 0 {
		return fmt.Errorf("block %s is empty", obj.GetName())
	}
	removed, ok := allocations[ordinal].(int64)
	attributes := slice(obj, "attributes")
	if !ok || removed < 0 || int(removed) >= len(attributes) {
		return fmt.Errorf("block %s: allocation %d refers to %v, which is not an attribute of the block", obj.GetName(), ordinal, allocations[ordinal])
	}
	allocations[ordinal] = nil
	for i, attribute := range allocations { // the later attributes move up
		if index, ok := attribute.(int64); ok && index > removed {
			allocations[i] = index - 1
		}
	}
	sequence, _, _ := unstructured.NestedInt64(obj.Object, "spec", "sequenceNumber")
	spec := obj.Object["spec"].(map[string]any)
	spec["attributes"] = slices.Delete(attributes, int(removed), int(removed)+1)
	spec["unallocated"] = append(slice(obj, "unallocated"), int64(ordinal))
	spec["sequenceNumber"] = sequence + 1
	unstructured.RemoveNestedField(obj.Object, "spec", "sequenceNumberForAllocation", strconv.Itoa(ordinal))
	return nil
}
