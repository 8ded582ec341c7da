package stub

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/bench/objects"
)

const (
	// bufferSize is how many bytes are written at a time, at most.
	bufferSize = 32 << 10
	// watchTimeout is how long a watch lasts if the client does not say.
	watchTimeout = 30 * time.Minute
)

// formOf returns the form that a client asks for. Clients that ask for metadata prefer
// protobuf, and accept JSON.
func formOf(r *http.Request) form {
	if strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		return metadataOnly
	}
	return whole
}

// kindOf returns the version and the kind of an object in a form.
func (c *collection) kindOf(f form) (groupVersion, kind string) {
	if f == metadataOnly {
		return "meta.k8s.io/v1", "PartialObjectMetadata"
	}
	return c.gvk.GroupVersion().String(), c.gvk.Kind
}

// serve answers a list or a watch.
func (c *collection) serve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	numbers := map[string]int64{}
	for _, name := range []string{"resourceVersion", "limit", "timeoutSeconds"} {
		if text := q.Get(name); text != "" {
			var err error
			if numbers[name], err = strconv.ParseInt(text, 10, 64); err != nil || numbers[name] < 0 {
				fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, fmt.Sprintf("invalid %s %q", name, text))
				return
			}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	if watching, _ := strconv.ParseBool(q.Get("watch")); watching {
		c.serveWatch(w, r, numbers["resourceVersion"], q.Get("sendInitialEvents") == "true", time.Duration(numbers["timeoutSeconds"])*time.Second)
		return
	}
	c.serveList(w, q, int(numbers["limit"]), formOf(r))
}

// serveOne answers with the object whose name is in the path.
func (c *collection) serveOne(w http.ResponseWriter, r *http.Request) {
	items, _, _, _ := c.page(0, 0, 0) // version 0 is never too old
	for _, item := range items {
		if item.name == r.PathValue("name") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(item.text[formOf(r)]) // it fails if the client has gone
			return
		}
	}
	fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "there is no such object")
}

// serveList answers a list. As in kube-apiserver, a list of version 0 has no pages, and a page
// after the first one is of the version of the first one.
func (c *collection) serveList(w http.ResponseWriter, q url.Values, limit int, f form) {
	if q.Get("resourceVersion") == "0" {
		limit = 0
	}
	var version int64
	var offset int
	if token := q.Get("continue"); token != "" {
		if _, err := fmt.Sscanf(token, "%d.%d", &version, &offset); err != nil || offset < 0 {
			fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "invalid continue token")
			return
		}
	}
	items, present, left, err := c.page(version, offset, limit)
	if err != nil {
		fail(w, http.StatusGone, metav1.StatusReasonExpired, err.Error())
		return
	}
	var more string
	if left > 0 {
		more = fmt.Sprintf(`,"continue":"%d.%d","remainingItemCount":%d`, present, offset+len(items), left)
	}
	out := bufio.NewWriterSize(w, bufferSize)
	groupVersion, kind := c.kindOf(f)
	fmt.Fprintf(out, `{"apiVersion":%q,"kind":"%sList","metadata":{"resourceVersion":%q%s},"items":[`, groupVersion, kind, objects.FormatVersion(present), more)
	for i, item := range items {
		if i > 0 {
			_ = out.WriteByte(',') // Flush returns the first error
		}
		_, _ = out.Write(item.text[f])
	}
	fmt.Fprint(out, "]}\n")
	_ = out.Flush() // it fails if the client has gone
}

// serveWatch answers a watch until the client has gone or the timeout is over.
func (c *collection) serveWatch(w http.ResponseWriter, r *http.Request, version int64, initial bool, timeout time.Duration) {
	if initial {
		version = 0
	}
	if timeout == 0 {
		timeout = watchTimeout
	}
	s := &stream{out: bufio.NewWriterSize(w, bufferSize), flusher: http.NewResponseController(w)}
	ctx, f := r.Context(), formOf(r)
	at, items, present, err := c.subscribe(version, ctx.Done())
	if err != nil {
		text, _ := json.Marshal(status(http.StatusGone, metav1.StatusReasonExpired, err.Error())) // it has strings and numbers only
		s.write("ERROR", text)
		_ = s.flush() // it fails if the client has gone
		return
	}
	defer c.unsubscribe(at)
	for _, i := range items {
		s.write("ADDED", i.text[f])
	}
	if initial {
		groupVersion, kind := c.kindOf(f)
		s.write("BOOKMARK", fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"annotations":{%q:"true"},"creationTimestamp":null,"resourceVersion":%q}}`,
			groupVersion, kind, metav1.InitialEventsAnnotationKey, objects.FormatVersion(present)))
	}
	end := time.NewTimer(timeout)
	defer end.Stop()
	for {
		if len(at.events) == 0 && s.flush() != nil {
			return
		}
		select {
		case e := <-at.events:
			s.write(string(e.kind), e.of.text[f])
		case <-end.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// stream writes the frames of a watch, one line each.
type stream struct {
	out     *bufio.Writer
	flusher *http.ResponseController
}

func (s *stream) write(event string, text []byte) {
	for _, part := range []string{`{"type":"`, event, `","object":`} {
		_, _ = s.out.WriteString(part) // flush returns the first error
	}
	_, _ = s.out.Write(text)
	_, _ = s.out.WriteString("}\n")
}

func (s *stream) flush() error { return errors.Join(s.out.Flush(), s.flusher.Flush()) }

// status returns a failure in the form that API servers use.
func status(code int, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message,
	}
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status(code, reason, message)) // it fails if the client has gone
}
