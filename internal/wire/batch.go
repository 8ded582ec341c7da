package wire

import (
	"bytes"
	"runtime"
	"sync"

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
}

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
	b.cut(data)
	defer clear(b.lines)
	if len(b.lines) < 2 || runtime.GOMAXPROCS(0) == 1 {
		return 0
	}
	events := make([]decoded, len(b.lines))
	b.work(func(i int) {
		settings.decode(b.lines[i], func(b *builder) (ok bool) {
			kind, object, ok := b.event()
			if ok && b.done() {
				events[i] = decoded{kind, object}
			}
			return ok
		})
	})
	for i := range events {
		if events[i].object == nil {
			events = events[:i]
			break
		}
		used += len(b.lines[i])
	}
	b.events = events
	return used
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
