package dynamicinformer_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/gvrkit/gvrkit/dynamicclient"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/internal/stubserver"
	"github.com/gvrkit/gvrkit/status"
)

// protobufServer serves the metadata of widgets in Protocol Buffers, as kube-apiserver does, and the events that a test sends.
type protobufServer struct {
	*stubserver.Server
	initial [][]byte // the messages of objects
	events  chan metav1.WatchEvent
}

// message returns metadata as a message. It has managedFields and the annotation of kubectl apply.
func message(name, version string) []byte {
	data, err := partialOf(name, version).Marshal()
	if err != nil {
		panic(err)
	}
	return data
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func partialOf(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "ns", ResourceVersion: version, Labels: map[string]string{"app": "web"},
		Annotations:   map[string]string{lastApplied: "{}", "note": "x"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}")}},
	}}
}

// damaged returns message with metadata that can't be decoded after its version.
func damaged(message []byte) []byte { return append(slices.Clone(message), 0x0a, 0x02, 0x0a, 0xff) }

// responseOf returns message as a response of that kind.
func responseOf(kind string, message []byte) []byte {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: kind}, Raw: message}
	data, err := unknown.Marshal()
	if err != nil {
		panic(err)
	}
	return append([]byte("k8s\x00"), data...)
}

func eventOf(kind string, message []byte) metav1.WatchEvent {
	return metav1.WatchEvent{Type: kind, Object: runtime.RawExtension{Raw: responseOf("PartialObjectMetadata", message)}}
}

func (s *protobufServer) answer(w http.ResponseWriter, r *http.Request) {
	stubserver.SetContentType(w, "application/vnd.kubernetes.protobuf")
	if r.URL.Query().Get("watch") == "" {
		list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}}
		data, _ := list.Marshal()
		for _, item := range s.initial {
			data = append(append(data, 0x12, byte(len(item)), 1), item...) // of 128 to 255 bytes
		}
		_, _ = w.Write(responseOf("PartialObjectMetadataList", data))
		return
	}
	if r.URL.Query().Get("sendInitialEvents") != "" {
		for _, object := range s.initial {
			write(w, eventOf("ADDED", object))
		}
		bookmark := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
		data, _ := bookmark.Marshal()
		write(w, eventOf("BOOKMARK", data))
	}
	for {
		w.(http.Flusher).Flush()
		select {
		case event := <-s.events:
			write(w, event)
		case <-r.Context().Done():
			return
		}
	}
}

func write(w io.Writer, event metav1.WatchEvent) {
	data, _ := event.Marshal()
	_, _ = protobuf.LengthDelimitedFramer.NewFrameWriter(w).Write(data)
}

// serveProtobuf returns a server with the initial objects, and a lease on their metadata.
func serveProtobuf(t *testing.T, initial [][]byte, client []dynamicclient.Option, opts ...dynamicinformer.LeaseOption) (*protobufServer, *dynamicinformer.Lease, *awaited) {
	t.Helper()
	s := &protobufServer{stubserver.New(t), initial, make(chan metav1.WatchEvent)}
	s.Prepare(s.answer)
	f, err := dynamicinformer.NewForConfig(s.RESTConfig(), dynamicinformer.WithDiscovery(nil), dynamicinformer.WithClientOptions(client...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Shutdown(context.WithoutCancel(t.Context())) })
	f.Start(t.Context())
	lease, events := acquire(t, f, widgets, append(opts, dynamicinformer.WithMetadataOnly())...), &awaited{news: make(chan struct{}, 1)}
	if _, err := lease.AddEventHandler(events); err != nil {
		t.Fatal(err)
	}
	return s, lease, events
}

func TestQuarantine_OfProtobuf(t *testing.T) {
	for _, policy := range policies {
		t.Run(policy.String(), func(t *testing.T) {
			s, lease, events := serveProtobuf(t, [][]byte{message("a", "2"), damaged(message("bad", "3")), message("b", "4")}, nil, dynamicinformer.WithWatchListPolicy(policy))
			events.await(t, "add a 2", "add b 4")
			got := awaitStatus(t, lease, "one is left out", failed(1))
			if got.Reason != status.ReasonDecodeFailed || got.LastFailed != "ns/bad" || !strings.HasSuffix(got.Err.Error(), "unexpected EOF") {
				t.Errorf("%q: %v (%s)", got.LastFailed, got.Err, got.Reason)
			}
			s.events <- eventOf("MODIFIED", message("bad", "11"))
			events.await(t, "add bad 11")
			awaitStatus(t, lease, "none is left out", failed(0))
			s.events <- eventOf("MODIFIED", damaged(message("a", "12")))
			awaitStatus(t, lease, "one that was good is left out, and its version is known", func(i status.Informer) bool {
				return failed(1)(i) && i.LastFailed == "ns/a" && i.ResourceVersion == "12"
			})
			s.events <- eventOf("DELETED", damaged(message("a", "13")))
			events.await(t, "delete a 12")
			if got := lease.Status(); got.Traffic.Lists > 1 || got.FailedObjects != 0 {
				t.Errorf("status: %+v", got)
			}
		})
	}
}

// The informer does not sync, or its watch ends, with client-go's error.
func TestQuarantine_OfProtobufNotWithStrictDecoding(t *testing.T) {
	for _, policy := range policies {
		_, lease, _ := serveProtobuf(t, [][]byte{damaged(message("bad", "3"))}, nil, dynamicinformer.WithWatchListPolicy(policy), dynamicinformer.WithStrictDecoding())
		got := awaitStatus(t, lease, "it fails", func(i status.Informer) bool { return i.Reason != "" && i.Reason != status.ReasonSyncing })
		if got.Objects != 0 || got.FailedObjects != 0 || !strings.HasSuffix(got.Err.Error(), "unexpected EOF") {
			t.Errorf("%v: %+v", policy, got)
		}
	}
	s, lease, events := serveProtobuf(t, [][]byte{message("a", "2")}, nil, dynamicinformer.WithStrictDecoding())
	events.await(t, "add a 2")
	s.events <- eventOf("MODIFIED", damaged(message("a", "12")))
	got := awaitStatus(t, lease, "the watch ends", func(i status.Informer) bool { return i.Err != nil })
	if got.FailedObjects != 0 || !strings.HasSuffix(got.Err.Error(), "unexpected EOF") {
		t.Errorf("status: %+v", got)
	}
}

// withoutManagedAndApplied are client options that leave out what a program rarely needs.
func withoutManagedAndApplied() []dynamicclient.Option {
	return []dynamicclient.Option{dynamicclient.WithoutManagedFields(), dynamicclient.WithoutLastApplied(), dynamicclient.WithoutFields("spec", "size")}
}

func TestWithClientOptions_LeavesFieldsOutOfMetadata(t *testing.T) {
	for _, policy := range policies {
		s, lease, events := serveProtobuf(t, [][]byte{message("a", "2"), message("b", "3")}, withoutManagedAndApplied(), dynamicinformer.WithWatchListPolicy(policy))
		events.await(t, "add a 2", "add b 3")
		s.events <- eventOf("MODIFIED", message("b", "12"))
		events.await(t, "update b 12")
		for name, version := range map[string]string{"a": "2", "b": "12"} {
			want := partialOf(name, version)
			want.ManagedFields = nil
			delete(want.Annotations, lastApplied)
			got, there, err := lease.Informer().GetStore().GetByKey("ns/" + name)
			if diff := cmp.Diff(any(want), got); diff != "" || !there || err != nil {
				t.Errorf("%v: %s: error %v (-want +got):\n%s", policy, name, err, diff)
			}
		}
	}
}

func TestWithClientOptions_LeavesFieldsOutOfGoTypes(t *testing.T) {
	object := func(name string, version int) string {
		return strings.Replace(widgetJSON(name, version, `{"size":7}`), `"metadata":{`, `"metadata":{"managedFields":[{"manager":"m"}],"annotations":{"`+lastApplied+`":"{}","note":"x"},`, 1)
	}
	unusual := func(name string, version int) string { // a field occurs twice, so that client-go decodes it
		return strings.Replace(object(name, version), `"spec":`, `"spec":{},"spec":`, 1)
	}
	for i := range 2 * len(policies) {
		policy, opts := policies[i/2], withoutManagedAndApplied()
		if i%2 == 1 {
			opts = []dynamicclient.Option{dynamicclient.WithOnlyFields("metadata", "annotations", "note"), dynamicclient.WithOnlyFields("spec", "unknown")}
		}
		s := &typedServer{Server: stubserver.New(t), events: make(chan string), initial: []string{object("a", 2), unusual("b", 3), object("c", 4)}}
		s.Prepare(s.answer)
		f, err := dynamicinformer.NewForConfig(s.RESTConfig(), dynamicinformer.WithDiscovery(nil), dynamicinformer.WithWatchListPolicy(policy), dynamicinformer.WithClientOptions(opts...))
		if err != nil {
			t.Fatal(err)
		}
		f.Start(t.Context())
		lease, err := dynamicinformer.AcquireTyped[*typedWidget](t.Context(), f, widgets)
		if err != nil {
			t.Fatal(err)
		}
		events := &awaited{news: make(chan struct{}, 1)}
		if _, err := lease.AddEventHandler(events); err != nil {
			t.Fatal(err)
		}
		events.await(t, "add a 2", "add b 3", "add c 4")
		s.events <- stubserver.Event("MODIFIED", object("c", 12))
		s.events <- stubserver.Event("MODIFIED", unusual("a", 13))
		events.await(t, "update a 13", "update c 12")
		for _, name := range []string{"a", "b", "c"} {
			item, _, err := lease.Informer().GetStore().GetByKey("ns/" + name)
			w, is := item.(*typedWidget)
			if err != nil || !is {
				t.Fatalf("%v: %s: %v, %v", policy, name, item, err)
			}
			if w.ManagedFields != nil || !cmp.Equal(w.Annotations, map[string]string{"note": "x"}) || w.Spec.Size != 0 || w.Name != name {
				t.Errorf("%v: %s: %+v", policy, name, w)
			}
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		if err := f.Shutdown(ctx); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		cancel()
	}
}
