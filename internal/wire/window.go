package wire

import "io"

// A window is small while little comes, for there may be a thousand watches, and
// larger while much comes, to save system calls.
const (
	minWindow  = 4 << 10
	busyWindow = 64 << 10
)

// window is what has been read of a stream and not been used.
type window struct {
	buf        []byte
	start, end int
	last       int // how much the last read brought
}

func (w *window) bytes() []byte { return w.buf[w.start:w.end] }

func (w *window) consume(n int) { w.start += n }

// trimSpace consumes white space.
func (w *window) trimSpace() {
	s := scanner{data: w.bytes()}
	s.next()
	w.consume(s.pos)
}

// fill reads once from r.
func (w *window) fill(r io.Reader) error {
	w.makeRoom()
	n, err := r.Read(w.buf[w.end:])
	w.end += n
	w.last = n
	return err
}

// makeRoom moves what there is to the beginning of a buffer that has room behind
// it, and is as large as the stream is lively.
func (w *window) makeRoom() {
	used, size := w.end-w.start, len(w.buf)
	switch {
	case used == size:
		size = max(minWindow, 2*size)
	case w.end == size && size < busyWindow: // the last read was cut short
		size *= 2
	case used == 0:
		for size > minWindow && w.last < size/4 {
			size /= 2
		}
	}
	from := w.bytes()
	switch {
	case size != len(w.buf):
		w.buf = make([]byte, size)
	case w.start == 0:
		return
	}
	copy(w.buf, from)
	w.start, w.end = 0, used
}
