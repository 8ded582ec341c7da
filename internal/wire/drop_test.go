package wire

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	utiljson "k8s.io/apimachinery/pkg/util/json"
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

// onlyAt removes everything from content, whose path is at, that is at none of the paths.
func onlyAt(content map[string]any, paths [][]string, at ...string) {
	for name, value := range content {
		var further [][]string
		keeps := len(at) == 0 && (name == "apiVersion" || name == "kind" || name == "metadata") ||
			len(at) == 1 && at[0] == "metadata" && slices.Contains([]string{"name", "namespace", "uid", "resourceVersion"}, name)
		whole := keeps && name != "metadata"
		for _, path := range paths {
			if len(path) > 0 && path[0] == name {
				keeps, whole, further = true, whole || len(path) == 1, append(further, path[1:])
			}
		}
		inner, is := value.(map[string]any)
		switch {
		case !keeps:
			delete(content, name)
		case is && !whole:
			onlyAt(inner, further, append(at, name)...)
		}
	}
}

// randomContent returns an object whose members have few names.
func randomContent(random *rand.Rand, depth int) map[string]any {
	content := map[string]any{}
	for range random.IntN(6) {
		var value any
		switch random.IntN(7) {
		case 0, 1, 2:
			if depth > 0 {
				value = randomContent(random, depth-1)
			}
		case 3:
			value = []any{randomContent(random, 0), "text"}
		case 4:
			value = int64(random.IntN(9))
		case 5:
			value = "text"
		}
		content[string(rune('a'+random.IntN(5)))] = value
	}
	return content
}

// randomPaths returns paths that lead into content, and sometimes beyond.
func randomPaths(random *rand.Rand, content map[string]any) (paths [][]string) {
	for range random.IntN(4) {
		var path []string
		for at := content; ; {
			names := slices.Sorted(maps.Keys(at))
			name := string(rune('a' + random.IntN(6)))
			if len(names) > 0 && random.IntN(4) > 0 {
				name = names[random.IntN(len(names))]
			}
			path = append(path, name)
			inner, is := at[name].(map[string]any)
			if random.IntN(3) == 0 || !is && random.IntN(2) == 0 || len(path) > 5 {
				break
			}
			at = inner
		}
		paths = append(paths, path)
	}
	return paths
}

// keepAndAdd returns a Drop.
func keepAndAdd(keep, drop [][]string) *Drop {
	d := &Drop{}
	if len(keep) > 0 {
		d.Keep(keep...)
	}
	for _, path := range drop {
		d.Add(path...)
	}
	return d
}

func TestDrop_KeepLeavesOutAllElse(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // test data
	tables := NewTables(Shared)
	for range 3000 {
		content := randomContent(random, 3)
		content["apiVersion"], content["kind"] = "g/v1", "A"
		content["metadata"] = map[string]any{"name": "n", "uid": "u", "resourceVersion": "1", "labels": map[string]any{"a": "b", "c": "d"}, "generation": int64(1)}
		keep, drop := randomPaths(random, content), randomPaths(random, content)
		data := encode(t, content)
		removed := &unstructured.Unstructured{Object: content}
		d := keepAndAdd(keep, drop)
		ours := jsonInfo(t, Negotiated(stockSerializer(), Settings{Tables: tables, Sharing: Shared, Drop: d})).Serializer
		got := decodeOutcome(ours, data, &unstructured.Unstructured{})
		d.removeFrom(removed)

		var want map[string]any
		if err := utiljson.Unmarshal(data, &want); err != nil {
			t.Fatal(err)
		}
		if len(keep) > 0 {
			onlyAt(want, keep)
		}
		for _, path := range drop {
			if len(path) == 1 && path[0] == "metadata" {
				onlyAt(want["metadata"].(map[string]any), nil, "metadata")
			} else if identifies := len(path) == 1 && (path[0] == "kind" || path[0] == "apiVersion") ||
				len(path) > 1 && path[0] == "metadata" && slices.Contains(identifying, path[1]); !identifies {
				unstructured.RemoveNestedField(want, path...)
			}
		}
		if diff := cmp.Diff(want, removed.Object); diff != "" {
			t.Fatalf("only %q, without %q: removed from\n%s\n(-want +got):\n%s", keep, drop, data, diff)
		}
		if diff := cmp.Diff(want, got.Object.(*unstructured.Unstructured).Object); diff != "" {
			t.Fatalf("only %q, without %q: decoded from\n%s\n(-want +got):\n%s", keep, drop, data, diff)
		}
	}
}

func TestDrop_KeepOfAnEmptyPathKeepsNothing(t *testing.T) {
	d := &Drop{}
	d.Keep(nil, []string{"spec", "a"}, []string{"kind", "x"}, []string{"metadata", "name", "x"})
	object := map[string]any{"kind": "A", "data": 1, "spec": map[string]any{"a": 1, "b": 2}, "metadata": map[string]any{"name": "n", "labels": map[string]any{"a": "b"}}}
	d.remove(object)
	if diff := cmp.Diff(map[string]any{"kind": "A", "spec": map[string]any{"a": 1}, "metadata": map[string]any{"name": "n"}}, object); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStruct_KeepLeavesOutAllElse(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // test data
	texts := map[string]any{"a": "b", "c": "d"}
	kindsOf := map[string]any{
		"kind": "K", "metadata": map[string]any{"name": "n", "labels": texts, "generation": 4}, "bool": true, "texts": texts, "pointer": "p", "slice": []any{"a"},
		"maps": map[string]any{"a": map[string]any{"b": 1, "c": nil}}, "structs": []any{map[string]any{"handle_id": "x"}}, "refs": map[string]any{"a": map[string]any{"handle_id": "x", "secondary": texts}},
		"any": map[string]any{"a": []any{1}, "b": map[string]any{"c": "d"}}, "time": "2026-01-02T03:04:05Z", "port": "http", "raw": []any{1}, "numbers": map[string]any{"a": 1, "b": 2},
		"next": map[string]any{"int8": 3, "texts": texts, "next": map[string]any{"int64": 7}},
	}
	for range 500 {
		for of, object := range map[string]map[string]any{"kinds": kindsOf, "ipamBlock": block(random.IntN(5))} {
			data, content := encode(t, object), map[string]any{}
			settings := structSettings(structTypes[of])
			if err := utiljson.Unmarshal(data, &content); err != nil {
				t.Fatal(err)
			}
			keep, drop := randomPaths(random, content), randomPaths(random, content)
			settings.Drop = keepAndAdd(keep, drop)
			got, ok := settings.Object(data)
			if !ok {
				t.Fatalf("%s is not ordinary", data)
			}
			removed := reflect.New(structTypes[of]).Interface()
			if err := utiljson.Unmarshal(data, removed); err != nil {
				t.Fatal(err)
			}
			settings.Drop.RemoveFrom(removed.(metav1.Object))

			settings.Drop.remove(content) // as TestDrop_KeepLeavesOutAllElse compares
			want := reflect.New(structTypes[of]).Interface()
			if err := utiljson.Unmarshal(encode(t, content), want); err != nil {
				t.Fatal(err)
			}
			for how, object := range map[string]any{"decoded": got, "removed": removed} {
				if !identical(want, object) {
					t.Fatalf("%s: only %q, without %q: %s from\n%s\n got %s\nwant %s", of, keep, drop, how, data, encode(t, object), encode(t, want))
				}
			}
		}
	}
}
