package faultproxy

import (
	"context"
	"hash"
	"hash/fnv"
	"net/http"
	"sync"
)

// OnEffect returns a fault that does the same as fault, and calls effect once for each request whose response fault changes: the status or
// the body differ from those of the next handler, or the next handler does not get the request. A watch that fault ends is a change, also
// if all bytes so far arrive. A delay is no change, and neither is a 304 for the document of the next handler. Effect is called
// concurrently, at the end of a request. A fault may get no request that it can change, such as a request for the second page of a list: a
// test that needs the fault must count its effects.
func OnEffect(fault Fault, effect func()) Fault {
	return func(next http.Handler) http.Handler {
		key := new(digestKey) // of this injection: fault may be another OnEffect
		faulty := fault.around(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got, is := r.Context().Value(key).(*digest)
			if !is {
				next.ServeHTTP(w, r)
				return
			}
			got.begin(w)
			defer func() { got.end(r.Context().Err() != nil) }() // also if the response is aborted
			next.ServeHTTP(got, r)
		}))
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got, sent := &digest{clientLeft: func() bool { return r.Context().Err() != nil }}, &digest{}
			sent.begin(w)
			defer func() { // also if the connection is broken
				if !sent.equals(got) || got.wasEnded() && ParseRequest(r).Verb == "watch" {
					effect()
				}
			}()
			faulty.ServeHTTP(sent, r.WithContext(context.WithValue(r.Context(), key, got)))
		})
	}
}

// digestKey is the type of the keys of digests of what the next handler writes. It has a size, so that pointers to two keys differ.
type digestKey struct{ _ byte }

// digest is a ResponseWriter that remembers what is written to it.
type digest struct {
	http.ResponseWriter // nil: nothing was written

	mu   sync.Mutex
	code int
	etag string // of the header
	body hash.Hash64

	clientLeft func() bool // nil: not known
	ended      bool        // the fault has ended the request, and not the client
}

func (d *digest) begin(w http.ResponseWriter) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ResponseWriter, d.body = w, fnv.New64a()
}

// end records the end of the next handler, and whether the context of its request has ended.
func (d *digest) end(cancelled bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = cancelled && !d.clientLeft()
}

func (d *digest) wasEnded() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ended
}

func (d *digest) note(code int, b []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.code == 0 {
		d.code, d.etag = code, d.Header().Get("Etag")
	}
	_, _ = d.body.Write(b)
}

// equals reports whether the same was written to both. A 304 is the same as the document with its Etag: for a client that has the
// document, a fault that reads it requests it again.
func (d *digest) equals(next *digest) bool {
	code, etag, sum := d.written()
	nextCode, nextEtag, nextSum := next.written()
	if code == http.StatusNotModified && nextCode == http.StatusOK {
		return etag != "" && etag == nextEtag
	}
	return code == nextCode && sum == nextSum
}

func (d *digest) written() (code int, etag string, sum uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.body == nil {
		return 0, "", 0
	}
	return d.code, d.etag, d.body.Sum64()
}

// WriteHeader implements [http.ResponseWriter].
func (d *digest) WriteHeader(code int) {
	if code >= http.StatusOK {
		d.note(code, nil)
	}
	d.ResponseWriter.WriteHeader(code)
}

// Write implements [http.ResponseWriter].
func (d *digest) Write(b []byte) (int, error) {
	d.note(http.StatusOK, b) // also what a fault or a client that has left does not take
	return d.ResponseWriter.Write(b)
}

// Flush implements [http.Flusher].
func (d *digest) Flush() { flush(d.ResponseWriter) }

// Unwrap implements the interface that http.ResponseController uses.
func (d *digest) Unwrap() http.ResponseWriter { return d.ResponseWriter }
