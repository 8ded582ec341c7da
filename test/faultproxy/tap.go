package faultproxy

import (
	"net/http"
	"strings"
)

// tap stands in for a ResponseWriter, so that a fault gets at the answer. What it
// has no function for goes straight through.
type tap struct {
	http.ResponseWriter
	head  func(code int)              // in place of WriteHeader, with the final code, once
	write func(b []byte) (int, error) // in place of Write, after head
	flush func()                      // in place of Flush, after head
	begun bool
}

// WriteHeader implements [http.ResponseWriter].
func (t *tap) WriteHeader(code int) {
	if t.head == nil || t.begun || code < 200 {
		t.ResponseWriter.WriteHeader(code)
		return
	}
	t.begun = true
	t.head(code)
}

// begin sends the header that net/http would send by itself, past head.
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

// Unwrap lets net/http reach the rest of what the ResponseWriter can do.
func (t *tap) Unwrap() http.ResponseWriter { return t.ResponseWriter }

func flush(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush() // one that can't has nothing to hold back
}

// legible returns r as a request whose answer can be read and changed: not
// compressed, never "not modified", and JSON if the client takes that.
func legible(r *http.Request) *http.Request {
	r = r.Clone(r.Context())
	r.Header.Set("Accept-Encoding", "identity") // to say nothing would make the transport ask for gzip
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
