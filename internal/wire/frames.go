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

// frameReader cuts a watch stream into events. An event that is plain is decoded
// where it lies and laid down in ahead; the reader then returns no bytes. One that
// is valid JSON but unusual is returned as it is. With the first byte that is not
// valid, everything from there on is left to client-go's reader.
//
// Its methods are called by one goroutine, but for Close.
type frameReader struct {
	settings *Settings
	framer   runtime.Framer // client-go's
	body     io.ReadCloser
	ahead    *ahead

	buf     window
	extent  extent        // of the value that buf begins with
	err     error         // of the last read, once buf is used up
	frame   []byte        // what is left to return of an unusual event
	batch   batch         // events that were decoded with the last one
	instead io.ReadCloser // client-go's reader; nil as long as it is not needed
	limit   limit         // of what it reads
}

// Read returns an event, or as much of it as p holds with io.ErrShortBuffer, as
// client-go's framers do.
func (f *frameReader) Read(p []byte) (int, error) {
	if f.instead != nil {
		return f.readInstead(p)
	}
	if len(f.frame) == 0 {
		if err := f.advance(); err != nil {
			if errors.Is(err, errNotPlain) {
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

// errNotPlain says that the stream is for client-go's reader.
var errNotPlain = errors.New("not plain")

// advance reads until there is an event, and either decodes it or sets frame.
func (f *frameReader) advance() error {
	if f.batch.next(f.ahead) {
		return nil
	}
	for {
		f.buf.trimSpace()
		data := f.buf.bytes()
		switch found := f.extent.find(data); {
		case found == invalid:
			return errNotPlain
		case found == complete:
			if used := f.batch.decode(f.settings, data); used > 0 {
				f.extent = extent{}
				f.buf.consume(used)
				f.batch.next(f.ahead)
				return nil
			}
			return f.event(data)
		case f.err != nil && len(data) == 0:
			return f.err
		case f.err != nil:
			return errNotPlain
		case len(data) > maxFrame:
			return streaming.ErrObjectTooLarge
		}
		f.err = f.buf.fill(f.body)
	}
}

// event takes the event that data begins with.
func (f *frameReader) event(data []byte) error {
	f.extent = extent{}
	var used int
	plain := f.settings.decode(data, func(b *builder) (ok bool) {
		f.ahead.kind, f.ahead.object, ok = b.event()
		used = b.pos
		return ok
	})
	if !plain {
		s := scanner{data: data}
		if !s.skip() {
			return errNotPlain
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

// giveUp hands what has been read, and what comes after it, to client-go's reader.
func (f *frameReader) giveUp(p []byte) (int, error) {
	after := io.Reader(f.body)
	if f.err != nil {
		after = failing{f.err}
	}
	f.limit.from = io.MultiReader(bytes.NewReader(f.buf.bytes()), after)
	f.buf = window{} // which goes when it has been read
	f.instead = f.framer.NewFrameReader(struct {
		io.Reader
		io.Closer
	}{&f.limit, f.body})
	return f.readInstead(p)
}

func (f *frameReader) readInstead(p []byte) (int, error) {
	n, err := f.instead.Read(p)
	if err == nil { // the event has been read whole
		f.limit.read = 0
	}
	return n, err
}

// limit is what client-go's reader reads from. By itself that would buffer an event
// that never ends until there is no memory left.
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

// Close ends the stream, and a Read that waits for it.
func (f *frameReader) Close() error { return f.body.Close() }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
