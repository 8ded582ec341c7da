package typed

import (
	"bytes"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metainternalversionscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"github.com/gvrkit/gvrkit/internal/source"
	"github.com/gvrkit/gvrkit/internal/stubserver"
	"github.com/gvrkit/gvrkit/internal/undecodable"
)

var (
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	pods    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

// metadataClients returns client-go's metadata client and ours, on a server.
func metadataClients(t *testing.T, s *stubserver.Server) (theirs, ours source.Client) {
	t.Helper()
	httpClient := s.Client()
	client, err := metadata.NewForConfigAndClient(s.RESTConfig(), httpClient)
	if err != nil {
		t.Fatal(err)
	}
	ours, err = Metadata(client, s.RESTConfig(), httpClient, nil)
	if err != nil {
		t.Fatal(err)
	}
	ours, _ = Sharing(ours)
	return source.Metadata(client), ours
}

// encoded returns obj as protobuf.
func encoded(t *testing.T, obj runtime.Object) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := protobuf.NewSerializer(metainternalversionscheme.Scheme, metainternalversionscheme.Scheme).Encode(obj, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const partialA = `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata","metadata":{"name":"a","namespace":"ns","labels":{"app":"x"}}}`

func partialList(items string) string {
	return `{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{"resourceVersion":"9","continue":"c","remainingItemCount":3},"items":[` + items + `]}`
}

// Requests, lists and errors are those of client-go's client.
func TestMetadata_ListsAsClientGo(t *testing.T) {
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"app": "x"}}}
	object.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "c"}, Items: []metav1.PartialObjectMetadata{*object}}
	list.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"))
	for name, reply := range map[string]stubserver.Reply{
		"JSON":          stubserver.JSON(partialList(partialA)),
		"empty":         stubserver.JSON(partialList("")),
		"protobuf":      stubserver.Respond(200, "application/vnd.kubernetes.protobuf", string(encoded(t, list))),
		"bad protobuf":  stubserver.Respond(200, "application/vnd.kubernetes.protobuf", "k8s\x00\x0a\xff"),
		"whole objects": stubserver.JSON(stubserver.WidgetList(stubserver.SimilarWidget(1), stubserver.SimilarWidget(2))),
		"without kinds": stubserver.JSON(`{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"a"}}]}`),
		"refused":       stubserver.Respond(403, "application/json", stubserver.Refusal(403, "Forbidden")),
		"no JSON":       stubserver.JSON(`{"kind":`),
	} {
		t.Run(name, func(t *testing.T) {
			s := stubserver.New(t)
			s.Prepare(reply)
			theirs, ours := metadataClients(t, s)
			limit := metav1.ListOptions{Limit: 5, LabelSelector: "app=x"}
			for _, target := range []struct {
				gvr       schema.GroupVersionResource
				namespace string
			}{{widgets, ""}, {pods, "ns"}} {
				want, wantErr := theirs.List(t.Context(), target.gvr, target.namespace, limit)
				got, gotErr := ours.List(t.Context(), target.gvr, target.namespace, limit)
				if (wantErr == nil) != (gotErr == nil) {
					t.Fatalf("error %v, want %v", gotErr, wantErr)
				}
				if wantErr != nil {
					if name == "bad protobuf" && wantErr.Error() != gotErr.Error() {
						t.Errorf("error %v, want %v", gotErr, wantErr)
					}
					continue
				}
				if diff := cmp.Diff(contents(t, want), contents(t, got)); diff != "" {
					t.Errorf("list (-client-go's +ours):\n%s", diff)
				}
			}
			seen := s.Arrivals()
			for i := 0; i+1 < len(seen); i += 2 {
				if diff := cmp.Diff(seen[i], seen[i+1]); diff != "" {
					t.Errorf("request (-client-go's +ours):\n%s", diff)
				}
			}
		})
	}
}

// contents returns the metadata and the objects of a list.
func contents(t *testing.T, list runtime.Object) []any {
	t.Helper()
	accessor, err := meta.ListAccessor(list)
	if err != nil {
		t.Fatal(err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		t.Fatal(err)
	}
	return []any{accessor.GetResourceVersion(), accessor.GetContinue(), accessor.GetRemainingItemCount(), items}
}

// A bad item is an *undecodable.Object; client-go fails the whole list.
func TestMetadata_ListLeavesBadItemsOut(t *testing.T) {
	s := stubserver.New(t)
	s.Prepare(stubserver.JSON(partialList(partialA + `,5,{"metadata":{"name":"bad","namespace":"ns","uid":"u","labels":{"app":7}}}`)))
	theirs, ours := metadataClients(t, s)
	if _, err := theirs.List(t.Context(), widgets, "", metav1.ListOptions{}); err == nil {
		t.Error("client-go lists it")
	}
	list, err := ours.List(t.Context(), widgets, "", metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bad := undecodable.Take(list)
	if items := contents(t, list); len(bad) != 2 || bad[1].Name != "bad" || bad[1].UID != "u" || items[0] != "9" || items[1] != "c" || len(items[3].([]runtime.Object)) != 1 {
		t.Errorf("%d bad objects, list %v", len(bad), items)
	}
}

// client-go reads such a response as an empty list, which empties a cache.
func TestMetadata_AResponseThatIsNoListIsAnError(t *testing.T) {
	one := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	one.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	responses := map[string]stubserver.Reply{"protobuf": stubserver.Respond(200, "application/vnd.kubernetes.protobuf", string(encoded(t, one)))}
	for _, body := range []string{stubserver.SimilarWidget(1), `{}`, `{"metadata":{"resourceVersion":"9"}}`, `null`} {
		responses[body] = stubserver.JSON(body)
	}
	for name, response := range responses {
		s := stubserver.New(t)
		s.Prepare(response)
		_, ours := metadataClients(t, s)
		if _, err := ours.List(t.Context(), widgets, "", metav1.ListOptions{}); !errors.Is(err, source.ErrNotAList) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Events are those of client-go's client, except for an object of metadata that can't be decoded.
func TestMetadata_WatchesAsClientGo(t *testing.T) {
	s := stubserver.New(t)
	reply := func(w http.ResponseWriter, _ *http.Request) {
		stubserver.SetContentType(w, "application/json")
		for _, object := range []string{partialA, stubserver.Bookmark, stubserver.Refusal(410, "Expired"), stubserver.SimilarWidget(1)} {
			_, _ = w.Write([]byte(stubserver.Event("ADDED", object)))
		}
	}
	seconds := int64(7)
	for name, opts := range map[string]metav1.ListOptions{
		"with a timeout": {TimeoutSeconds: &seconds, AllowWatchBookmarks: true}, "without": {AllowWatchBookmarks: true},
	} {
		t.Run(name, func(t *testing.T) {
			s.Prepare(reply)
			checkWatches(t, s, opts)
		})
	}
}

// checkWatches compares a watch of client-go's client with one of ours. The HTTP client has a timeout.
func checkWatches(t *testing.T, s *stubserver.Server, opts metav1.ListOptions) {
	t.Helper()
	s.Client().Timeout = time.Minute
	theirs, ours := metadataClients(t, s)
	var events [2][]watch.Event
	for i, client := range []source.Client{theirs, ours} {
		w, err := client.Watch(t.Context(), widgets, "ns", opts)
		if err != nil {
			t.Fatal(err)
		}
		for event := range w.ResultChan() {
			events[i] = append(events[i], event)
		}
	}
	if diff := cmp.Diff(events[0], events[1]); diff != "" || len(events[0]) < 2 {
		t.Errorf("events (-client-go's +ours):\n%s", diff)
	}
	if seen := s.Arrivals(); len(seen) != 2 || !cmp.Equal(seen[0], seen[1]) {
		t.Errorf("requests: %+v", seen)
	}
}
