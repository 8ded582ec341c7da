package dynamicclient_test

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor/direct"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"

	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/internal/stubserver"
)

func TestClient_TellsTheContentTypeAsClientGo(t *testing.T) {
	bodies := map[string]string{"get": widgetA, "list": stubserver.WidgetList(widgetA, widgetB), "watch": stubserver.Event("ADDED", widgetA) + stubserver.Event("ADDED", widgetB)}
	s := serve(t)
	for _, contentType := range []struct {
		name, text string
		fails      string
		watchFails string
	}{
		{"JSON in UTF-8", "application/json; charset=utf-8", "", ""},
		{"JSON as a stream", "application/json;stream=watch", "", ""},
		{"JSON in capitals", "Application/JSON", "", ""},
		{"JSON in another charset", "application/json; charset=latin1", "", ""},
		{"none", "", "", ""},
		{"HTML", "text/html", "serializer for text/html doesn't exist", "no stream serializers registered"},
		{"YAML", "application/yaml", "serializer for application/yaml", "no stream serializers registered"},
		{"protobuf", "application/vnd.kubernetes.protobuf", "serializer for application/vnd", "no stream serializers registered"},
		{"CBOR that was not asked for", "application/cbor", "serializer for application/cbor", "no stream serializers registered"},
		{"not a type", "json", "serializer for json", "no stream serializers registered"},
		{"invalid", "application/json; charset", "invalid media parameter", ""},
		{"garbage", "/;=", "mime", ""},
	} {
		for _, c := range readers {
			t.Run(contentType.name+"/"+c.name, func(t *testing.T) {
				row := exchange{replies: []stubserver.Reply{stubserver.Respond(200, contentType.text, bodies[c.name])}, call: c.call, fails: contentType.fails}
				if c.name == "watch" {
					row.fails = contentType.watchFails
				}
				s.check(t, row)
			})
		}
	}
}

// asCBOR returns document in CBOR.
func asCBOR(t *testing.T, document string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(document), &value); err != nil {
		t.Fatal(err)
	}
	data, err := direct.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestClient_ReadsCBORAsClientGo(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.ClientsAllowCBOR, true)
	const single, sequence = "application/cbor", "application/cbor-seq"
	object, items := asCBOR(t, widgetA), asCBOR(t, stubserver.WidgetList(widgetA, widgetB))
	events := asCBOR(t, stubserver.Event("ADDED", widgetA)) + asCBOR(t, stubserver.Event("BOOKMARK", stubserver.Bookmark)) + asCBOR(t, stubserver.Event("ERROR", expired))
	all := metav1.ListOptions{}
	serve(t).checkAll(t, []exchange{
		{name: "get", replies: []stubserver.Reply{stubserver.Respond(200, single, object)}, call: get()},
		{name: "list", replies: []stubserver.Reply{stubserver.Respond(200, single, items)}, call: list(all)},
		{name: "watch", replies: []stubserver.Reply{stubserver.Respond(200, sequence, events)}, call: watchToEnd(all)},
		{name: "watch that is cut", replies: []stubserver.Reply{stubserver.Respond(200, sequence, events[:len(events)-9])}, call: watchToEnd(all)},
		{name: "get JSON all the same", replies: []stubserver.Reply{stubserver.JSON(widgetA)}, call: get()},
		{name: "list JSON all the same", replies: []stubserver.Reply{stubserver.JSON(stubserver.WidgetList(widgetA))}, call: list(all)},
		{name: "watch JSON all the same", replies: []stubserver.Reply{stubserver.Stream(stubserver.Event("ADDED", widgetA))}, call: watchToEnd(all)},
		{name: "get JSON labelled CBOR", replies: []stubserver.Reply{stubserver.Respond(200, single, widgetA)}, call: get(), fails: "unable to determine group/version/kind"},
		{name: "list JSON labelled CBOR", replies: []stubserver.Reply{stubserver.Respond(200, single, noList)}, call: list(all), fails: "unable to determine group/version/kind"},
		{name: "watch JSON labelled CBOR", replies: []stubserver.Reply{stubserver.Respond(200, sequence, stubserver.Event("ADDED", widgetA))}, call: watchToEnd(all)},
		{name: "get CBOR labelled JSON", replies: []stubserver.Reply{stubserver.JSON(object)}, call: get(), fails: "json parse error"},
		{name: "list CBOR labelled JSON", replies: []stubserver.Reply{stubserver.JSON(items)}, call: list(all), fails: "json parse error"},
		{name: "watch CBOR labelled JSON", replies: []stubserver.Reply{stubserver.Stream(events)}, call: watchToEnd(all)},
		{name: "get a Status", replies: []stubserver.Reply{stubserver.Respond(404, single, asCBOR(t, stubserver.Failure(404, "NotFound")))}, call: get(), fails: "the server could not find the requested resource"},
	})
}

// client-go decodes CBOR.
func TestClientOptions_LeaveOutFieldsOfCBOR(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.ClientsAllowCBOR, true)
	s := serve(t)
	all := metav1.ListOptions{}
	for name, row := range map[string]exchange{
		"get":   {replies: []stubserver.Reply{stubserver.Respond(200, "application/cbor", asCBOR(t, widgetA))}, call: get()},
		"list":  {replies: []stubserver.Reply{stubserver.Respond(200, "application/cbor", asCBOR(t, stubserver.WidgetList(widgetA, widgetB)))}, call: list(all)},
		"watch": {replies: []stubserver.Reply{stubserver.Respond(200, "application/cbor-seq", asCBOR(t, stubserver.Event("ADDED", widgetA))+asCBOR(t, stubserver.Event("BOOKMARK", stubserver.Bookmark)))}, call: watchToEnd(all)},
	} {
		want, kept := s.outcome(t, row, stock), s.outcome(t, row, made(dynamicclient.WithStockDecoding(), dynamicclient.WithoutFields("spec")))
		if diff := diffOf(want, kept); diff != "" {
			t.Errorf("%s with client-go's decoder (-want +got):\n%s", name, diff)
		}
		remove(want.Value, [][]string{{"spec"}})
		if got := s.outcome(t, row, made(dynamicclient.WithoutFields("spec"))); !reflect.DeepEqual(want, got) {
			t.Errorf("%s (-want +got):\n%s", name, diffOf(want, got))
		}
	}
}

func TestClientOptions_KeepTheFieldsOfBookmarksOfCBOR(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.ClientsAllowCBOR, true)
	const bookmark = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"resourceVersion":"9","annotations":{"a":"b"}},"spec":{}}`
	marked := strings.Replace(bookmark, `"a":"b"`, `"k8s.io/initial-events-end":"true"`, 1)
	body := asCBOR(t, stubserver.Event("BOOKMARK", bookmark)) + asCBOR(t, stubserver.Event("ADDED", marked)) + asCBOR(t, stubserver.Event("BOOKMARK", marked))
	row := exchange{replies: []stubserver.Reply{stubserver.Respond(200, "application/cbor-seq", body)}, call: watchToEnd(metav1.ListOptions{})}
	s := serve(t)
	want := s.outcome(t, row, stock)
	remove(want.Value.([]watch.Event)[1].Object, [][]string{{"spec"}, {"metadata", "annotations"}})
	if got := s.outcome(t, row, made(dynamicclient.WithoutFields("spec"), dynamicclient.WithoutFields("metadata", "annotations"))); !reflect.DeepEqual(want, got) {
		t.Errorf("(-want +got):\n%s", diffOf(want, got))
	}
}

func TestClient_GoesBackFromCBORAsClientGo(t *testing.T) {
	featurestesting.SetFeatureDuringTest(t, features.ClientsAllowCBOR, true)
	featurestesting.SetFeatureDuringTest(t, features.ClientsPreferCBOR, true)
	s := serve(t)
	for _, c := range []call{created(fullWidget(), metav1.CreateOptions{}), updated(fullWidget(), metav1.UpdateOptions{}), applied(fullWidget())} {
		twice := func(ctx context.Context, client dynamic.Interface) (any, error) {
			if _, err := c(ctx, client); !apierrors.IsUnsupportedMediaType(err) {
				t.Errorf("the first error is %v", err)
			}
			return c(ctx, client)
		}
		s.check(t, exchange{replies: []stubserver.Reply{stubserver.Respond(415, "text/plain", "JSON only"), stubserver.JSON(widgetA)}, call: twice})
	}
}
