package dynamicclient_test

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/internal/stubserver"
)

// remove takes the fields at paths out of each object in value.
func remove(value any, paths [][]string) {
	switch value := value.(type) {
	case *unstructured.Unstructured:
		for _, path := range paths {
			unstructured.RemoveNestedField(value.Object, path...)
		}
	case *unstructured.UnstructuredList:
		for i := range value.Items {
			remove(&value.Items[i], paths)
		}
	case []watch.Event:
		for _, event := range value {
			remove(event.Object, paths)
		}
	}
}

// checkWithout checks that what a client with opts reads of object is what client-go's
// client reads without the fields at paths.
func (s *apiServer) checkWithout(t *testing.T, object string, paths [][]string, opts ...dynamicclient.Option) {
	t.Helper()
	added := stubserver.Event("ADDED", widgetB)
	for i, body := range []string{object, stubserver.WidgetList(widgetB, object, widgetB), added + stubserver.Event("MODIFIED", object) + added} {
		row := exchange{replies: []stubserver.Reply{stubserver.JSON(body)}, call: readers[i].call}
		want := s.outcome(t, row, stock)
		if want.Err == nil {
			remove(want.Value, paths)
		}
		for name, sharing := range map[string]dynamicclient.Option{"own": nil, "shared": dynamicclient.WithSharing()} {
			if got := s.outcome(t, row, made(append(slices.Clone(opts), sharing)...)); !reflect.DeepEqual(want, got) {
				t.Errorf("%s, %s (-want +got):\n%s", readers[i].name, name, diffOf(want, got))
			}
		}
	}
}

func TestClientOptions_LeaveOutFields(t *testing.T) {
	without, only := dynamicclient.WithoutFields, dynamicclient.WithOnlyFields
	managed, lastApplied := []string{"metadata", "managedFields"}, []string{"metadata", "annotations", "kubectl.kubernetes.io/last-applied-configuration"}
	s := serve(t)
	for _, tc := range []struct {
		name  string
		opts  []dynamicclient.Option
		paths [][]string
	}{
		{"none", nil, nil},
		{"managed fields", []dynamicclient.Option{dynamicclient.WithoutManagedFields()}, [][]string{managed}},
		{"what was applied last", []dynamicclient.Option{dynamicclient.WithoutLastApplied()}, [][]string{lastApplied}},
		{"both", []dynamicclient.Option{dynamicclient.WithoutLastApplied(), dynamicclient.WithoutManagedFields()}, [][]string{managed, lastApplied}},
		{"at the top", []dynamicclient.Option{without("status")}, [][]string{{"status"}}},
		{"one and its parent", []dynamicclient.Option{without("spec", "max"), without("spec")}, [][]string{{"spec"}}},
		{"a parent and one in it", []dynamicclient.Option{without("spec"), without("spec", "max")}, [][]string{{"spec"}}},
		{"several of one parent", []dynamicclient.Option{without("spec", "max"), without("spec", "list"), without("spec", "empty")}, [][]string{{"spec", "max"}, {"spec", "list"}, {"spec", "empty"}}},
		{"the same twice", []dynamicclient.Option{without("spec"), without("spec")}, [][]string{{"spec"}}},
		{"in an array, which is not gone through", []dynamicclient.Option{without("status", "conditions", "type"), without("spec", "list", "0")}, nil},
		{"below a number", []dynamicclient.Option{without("spec", "max", "x")}, nil},
		{"that is not there", []dynamicclient.Option{without("spec", "x", "y"), without("z")}, nil},
		{"of an empty name", []dynamicclient.Option{without("")}, nil},
		{"of no name", []dynamicclient.Option{without()}, nil},
		{"metadata, but for the identity", []dynamicclient.Option{without("metadata")}, [][]string{{"metadata", "generation"}, {"metadata", "labels"}, {"metadata", "annotations"}, managed}},
		{"the identity", []dynamicclient.Option{without("kind"), without("apiVersion"), without("metadata", "name"), without("metadata", "namespace"), without("metadata", "uid"), without("metadata", "resourceVersion")}, nil},
		{"all but two, and the identity", []dynamicclient.Option{only("spec", "list"), only("spec", "empty"), only("metadata", "labels")}, append([][]string{
			{"metadata", "generation"}, {"metadata", "annotations"}, managed, {"status"},
		}, inSpec("replicas", "whole", "ratio", "zero", "exp", "max", "more", "min", "none", "nothing", "yes", "no", "text")...)},
		{"all but one, and one in it", []dynamicclient.Option{without("spec", "list"), only("spec"), without("metadata", "labels")}, [][]string{{"metadata", "generation"}, {"metadata", "labels"}, {"metadata", "annotations"}, managed, {"status"}, {"spec", "list"}}},
		{"all but metadata, and managed fields", []dynamicclient.Option{only("metadata"), only("metadata", "labels"), dynamicclient.WithoutManagedFields()}, [][]string{{"spec"}, {"status"}, managed}},
		{"all but one that is not there", []dynamicclient.Option{only("x", "y")}, [][]string{{"spec"}, {"status"}, {"metadata", "generation"}, {"metadata", "labels"}, {"metadata", "annotations"}, managed}},
		{"all but an array on a path", []dynamicclient.Option{only("status", "conditions", "type"), only("metadata")}, [][]string{{"spec"}}},
		{"all but that of no name", []dynamicclient.Option{only()}, nil},
		{"that are called like what is elsewhere", []dynamicclient.Option{without("managedFields"), without("metadata", "spec")}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) { s.checkWithout(t, widgetA, tc.paths, tc.opts...) })
	}
}

// inSpec returns the paths of fields of spec.
func inSpec(names ...string) (paths [][]string) {
	for _, name := range names {
		paths = append(paths, []string{"spec", name})
	}
	return paths
}

// An object that is unusual comes from client-go's decoder, and loses fields as well.
func TestClientOptions_LeaveOutFieldsOfUnusualObjects(t *testing.T) {
	const with = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x","managedFields":[{"manager":"m"}],"labels":{"a":"b"}},"status":{"x":1},`
	managed := []string{"metadata", "managedFields"}
	s := serve(t)
	for name, object := range map[string]string{
		"deep":                       with + `"spec":` + nested(1100, "[", "]") + "}",
		"deep, in the field":         strings.Replace(with, `[{"manager":"m"}]`, nested(1100, "[", "]"), 1) + `"spec":{}}`,
		"two kinds":                  with + `"kind":"Gadget"}`,
		"two kinds, one of a number": with + `"kind":7}`,
		"no kind":                    strings.Replace(with, `"kind":"Widget",`, "", 1) + `"spec":{}}`,
		"no version":                 strings.Replace(with, `"apiVersion":"example.com/v1",`, "", 1) + `"spec":{}}`,
		"metadata twice":             with + `"metadata":{"managedFields":7,"name":"y"}}`,
		"the field is an object":     strings.Replace(with, `[{"manager":"m"}]`, `{"a":{}}`, 1) + `"spec":{}}`,
		"a broken field":             strings.Replace(with, `[{"manager":"m"}]`, `[{"manager":"m"]`, 1) + `"spec":{}}`,
		"too large a number in it":   strings.Replace(with, `"m"`, `1e999`, 1) + `"spec":{}}`,
		"too large a number for it":  strings.Replace(with, `{"x":1}`, `1e999`, 1) + `"spec":{}}`,
		"its name is escaped":        strings.Replace(with, `"managedFields"`, `"managed\u0046ields"`, 1) + `"spec":{}}`,
		"its name in capitals":       strings.Replace(with, `"managedFields"`, `"ManagedFields"`, 1) + `"spec":{}}`,
		"items":                      with + `"items":[{"metadata":{"managedFields":[]}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s.checkWithout(t, object, [][]string{managed, {"status"}}, dynamicclient.WithoutManagedFields(), dynamicclient.WithoutFields("status"))
		})
	}
}

func TestClientOptions_KeepTheBookmarksThatEndInitialEvents(t *testing.T) {
	body := stubserver.Event("ADDED", widgetA) + stubserver.Event("BOOKMARK", stubserver.Bookmark)
	row := exchange{replies: []stubserver.Reply{stubserver.JSON(body)}, call: watchToEnd(metav1.ListOptions{})}
	got := serve(t).outcome(t, row, made(dynamicclient.WithoutLastApplied(), dynamicclient.WithoutManagedFields())).Value.([]watch.Event)
	if annotations := got[1].Object.(metav1.Object).GetAnnotations(); annotations[metav1.InitialEventsAnnotationKey] != "true" {
		t.Errorf("annotations = %v", annotations)
	}
}

func TestClientOptions_StockDecodingLeavesTheOthersWithoutEffect(t *testing.T) {
	others := []dynamicclient.Option{dynamicclient.WithoutManagedFields(), dynamicclient.WithoutFields("spec"), dynamicclient.WithOnlyFields("status"), dynamicclient.WithSharing()}
	s := serve(t)
	for name, opts := range map[string][]dynamicclient.Option{
		"first": append([]dynamicclient.Option{dynamicclient.WithStockDecoding()}, others...),
		"last":  append(others, dynamicclient.WithStockDecoding()),
	} {
		t.Run(name, func(t *testing.T) {
			s.checkWithout(t, widgetA, nil, opts...)
			if got := shares(t, s, made(opts...)); got {
				t.Error("objects have parts in common")
			}
		})
	}
}

func TestClientOptions_LastOneWins(t *testing.T) {
	with, without := dynamicclient.WithSharing(), dynamicclient.WithoutSharing()
	s := serve(t)
	for _, tc := range []struct {
		name string
		opts []dynamicclient.Option
		want bool
	}{
		{"none", nil, false},
		{"only nil", []dynamicclient.Option{nil}, false},
		{"with", []dynamicclient.Option{with}, true},
		{"nil last", []dynamicclient.Option{nil, with, nil}, true},
		{"without", []dynamicclient.Option{without}, false},
		{"with last", []dynamicclient.Option{without, with}, true},
		{"without last", []dynamicclient.Option{with, without}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := shares(t, s, made(tc.opts...)); got != tc.want {
				t.Errorf("objects have parts in common: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestClientOptions_PathIsTheCallersToChange(t *testing.T) {
	path := []string{"metadata", "managedFields"}
	option, only := dynamicclient.WithoutFields(path...), dynamicclient.WithOnlyFields(path...)
	path[0], path[1] = "spec", "max"
	s := serve(t)
	s.checkWithout(t, widgetA, [][]string{{"metadata", "managedFields"}}, option)
	s.checkWithout(t, widgetA, [][]string{{"spec"}, {"status"}, {"metadata", "generation"}, {"metadata", "labels"}, {"metadata", "annotations"}}, only)
}

func TestNewClient_RefusesWhatClientGoRefuses(t *testing.T) {
	for name, cfg := range map[string]*rest.Config{
		"a CA that is none":           {Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("x")}},
		"a CA file that is not there": {Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CAFile: t.TempDir() + "/ca"}},
		"a host that is none":         {Host: "http://[::1"},
		"a CA that is not checked":    {Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{Insecure: true, CAData: []byte("x")}},
	} {
		t.Run(name, func(t *testing.T) {
			_, want := stock(cfg)
			_, got := dynamicclient.New(cfg)
			if want == nil || fmt.Sprint(got) != "dynamicclient: "+want.Error() {
				t.Errorf("error is %q, client-go's is %q", fmt.Sprint(got), fmt.Sprint(want))
			}
		})
	}
}

func TestNewClient_RefusesNil(t *testing.T) {
	const want = "dynamicclient: the rest.Config is nil"
	if client, err := dynamicclient.New(nil); fmt.Sprint(err) != want || client != nil {
		t.Errorf("client is %v, error %q", client, fmt.Sprint(err))
	}
	if client, err := dynamicclient.NewForHTTPClient(nil, http.DefaultClient); fmt.Sprint(err) != want || client != nil {
		t.Errorf("client is %v, error %q", client, fmt.Sprint(err))
	}
}
