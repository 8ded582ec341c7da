package wire

import (
	"bytes"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// In the array of Calico's allocations, null means that an address is free, and a number,
// which can be zero, is an index.
func TestDecode_NullsAndZerosSurviveTheRoundTrip(t *testing.T) {
	type spec struct {
		Allocations []*int `json:"allocations"`
	}
	type typed struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
		Spec       spec   `json:"spec"`
	}
	data := []byte(`{"apiVersion":"crd.projectcalico.org/v1","kind":"IPAMBlock","spec":{"allocations":[null,0,null,1]}}`)
	for name, ours := range variants() {
		t.Run(name, func(t *testing.T) {
			for range sightings {
				object, _, err := jsonInfo(t, ours).Serializer.Decode(data, nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				block := object.(*unstructured.Unstructured).DeepCopy()
				var asType typed
				if err := runtime.DefaultUnstructuredConverter.FromUnstructured(block.Object, &asType); err != nil {
					t.Fatal(err)
				}
				if again := encode(t, asType); !bytes.Equal(again, data) {
					t.Errorf("through a struct: %s", again)
				}
				var b bytes.Buffer
				if err := jsonInfo(t, ours).Serializer.Encode(block, &b); err != nil || !bytes.Equal(bytes.TrimSpace(b.Bytes()), data) {
					t.Errorf("encoded again: %s, %v", b.Bytes(), err)
				}
			}
		})
	}
}
