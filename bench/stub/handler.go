package stub

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gvrkit/gvrkit/bench/objects"
)

// eventsPath is where changes are asked for.
const eventsPath = "/bench/events"

// NewHandler returns a server of corpus' objects, which are its own from then on.
func NewHandler(corpus *objects.Corpus) http.Handler {
	s := newStore(corpus)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+corpus.Kind.Path(), func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if watching, _ := strconv.ParseBool(q.Get("watch")); watching {
			serveWatch(w, r, s)
			return
		}
		serveList(w, q, s)
	})
	mux.HandleFunc("POST "+eventsPath, func(w http.ResponseWriter, r *http.Request) { serveEvents(w, r, s) })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, http.StatusNotFound, metav1.StatusReasonNotFound, "there is no "+r.Method+" "+r.URL.Path)
	})
	return mux
}

// status returns a failure as API servers put it.
func status(code int, reason metav1.StatusReason, message string) metav1.Status {
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message,
	}
}

func fail(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status(code, reason, message)) // the client has gone, if that fails
}

// parseVersion reads a resource version. None and 0 are both 0: any will do.
func parseVersion(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	version, err := strconv.ParseInt(text, 10, 64)
	if err != nil || version < 0 {
		return 0, fmt.Errorf("invalid resource version %q", text)
	}
	return version, nil
}
