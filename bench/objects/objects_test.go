package objects

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func TestKinds_AreDeterministicAndDecodable(t *testing.T) {
	for _, kind := range All() {
		for i := range 150 {
			obj := kind.Object(i)
			text, again := encode(t, obj), encode(t, kind.Object(i))
			if !bytes.Equal(text, again) {
				t.Fatalf("%s %d differs the second time", kind.Name, i)
			}
			decoded, gvk, err := unstructured.UnstructuredJSONScheme.Decode(text, nil, nil)
			if err != nil {
				t.Fatalf("%s %d: %v", kind.Name, i, err)
			}
			if *gvk != kind.GVK {
				t.Errorf("%s %d is a %v", kind.Name, i, gvk)
			}
			u := decoded.(*unstructured.Unstructured)
			if diff := cmp.Diff(obj, u.Object); diff != "" {
				t.Fatalf("%s %d differs after decoding:\n%s", kind.Name, i, diff)
			}
			if (u.GetNamespace() != "") != (kind.Name == "mix") {
				t.Errorf("%s %d has the namespace %q", kind.Name, i, u.GetNamespace())
			}
		}
	}
}

func TestKinds_NamesDiffer(t *testing.T) {
	const n = 500
	for _, kind := range All() {
		names := map[string]bool{}
		for i := range n {
			u := unstructured.Unstructured{Object: kind.Object(i)}
			names[u.GetNamespace()+"/"+u.GetName()] = true
		}
		if len(names) != n {
			t.Errorf("%s: %d names for %d objects", kind.Name, len(names), n)
		}
	}
	suffixes := map[string]bool{}
	for i := range 50_000 {
		suffixes[uniqueSuffix(i)] = true
	}
	if len(suffixes) != 50_000 {
		t.Errorf("%d suffixes for 50000 objects", len(suffixes))
	}
}

func TestMix_HasObjectsOfAllShapesAndManyFieldSets(t *testing.T) {
	total := 0
	for _, weight := range weights {
		total += weight
	}
	if total != 100 || len(weights) != len(shapes) {
		t.Errorf("%d weights of %d shapes with sum %d", len(weights), len(shapes), total)
	}
	fieldSets := map[string]bool{}
	const n = 500
	for i := range n {
		fields, _, _ := unstructured.NestedSlice(mixed(i), "metadata", "managedFields")
		for _, f := range fields {
			delete(f.(object), "time")
		}
		fieldSets[string(encode(t, fields))] = true
	}
	if len(fieldSets) < n/2 {
		t.Errorf("%d objects have only %d sets of fields", n, len(fieldSets))
	}
}

func TestMix_HasTheDocumentedSizes(t *testing.T) {
	const n = 500
	kind := All()[1]
	var all []byte
	for i := range n {
		all = append(all, encode(t, kind.Object(i))...)
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	if size := len(all) / n; size < 4200 || size > 4500 {
		t.Errorf("%d bytes an object", size)
	}
	if size := len(w.EncodeAll(all, nil)) / n; size < 440 || size > 520 {
		t.Errorf("%d bytes an object when compressed", size)
	}
}

func TestManagedFields_HasOnlyFieldsOfTheObject(t *testing.T) {
	for _, kind := range All() {
		for i := range 150 {
			obj := kind.Object(i)
			u := unstructured.Unstructured{Object: obj}
			managed := u.GetManagedFields()
			if len(managed) < 1 || len(managed) > 5 {
				t.Errorf("%s %d has %d managers", kind.Name, i, len(managed))
			}
			entries := map[[3]string]bool{}
			for _, entry := range managed {
				entries[[3]string{entry.Manager, string(entry.Operation), entry.Subresource}] = true
				var fields object
				if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
					t.Fatal(err)
				}
				if missing := missingField(fields, obj); missing != "" {
					t.Fatalf("%s %d: %s manages %s, which is not in the object", kind.Name, i, entry.Manager, missing)
				}
			}
			if len(entries) != len(managed) {
				t.Errorf("%s %d has a manager twice", kind.Name, i)
			}
		}
	}
}

// missingField returns the path of a field of the set that value does not have, or "".
func missingField(fields object, value any) string {
	for key, below := range fields {
		var at any
		switch kind, name, _ := strings.Cut(key, ":"); kind {
		case ".":
			continue
		case "f":
			of, _ := value.(object)
			found, ok := of[name]
			if !ok {
				return key
			}
			at = found
		case "k":
			if at = element(value, name); at == nil {
				return key
			}
		case "v":
			elements, _ := value.(list)
			if !slices.Contains(elements, any(strings.Trim(name, `"`))) {
				return key
			}
		}
		if missing := missingField(below.(object), at); missing != "" {
			return key + " " + missing
		}
	}
	return ""
}

// element returns the element of a list that has the fields in key.
func element(value any, key string) any {
	var want object
	if json.Unmarshal([]byte(key), &want) != nil {
		return nil
	}
	elements, _ := value.(list)
	for _, e := range elements {
		// Numbers are int64 here and float64 there.
		text, _ := json.Marshal(e)
		var got object
		if json.Unmarshal(text, &got) != nil {
			return nil
		}
		maps.DeleteFunc(got, func(name string, _ any) bool { _, ok := want[name]; return !ok })
		if cmp.Equal(got, want) {
			return e
		}
	}
	return nil
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// size returns the size of the JSON of spec and status that value has in common with obj, or of all of it
// if value is nil.
func size(t *testing.T, obj, value object) (n int) {
	t.Helper()
	for _, name := range []string{"spec", "status"} {
		if of, ok := obj[name]; ok && value == nil {
			n += len(encode(t, of))
		} else if ok {
			n += len(encode(t, common(of, value[name])))
		}
	}
	return n
}

// common returns the members of a that b has with equal values.
func common(a, b any) any {
	switch a := a.(type) {
	case object:
		of, _ := b.(object)
		both := object{}
		for key := range a {
			if value, ok := of[key]; ok {
				both[key] = common(a[key], value)
			}
		}
		return both
	case list:
		of, _ := b.(list)
		both := list{}
		for i := range min(len(a), len(of)) {
			both = append(both, common(a[i], of[i]))
		}
		return both
	}
	if a == b {
		return a
	}
	return nil
}

func TestGoTypes_HaveTheFieldsOfTheObjects(t *testing.T) {
	for _, tc := range []struct {
		kind Kind
		of   func() any
		part float64
	}{{All()[0], func() any { return new(IPAMBlock) }, .999}, {All()[1], func() any { return new(Widget) }, .83}} {
		all, kept := 0, 0
		for i := range 300 {
			obj, typed := tc.kind.Object(i), tc.of()
			if err := utiljson.Unmarshal(encode(t, obj), typed); err != nil {
				t.Fatal(err)
			}
			var back object
			if err := utiljson.Unmarshal(encode(t, typed), &back); err != nil {
				t.Fatal(err)
			}
			all, kept = all+size(t, obj, nil), kept+size(t, obj, back)
			if diff := cmp.Diff(obj["metadata"].(object)["name"], back["metadata"].(object)["name"]); diff != "" {
				t.Error(diff)
			}
		}
		if part := float64(kept) / float64(all); part < tc.part || part > 1 {
			t.Errorf("the Go type of %s has %.3f of spec and status, want %.3f", tc.kind.Name, part, tc.part)
		}
	}
}
