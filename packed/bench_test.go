package packed_test

import (
	"fmt"
	"runtime"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	kruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/gvrkit/gvrkit/internal/gotype"
	internalpacked "github.com/gvrkit/gvrkit/internal/packed"
	"github.com/gvrkit/gvrkit/packed"
)

// What the methods cost that most controllers call for each event.
func BenchmarkObject_Getters(b *testing.B) {
	p := packed.NewPacker()
	var o *packed.Object
	for range 30 { // the last one refers to the dictionary
		o = pack(b, p, parse(b, whole))
	}
	selector := labels.SelectorFromSet(labels.Set{"app": "other"})
	for _, getter := range []struct {
		name string
		call func()
	}{
		{"GetName", func() { o.GetName() }},
		{"GetLabels", func() { o.GetLabels() }},
		{"selector", func() { selector.Matches(o.Labels()) }},
		{"GetOwnerReferences", func() { o.GetOwnerReferences() }},
		{"GetAnnotations", func() { o.GetAnnotations() }},
		{"GetGeneration", func() { o.GetGeneration() }},
		{"GetDeletionTimestamp", func() { o.GetDeletionTimestamp() }},
		{"GetFinalizers", func() { o.GetFinalizers() }},
		{"GetObjectKind", func() { o.GetObjectKind() }},
	} {
		b.Run(getter.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				getter.call()
			}
		})
	}
}

// ipamBlock has the fields of Calico's type.
type ipamBlock struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec struct {
		CIDR           string  `json:"cidr"`
		Affinity       *string `json:"affinity"`
		StrictAffinity bool    `json:"strictAffinity"`
		Allocations    []*int  `json:"allocations"`
		Attributes     []struct {
			HandleID  *string           `json:"handle_id"`
			Secondary map[string]string `json:"secondary"`
		} `json:"attributes"`
		SequenceNumbers map[string]uint64 `json:"sequenceNumberForAllocation"`
		Deleted         bool              `json:"deleted"`
	} `json:"spec"`
}

func (b *ipamBlock) DeepCopyObject() kruntime.Object {
	other := *b
	return &other
}

// block returns object i of a series that resembles Calico's IPAMBlocks: 30 of 64 addresses are in use.
func block(i int) *unstructured.Unstructured {
	node := fmt.Sprintf("ip-10-0-%d-%d.eu-west-1.compute.internal", i>>10, i>>2&255)
	allocations, attributes, sequences := make([]any, 64), []any{}, map[string]any{}
	for k := range 30 {
		allocations[2*k] = int64(k)
		sequences[fmt.Sprint(2*k)] = int64(1_700_000_000_000_000_000) + int64(7919*i+k)
		attributes = append(attributes, map[string]any{
			"handle_id": fmt.Sprintf("k8s-pod-network.%064x", uint64(i+1)*uint64(k+1)*0x9e3779b97f4a7c15), //nolint:gosec // test data
			"secondary": map[string]any{"namespace": fmt.Sprintf("team-%02d", (i+k)%40), "node": node, "pod": fmt.Sprintf("checkout-%x-%05x", i, k)},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "crd.projectcalico.org/v1", "kind": "IPAMBlock",
		"metadata": map[string]any{
			"name": fmt.Sprintf("10-0-%d-%d-26", i>>8, i&255), "uid": fmt.Sprintf("01234567-89ab-cdef-0123-%012x", i), "resourceVersion": fmt.Sprint(1000 + i),
			"generation": int64(7), "creationTimestamp": "2026-01-02T03:04:05Z", "labels": map[string]any{"team": fmt.Sprint("t", i%100)},
		},
		"spec": map[string]any{
			"affinity": "host:" + node, "allocations": allocations, "attributes": attributes, "cidr": fmt.Sprintf("10.0.%d.%d/26", i>>8, i&255),
			"deleted": false, "sequenceNumberForAllocation": sequences, "strictAffinity": i%2 == 0,
		},
	}}
}

// blocks packs 256 of them.
func blocks(tb testing.TB) (objects []*packed.Object, tapes []internalpacked.Tape) {
	tb.Helper()
	packer, p := internalpacked.NewPacker(), packed.NewPacker()
	for i := range 256 {
		tape, ok := packer.FromContent(block(i).Object)
		if !ok {
			tb.Fatal("not packed")
		}
		objects, tapes = append(objects, pack(tb, p, block(i))), append(tapes, tape)
	}
	return objects, tapes
}

// A struct is decoded from the packed object. The other way makes a tree of it first, and converts that.
func BenchmarkAs(b *testing.B) {
	objects, tapes := blocks(b)
	converter := gotype.NewConverter[*ipamBlock]()
	for _, way := range []struct {
		name string
		as   func(i int) error
	}{
		{"packed", func(i int) error { _, err := packed.As[ipamBlock](objects[i]); return err }},
		{"tree", func(i int) error { _, err := converter.Convert(tapes[i].Content()); return err }},
	} {
		b.Run("from="+way.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := way.as(i % len(tapes)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// What an object costs a reader who needs a tree. It is cold if no caller uses the tree and the garbage collector has run.
func BenchmarkObject_Unstructured(b *testing.B) {
	objects, tapes := blocks(b)
	b.Run("cold", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			tapes[i%len(tapes)].Content()
		}
	})
	b.Run("hot", func(b *testing.B) {
		b.ReportAllocs()
		tree := objects[0].Unstructured()
		for b.Loop() {
			objects[0].Unstructured()
		}
		runtime.KeepAlive(tree)
	})
	// A worker reads objects in turn, and makes garbage of 4 KB for each, in a program whose heap is small.
	for _, working := range []int{16, 64, 256} {
		b.Run(fmt.Sprintf("reads/objects=%d", working), func(b *testing.B) {
			b.ReportAllocs()
			var garbage []byte
			for i := 0; b.Loop(); i++ {
				objects[i%working].Unstructured()
				garbage = make([]byte, 4<<10)
			}
			runtime.KeepAlive(garbage)
		})
	}
}
