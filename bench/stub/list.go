package stub

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/bench/objects"
)

// bufferSize is how much is written at a time, at most.
const bufferSize = 32 << 10

// page is a part of a list: the objects from offset on, limit at most.
type page struct {
	offset, limit int
	version       int64 // of the list that it is a part of, or 0 for the present one
}

// serveList answers a LIST. A page that is not the first is of the version of the
// first one, and 410 once that has passed.
func serveList(w http.ResponseWriter, q url.Values, s *store) {
	p, err := parsePage(q)
	if err != nil {
		fail(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	present, version := s.snapshot(nil)
	if p.version != 0 && p.version != version {
		fail(w, http.StatusGone, metav1.StatusReasonExpired, "the provided continue parameter is too old")
		return
	}
	p.offset = min(p.offset, len(present))
	end := len(present)
	var more string
	if p.limit > 0 && p.offset+p.limit < end {
		end = p.offset + p.limit
		more = fmt.Sprintf(`,"continue":"%d.%d","remainingItemCount":%d`, version, end, len(present)-end)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = writeList(w, s.kind, present[p.offset:end], version, more) // the client has gone, if that fails
}

func writeList(w io.Writer, kind objects.Kind, items [][]byte, version int64, more string) error {
	out := bufio.NewWriterSize(w, bufferSize)
	fmt.Fprintf(out, `{"apiVersion":%q,"kind":"%sList","metadata":{"resourceVersion":"%s"%s},"items":[`,
		kind.GVK.GroupVersion(), kind.GVK.Kind, objects.FormatResourceVersion(version), more)
	for i, text := range items {
		if i > 0 {
			_ = out.WriteByte(',') // Flush returns the first error
		}
		_, _ = out.Write(text)
	}
	fmt.Fprint(out, "]}\n")
	return out.Flush()
}

// parsePage reads which part of the list is asked for. As in kube-apiserver, version
// 0 means that the cache of the server will do, which has no pages.
func parsePage(q url.Values) (page, error) {
	var p page
	if text := q.Get("limit"); text != "" && q.Get("resourceVersion") != "0" {
		limit, err := strconv.Atoi(text)
		if err != nil || limit < 0 {
			return p, fmt.Errorf("invalid limit %q", text)
		}
		p.limit = limit
	}
	if text := q.Get("continue"); text != "" {
		n, err := fmt.Sscanf(text, "%d.%d", &p.version, &p.offset)
		if err != nil || n != 2 || p.offset < 0 || p.version == 0 {
			return p, errors.New("continue key is not valid")
		}
	}
	_, err := parseVersion(q.Get("resourceVersion"))
	return p, err
}
