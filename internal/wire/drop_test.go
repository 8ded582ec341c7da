package wire

import (
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// dropped are the paths that the tests drop.
var dropped = [][]string{
	{"metadata", "managedFields"},
	{"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"},
	{"spec", "a"},
	{"spec", "a", "b"}, // within what is dropped already
	{"status"},
	{"Kind"},
}

func dropAll(paths [][]string) *Drop {
	d := &Drop{}
	for _, path := range paths {
		d.Add(path...)
	}
	return d
}

// dropping returns a serializer that drops these.
func dropping() runtime.NegotiatedSerializer {
	return Negotiated(stockSerializer(), Settings{Tables: NewTables(Shared), Sharing: Shared, Drop: dropAll(dropped)})
}

// removed returns what is left of a decoded thing without the dropped fields.
func removed(decoded runtime.Object) runtime.Object {
	remove := func(u *unstructured.Unstructured) {
		for _, path := range dropped {
			unstructured.RemoveNestedField(u.Object, path...)
		}
	}
	switch decoded := decoded.(type) {
	case *unstructured.Unstructured:
		remove(decoded)
	case *unstructured.UnstructuredList:
		for i := range decoded.Items {
			remove(&decoded.Items[i])
		}
	}
	return decoded
}

// sameDropping checks that what is decoded without some fields is what client-go
// decodes with these fields removed, errors included.
func sameDropping(t *testing.T, ours runtime.NegotiatedSerializer, data []byte) {
	t.Helper()
	for name, target := range targets {
		want := decodeOutcome(jsonInfo(t, stockSerializer()).Serializer, data, target())
		removed(want.Object)
		got := decodeOutcome(jsonInfo(t, ours).Serializer, data, target())
		if want.Object == nil { // what client-go leaves in its target then, means nothing
			want.Into, got.Into = nil, nil
		}
		if !identical(want, got) {
			t.Errorf("into %s: %.200q\n(-removed +dropped)\n%s", name, data, cmp.Diff(want, got))
		}
	}
}

func TestDrop_IsRemoveNestedField(t *testing.T) {
	ours := dropping()
	for range sightings {
		for _, data := range append(listCorpus(),
			`{"apiVersion":"g/v1","kind":"A","metadata":{"managedFields":[1],"name":"x","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","b":"c"}},"spec":{"a":{"b":1},"c":[{"a":1}]},"status":{}}`,
			`{"apiVersion":"g/v1","kind":"A","managedFields":1,"spec":{"metadata":{"managedFields":1},"status":2},"data":{"status":1,"a":2}}`) {
			sameDropping(t, ours, []byte(data))
		}
	}
}

func TestDrop_EmptyPathDropsNothing(t *testing.T) {
	d := &Drop{}
	d.Add()
	if root(d).dropped() || root(d).below("spec").dropped() {
		t.Error("an empty path drops something")
	}
}

// Lists of built-in types have no kinds in their items, which get them. What was to
// be dropped is not to come back that way.
func TestDrop_KindsThatListsLeaveOut(t *testing.T) {
	settings := Settings{Tables: NewTables(Own), Drop: dropAll([][]string{{"kind"}, {"apiVersion"}})}
	info := jsonInfo(t, Negotiated(stockSerializer(), settings))
	for name, spec := range map[string]string{"plain": `1`, "for client-go's decoder": strings.Repeat("[", 1100) + strings.Repeat("]", 1100)} {
		list := &unstructured.UnstructuredList{}
		data := []byte(`{"apiVersion":"v1","kind":"PodList","items":[{"spec":` + spec + `}]}`)
		if _, _, err := info.Serializer.Decode(data, nil, list); err != nil {
			t.Fatal(err)
		}
		if item := list.Items[0].Object; len(item) != 1 {
			t.Errorf("%s: the item has %d fields, want spec only", name, len(item))
		}
	}
}

// Completing the items of a list must not reach into what they share with objects
// that somebody reads at this moment. The race detector tells.
func TestDrop_WritesToNothingThatIsShared(t *testing.T) {
	settings := &Settings{Tables: NewTables(Shared), Sharing: Shared, Drop: dropAll([][]string{{"kind"}, {"metadata", "annotations", "dropped"}})}
	info := jsonInfo(t, Negotiated(stockSerializer(), *settings))
	data := []byte(`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"annotations":{"dropped":"x","a":"b","c":"d"}}}]}`)
	decode := func() map[string]any {
		list := &unstructured.UnstructuredList{}
		if _, _, err := info.Serializer.Decode(data, nil, list); err != nil {
			t.Error(err)
		}
		annotations, _, _ := unstructured.NestedFieldNoCopy(list.Items[0].Object, "metadata", "annotations")
		return annotations.(map[string]any)
	}
	for range sightings {
		decode()
	}
	shared := decode()
	var reader sync.WaitGroup
	reader.Go(func() {
		for range 1000 {
			if len(shared) != 2 || shared["a"] != "b" {
				t.Errorf("annotations %v", shared)
			}
		}
	})
	for range 200 {
		decode()
	}
	reader.Wait()
}
