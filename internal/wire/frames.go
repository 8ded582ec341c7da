package wire

import (
	"bytes"
	"errors"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
)

// maxFrame is the length of the longest event, as in client-go's streaming package.
const maxFrame = 16 << 20

// frameReader splits a watch stream into events. It decodes an ordinary event in the
// buffer, stores the result in bypass, and returns an empty frame. It returns the
// bytes of an unusual event that is valid JSON. If an event is not valid JSON,
// client-go's reader reads that event and the rest of the stream.
//
// One goroutine calls all methods except Close.
type frameReader struct {
	settings *Settings
	framer   runtime.Framer // client-go's
	body     io.ReadCloser
	bypass   *bypass

	buf     window
	extent  extent        // of the value at the beginning of buf
	err     error         // of the last read, to be returned after the contents of buf
	frame   []byte        // the bytes of an unusual event that Read has yet to return
	batch   batch         // events that were decoded together
	instead io.ReadCloser // client-go's reader; nil until it is needed
	limit   limit         // of the bytes that instead reads
}

// Read returns an event, or io.ErrShortBuffer and the part that fits in p, as
// client-go's framers do.
func (f *frameReader) Read(p []byte) (int, error) {
	if f.instead != nil {
		return f.readInstead(p)
	}
	if len(f.frame) == 0 {
		if err := f.advance(); err != nil {
			if errors.Is(err, errInvalid) {
				return f.giveUp(p)
			}
			return 0, err
		}
	}
	n := copy(p, f.frame)
	f.frame = f.frame[n:]
	if len(f.frame) > 0 {
		return n, io.ErrShortBuffer
	}
	return n, nil
}

// errInvalid means that client-go's reader has to read the rest of the stream.
var errInvalid = errors.New("not valid JSON")

// advance reads until an event is complete. It decodes the event or sets frame.
func (f *frameReader) advance() error {
	if f.batch.next(f.bypass) {
		return nil
	}
	for {
		f.buf.trimSpace()
		data := f.buf.bytes()
		switch found := f.extent.find(data); {
		case found == invalid:
			return errInvalid
		case found == complete:
			if used := f.batch.decode(f.settings, data); used > 0 {
				f.extent = extent{}
				f.buf.consume(used)
				f.batch.next(f.bypass)
				return nil
			}
			return f.event(data)
		case f.err != nil && len(data) == 0:
			return f.err
		case f.err != nil:
			return errInvalid
		case len(data) > maxFrame:
			return streaming.ErrObjectTooLarge
		}
		f.err = f.buf.fill(f.body)
	}
}

// event consumes the event at the beginning of data.
func (f *frameReader) event(data []byte) error {
	f.extent = extent{}
	var used int
	size := bytes.IndexByte(data, '\n') // API servers end each event with a newline
	if size < 0 {
		size = len(data)
	}
	ordinary := f.settings.Tables.decode(data, size, f.settings, func(b *builder) (ok bool) {
		f.bypass.kind, f.bypass.object, ok = b.event()
		used = b.pos
		return ok
	})
	if !ordinary {
		s := scanner{data: data}
		if !s.skip() {
			return errInvalid
		}
		used = s.pos
		f.frame = data[:used]
	}
	if used > maxFrame {
		return streaming.ErrObjectTooLarge
	}
	f.buf.consume(used)
	return nil
}

// giveUp passes the bytes in buf, and the rest of the stream, to client-go's reader.
func (f *frameReader) giveUp(p []byte) (int, error) {
	after := io.Reader(f.body)
	if f.err != nil {
		after = failing{f.err}
	}
	f.limit.from = io.MultiReader(bytes.NewReader(f.buf.bytes()), after)
	f.buf = window{} // the multi-reader keeps the bytes until they are read
	f.instead = f.framer.NewFrameReader(struct {
		io.Reader
		io.Closer
	}{&f.limit, f.body})
	return f.readInstead(p)
}

func (f *frameReader) readInstead(p []byte) (int, error) {
	n, err := f.instead.Read(p)
	if err == nil { // the event is complete
		f.limit.read = 0
	}
	return n, err
}

// limit is the source of client-go's reader. Without it, that reader would buffer an
// event that never ends until memory is exhausted.
type limit struct {
	from io.Reader
	read int // since the last event
}

func (l *limit) Read(p []byte) (int, error) {
	if l.read > maxFrame {
		return 0, streaming.ErrObjectTooLarge
	}
	n, err := l.from.Read(p[:min(len(p), busyWindow)])
	l.read += n
	return n, err
}

// Close ends the stream and a Read that is in progress.
func (f *frameReader) Close() error { return f.body.Close() }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
