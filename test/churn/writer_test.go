package churn

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
)

// A server that learns late of the end of a CRD has deleted the object a/z of the next one.
func TestWriter_ObjectsThatAServerHasDeleted(t *testing.T) {
	for _, op := range []Op{NewOp(Update, []string{"t1", "a/z"}), NewOp(Delete, []string{"t1", "a/z"})} {
		t.Run(op.Verb, func(t *testing.T) {
			s := newSample()
			client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{s.Resource("t1", "v1"): "T1List"})
			w := &writer{world: s.World, client: client}
			if err := w.write(t.Context(), op); err != nil {
				t.Fatal(err)
			}
			if s.exists("t1", "a/z") {
				t.Error("it exists")
			}
			for _, o := range s.Objects("t1") {
				if o.UID == "z1" && !o.States[len(o.States)-1].Deleted {
					t.Errorf("the deletion is not recorded: %+v", o.States)
				}
			}
		})
	}
}
