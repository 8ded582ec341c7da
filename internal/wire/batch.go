package wire

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"

	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// Limits of a batch. For fewer than minBatch bytes, a second goroutine costs more
// than it saves.
const (
	maxBatch   = 32
	minBatch   = 4 << 10
	maxWorkers = 4
)

// batch holds events that arrived together. Several goroutines decode them, at most
// one for each processor. The events are delivered in the order of their arrival.
type batch struct {
	events []decodedEvent
	lines  [][]byte // of the stream, one for each event
	pause  int      // number of events to decode one at a time
}

// pauseAfter is the number of events that are decoded one at a time after a batch
// that had an unusual event. The events after the unusual one have to be decoded
// again, so batches are expensive for a stream with many of these events.
const pauseAfter = 4 * maxBatch

type decodedEvent struct {
	kind   watch.EventType
	object kruntime.Object // nil: the event is unusual
}

// next stores the next event in bypass. It returns false if there is none.
func (b *batch) next(bypass *bypass) bool {
	if len(b.events) == 0 {
		return false
	}
	bypass.kind, bypass.object = b.events[0].kind, b.events[0].object
	b.events[0] = decodedEvent{}
	b.events = b.events[1:]
	return true
}

// decode decodes the complete lines at the beginning of data, each with one event,
// up to the first unusual event. It returns the length of the decoded lines. The
// length is zero if there are fewer than two lines, or the first event is unusual.
func (b *batch) decode(settings *Settings, data []byte) (used int) {
	if b.pause > 0 {
		b.pause--
		return 0
	}
	if runtime.GOMAXPROCS(0) == 1 {
		return 0
	}
	b.cut(data)
	defer clear(b.lines)
	if len(b.lines) < 2 {
		return 0
	}
	events := make([]decodedEvent, len(b.lines))
	var unusual atomic.Int64 // index of the first event that is known to be unusual
	unusual.Store(int64(len(events)))
	b.work(func(i int) {
		if int64(i) < unusual.Load() && !events[i].decode(settings, b.lines[i]) {
			lower(&unusual, int64(i))
		}
	})
	b.events = events[:unusual.Load()]
	if len(b.events) < len(events) {
		b.pause = pauseAfter
	}
	for i := range b.events {
		used += len(b.lines[i])
	}
	return used
}

// decode decodes line, which must be one ordinary event.
func (d *decodedEvent) decode(settings *Settings, line []byte) bool {
	return settings.decode(line, func(b *builder) (ok bool) {
		d.kind, d.object, ok = b.event()
		return ok && b.done()
	})
}

// lower sets v to x if v is greater.
func lower(v *atomic.Int64, x int64) {
	for old := v.Load(); x < old && !v.CompareAndSwap(old, x); old = v.Load() {
	}
}

// cut sets lines to the complete lines at the beginning of data, including newlines.
// If they have fewer than minBatch bytes, lines is empty.
func (b *batch) cut(data []byte) {
	b.lines = b.lines[:0]
	size := 0
	for len(b.lines) < maxBatch {
		end := bytes.IndexByte(data[size:], '\n')
		if end < 0 || end >= maxFrame {
			break
		}
		b.lines = append(b.lines, data[size:size+end+1])
		size += end + 1
	}
	if size < minBatch {
		b.lines = b.lines[:0]
	}
}

// work calls do for each line, from several goroutines, and returns after all calls.
func (b *batch) work(do func(i int)) {
	workers := min(runtime.GOMAXPROCS(0), maxWorkers, len(b.lines))
	share := func(worker int) {
		for i := worker; i < len(b.lines); i += workers {
			do(i)
		}
	}
	var others sync.WaitGroup
	for worker := 1; worker < workers; worker++ {
		others.Go(func() { share(worker) })
	}
	share(0)
	others.Wait()
}
