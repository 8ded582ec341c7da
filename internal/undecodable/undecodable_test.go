package undecodable_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/internal/undecodable"
	"github.com/gvrkit/gvrkit/internal/wire"
)

const (
	good   = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","namespace":"ns","uid":"u","resourceVersion":"3"},"spec":{"size":1}}`
	second = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"b","namespace":"ns"}}`
	plain  = `{"metadata":{"name":"c"}}` // it has its kind from the list
	large  = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"bad","namespace":"ns","uid":"u-bad","resourceVersion":"7"},"spec":{"size":1e999}}`
)

func listOf(items ...string) string {
	return `{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{"resourceVersion":"9","continue":"c"},"items":[` + strings.Join(items, ",") + `]}`
}

// inners are the serializers that can be wrapped.
func inners() map[string]runtime.NegotiatedSerializer {
	stock := dynamic.ConfigFor(&rest.Config{}).NegotiatedSerializer
	return map[string]runtime.NegotiatedSerializer{
		"client-go's": stock,
		"ours":        wire.Negotiated(stock, wire.Settings{Tables: wire.NewTables(wire.Own)}),
	}
}

func serializerOf(t *testing.T, n runtime.NegotiatedSerializer) runtime.Serializer {
	t.Helper()
	info, found := runtime.SerializerInfoForMediaType(n.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !found {
		t.Fatal("no serializer of JSON")
	}
	return info.Serializer
}

// A response that the inner serializer decodes has the same result.
func TestNegotiated_DecodesAsTheInnerSerializer(t *testing.T) {
	status := schema.GroupVersionKind{Version: "v1", Kind: "Status"}
	for name, inner := range inners() {
		for _, tc := range []struct {
			data     string
			into     func() runtime.Object
			defaults *schema.GroupVersionKind
		}{
			{data: good},
			{data: listOf(good, second, plain), into: newList},
			{data: listOf(), into: newList},
			{data: good, into: func() runtime.Object { return &unstructured.Unstructured{} }},
			// Errors of a whole response are the inner serializer's, too.
			{data: `{"kind":"Wid`, into: newList},
			{data: `{"apiVersion":"v1","kind":"WidgetList","items":5}`, into: newList},
			{data: `{"metadata":{},"items":[5]}`, into: newList},
			{data: `[]`, into: newList},
			{data: `5`, into: func() runtime.Object { return &unstructured.Unstructured{} }},
			{data: `{"code":1}`, defaults: &status},
			{data: `5`, defaults: &status},
		} {
			into := func() runtime.Object {
				if tc.into == nil {
					return nil
				}
				return tc.into()
			}
			want, wantKind, wantErr := serializerOf(t, inner).Decode([]byte(tc.data), tc.defaults, into())
			got, gotKind, gotErr := serializerOf(t, undecodable.Negotiated(inner)).Decode([]byte(tc.data), tc.defaults, into())
			if diff := cmp.Diff(text(wantErr), text(gotErr)); diff != "" {
				t.Errorf("%s: %s: error (-inner +ours):\n%s", name, tc.data, diff)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s (-inner +ours):\n%s", name, tc.data, diff)
			}
			if diff := cmp.Diff(wantKind, gotKind); diff != "" {
				t.Errorf("%s: %s: kind (-inner +ours):\n%s", name, tc.data, diff)
			}
		}
	}
}

func newList() runtime.Object { return &unstructured.UnstructuredList{} }

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// The items that can be decoded are those of a list without the others.
func TestNegotiated_LeavesBadItemsOutOfAList(t *testing.T) {
	for name, inner := range inners() {
		s := serializerOf(t, undecodable.Negotiated(inner))
		want, _, err := s.Decode([]byte(listOf(good, second, plain)), nil, newList())
		if err != nil {
			t.Fatal(err)
		}
		got, kind, err := s.Decode([]byte(listOf(`5`, good, large, second, `"text"`, plain, `[]`)), nil, newList())
		if err != nil || kind == nil || kind.Kind != "WidgetList" {
			t.Fatalf("%s: %v, %v", name, kind, err)
		}
		bad := undecodable.Take(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: list (-want +got):\n%s", name, diff)
		}
		var texts []string
		for _, object := range bad {
			texts = append(texts, object.Namespace+"/"+object.Name+" "+string(object.UID)+" "+object.ResourceVersion+": "+object.Err.Error())
		}
		if diff := cmp.Diff([]string{
			"/  : it is not a JSON object: number",
			"ns/bad u-bad 7: json: cannot unmarshal number into Go value of type float64",
			"/  : it is not a JSON object: string",
			"/  : it is not a JSON object: array",
		}, texts); diff != "" {
			t.Errorf("%s: bad items (-want +got):\n%s", name, diff)
		}
		if again := undecodable.Take(got); again != nil {
			t.Errorf("%s: taken again: %v", name, again)
		}
	}
}

// The objects of watch events.
func TestNegotiated_ReturnsAnObjectForABadEvent(t *testing.T) {
	for name, inner := range inners() {
		s := serializerOf(t, undecodable.Negotiated(inner))
		for data, want := range map[string]undecodable.Object{
			large: {PartialObjectMetadata: metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: "example.com/v1", Kind: "Widget"},
				ObjectMeta: metav1.ObjectMeta{Name: "bad", Namespace: "ns", UID: "u-bad", ResourceVersion: "7"},
			}},
			`{"metadata":{"name":"a","labels":5,"uid":7},"secret":"x"}`: {PartialObjectMetadata: metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}}},
			`{"kind":"Widget","metadata":"secret"}`:                     {PartialObjectMetadata: metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "Widget"}}},
			`"secret"`:                                                  {},
			`true`:                                                      {},
			`null`:                                                      {},
			``:                                                          {},
		} {
			got, kind, err := s.Decode([]byte(data), nil, nil)
			if err != nil {
				t.Errorf("%s: %s: %v", name, data, err)
				continue
			}
			object, is := got.(*undecodable.Object)
			if !is {
				t.Errorf("%s: %s: a %T", name, data, got)
				continue
			}
			if diff := cmp.Diff(&want, object, cmpopts.IgnoreFields(undecodable.Object{}, "Err")); diff != "" || kind.Kind != want.Kind {
				t.Errorf("%s: %s: kind %v (-want +got):\n%s", name, data, kind, diff)
			}
			if object.Err == nil || strings.Contains(object.Err.Error(), "secret") || strings.Contains(object.Err.Error(), "999") {
				t.Errorf("%s: %s: error %v", name, data, object.Err)
			}
		}
	}
}

func TestTake_OfAnotherListIsNothing(t *testing.T) {
	for _, list := range []runtime.Object{nil, &unstructured.UnstructuredList{}, &metav1.PartialObjectMetadataList{}} {
		if got := undecodable.Take(list); got != nil {
			t.Errorf("%T: %v", list, got)
		}
	}
}
