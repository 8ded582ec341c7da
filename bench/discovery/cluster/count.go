package cluster

import (
	"net/http"
	"sync/atomic"
)

// Counts are what a cluster has been asked and has sent so far. A watch is one request.
type Counts struct {
	Requests int64 `json:"requests"`
	// Bytes are those of bodies.
	Bytes int64 `json:"bytes"`
}

// Since returns what has come after earlier.
func (c Counts) Since(earlier Counts) Counts {
	return Counts{Requests: c.Requests - earlier.Requests, Bytes: c.Bytes - earlier.Bytes}
}

// counting is a handler that counts.
type counting struct {
	next            http.Handler
	requests, bytes atomic.Int64
}

func (c *counting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.requests.Add(1)
	c.next.ServeHTTP(&countingWriter{ResponseWriter: w, bytes: &c.bytes}, r)
}

func (c *counting) counts() Counts {
	return Counts{Requests: c.requests.Load(), Bytes: c.bytes.Load()}
}

type countingWriter struct {
	http.ResponseWriter

	bytes *atomic.Int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.ResponseWriter.Write(p)
	w.bytes.Add(int64(n))
	return n, err
}

// Unwrap lets a watch flush.
func (w *countingWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
