package dynamicclient_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// similarWidget is one of many objects that differ in name and resource version.

// readAll gets, lists and watches similar objects, and returns all that it read.
func readAll(t *testing.T, s *apiServer, newClient newClientFunc) (objects []*unstructured.Unstructured) {
	t.Helper()
	texts := stubserver.SimilarWidgets()
	var events strings.Builder
	script := []stubserver.Reply{}
	for _, text := range texts {
		events.WriteString(stubserver.Event("ADDED", text))
		script = append(script, stubserver.JSON(text))
	}
	script = append(script, stubserver.JSON(stubserver.WidgetList(texts...)), stubserver.Stream(events.String()))
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
	if got.Err != nil || len(objects) != 3*stubserver.Similar {
		t.Fatalf("%d objects, error %v", len(objects), got.Err)
	}
	return objects
}

// shares reports whether objects that a client reads have parts in common.
func shares(t *testing.T, s *apiServer, newClient newClientFunc) bool {
	t.Helper()
	return len(stubserver.InCommon(readAll(t, s, newClient))) > 0
}

func TestClientSharing_ObjectsOwnAllTheirParts(t *testing.T) {
	s := serve(t)
	for name, newClient := range map[string]newClientFunc{
		"by default":      made(),
		"without sharing": made(dynamicclient.WithoutSharing()),
		"without fields":  made(dynamicclient.WithoutFields("spec", "replicas")),
		"client-go's":     stock,
	} {
		t.Run(name, func(t *testing.T) {
			if common := stubserver.InCommon(readAll(t, s, newClient)); len(common) > 0 {
				t.Errorf("parts in common, by path: %v", common)
			}
		})
	}
}

// overwrite writes to everything that value is made of.
func overwrite(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, below := range value {
			overwrite(below)
		}
		value["spoiled"] = true
		delete(value, "name")
	case []any:
		for i, below := range value {
			overwrite(below)
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
		overwrite(objects[i].Object)
		overwrite(want[i].Object)
	}
	if diff := cmp.Diff(want, objects); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestClientSharing_EqualPartsAreOne(t *testing.T) {
	s := serve(t)
	var common map[string]int
	for range 6 { // two strings may by chance be in each other's way in the tables of one client
		objects := readAll(t, s, made(dynamicclient.WithSharing()))
		common = stubserver.InCommon(objects)
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

func TestClientSharing_MetadataIsTheObjectsOwn(t *testing.T) {
	texts := []string{}
	for range stubserver.Similar {
		texts = append(texts, stubserver.SimilarWidget(7)) // all equal
	}
	row := exchange{replies: []stubserver.Reply{stubserver.JSON(stubserver.WidgetList(texts...))}, call: list(metav1.ListOptions{})}
	items := serve(t).outcome(t, row, made(dynamicclient.WithSharing())).Value.(*unstructured.UnstructuredList).Items
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

// Clients with the same tables share parts with each other; without, each has its own.
func TestTables_AreSharedByClients(t *testing.T) {
	for name, tables := range map[string]*dynamicclient.Tables{"the same": dynamicclient.NewTables(), "a zero value": {}, "their own": nil} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			var objects []*unstructured.Unstructured
			for range 2 {
				objects = append(objects, readAll(t, s, made(dynamicclient.WithTables(tables), dynamicclient.WithTables(nil), dynamicclient.WithSharing()))...)
			}
			between := stubserver.InBoth(objects[:len(objects)/2], objects[len(objects)/2:])
			if (between > 0) != (tables != nil) {
				t.Errorf("%d parts are shared between the clients", between)
			}
		})
	}
}
