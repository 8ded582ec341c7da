package stub

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/bench/objects"
)

// serve responds to a list or a watch.
func (s *Server) serve(to response, w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(q.Get(name), 10, 64) // clients send numbers
		return n
	}
	watching, _ := strconv.ParseBool(q.Get("watch"))
	switch {
	case watching:
		s.serveWatch(to, w, r, number("resourceVersion"), q.Get("sendInitialEvents") == "true")
	case q.Get("resourceVersion") == "0": // such a list has no pages, as in kube-apiserver
		s.serveList(to, w, "", 0)
	default:
		s.serveList(to, w, q.Get("continue"), int(number("limit")))
	}
}

// serveList responds with a list, or with a page of it. All pages have the version of the first
// page.
func (s *Server) serveList(to response, w http.ResponseWriter, token string, limit int) {
	items, version := s.list()
	first, offset := version, 0
	if token != "" {
		if _, err := fmt.Sscanf(token, "%d.%d", &first, &offset); err != nil || offset < 0 || offset > len(items) {
			http.Error(w, "invalid continue token", http.StatusBadRequest)
			return
		}
	}
	if first != version {
		http.Error(w, "the page is too old", http.StatusGone)
		return
	}
	items = items[offset:]
	meta := metav1.ListMeta{ResourceVersion: objects.FormatVersion(version)}
	if left := int64(len(items) - limit); limit > 0 && left > 0 {
		meta.Continue, meta.RemainingItemCount = fmt.Sprintf("%d.%d", version, offset+limit), &left
		items = items[:limit]
	}
	to.list(meta, items)
	_ = to.Flush()
}

// serveWatch serves a watch until the client ends it. A watch from version 0 begins with all objects.
func (s *Server) serveWatch(to response, w http.ResponseWriter, r *http.Request, version int64, initial bool) {
	if items, present := s.list(); initial || version == 0 {
		version = present
		for _, i := range items {
			to.event(watch.Added, i)
		}
	}
	if initial {
		groupVersion, kind := to.kind.ToAPIVersionAndKind()
		to.event(watch.Bookmark, newItem(fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"annotations":{%q:"true"},"creationTimestamp":null,"resourceVersion":%q}}`,
			groupVersion, kind, metav1.InitialEventsAnnotationKey, objects.FormatVersion(version))))
	}
	for {
		events, more, ok := s.since(version)
		if !ok {
			http.Error(w, "the resource version is too old", http.StatusGone)
			return
		}
		for _, i := range events {
			to.event(watch.Modified, i)
		}
		version += int64(len(events))
		if errors.Join(to.Flush(), http.NewResponseController(w).Flush()) != nil {
			return
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}

// item is an object in one version. It never changes.
type item struct {
	text     []byte // JSON
	metadata *metav1.PartialObjectMetadata
}

func newItem(text []byte) *item {
	i := &item{text, &metav1.PartialObjectMetadata{}}
	if err := json.Unmarshal(text, i.metadata); err != nil {
		panic("stub: bug: an object has no metadata: " + err.Error())
	}
	i.metadata.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	return i
}

// response is the response to one request: objects in JSON or, if the client accepts it, metadata in
// protobuf. Its errors are those of the last Flush, which fails after the client has closed the connection.
type response struct {
	*bufio.Writer

	kind     schema.GroupVersionKind // of the objects in the response
	stored   string                  // the kind in the texts of items
	metadata bool
}

// respond returns the response to r, with objects of kind.
func (s *Server) respond(w http.ResponseWriter, r *http.Request, kind schema.GroupVersionKind) response {
	const contentType = "application/vnd.kubernetes.protobuf"
	accept, to := r.Header.Get("Accept"), response{bufio.NewWriterSize(w, 32<<10), kind, s.kind.GVK.Kind, false}
	w.Header().Set("Content-Type", "application/json")
	if strings.HasPrefix(accept, contentType+";as=PartialObjectMetadata") { // kube-apiserver sends it for custom resources, too
		w.Header().Set("Content-Type", contentType)
		to.metadata = true
	}
	return to
}

func (r response) list(meta metav1.ListMeta, items []*item) {
	if r.metadata {
		list := &metav1.PartialObjectMetadataList{ListMeta: meta}
		for _, i := range items {
			list.Items = append(list.Items, *i.metadata)
		}
		list.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadataList"))
		_, _ = r.Write(encoded(list))
		return
	}
	groupVersion, kind := r.kind.ToAPIVersionAndKind()
	text, _ := json.Marshal(meta)                              // it has only strings and numbers
	fmt.Fprintf(r, `{"apiVersion":%q,"items":[`, groupVersion) // the order of API servers for custom resources
	for n, i := range items {
		if n > 0 {
			_ = r.WriteByte(',')
		}
		r.object(i)
	}
	fmt.Fprintf(r, "],\"kind\":\"%sList\",\"metadata\":%s}\n", kind, text)
}

// event writes an event of a watch.
func (r response) event(kind watch.EventType, i *item) {
	if r.metadata {
		event := metav1.WatchEvent{Type: string(kind), Object: runtime.RawExtension{Raw: encoded(i.metadata)}}
		frame, _ := event.Marshal() // it does not fail
		_, _ = protobuf.LengthDelimitedFramer.NewFrameWriter(r).Write(frame)
		return
	}
	_, _ = r.WriteString(`{"type":"` + string(kind) + `","object":`)
	r.object(i)
	_, _ = r.WriteString("}\n")
}

// object writes i as an object of the response's kind. Its keys are sorted: kind is before all keys of the objects.
func (r response) object(i *item) {
	before, after, found := bytes.Cut(i.text, []byte(`"kind":"`+r.stored+`"`))
	if r.kind.Kind == r.stored || !found { // a bookmark has the response's kind
		_, _ = r.Write(i.text)
		return
	}
	_, _ = r.Write(before)
	fmt.Fprintf(r, `"kind":%q`, r.kind.Kind)
	_, _ = r.Write(after)
}

// encoded returns obj in protobuf.
func encoded(obj runtime.Object) []byte {
	var out bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(obj, &out); err != nil {
		panic("stub: bug: metadata can't be encoded: " + err.Error())
	}
	return out.Bytes()
}
