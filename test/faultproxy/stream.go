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

// event is what the faults look at in a frame of a watch.
type event struct {
	Type   string `json:"type"`
	Object struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	} `json:"object"`
}

func (e event) isBookmark() bool { return e.Type == "BOOKMARK" }

// DropBookmarks is the fault that watches bring no bookmarks, the one that ends
// the initial events included. It leaves all other requests alone, and watches
// that are not in JSON.
func DropBookmarks() Fault {
	return sifted(func(_ context.Context, e event) bool { return !e.isBookmark() })
}

// NeverInitialEventsEnd is the fault that watches do not bring the bookmark that
// ends the initial events; others come. It leaves all other requests alone, and
// watches that are not in JSON.
func NeverInitialEventsEnd() Fault {
	return sifted(func(_ context.Context, e event) bool {
		return !e.isBookmark() || e.Object.Metadata.Annotations["k8s.io/initial-events-end"] != "true"
	})
}

// DelayBookmarks is the fault that watches stand still for d before each bookmark.
// As the order stays, what follows the bookmark comes later too. It leaves all
// other requests alone, and watches that are not in JSON. With a d that is not
// positive it does nothing.
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

// GoneEvent is the fault that the resource version of a watch is too old and that
// the server says so in the stream: an ERROR event with the Status of GoneStatus,
// then the end. It leaves all other requests alone.
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

// sifted lets the frames of watches pass for which keep, called in their order,
// says so.
func sifted(keep func(context.Context, event) bool) Fault {
	return onWatches(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		in, out := io.Pipe()
		var sifted chan struct{} // closed when the goroutine that reads in has ended; nil as long as there is none
		t := &tap{ResponseWriter: w}
		t.head = func(code int) {
			if code != http.StatusOK {
				w.WriteHeader(code) // a Status, not a stream
				return
			}
			w.Header().Del("Content-Length")
			w.WriteHeader(code)
			flush(w) // the client waits for it, and from here on w is the goroutine's
			t.write, t.flush = out.Write, func() {}
			sifted = make(chan struct{})
			go func() {
				defer close(sifted)
				_ = in.CloseWithError(sift(r.Context(), flushing{w}, in, keep))
			}()
		}
		defer func() {
			_ = out.Close()
			if sifted != nil {
				<-sifted
			}
		}()
		next.ServeHTTP(t, legible(r))
	})
}

// sift copies the frames that keep keeps, each as it is and with a line's end
// after it, as API servers send them. From what is no JSON on it copies all.
func sift(ctx context.Context, to io.Writer, from io.Reader, keep func(context.Context, event) bool) error {
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
		_ = json.Unmarshal(frame, &e) // what does not fit is no bookmark
		keeps := keep(ctx, e)
		if err := ctx.Err(); err != nil {
			return err
		}
		if keeps {
			if _, err := to.Write(append(frame, '\n')); err != nil {
				return err
			}
		}
	}
}

// flushing holds nothing back.
type flushing struct{ w http.ResponseWriter }

func (f flushing) Write(b []byte) (int, error) {
	n, err := f.w.Write(b)
	flush(f.w)
	return n, err
}
