package faultproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"
)

// event has the fields of a watch event that the faults read.
type event struct {
	Type   string `json:"type"`
	Object struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	} `json:"object"`
}

func (e event) isBookmark() bool { return e.Type == "BOOKMARK" }

// DropBookmarks returns a fault that removes all bookmarks from watches, including the
// bookmark that ends the initial events. It does not affect other requests, and watches
// that are not in JSON.
func DropBookmarks() Fault {
	return sifted(func(_ context.Context, e event) bool { return !e.isBookmark() })
}

// NeverInitialEventsEnd returns a fault that removes the bookmark that ends the initial
// events from watches, and passes other bookmarks. It does not affect other requests, and
// watches that are not in JSON.
func NeverInitialEventsEnd() Fault {
	return sifted(func(_ context.Context, e event) bool {
		return !e.isBookmark() || e.Object.Metadata.Annotations["k8s.io/initial-events-end"] != "true"
	})
}

// DelayBookmarks returns a fault that delays each bookmark of a watch by d, and so also
// all later events. It does not affect other requests, and watches that are not in JSON.
// If d is not positive, it has no effect.
func DelayBookmarks(d time.Duration) Fault {
	return sifted(func(ctx context.Context, e event) bool {
		if d > 0 && e.isBookmark() {
			select {
			case <-time.After(d):
			case <-ctx.Done():
			}
		}
		return true
	})
}

// GarbleFrame returns a fault that replaces the bytes of the n-th frame of each watch, which
// is an event or a bookmark, by NULs, and passes all others. It does not affect other
// requests, and watches that are not in JSON. If n is not positive, it has no effect.
func GarbleFrame(n int) Fault {
	return nth(n, func(frame []byte) []byte { return append(make([]byte, len(frame)-1), '\n') })
}

// DuplicateFrame returns a fault that sends the n-th frame of each watch, which is an event
// or a bookmark, twice. It does not affect other requests, and watches that are not in JSON.
// If n is not positive, it has no effect.
func DuplicateFrame(n int) Fault {
	return nth(n, func(frame []byte) []byte { return append(frame, frame...) })
}

// nth changes the n-th frame of each watch.
func nth(n int, change func(frame []byte) []byte) Fault {
	return rewritten(func() rewrite {
		met := 0
		return func(_ context.Context, _ event, frame []byte) []byte {
			if met++; met == n {
				return change(frame)
			}
			return frame
		}
	})
}

// GoneEvent returns a fault for a watch whose resource version is too old: the stream has
// an ERROR event with the Status of GoneStatus, and ends. It does not affect other
// requests.
func GoneEvent() Fault {
	return onWatches(func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(struct {
			Type   string `json:"type"`
			Object status `json:"object"`
		}{"ERROR", expired()})
	})
}

func onWatches(serve func(next http.Handler, w http.ResponseWriter, r *http.Request)) Fault {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if ParseRequest(r).Verb == "watch" {
				serve(next, w, r)
			} else {
				next.ServeHTTP(w, r)
			}
		})
	}
}

// rewrite returns the bytes that replace a frame of a watch. The frame ends with a newline.
type rewrite func(ctx context.Context, e event, frame []byte) []byte

// sifted passes the frames of watches for which keep returns true. It calls keep in the
// order of the frames.
func sifted(keep func(context.Context, event) bool) Fault {
	return rewritten(func() rewrite {
		return func(ctx context.Context, e event, frame []byte) []byte {
			if keep(ctx, e) {
				return frame
			}
			return nil
		}
	})
}

// rewritten changes the frames of watches. It calls begin for each watch, and then its result
// in the order of the frames.
func rewritten(begin func() rewrite) Fault {
	return onWatches(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		in, out := io.Pipe()
		var ended chan struct{} // closed when the goroutine that reads in has ended; nil: it has not been started
		t := &tap{ResponseWriter: w}
		t.head = func(code int) {
			if code != http.StatusOK {
				w.WriteHeader(code) // the body is a Status, not a stream
				return
			}
			w.Header().Del("Content-Length")
			w.WriteHeader(code)
			flush(w) // the client waits for the header; after this, only the goroutine writes to w
			t.write, t.flush = out.Write, func() {}
			ended = make(chan struct{})
			go func() {
				defer close(ended)
				_ = in.CloseWithError(begin().frames(r.Context(), flushing{w}, in))
			}()
		}
		defer func() {
			_ = out.Close()
			if ended != nil {
				<-ended
			}
		}()
		next.ServeHTTP(t, legible(r))
	})
}

// frames copies frames, each changed by f and followed by a newline, as API servers send them.
// After invalid JSON, it copies all bytes.
func (f rewrite) frames(ctx context.Context, to io.Writer, from io.Reader) error {
	frames := json.NewDecoder(from)
	for {
		var frame json.RawMessage
		if err := frames.Decode(&frame); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			rest, _ := io.ReadAll(frames.Buffered()) // in memory
			if _, err := to.Write(bytes.TrimLeft(rest, "\n")); err != nil {
				return err
			}
			_, err := io.Copy(to, from)
			return err
		}
		var e event
		_ = json.Unmarshal(frame, &e) // on an error, the frame is not a bookmark
		frame = f(ctx, e, append(frame, '\n'))
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(frame) > 0 {
			if _, err := to.Write(frame); err != nil {
				return err
			}
		}
	}
}

// flushing flushes each write.
type flushing struct{ w http.ResponseWriter }

func (f flushing) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	flush(f.w)
	return n, err
}
