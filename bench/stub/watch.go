package stub

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/bench/objects"
)

const (
	// defaultTimeout is how long a watch lasts if the client does not say.
	defaultTimeout = 30 * time.Minute
	// batch is how many events are taken from the store at a time.
	batch = 64
)

// watchRequest is what a WATCH asks for.
type watchRequest struct {
	version  int64 // to begin after, unless initial
	initial  bool  // begin with all objects there are
	bookmark bool  // and tell when they have ended
	timeout  time.Duration
}

func serveWatch(w http.ResponseWriter, r *http.Request, s *store) {
	asked, code, err := parseWatch(r.URL.Query())
	if err != nil {
		reason := metav1.StatusReasonBadRequest
		if code == http.StatusUnprocessableEntity {
			reason = metav1.StatusReasonInvalid
		}
		fail(w, code, reason, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	st := &stream{out: bufio.NewWriterSize(w, bufferSize), flusher: http.NewResponseController(w), kind: s.kind}
	at := new(cursor)
	if asked.initial {
		present, version := s.snapshot(at)
		defer s.forget(at)
		if st.initial(present, version, asked.bookmark) != nil {
			return
		}
	} else {
		if s.follow(at, asked.version) != nil {
			_ = st.expired(asked.version) // the client has gone, if that fails
			return
		}
		defer s.forget(at)
	}
	end := time.NewTimer(asked.timeout)
	defer end.Stop()
	for {
		events, more := s.after(at, batch)
		if st.write("MODIFIED", events) != nil {
			return
		}
		if len(events) > 0 {
			continue
		}
		if st.flush() != nil {
			return
		}
		select {
		case <-more:
		case <-end.C:
			return
		case <-r.Context().Done():
			return
		}
	}
}

func parseWatch(q url.Values) (watchRequest, int, error) {
	asked := watchRequest{timeout: defaultTimeout}
	version, err := parseVersion(q.Get("resourceVersion"))
	if err != nil {
		return asked, http.StatusBadRequest, err
	}
	asked.version, asked.initial = version, version == 0
	if text := q.Get("timeoutSeconds"); text != "" {
		seconds, err := strconv.Atoi(text)
		if err != nil {
			return asked, http.StatusBadRequest, fmt.Errorf("invalid timeoutSeconds %q", text)
		}
		asked.timeout = time.Duration(seconds) * time.Second
	}
	text := q.Get("sendInitialEvents")
	if text == "" {
		return asked, 0, nil
	}
	if asked.initial, err = strconv.ParseBool(text); err != nil {
		return asked, http.StatusBadRequest, fmt.Errorf("invalid sendInitialEvents %q", text)
	}
	if q.Get("resourceVersionMatch") != string(metav1.ResourceVersionMatchNotOlderThan) {
		return asked, http.StatusUnprocessableEntity, errors.New("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
	}
	if !asked.initial && version == 0 {
		return asked, http.StatusUnprocessableEntity, errors.New("a watch without initial events needs a resource version here")
	}
	asked.bookmark, err = strconv.ParseBool(q.Get("allowWatchBookmarks"))
	if asked.initial && (err != nil || !asked.bookmark) {
		return asked, http.StatusUnprocessableEntity, errors.New("sendInitialEvents requires allowWatchBookmarks")
	}
	return asked, 0, nil
}

// stream writes the frames of a watch, a line each.
type stream struct {
	out     *bufio.Writer
	flusher *http.ResponseController
	kind    objects.Kind
}

// write adds frames of objects. What does not fit the buffer leaves.
func (s *stream) write(event string, texts [][]byte) error {
	head := fmt.Sprintf(`{"type":%q,"object":`, event)
	for _, text := range texts {
		_, _ = s.out.WriteString(head) // the last write returns the first error
		_, _ = s.out.Write(text)
		if _, err := s.out.WriteString("}\n"); err != nil {
			return err
		}
	}
	return nil
}

// flush sends what has been written.
func (s *stream) flush() error {
	return errors.Join(s.out.Flush(), s.flusher.Flush())
}

// initial adds all objects and, if wanted, the bookmark that ends them.
func (s *stream) initial(present [][]byte, version int64, bookmark bool) error {
	if err := s.write("ADDED", present); err != nil || !bookmark {
		return err
	}
	text := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"annotations":{%q:"true"},"creationTimestamp":null,"resourceVersion":%q}}`,
		s.kind.GVK.GroupVersion(), s.kind.GVK.Kind, metav1.InitialEventsAnnotationKey, objects.FormatResourceVersion(version))
	return s.write("BOOKMARK", [][]byte{[]byte(text)})
}

// expired sends the error that ends a watch from a version that is too old.
func (s *stream) expired(version int64) error {
	text, err := json.Marshal(status(http.StatusGone, metav1.StatusReasonExpired, fmt.Sprintf("too old resource version: %d", version)))
	if err != nil {
		return err
	}
	return errors.Join(s.write("ERROR", [][]byte{text}), s.flush())
}
