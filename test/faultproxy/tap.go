package faultproxy

import (
	"net/http"
	"strings"
)

// tap wraps a ResponseWriter, so that a fault can change the response. Calls for which
// it has no function go to the ResponseWriter.
type tap struct {
	http.ResponseWriter
	head  func(code int)              // replaces WriteHeader; called once, with the final code
	write func(b []byte) (int, error) // replaces Write; called after head
	flush func()                      // replaces Flush; called after head
	begun bool
}

// WriteHeader implements [http.ResponseWriter].
func (t *tap) WriteHeader(code int) {
	final := code >= 200 && !t.begun
	t.begun = t.begun || final
	if final && t.head != nil {
		t.head(code)
		return
	}
	t.ResponseWriter.WriteHeader(code)
}

// begin sends the header that net/http would send implicitly, through head.
func (t *tap) begin() {
	if !t.begun {
		t.WriteHeader(http.StatusOK)
	}
}

// Write implements [http.ResponseWriter].
func (t *tap) Write(b []byte) (int, error) {
	t.begin()
	if t.write == nil {
		return t.ResponseWriter.Write(b)
	}
	return t.write(b)
}

// Flush implements [http.Flusher].
func (t *tap) Flush() {
	t.begin()
	if t.flush == nil {
		flush(t.ResponseWriter)
		return
	}
	t.flush()
}

// Unwrap implements the interface that http.ResponseController uses.
func (t *tap) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func flush(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush() // an error means that w does not buffer
}

// legible returns a copy of r with a response that a fault can read and change: it is not
// compressed, not 304, and JSON if the client accepts JSON.
func legible(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	r.Header.Set("Accept-Encoding", "identity") // without the header, the transport would request gzip
	r.Header.Del("If-None-Match")
	var accept []string
	for _, header := range r.Header.Values("Accept") {
		for taken := range strings.SplitSeq(header, ",") {
			media, _, _ := strings.Cut(taken, ";")
			if media = strings.TrimSpace(media); media == "application/json" || media == "*/*" {
				accept = append(accept, strings.TrimSpace(taken))
			}
		}
	}
	if accept != nil {
		r.Header.Set("Accept", strings.Join(accept, ","))
	}
	return r
}
