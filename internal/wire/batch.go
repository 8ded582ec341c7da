package wire

import (
	"bytes"
	"runtime"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

// Bounds of a batch. Below minBatch bytes a second goroutine costs more than it
// saves.
const (
	maxBatch   = 32
	minBatch   = 4 << 10
	maxWorkers = 4
)

// batch is a number of events that have arrived together and are decoded at the
// same time, by as many goroutines as there are processors. They are delivered in
// the order in which they came.
type batch struct {
	events []decoded
	lines  [][]byte // of the stream, one for each event
	pause  int      // how many events are to be decoded singly
}

// pauseAfter is how many events are decoded singly after one in a batch that was not
// plain. All that was decoded behind it is thrown away, so that a stream of such
// events would cost a multiple.
const pauseAfter = 4 * maxBatch

type decoded struct {
	kind   watch.EventType
	object *unstructured.Unstructured // nil: not plain
}

// next lays the next event down, if there is one.
func (b *batch) next(ahead *ahead) bool {
	if len(b.events) == 0 {
		return false
	}
	ahead.kind, ahead.object = b.events[0].kind, b.events[0].object
	b.events[0] = decoded{}
	b.events = b.events[1:]
	return true
}

// decode decodes the events at the beginning of data, as far as they are plain, one
// on a line, and whole. It returns their length; zero if there are not at least
// two lines, or the first is not plain.
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
	events := make([]decoded, len(b.lines))
	var odd atomic.Int64 // index of the first event that is known not to be plain
	odd.Store(int64(len(events)))
	b.work(func(i int) {
		if int64(i) < odd.Load() && !events[i].decode(settings, b.lines[i]) {
			lower(&odd, int64(i))
		}
	})
	b.events = events[:odd.Load()]
	if len(b.events) < len(events) {
		b.pause = pauseAfter
	}
	for i := range b.events {
		used += len(b.lines[i])
	}
	return used
}

// decode decodes the one event that line is, if it is plain.
func (d *decoded) decode(settings *Settings, line []byte) bool {
	return settings.decode(line, func(b *builder) (ok bool) {
		d.kind, d.object, ok = b.event()
		return ok && b.done()
	})
}

// lower lowers v to x if it is greater.
func lower(v *atomic.Int64, x int64) {
	for old := v.Load(); x < old && !v.CompareAndSwap(old, x); old = v.Load() {
	}
}

// cut sets lines to the whole lines at the beginning of data, newlines included, if
// they are worth more than one goroutine.
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

// work calls do for each line, from several goroutines, and returns when all is
// done.
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
