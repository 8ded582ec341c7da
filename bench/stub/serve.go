package stub

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/gvrkit/gvrkit/bench/objects"
)

// bufferSize is the number of bytes that are written at once.
const bufferSize = 32 << 10

// errTooOld is the response to requests for versions that the server does not keep.
var errTooOld = apierrors.NewResourceExpired("the resource version is too old")

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
		ctx, cancel := context.WithTimeout(r.Context(), time.Duration(cmp.Or(number("timeoutSeconds"), 1800))*time.Second)
		defer cancel()
		s.serveWatch(ctx, w, number("resourceVersion"), q.Get("sendInitialEvents") == "true")
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
			fail(w, apierrors.NewBadRequest("invalid continue token"))
			return
		}
	}
	if first != version {
		fail(w, errTooOld)
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
		_, _ = out.Write(item.Raw)
	}
	fmt.Fprint(out, "]}\n")
	_ = out.Flush() // it fails after the client has closed the connection
}

// serveWatch serves a watch until ctx ends. A watch from version 0 begins with all objects. Other
// versions than the present one are too old, because the server keeps no events.
func (s *Server) serveWatch(ctx context.Context, w http.ResponseWriter, version int64, initial bool) {
	out := bufio.NewWriterSize(w, bufferSize)
	frame := func(event watch.EventType, text []byte) {
		_, _ = out.WriteString(`{"type":"` + string(event) + `","object":`) // flush returns the first error
		_, _ = out.Write(text)
		_, _ = out.WriteString("}\n")
	}
	flush := func() error { return errors.Join(out.Flush(), http.NewResponseController(w).Flush()) }
	events, err := s.events.Watch()
	if err != nil {
		fail(w, apierrors.NewServiceUnavailable(err.Error()))
		return
	}
	defer events.Stop()
	items, present := s.list() // it may have changes that are also events
	if !initial && version != 0 {
		items = nil
	}
	if items == nil && version != present {
		text, _ := json.Marshal(status(errTooOld)) // it has only strings and numbers
		frame(watch.Error, text)
		_ = flush() // it fails after the client has closed the connection
		return
	}
	s.watches.Add(1)
	defer s.watches.Add(-1)
	for _, i := range items {
		frame(watch.Added, i.Raw)
	}
	if initial {
		groupVersion, kind := s.kind.GVK.ToAPIVersionAndKind()
		frame(watch.Bookmark, fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"annotations":{%q:"true"},"creationTimestamp":null,"resourceVersion":%q}}`,
			groupVersion, kind, metav1.InitialEventsAnnotationKey, objects.FormatVersion(present)))
	}
	for {
		if len(events.ResultChan()) == 0 && flush() != nil {
			return
		}
		select {
		case e := <-events.ResultChan():
			if i, ok := e.Object.(*item); ok && i.version > present {
				frame(e.Type, i.Raw)
			}
		case <-ctx.Done():
			return
		}
	}
}

// status returns err in the form that API servers use.
func status(err *apierrors.StatusError) metav1.Status {
	s := err.Status()
	s.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return s
}

func fail(w http.ResponseWriter, err *apierrors.StatusError) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(err.ErrStatus.Code))
	_ = json.NewEncoder(w).Encode(status(err)) // it fails after the client has closed the connection
}
