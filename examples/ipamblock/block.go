package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// blockGroupVersion is where Calico's IPAMBlocks live.
var (
	blockGroupVersion = schema.GroupVersion{Group: "crd.projectcalico.org", Version: "v1"}
	blockGVR          = blockGroupVersion.WithResource("ipamblocks")
)

// block is what the viewer shows of an IPAMBlock.
type block struct {
	Name            string `json:"name"`
	CIDR            string `json:"cidr"`
	Node            string `json:"node"`
	Used            int    `json:"used"`
	Size            int    `json:"size"`
	Deleting        bool   `json:"deleting,omitempty"`
	ResourceVersion string `json:"resourceVersion"`
}

// readBlock reads obj, which may be a cached one: it copies nothing that it would
// have to give back and writes nothing. A field that is missing or of another
// type than Calico's is shown as empty; of what is no block, only the name is there.
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

// blockName is the name that Calico gives the block of a CIDR.
func blockName(cidr string) string {
	return strings.NewReplacer(".", "-", ":", "-", "/", "-").Replace(cidr)
}

// allocate takes the next free address of obj for pod. It writes to obj, which
// must be the caller's own and not one of a cache.
func allocate(obj *unstructured.Unstructured, pod string) error {
	free := slice(obj, "unallocated")
	if len(free) == 0 {
		return fmt.Errorf("block %s is full", obj.GetName())
	}
	ordinal, ok := free[0].(int64)
	allocations := slice(obj, "allocations")
	if !ok || ordinal < 0 || int(ordinal) >= len(allocations) {
		return fmt.Errorf("block %s: unallocated begins with %v, which is no ordinal of it", obj.GetName(), free[0])
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

// release frees the lowest address of obj that is taken. Like allocate it writes
// to obj.
func release(obj *unstructured.Unstructured) error {
	allocations := slice(obj, "allocations")
	ordinal := slices.IndexFunc(allocations, func(attribute any) bool { return attribute != nil })
	if ordinal < 0 {
		return fmt.Errorf("block %s is empty", obj.GetName())
	}
	gone, ok := allocations[ordinal].(int64)
	attributes := slice(obj, "attributes")
	if !ok || gone < 0 || int(gone) >= len(attributes) {
		return fmt.Errorf("block %s: allocation %d refers to %v, which is no attribute of it", obj.GetName(), ordinal, allocations[ordinal])
	}
	allocations[ordinal] = nil
	for i, attribute := range allocations { // those behind it move up
		if index, ok := attribute.(int64); ok && index > gone {
			allocations[i] = index - 1
		}
	}
	sequence, _, _ := unstructured.NestedInt64(obj.Object, "spec", "sequenceNumber")
	spec := obj.Object["spec"].(map[string]any)
	spec["attributes"] = slices.Delete(attributes, int(gone), int(gone)+1)
	spec["unallocated"] = append(slice(obj, "unallocated"), int64(ordinal))
	spec["sequenceNumber"] = sequence + 1
	unstructured.RemoveNestedField(obj.Object, "spec", "sequenceNumberForAllocation", strconv.Itoa(ordinal))
	return nil
}
