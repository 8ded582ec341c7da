package packed_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"

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
