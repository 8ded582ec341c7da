package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"net/http"
)

// CutAt is the fault that the connection breaks as soon as n bytes of the body
// have been sent, in the midst of it: the client sees an unexpected end. A body
// of fewer bytes arrives whole; so does one of exactly n whose length the header
// tells. An n below zero counts as zero: the break follows the header.
func CutAt(n int) Fault {
	return limited(n, nil, func() { panic(http.ErrAbortHandler) })
}

// Truncate is the fault that the body ends after n bytes as if that were all of
// it. A body of at most n bytes arrives whole, but a watch with n bytes ends. An n
// below zero counts as zero: the body is empty.
func Truncate(n int) Fault {
	return limited(n, []string{"Content-Length", "Etag"}, func() {})
}

// errFull stops whoever writes an answer of which no more is wanted.
var errFull = errors.New("faultproxy: the body ends here")

// limited lets n bytes of a body pass, without the headers in drop, and then
// ends by end.
func limited(n int, drop []string, end func()) Fault {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, enough := context.WithCancel(r.Context()) // for those who do not look at what Write returns
			defer enough()
			left := max(0, n)
			spend := func(n int) {
				if left -= n; left == 0 {
					flush(w)
					enough()
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
				end()
			}
		})
	}
}

// untilFull serves by next. Once full says so, that next gave up is no failure.
func untilFull(next http.Handler, w http.ResponseWriter, r *http.Request, full func() bool) {
	defer func() {
		reason := recover()
		if err, _ := reason.(error); reason != nil && (!errors.Is(err, http.ErrAbortHandler) || !full()) {
			panic(reason)
		}
	}()
	next.ServeHTTP(w, r)
}

// Garble is the fault that what follows the first n bytes of the body arrives as
// so many NULs, which no JSON has. A body of at most n bytes arrives whole. An n
// below zero counts as zero: nothing of the body is left.
func Garble(n int) Fault {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			left := max(0, n)
			garbled := &tap{ResponseWriter: w}
			garbled.head = func(code int) {
				w.Header().Del("Etag") // it is the other body's
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
