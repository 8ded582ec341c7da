package wire

import "io"

// Sizes of a window. It is small for a stream with few events, because a program may
// have a thousand watches, and larger for a busy stream, to save system calls.
const (
	minWindow  = 4 << 10
	busyWindow = 64 << 10
)

// window is a buffer with the bytes of a stream that have been read and not been
// consumed.
type window struct {
	buf        []byte
	start, end int
	last       int // length of the last read
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

// makeRoom moves the bytes to the beginning of the buffer, makes room behind them, and
// adapts the size of the buffer to the length of the last read.
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
