package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"
)

// CutAt returns a fault that breaks the connection after n bytes of the body: the
// client gets an unexpected EOF. A body of fewer bytes arrives complete, and so does a
// body of exactly n bytes with a Content-Length header. A negative n is zero: the connection
// breaks after the header.
func CutAt(n int) Fault {
	return limited(n, nil, func(*http.Request) { panic(http.ErrAbortHandler) })
}

// HangAt returns a fault that sends n bytes of the body, and then nothing. The request
// ends when the client disconnects or the proxy closes; Heal does not end it. A body of
// fewer bytes arrives complete, and so does a body of exactly n bytes with a
// Content-Length header. A negative n is zero: only the header is sent.
func HangAt(n int) Fault {
	return limited(n, nil, func(r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // net/http detects that a client disconnects only after this
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	})
}

// Truncate returns a fault that ends the body after n bytes without an error. A body of
// at most n bytes arrives complete, but a watch ends after n bytes. A negative n is
// zero: the body is empty.
func Truncate(n int) Fault {
	return limited(n, []string{"Content-Length", "Etag"}, func(*http.Request) {})
}

// errFull stops a handler that writes more bytes than the limit.
var errFull = errors.New("faultproxy: the body ends here")

// limited passes n bytes of a body, without the headers in drop, and then calls end.
func limited(n int, drop []string, end func(*http.Request)) Fault {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := context.WithCancel(r.Context()) // for handlers that ignore the error of Write
			defer cancel()
			left := max(0, n)
			spend := func(n int) {
				if left -= n; left == 0 {
					flush(w)
					cancel()
				}
			}
			limited := &tap{ResponseWriter: w}
			limited.head = func(code int) {
				for _, name := range drop {
					w.Header().Del(name)
				}
				w.WriteHeader(code)
				spend(0)
			}
			limited.write = func(b []byte) (int, error) {
				sent, err := w.Write(b[:min(len(b), left)])
				if sent > 0 {
					spend(sent)
				}
				if err == nil && sent < len(b) {
					err = errFull
				}
				return sent, err
			}
			untilFull(next, limited, legible(r.WithContext(ctx)), func() bool { return left == 0 })
			limited.begin()
			if left == 0 {
				end(r)
			}
		})
	}
}

// untilFull calls next. If full returns true, it ignores that next has aborted the response.
func untilFull(next http.Handler, w http.ResponseWriter, r *http.Request, full func() bool) {
	defer func() {
		reason := recover()
		if err, _ := reason.(error); reason != nil && (!errors.Is(err, http.ErrAbortHandler) || !full()) {
			panic(reason)
		}
	}()
	next.ServeHTTP(w, r)
}

// Garble returns a fault that replaces all bytes after the first n bytes of the body by
// NULs, which are invalid in JSON. A body of at most n bytes arrives unchanged. A
// negative n is zero: all bytes are replaced.
func Garble(n int) Fault {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			left := max(0, n)
			garbled := &tap{ResponseWriter: w}
			garbled.head = func(code int) {
				w.Header().Del("Etag") // it belongs to the original body
				w.WriteHeader(code)
			}
			garbled.write = func(b []byte) (int, error) {
				whole := min(len(b), left)
				left -= whole
				return w.Write(append(bytes.Clone(b[:whole]), make([]byte, len(b)-whole)...))
			}
			next.ServeHTTP(garbled, legible(r))
		})
	}
}

// Bandwidth returns a fault that sends at most bytes of the body in a second, in about
// twenty parts. If bytes is not positive, it has no effect.
func Bandwidth(bytes int) Fault {
	if bytes <= 0 {
		return nil
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			slow, part := &tap{ResponseWriter: w}, max(1, bytes/20)
			slow.write = func(b []byte) (sent int, err error) { //nolint:contextcheck // the context is that of r
				for sent < len(b) {
					n, err := w.Write(b[sent:min(len(b), sent+part)])
					sent += n
					if err != nil {
						return sent, err
					}
					flush(w)
					select {
					case <-time.After(time.Duration(n) * time.Second / time.Duration(bytes)):
					case <-r.Context().Done():
						return sent, context.Cause(r.Context())
					}
				}
				return sent, nil
			}
			next.ServeHTTP(slow, r)
		})
	}
}
