package metaproto

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"

	"github.com/gvrkit/gvrkit/internal/undecodable"
)

// bad returns messages that can't be decoded, by what is wrong, with the identities that can be read.
func bad() map[string]struct {
	message []byte
	want    metav1.ObjectMeta
} {
	good := marshalled(ordinaryObject("a"))
	content, _ := protowire.ConsumeBytes(good[1:])
	inside := func(content []byte) []byte { return protowire.AppendBytes([]byte{good[0]}, content) }
	varint := func(number protowire.Number) []byte {
		return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), 7)
	}
	whole := metav1.ObjectMeta{Name: "a", Namespace: "ns", UID: ordinaryObject("a").UID, ResourceVersion: "1000000001"}
	named := metav1.ObjectMeta{Name: "a"}
	brokenPart := func(number protowire.Number) []byte { // a message that is too short
		return inside(slices.Concat(content, protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), []byte{0x0a, 0xff})))
	}
	return map[string]struct {
		message []byte
		want    metav1.ObjectMeta
	}{
		"a number of the wrong type":     {inside(slices.Concat(content, protowire.AppendBytes(protowire.AppendTag(nil, generationField, protowire.BytesType), nil))), whole},
		"a string of the wrong type":     {inside(slices.Concat(content, varint(selfLinkField))), whole},
		"a name of the wrong type":       {inside(slices.Concat(varint(nameField), protowire.AppendString(protowire.AppendTag(nil, namespaceField, protowire.BytesType), "ns"))), metav1.ObjectMeta{Namespace: "ns"}},
		"metadata of the wrong type":     {varint(1), metav1.ObjectMeta{}},
		"truncated":                      {good[:len(good)-5], whole},
		"truncated after the name":       {inside(content[:6]), named},
		"truncated in the name":          {inside(content[:2]), metav1.ObjectMeta{}},
		"truncated in its length":        {good[:1], metav1.ObjectMeta{}},
		"truncated managedFields":        {brokenPart(managedFieldsField), whole},
		"truncated labels":               {brokenPart(labelsField), whole},
		"a truncated owner":              {brokenPart(ownerReferencesField), whole},
		"a truncated time":               {inside(slices.Concat(content, protowire.AppendBytes(protowire.AppendTag(nil, creationTimestampField, protowire.BytesType), []byte{0x08}))), whole},
		"a field without a number":       {inside(slices.Concat(content, []byte{0x00, 0x00})), whole},
		"an end of a group, and no more": {inside(slices.Concat(content, protowire.AppendTag(nil, 20, protowire.EndGroupType))), whole},
		"JSON":                           {[]byte(`{"metadata":{"name":"a"}}`), metav1.ObjectMeta{}},
	}
}

// A bad item is an *undecodable.Object with the identity that can be read, and client-go's error. client-go fails the whole list.
func TestDecoder_ListLeavesBadItemsOut(t *testing.T) {
	theirs := infoOf(t, stock(), runtime.ContentTypeProtobuf).Serializer
	for name, tc := range bad() {
		list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: "c"}, Items: []metav1.PartialObjectMetadata{*ordinaryObject("first")}}
		message, err := list.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		item := func(message []byte) []byte {
			return protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), message)
		}
		data := response(listKind, slices.Concat(message, item(tc.message), item(marshalled(ordinaryObject("last")))))
		_, _, theirErr := theirs.Decode(data, nil, nil)
		if theirErr == nil {
			t.Errorf("%s: client-go decodes it", name)
			continue
		}
		for of, d := range decoders() {
			got, ok := d.List(data)
			if !ok || len(got.Items) != 3 || got.ResourceVersion != "9" || got.Continue != "c" {
				t.Errorf("%s, %s: %t %v", name, of, ok, got)
				continue
			}
			all := undecodable.Take(got)
			if diff := cmp.Diff([]runtime.Object{ordinaryObject("first"), ordinaryObject("last")}, got.Items); diff != "" || len(all) != 1 {
				t.Errorf("%s, %s: %d bad items (-want +got):\n%s", name, of, len(all), diff)
				continue
			}
			if diff := cmp.Diff(tc.want, all[0].ObjectMeta); diff != "" || all[0].Err.Error() != theirErr.Error() {
				t.Errorf("%s, %s: error %v, client-go has %v, identity (-want +got):\n%s", name, of, all[0].Err, theirErr, diff)
			}
		}
	}
}

// Lists that can't be decoded as a whole, or have no metadata, are client-go's.
func TestDecoder_OtherListsAreLeftToClientGo(t *testing.T) {
	broken := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), []byte{0x0a, 0xff})
	for name, data := range map[string][]byte{
		"not protobuf":      []byte(`{"kind":"PartialObjectMetadataList"}`),
		"empty":             nil,
		"only a prefix":     []byte(prefix),
		"bad list metadata": response(listKind, broken),
		"truncated":         response(listKind, []byte{0x12, 0xff}),
		"another kind":      response("Status", nil),
		"an object":         response(objectKind, nil),
		"items of a number": response(listKind, []byte{0x10, 0x01}),
	} {
		for of, d := range decoders() {
			if list, ok := d.List(data); ok {
				t.Errorf("%s, %s: %v", name, of, list)
			}
		}
	}
}

// stream returns events in protobuf.
func stream(t *testing.T, events ...metav1.WatchEvent) []byte {
	t.Helper()
	var b bytes.Buffer
	w := protobuf.LengthDelimitedFramer.NewFrameWriter(&b)
	for i := range events {
		data, err := events[i].Marshal()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	return b.Bytes()
}

func event(kind watch.EventType, data []byte) metav1.WatchEvent {
	return metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: data}}
}

// received is an event, or the end of a stream.
type received struct {
	Type   watch.EventType
	Object runtime.Object
	Err    string
}

// receive returns all events of a stream.
func receive(t *testing.T, n runtime.NegotiatedSerializer, data []byte) (all []received) {
	t.Helper()
	info := infoOf(t, n, runtime.ContentTypeProtobuf)
	body := info.StreamSerializer.NewFrameReader(io.NopCloser(bytes.NewReader(data)))
	decoder := restwatch.NewDecoder(streaming.NewDecoder(body, info.StreamSerializer.Serializer), n.DecoderToVersion(info.Serializer, schema.GroupVersion{}))
	for {
		kind, object, err := decoder.Decode()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			return append(all, received{Err: err.Error()})
		}
		all = append(all, received{Type: kind, Object: object})
	}
}

func TestNegotiated_StreamsAsClientGo(t *testing.T) {
	bookmark := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}}
	ofKind := func(o runtime.Object, kind string) []byte {
		o.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind("meta.k8s.io/v1", kind))
		return encoded(t, o)
	}
	expired := &metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old"}
	expired.SetGroupVersionKind(schema.FromAPIVersionAndKind("v1", "Status"))
	large := ordinaryObject("large")
	large.Annotations["x"] = bigAnnotation
	good := []metav1.WatchEvent{
		event(watch.Added, ofKind(ordinaryObject("a"), objectKind)),
		event(watch.Added, ofKind(large, objectKind)),
		event(watch.Modified, ofKind(ordinaryObject("b"), objectKind)),
		event(watch.Deleted, ofKind(ordinaryObject("a"), objectKind)),
		event(watch.Bookmark, ofKind(bookmark, objectKind)),
		event(watch.Error, encoded(t, expired)),
		event(watch.Added, response(objectKind, nil)),
	}
	for name, data := range map[string][]byte{
		"ordinary":       stream(t, good...),
		"cut":            stream(t, good...)[:2000],
		"no type":        stream(t, good[0], metav1.WatchEvent{Object: good[1].Object}),
		"unknown type":   stream(t, good[0], event("CHANGED", good[1].Object.Raw)),
		"whole objects":  stream(t, good[0], event(watch.Added, responseOf("v1", "Pod", marshalled(ordinaryObject("a")))), good[1]),
		"a bad frame":    append(stream(t, good[0]), 0, 0, 0, 2, 0x0a, 0xff),
		"an empty frame": append(stream(t, good[0]), 0, 0, 0, 0),
		"nothing":        nil,
	} {
		want := receive(t, stock(), data)
		for of, d := range decoders() {
			for range sightings {
				if diff := cmp.Diff(want, receive(t, Negotiated(stock(), d), data)); diff != "" {
					t.Errorf("%s, %s (-client-go +ours):\n%s", name, of, diff)
				}
			}
		}
	}
}

// client-go ends a watch because of one such object.
func TestNegotiated_ReturnsAnObjectForABadEvent(t *testing.T) {
	good := event(watch.Added, response(objectKind, marshalled(ordinaryObject("a"))))
	of := ordinaryObject("a").ObjectMeta
	identity := metav1.ObjectMeta{Name: of.Name, Namespace: of.Namespace, UID: of.UID, ResourceVersion: of.ResourceVersion}
	wrapped := response(objectKind, marshalled(ordinaryObject("a")))
	type badEvent struct {
		data []byte
		want metav1.ObjectMeta
	}
	all := map[string]badEvent{
		"no object":      {nil, metav1.ObjectMeta{}},
		"another format": {[]byte(`{"metadata":{"name":"secret"}}`), metav1.ObjectMeta{}},
		"a prefix":       {[]byte(prefix), metav1.ObjectMeta{}},
		"no kind":        {responseOf("", "", marshalled(ordinaryObject("a"))), identity},
		"truncated":      {wrapped[:len(wrapped)-20], identity},
		"a bad Status":   {responseOf("v1", "Status", slices.Concat(marshalled(ordinaryObject("a")), []byte{0x0a, 0xff})), metav1.ObjectMeta{}},
	}
	for name, tc := range bad() {
		all[name] = badEvent{response(objectKind, tc.message), tc.want}
	}
	for name, tc := range all {
		data := stream(t, good, event(watch.Modified, tc.data), good)
		if theirs := receive(t, stock(), data); len(theirs) != 2 || theirs[1].Err == "" {
			t.Errorf("%s: client-go receives %+v", name, theirs)
		}
		for of, d := range decoders() {
			got := receive(t, Negotiated(stock(), d), data)
			if len(got) != 3 || got[1].Type != watch.Modified {
				t.Errorf("%s, %s: %+v", name, of, got)
				continue
			}
			object, is := got[1].Object.(*undecodable.Object)
			if !is {
				t.Errorf("%s, %s: a %T", name, of, got[1].Object)
				continue
			}
			if diff := cmp.Diff(tc.want, object.ObjectMeta, cmpopts.EquateEmpty()); diff != "" || object.Err == nil || strings.Contains(object.Err.Error(), "secret") {
				t.Errorf("%s, %s: error %v (-want +got):\n%s", name, of, object.Err, diff)
			}
		}
	}
}

// client-go's decoder has no rules for these, so they are served.
func TestNegotiated_UnusualValuesAreServedAsClientGoDoes(t *testing.T) {
	object := ordinaryObject("invalid \xff")
	object.CreationTimestamp = at(1 << 60)
	object.Labels["\xfe"] = "\xfd"
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: objectKind}, Raw: marshalled(object), ContentType: "application/x-unknown", ContentEncoding: "br"}
	data, err := unknown.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	watched := stream(t, event(watch.Added, append([]byte(prefix), data...)))
	want := receive(t, stock(), watched)
	if diff := cmp.Diff(object, want[0].Object); diff != "" {
		t.Fatalf("client-go (-sent +received):\n%s", diff)
	}
	for of, d := range decoders() {
		if diff := cmp.Diff(want, receive(t, Negotiated(stock(), d), watched)); diff != "" {
			t.Errorf("%s (-client-go +ours):\n%s", of, diff)
		}
	}
}

// Other responses, and other targets, are decoded by client-go.
func TestNegotiated_DecodesAsClientGo(t *testing.T) {
	status := schema.GroupVersionKind{Version: "v1", Kind: "Status"}
	for name, d := range decoders() {
		for _, mediaType := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
			theirs, ours := infoOf(t, stock(), mediaType).Serializer, infoOf(t, Negotiated(stock(), d), mediaType).Serializer
			for _, data := range [][]byte{
				[]byte(`{"code":1}`), []byte(`{"kind":"Status","apiVersion":"v1","code":410}`), response("Status", nil), response(objectKind, []byte{0xff}),
			} {
				for _, defaults := range []*schema.GroupVersionKind{nil, &status} {
					for _, into := range []func() runtime.Object{func() runtime.Object { return &metav1.Status{} }, func() runtime.Object { return &metav1.PartialObjectMetadata{} }} {
						want, wantKind, wantErr := theirs.Decode(data, defaults, into())
						got, gotKind, gotErr := ours.Decode(data, defaults, into())
						if diff := cmp.Diff(want, got); diff != "" || !cmp.Equal(wantKind, gotKind) || (wantErr == nil) != (gotErr == nil) {
							t.Errorf("%s, %s, %q: kind %v, want %v, error %v, want %v (-client-go +ours):\n%s", name, mediaType, data, gotKind, wantKind, gotErr, wantErr, diff)
						}
					}
				}
			}
		}
	}
}
