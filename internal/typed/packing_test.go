package typed

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/gvrkit/gvrkit/dynamicclient"
	ipacked "github.com/gvrkit/gvrkit/internal/packed"
	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/stubserver"
	"github.com/gvrkit/gvrkit/internal/undecodable"
	"github.com/gvrkit/gvrkit/packed"
)

// packers returns the client of packed objects, and a dynamic client, on s.
func packers(t *testing.T, s *stubserver.Server, opts ...dynamicclient.Option) (packing source.Client, usual dynamic.Interface) {
	t.Helper()
	usual, err := dynamicclient.NewForHTTPClient(s.RESTConfig(), s.Client(), opts...)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamicclient.NewForHTTPClient(s.RESTConfig(), s.Client(), append(opts, ipacked.Option(ipacked.Reader(packed.NewPacker())).(dynamicclient.Option))...)
	if err != nil {
		t.Fatal(err)
	}
	return Packing(client), usual
}

// unpacked returns the content of an object. It fails if the object is packed and direct is false, or the opposite.
func unpacked(t *testing.T, object runtime.Object, direct bool) map[string]any {
	t.Helper()
	switch object := object.(type) {
	case *packed.Object:
		if direct {
			return object.Unstructured().Object
		}
	case *unstructured.Unstructured:
		if !direct {
			return object.Object
		}
	}
	t.Fatalf("a %T", object)
	return nil
}

// Lists are those of the dynamic client. Ordinary ones are packed without a tree.
func TestPacking_ListsAsTheDynamicClient(t *testing.T) {
	const kindless = `{"metadata":{"name":"k","namespace":"ns"},"spec":{"a":1}}` // as in lists of built-in types
	list := func(kind, items string) string {
		return `{"kind":"` + kind + `","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"c","remainingItemCount":3},"items":` + items + `}`
	}
	for _, tc := range []struct {
		name, body string
		direct     bool
	}{
		{"empty", stubserver.WidgetList(), true},
		{"similar", stubserver.WidgetList(stubserver.SimilarWidgets()...), true},
		{"without kind", list("PodList", "["+kindless+","+kindless+"]"), true},
		{"one without kind", list("PodList", "["+kindless+","+stubserver.SimilarWidget(1)+","+kindless+"]"), true},
		{"only a kind", list("PodList", `[{"kind":"Pod","metadata":{"name":"a"}}]`), true},
		{"only a version", list("PodList", `[{"apiVersion":"v1","metadata":{"name":"a"}}]`), true},
		{"escapes", list("PodList", `[{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a\u0041"},"spec":"\"\\\u00e9"}]`), true},
		{"empty kind", list("PodList", `[{"kind":"","apiVersion":"","metadata":{"name":"a"}}]`), false},
		{"of no kind", list("List", "["+kindless+"]"), false},
		{"kind at the end", `{"metadata":{"resourceVersion":"9"},"items":[` + kindless + `],"kind":"PodList","apiVersion":"v1"}`, false},
		{"kind at the end, one without kind", stubserver.WidgetList(stubserver.SimilarWidget(1), kindless), false},
		{"kind at the end, one without version", stubserver.WidgetList(stubserver.SimilarWidget(1), `{"kind":"Widget","metadata":{"name":"a"}}`), false},
		{"kind at the end, one with a bad version", stubserver.WidgetList(stubserver.SimilarWidget(1), `{"kind":"Widget","apiVersion":"a/b/c","metadata":{"name":"a"}}`), false},
		{"version at the end", `{"kind":"WidgetList","metadata":{"resourceVersion":"9"},"items":[` + stubserver.SimilarWidget(1) + `],"apiVersion":"example.com/v1"}`, true},
		{"kind again", `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` + kindless + `],"kind":"OtherList"}`, false},
		{"a member with a null character", `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[` + kindless + `],"\u0000items":[]}`, false},
		{"items is null", list("PodList", "null"), false},
		{"a field twice", list("PodList", `[{"kind":"Pod","kind":"Other","apiVersion":"v1","metadata":{"name":"a","name":"b"}}]`), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := stubserver.New(t)
			packing, usual := packers(t, s)
			s.Prepare(stubserver.JSON(tc.body), stubserver.JSON(tc.body))
			want, err := usual.Resource(widgets).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got, err := packing.List(t.Context(), widgets, "", metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var items []runtime.Object
			var meta metav1.ListInterface
			switch got := got.(type) {
			case *internalversion.List:
				items, meta = got.Items, got
			case *unstructured.UnstructuredList:
				meta = got
				for i := range got.Items {
					items = append(items, &got.Items[i])
				}
			}
			if len(items) != len(want.Items) {
				t.Fatalf("%d items, want %d", len(items), len(want.Items))
			}
			for i, item := range items {
				if diff := cmp.Diff(want.Items[i].Object, unpacked(t, item, tc.direct)); diff != "" {
					t.Errorf("item %d (-want +got):\n%s", i, diff)
				}
			}
			if meta.GetResourceVersion() != want.GetResourceVersion() || meta.GetContinue() != want.GetContinue() ||
				fmt.Sprint(meta.GetRemainingItemCount() == nil) != fmt.Sprint(want.GetRemainingItemCount() == nil) {
				t.Errorf("metadata %+v, want %+v", meta, want)
			}
		})
	}
}

// encoders are apimachinery's encoders of lists: API servers use the one that streams, and older ones the other.
func encoders() map[string]runtime.Encoder {
	encoder := func(streams bool) runtime.Encoder {
		return jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, nil, nil, jsonserializer.SerializerOptions{StreamingCollectionsEncoding: streams})
	}
	return map[string]runtime.Encoder{"streaming": encoder(true), "at once": encoder(false)}
}

// API servers send the members of a list in two orders: sorted for custom resources, and kind first for built-in types, whose items have no kind.
func TestPacking_ListsOfAPIServersAreOrdinary(t *testing.T) {
	custom := &unstructured.UnstructuredList{Object: map[string]any{"kind": "WidgetList", "apiVersion": "example.com/v1", "metadata": map[string]any{"resourceVersion": "9", "continue": ""}}}
	for _, text := range stubserver.SimilarWidgets() {
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		custom.Items = append(custom.Items, object)
	}
	builtIn := &corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}}
	for name, encoder := range encoders() {
		for _, list := range []runtime.Object{custom, builtIn} {
			t.Run(fmt.Sprintf("%s/%T", name, list), func(t *testing.T) {
				body, err := runtime.Encode(encoder, list)
				if err != nil {
					t.Fatal(err)
				}
				s := stubserver.New(t)
				s.Prepare(stubserver.JSON(string(body)))
				packing, usual := packers(t, s)
				want, err := usual.Resource(widgets).List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				got, err := packing.List(t.Context(), widgets, "", metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				packs, is := got.(*internalversion.List)
				if !is || len(packs.Items) != len(want.Items) || len(packs.Items) == 0 {
					t.Fatalf("a %T", got)
				}
				for i, item := range packs.Items {
					if diff := cmp.Diff(want.Items[i].Object, unpacked(t, item, true)); diff != "" {
						t.Errorf("item %d (-want +got):\n%s", i, diff)
					}
				}
			})
		}
	}
}

// What a list says about the selector of a shard is compared with the request.
func TestPacking_ListsSayOfWhichShardTheyAre(t *testing.T) {
	for info, want := range map[string]*metav1.ShardInfo{
		`,"shardInfo":{"selector":"shardRange(a)"}`: {Selector: "shardRange(a)"},
		`,"shardInfo":{"selector":3}`:               nil,
		``:                                          nil,
	} {
		s := stubserver.New(t)
		packing, _ := packers(t, s)
		s.Prepare(stubserver.JSON(`{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9"` + info + `},"items":[]}`))
		list, err := packing.List(t.Context(), widgets, "", metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := list.(*internalversion.List); !reflect.DeepEqual(got.ShardInfo, want) {
			t.Errorf("%s: %v, want %v", info, got.ShardInfo, want)
		}
	}
}

func TestPacking_AnItemThatCannotBeDecodedIsLeftOut(t *testing.T) {
	s := stubserver.New(t)
	packing, _ := packers(t, s)
	s.Prepare(stubserver.JSON(stubserver.WidgetList(stubserver.SimilarWidget(1), `{"metadata":{"name":"bad"},"spec":1e999}`, stubserver.SimilarWidget(2))))
	list, err := packing.List(t.Context(), widgets, "", metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bad := undecodable.Take(list)
	if got := list.(*unstructured.UnstructuredList); len(got.Items) != 2 || len(bad) != 1 || bad[0].GetName() != "bad" {
		t.Errorf("items %v, undecodable %v", got, bad)
	}
}

func TestPacking_ErrorsOfTheDynamicClient(t *testing.T) {
	for _, reply := range []stubserver.Reply{
		stubserver.Respond(403, "application/json", stubserver.Failure(403, "Forbidden")), stubserver.JSON(`{"kind":"PodList"`), stubserver.JSON(`{"kind":"Pod","apiVersion":"v1"}`),
	} {
		s := stubserver.New(t)
		packing, usual := packers(t, s)
		s.Prepare(reply, reply)
		_, want := source.Unstructured(usual).List(t.Context(), widgets, "", metav1.ListOptions{})
		if _, got := packing.List(t.Context(), widgets, "", metav1.ListOptions{}); got == nil || want == nil || got.Error() != want.Error() {
			t.Errorf("error %v, want %v", got, want)
		}
	}
}

// Events are those of the dynamic client, in batches and alone.
func TestPacking_WatchesAsTheDynamicClient(t *testing.T) {
	bookmark := `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"resourceVersion":"12","annotations":{"k8s.io/initial-events-end":"true"}}}`
	var stream strings.Builder
	for i, object := range stubserver.SimilarWidgets() {
		stream.WriteString(stubserver.Event([]string{"ADDED", "MODIFIED", "DELETED"}[i%3], object))
		if i%20 == 10 {
			stream.WriteString(stubserver.Event("BOOKMARK", bookmark))
			stream.WriteString(stubserver.Event("ADDED", `{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"\u0000odd"},"KIND":"Widget"}`)) // not ordinary
		}
	}
	stream.WriteString(stubserver.Event("ERROR", stubserver.Refusal(410, "Expired")))
	for _, drop := range [][]dynamicclient.Option{nil, {dynamicclient.WithoutManagedFields(), dynamicclient.WithoutFields("metadata", "annotations")}} {
		s := stubserver.New(t)
		packing, usual := packers(t, s, drop...)
		s.Prepare(stubserver.Stream(stream.String()), stubserver.Stream(stream.String()))
		want, err := usual.Resource(widgets).Watch(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := packing.Watch(t.Context(), widgets, "", metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n, trees := 0, 0
		for wanted := range want.ResultChan() {
			event := <-got.ResultChan()
			if object, is := event.Object.(*packed.Object); is {
				event.Object = object.Unstructured()
			} else if trees++; event.Type != watch.Bookmark && event.Type != watch.Error && event.Object.(*unstructured.Unstructured).GetName() != "\x00odd" {
				t.Errorf("a %T: %v", event.Object, event)
			}
			if event.Type == watch.Error && !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
				t.Errorf("error %v", event.Object)
			}
			if diff := cmp.Diff(wanted, event); diff != "" {
				t.Fatalf("event %d (-want +got):\n%s", n, diff)
			}
			n++
		}
		if event, more := <-got.ResultChan(); more || n < 50 {
			t.Errorf("%d events, then %v", n, event)
		}
	}
}
