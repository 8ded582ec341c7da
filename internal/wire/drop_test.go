package wire

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	restwatch "k8s.io/client-go/rest/watch"
)

// dropped are the paths that the tests drop.
var dropped = [][]string{
	{"metadata", "managedFields"},
	{"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"},
	{"spec", "a"},
	{"spec", "a", "b"}, // inside of another dropped field
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

// dropping returns a serializer that drops the fields in dropped.
func dropping() runtime.NegotiatedSerializer {
	return Negotiated(stockSerializer(), Settings{Tables: NewTables(Shared), Sharing: Shared, Drop: dropAll(dropped)})
}

// removed removes the fields in dropped from decoded, and returns it.
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

// sameDropping checks that the result of decoding data without the dropped fields, or the
// error, is that of client-go with these fields removed.
func sameDropping(t *testing.T, ours runtime.NegotiatedSerializer, data []byte) {
	t.Helper()
	for name, target := range targets {
		want := decodeOutcome(jsonInfo(t, stockSerializer()).Serializer, data, target())
		removed(want.Object)
		got := decodeOutcome(jsonInfo(t, ours).Serializer, data, target())
		if want.Object == nil { // the contents of the target are undefined
			want.Into, got.Into = nil, nil
		}
		if !identical(want, got) {
			t.Errorf("into %s: %.200q\n(-removed +dropped)\n%s", name, data, difference(data, want, got))
		}
	}
}

func TestDrop_IsRemoveNestedField(t *testing.T) {
	whole(t)
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

// Both decoders keep the fields that identify an object. Otherwise an item of a list would
// get the kind of the list, or none.
func TestDrop_KeepsTheFieldsThatIdentifyAnObject(t *testing.T) {
	settings := Settings{Tables: NewTables(Own), Drop: dropAll([][]string{
		{"kind"},
		{"apiVersion"},
		{"metadata"},
		{"metadata", "name"},
		{"metadata", "namespace"},
		{"metadata", "uid"},
		{"metadata", "resourceVersion"},
		{"metadata", "name", "below"},
		{"status"},
	})}
	info := jsonInfo(t, Negotiated(stockSerializer(), settings))
	const metadata = `{"name":"n","namespace":"ns","uid":"u","resourceVersion":"7","labels":{"a":"b"},"annotations":{"c":"d"},"managedFields":[{}]}`
	identity := map[string]any{"name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "7"}
	for name, spec := range map[string]string{"ordinary": `1`, "for client-go's decoder": strings.Repeat("[", 1100) + strings.Repeat("]", 1100)} {
		for list, want := range map[string][2]string{
			`{"apiVersion":"g/v1","kind":"WidgetList","items":[{"apiVersion":"g/v2","kind":"Gadget","metadata":` + metadata + `,"status":1,"spec":` + spec + `}]}`: {"g/v2", "Gadget"},
			`{"apiVersion":"v1","kind":"PodList","items":[{"metadata":` + metadata + `,"status":1,"spec":` + spec + `}]}`:                                          {"v1", "Pod"},
		} {
			into := &unstructured.UnstructuredList{}
			if _, _, err := info.Serializer.Decode([]byte(list), nil, into); err != nil {
				t.Fatal(err)
			}
			item := into.Items[0].Object
			delete(item, "spec")
			if diff := cmp.Diff(map[string]any{"apiVersion": want[0], "kind": want[1], "metadata": identity}, item); diff != "" {
				t.Errorf("%s: %.80s (-want +got):\n%s", name, list, diff)
			}
		}
	}
}

// An annotation marks the end of the initial events of a watch-list. Without it, they
// would never end.
func TestDrop_KeepsTheBookmarkThatEndsInitialEvents(t *testing.T) {
	settings := Settings{Tables: NewTables(Own), Drop: dropAll([][]string{{"metadata"}, {"metadata", "annotations"}, {"spec"}})}
	for name, spec := range map[string]string{"ordinary": `1`, "for client-go's decoder": strings.Repeat("[", 1100) + strings.Repeat("]", 1100)} {
		object := `{"apiVersion":"g/v1","kind":"Widget","metadata":{"annotations":{"k8s.io/initial-events-end":"true"},"resourceVersion":"7"},"spec":` + spec + `}`
		for _, event := range []string{
			`{"type":"BOOKMARK","object":` + object + `}`,
			`{"object":` + object + `,"type":"BOOKMARK"}`,
			`{"type":"BOOKMARK","more":1,"object":` + object + `}`,
		} {
			got := streamed(t, Negotiated(stockSerializer(), settings), event)
			if value, _, _ := unstructured.NestedString(got.Object, "metadata", "annotations", "k8s.io/initial-events-end"); value != "true" {
				t.Errorf("%s: %.60s: %v", name, event, got.Object["metadata"])
			}
		}
		got := streamed(t, Negotiated(stockSerializer(), settings), `{"type":"ADDED","object":{"apiVersion":"g/v1","kind":"Widget","metadata":{"annotations":{"a":"b"},"name":"x"},"spec":`+spec+`}}`)
		if diff := cmp.Diff(map[string]any{"apiVersion": "g/v1", "kind": "Widget", "metadata": map[string]any{"name": "x"}}, got.Object); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Anyone may give an object the annotation that marks the end of initial events, and not each bookmark has it.
func TestDrop_OnlyBookmarksKeepAllFields(t *testing.T) {
	const fields = `"apiVersion":"g/v1","kind":"Widget","metadata":{"name":"x"%s},"data":1,"spec":`
	marked, plain := fmt.Sprintf(fields, `,"annotations":{"k8s.io/initial-events-end":"true"}`), fmt.Sprintf(fields, "")
	for name, spec := range map[string]string{"ordinary": `1`, "for client-go's decoder": strings.Repeat("[", 1100) + strings.Repeat("]", 1100)} {
		ours := Negotiated(stockSerializer(), Settings{Tables: NewTables(Own), Drop: dropAll([][]string{{"data"}})})
		into := map[string]runtime.Object{"an object": &unstructured.Unstructured{}, "a list": &unstructured.UnstructuredList{}}
		for target, data := range map[string]string{"an object": "{" + marked + spec + "}", "a list": `{"apiVersion":"g/v1","kind":"WidgetList","items":[{` + marked + spec + `}]}`} {
			if _, _, err := jsonInfo(t, ours).Serializer.Decode([]byte(data), nil, into[target]); err != nil {
				t.Fatal(err)
			}
		}
		objects := map[string]*unstructured.Unstructured{
			"an object":           into["an object"].(*unstructured.Unstructured),
			"an item":             &into["a list"].(*unstructured.UnstructuredList).Items[0],
			"an event":            streamed(t, ours, `{"type":"MODIFIED","object":{`+marked+spec+`}}`),
			"an unusual event":    streamed(t, ours, `{"object":{`+marked+spec+`},"type":"MODIFIED"}`),
			"a bookmark":          streamed(t, ours, `{"type":"BOOKMARK","object":{`+plain+spec+`}}`),
			"an unusual bookmark": streamed(t, ours, `{"object":{`+plain+spec+`},"type":"BOOKMARK"}`),
		}
		for object, got := range objects {
			if _, has := got.Object["data"]; has != strings.HasSuffix(object, "bookmark") {
				t.Errorf("%s, %s: has the field %t", name, object, has)
			}
		}
	}
}

// streamed returns the first event of a stream.
func streamed(t *testing.T, ours runtime.NegotiatedSerializer, data string) *unstructured.Unstructured {
	t.Helper()
	info := jsonInfo(t, ours)
	body := info.StreamSerializer.NewFrameReader(io.NopCloser(strings.NewReader(data + "\n")))
	decoder := restwatch.NewDecoder(streaming.NewDecoder(body, info.StreamSerializer.Serializer), info.Serializer)
	_, object, err := decoder.Decode()
	if err != nil {
		t.Fatal(err)
	}
	return object.(*unstructured.Unstructured)
}

// Completing the items of a list must not write to maps that they share with other
// objects. The race detector reports such a write.
func TestDrop_DoesNotWriteToSharedParts(t *testing.T) {
	settings := &Settings{Tables: NewTables(Shared), Sharing: Shared, Drop: dropAll([][]string{{"spec"}, {"metadata", "annotations", "dropped"}})}
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
