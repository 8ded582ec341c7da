package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestBlock_AllocateAndRelease(t *testing.T) {
	obj := newBlock("10.0.0.0/30", "node-a", 4)
	for i := range 4 {
		if err := allocate(obj, fmt.Sprint("pod-", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := allocate(obj, "one-too-many"); err == nil {
		t.Error("allocated an address of a full block")
	}
	if err := release(obj); err != nil {
		t.Fatal(err)
	}
	if err := release(obj); err != nil {
		t.Fatal(err)
	}
	spec := obj.Object["spec"].(map[string]any)
	// Ordinals 0 and 1 are free again; the attributes of 2 and 3 moved up.
	if diff := cmp.Diff([]any{nil, nil, int64(0), int64(1)}, spec["allocations"]); diff != "" {
		t.Errorf("allocations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]any{int64(0), int64(1)}, spec["unallocated"]); diff != "" {
		t.Errorf("unallocated (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"2": int64(2), "3": int64(3)}, spec["sequenceNumberForAllocation"]); diff != "" {
		t.Errorf("sequenceNumberForAllocation (-want +got):\n%s", diff)
	}
	want := block{Name: "10-0-0-0-30", CIDR: "10.0.0.0/30", Node: "node-a", Used: 2, Size: 4}
	if diff := cmp.Diff(want, readBlock(obj)); diff != "" {
		t.Errorf("block (-want +got):\n%s", diff)
	}
	if err := release(newBlock("10.0.0.0/30", "node-a", 4)); err == nil {
		t.Error("released an address of an empty block")
	}
}

// Objects of a server may have any fields.
func TestBlock_MalformedObjectsDoNotPanic(t *testing.T) {
	for _, spec := range []any{
		nil, "text",
		[]any{},
		map[string]any{"cidr": int64(1), "allocations": "none", "affinity": []any{}, "deleted": "yes"},
		map[string]any{"allocations": []any{"x"}, "unallocated": []any{"x"}, "attributes": nil},
		map[string]any{"allocations": []any{int64(7)}, "unallocated": []any{int64(-1)}},
		map[string]any{"allocations": []any{}, "unallocated": []any{int64(3)}},
	} {
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
		readBlock(obj)
		if allocate(obj, "pod") == nil || release(obj) == nil {
			t.Errorf("spec %v: no error", spec)
		}
	}
}

func TestBar(t *testing.T) {
	var got []string
	for _, used := range []int{0, 1, 8, 15, 16, 99} {
		got = append(got, bar(used, 16))
	}
	want := []string{"----------", "#---------", "#####-----", "#########-", "##########", "##########"}
	if !slices.Equal(got, want) {
		t.Errorf("bars: %q, want %q", got, want)
	}
	if got := bar(0, 0); got != "----------" {
		t.Errorf("bar of nothing: %q", got)
	}
}
