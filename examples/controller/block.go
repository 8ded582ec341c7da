package main

import (
	"errors"
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// allocation is an address of a block that is in use.
type allocation struct {
	address netip.Addr
	node    string
}

// errUnreadable is the error for a block that must change before it can be read.
var errUnreadable = errors.New("it can't be read")

// allocationsOf returns the addresses of block that are allocated on a node. It does not change
// block, which may be a cached object. Its error is errUnreadable.
func allocationsOf(block *unstructured.Unstructured) ([]allocation, error) {
	cidr, _, _ := unstructured.NestedString(block.Object, "spec", "cidr")
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return nil, fmt.Errorf("block %s: %w: %w", block.GetName(), errUnreadable, err)
	}
	attributes := list(block, "attributes")
	var found []allocation
	address := prefix.Addr()
	for _, index := range list(block, "allocations") { // an index of attributes for each address, or null
		if i, ok := index.(int64); ok && i >= 0 && i < int64(len(attributes)) {
			attribute, _ := attributes[i].(map[string]any)
			if node, _, _ := unstructured.NestedString(attribute, "secondary", "node"); node != "" {
				found = append(found, allocation{address, node})
			}
		}
		address = address.Next()
	}
	return found, nil
}

// list returns a list of the spec without a copy of it.
func list(block *unstructured.Unstructured, field string) []any {
	value, _, _ := unstructured.NestedFieldNoCopy(block.Object, "spec", field)
	values, _ := value.([]any)
	return values
}
