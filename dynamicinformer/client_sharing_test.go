package dynamicinformer_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/gvrkit/gvrkit/dynamicinformer"
)

// similar is how many objects resemble each other. Tables take a part for good at the
// second sighting.
const similar = 50

// similarWidget is one of many objects that differ in name and resource version.
func similarWidget(i int) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w%d","namespace":"ns","resourceVersion":"%d","labels":{"app":"x"},"annotations":{},`+
		`"managedFields":[{"manager":"m","operation":"Update","fieldsV1":{"f:spec":{".":{},"f:replicas":{}}}}]},`+
		`"spec":{"template":{"labels":{"app":"x"},"args":["a","b"],"none":[]},"replicas":3},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`, i, i+1)
}

func similarWidgets() (objects []string) {
	for i := range similar {
		objects = append(objects, similarWidget(i))
	}
	return objects
}

// readAll gets, lists and watches similar objects, and returns all that it read.
func readAll(t *testing.T, s *apiServer, newClient maker) (objects []*unstructured.Unstructured) {
	t.Helper()
	texts := similarWidgets()
	var events strings.Builder
	script := []reply{}
	for _, text := range texts {
		events.WriteString(eventOf("ADDED", text))
		script = append(script, asJSON(text))
	}
	script = append(script, asJSON(widgetList(texts...)), stream(events.String()))
	got := s.outcome(t, exchange{replies: script, call: func(ctx context.Context, c dynamic.Interface) (any, error) {
		for range texts {
			object, err := widgetsOf(c).Get(ctx, "a", metav1.GetOptions{})
			if err != nil {
				return nil, err
			}
			objects = append(objects, object)
		}
		items, err := widgetsOf(c).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		for i := range items.Items {
			objects = append(objects, &items.Items[i])
		}
		stream, err := watchToEnd(metav1.ListOptions{})(ctx, c)
		if err != nil {
			return nil, err
		}
		for _, event := range stream.([]watch.Event) {
			objects = append(objects, event.Object.(*unstructured.Unstructured))
		}
		return nil, nil
	}}, newClient)
	if got.Err != nil || len(objects) != 3*similar {
		t.Fatalf("%d objects, error %v", len(objects), got.Err)
	}
	return objects
}

// parts calls visit with each map and slice that value is made of, and where it is.
// A slice of nothing has no place in memory.
func parts(value any, path string, visit func(path string, at uintptr)) {
	switch value := value.(type) {
	case map[string]any:
		visit(path, reflect.ValueOf(value).Pointer())
		for key, below := range value {
			parts(below, path+"."+key, visit)
		}
	case []any:
		if len(value) > 0 {
			visit(path, reflect.ValueOf(value).Pointer())
		}
		for i, below := range value {
			parts(below, fmt.Sprintf("%s[%d]", path, i), visit)
		}
	}
}

// inCommon returns, for each path, how many of the parts there are not an object's
// own.
func inCommon(objects []*unstructured.Unstructured) map[string]int {
	uses := map[uintptr]int{}
	for _, object := range objects {
		parts(object.Object, "", func(_ string, at uintptr) { uses[at]++ })
	}
	common := map[string]int{}
	for _, object := range objects {
		parts(object.Object, "", func(path string, at uintptr) {
			if uses[at] > 1 {
				common[path]++
			}
		})
	}
	return common
}

// shares reports whether objects that a client reads have parts in common.
func shares(t *testing.T, s *apiServer, newClient maker) bool {
	t.Helper()
	return len(inCommon(readAll(t, s, newClient))) > 0
}

func TestClientSharing_ObjectsOwnAllTheirParts(t *testing.T) {
	s := serve(t)
	for name, newClient := range map[string]maker{
		"by default":      made(),
		"without sharing": made(dynamicinformer.WithoutSharing()),
		"without fields":  made(dynamicinformer.WithoutFields("spec", "replicas")),
		"client-go's":     stock,
	} {
		t.Run(name, func(t *testing.T) {
			if common := inCommon(readAll(t, s, newClient)); len(common) > 0 {
				t.Errorf("parts in common, by path: %v", common)
			}
		})
	}
}

// spoil writes to everything that value is made of.
func spoil(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, below := range value {
			spoil(below)
		}
		value["spoiled"] = true
		delete(value, "name")
	case []any:
		for i, below := range value {
			spoil(below)
			if _, ok := below.(string); ok {
				value[i] = "spoiled"
			}
		}
	}
}

func TestClientSharing_ChangeOfOneObjectIsNoneOfAnother(t *testing.T) {
	objects := readAll(t, serve(t), made())
	var want []*unstructured.Unstructured
	for _, object := range objects {
		want = append(want, object.DeepCopy())
	}
	for i := 0; i < len(objects); i += 3 {
		spoil(objects[i].Object)
		spoil(want[i].Object)
	}
	if diff := cmp.Diff(want, objects); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestClientSharing_EqualPartsAreOne(t *testing.T) {
	s := serve(t)
	var common map[string]int
	for range 6 { // two strings may by chance be in each other's way in the tables of one client
		objects := readAll(t, s, made(dynamicinformer.WithSharing()))
		common = inCommon(objects)
		if allInCommon(common, len(objects)) {
			return
		}
	}
	t.Errorf("parts in common, by path: %v", common)
}

// allInCommon reports whether all but the first of count objects share everything
// below themselves and their metadata.
func allInCommon(common map[string]int, count int) bool {
	for _, path := range []string{
		".metadata.managedFields", ".metadata.managedFields[0].fieldsV1", ".metadata.labels", ".metadata.annotations",
		".spec", ".spec.template.args", ".status.conditions", ".status.conditions[0]",
	} {
		if common[path] < count-5 {
			return false
		}
	}
	return common[""]+common[".metadata"] == 0
}

// muchInCommon reports whether objects share much, and nothing that is their own.
func muchInCommon(objects []*unstructured.Unstructured) bool {
	common, shared := inCommon(objects), 0
	for _, count := range common {
		shared += count
	}
	return shared > 4*len(objects) && common[""]+common[".metadata"] == 0
}

func TestClientSharing_MetadataIsTheObjectsOwn(t *testing.T) {
	texts := []string{}
	for range similar {
		texts = append(texts, similarWidget(7)) // all equal
	}
	row := exchange{replies: []reply{asJSON(widgetList(texts...))}, call: list(metav1.ListOptions{})}
	items := serve(t).outcome(t, row, made(dynamicinformer.WithSharing())).Value.(*unstructured.UnstructuredList).Items
	for i := range items {
		items[i].SetName(fmt.Sprint("changed ", i))
		items[i].Object["kind"] = fmt.Sprint("Changed", i)
	}
	for i := range items {
		if items[i].GetName() != fmt.Sprint("changed ", i) || items[i].GetKind() != fmt.Sprint("Changed", i) {
			t.Errorf("item %d is now %s %s", i, items[i].GetKind(), items[i].GetName())
		}
	}
}
