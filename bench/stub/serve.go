package stub

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/bench/objects"
)

// bufferSize is the number of bytes that are written at once.
const bufferSize = 32 << 10

// serve responds to a list or a watch.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(q.Get(name), 10, 64) // clients send numbers
		return n
	}
	w.Header().Set("Content-Type", "application/json")
	watching, _ := strconv.ParseBool(q.Get("watch"))
	switch {
	case watching:
		s.serveWatch(w, r, number("resourceVersion"), q.Get("sendInitialEvents") == "true")
	case q.Get("resourceVersion") == "0": // such a list has no pages, as in kube-apiserver
		s.serveList(w, "", 0)
	default:
		s.serveList(w, q.Get("continue"), int(number("limit")))
	}
}

// serveList responds with a list, or with a page of it. All pages have the version of the first
// page.
func (s *Server) serveList(w http.ResponseWriter, token string, limit int) {
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
	var more string
	if limit > 0 && len(items) > limit {
		more = fmt.Sprintf(`,"continue":"%d.%d","remainingItemCount":%d`, version, offset+limit, len(items)-limit)
		items = items[:limit]
	}
	out := bufio.NewWriterSize(w, bufferSize)
	groupVersion, kind := s.kind.GVK.ToAPIVersionAndKind()
	fmt.Fprintf(out, `{"apiVersion":%q,"kind":"%sList","metadata":{"resourceVersion":%q%s},"items":[`, groupVersion, kind, objects.FormatVersion(version), more)
	for i, item := range items {
		if i > 0 {
			_ = out.WriteByte(',') // Flush returns the first error
		}
		_, _ = out.Write(item)
	}
	fmt.Fprint(out, "]}\n")
	_ = out.Flush() // it fails after the client has closed the connection
}

// serveWatch serves a watch until the client ends it. A watch from version 0 begins with all objects.
func (s *Server) serveWatch(w http.ResponseWriter, r *http.Request, version int64, initial bool) {
	out := bufio.NewWriterSize(w, bufferSize)
	frames := func(event watch.EventType, items ...[]byte) {
		for _, i := range items {
			_, _ = out.WriteString(`{"type":"` + string(event) + `","object":`) // Flush returns the first error
			_, _ = out.Write(i)
			_, _ = out.WriteString("}\n")
		}
	}
	if items, present := s.list(); initial || version == 0 {
		version = present
		frames(watch.Added, items...)
	}
	if initial {
		groupVersion, kind := s.kind.GVK.ToAPIVersionAndKind()
		frames(watch.Bookmark, fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"annotations":{%q:"true"},"creationTimestamp":null,"resourceVersion":%q}}`,
			groupVersion, kind, metav1.InitialEventsAnnotationKey, objects.FormatVersion(version)))
	}
	for {
		events, more, ok := s.since(version)
		if !ok {
			http.Error(w, "the resource version is too old", http.StatusGone)
			return
		}
		frames(watch.Modified, events...)
		version += int64(len(events))
		if errors.Join(out.Flush(), http.NewResponseController(w).Flush()) != nil {
			return
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}
