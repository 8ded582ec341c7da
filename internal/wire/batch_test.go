package wire

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"
)

// The events of a batch after an unusual event are decoded again. This must be rare:
// otherwise a stream of unusual events would be several times as expensive as with
// client-go.
func TestBatch_UnusualEventsCostLittleMoreThanWithClientGo(t *testing.T) {
	unusual := strings.Replace(ordinaryEvent, `"metadata"`, `"spec":[{"a":{"b":["`+strings.Repeat("x", 400)+`"]}}],"metadata"`, 1)
	unusual = unusual[:len(unusual)-1] + `,"more":1}` + "\n"
	stream := strings.Repeat(unusual, 2000)
	allocations := func(name string) uint64 {
		n := stockSerializer()
		if name != "" {
			n = variants()[name]
		}
		info := jsonInfo(t, n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if got := readEvents(info, io.NopCloser(strings.NewReader(stream))); len(got.Events) != 2000 {
			t.Fatalf("%d events, %s", len(got.Events), got.Err)
		}
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	stock := allocations("")
	for _, name := range []string{"own", "shared"} {
		if ours := allocations(name); ours > stock*5/4 {
			t.Errorf("%s: %d allocations, client-go's %d", name, ours, stock)
		}
	}
}

// After an unusual event, events are decoded one at a time, and later in batches again.
func TestBatch_PausesAfterAnUnusualEvent(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	line := strings.Replace(ordinaryEvent, `"metadata"`, `"spec":"`+strings.Repeat("x", 400)+`","metadata"`, 1) + "\n"
	data := bytes.Repeat([]byte(line), maxBatch)
	settings := &Settings{Tables: NewTables(Own)}
	b := &batch{}
	unusual := append([]byte(line+"{}\n"), data...)
	if used := b.decode(settings, unusual); used != len(line) {
		t.Errorf("%d bytes used, want those of the ordinary event, %d", used, len(line))
	}
	for range pauseAfter {
		if used := b.decode(settings, data); used != 0 {
			t.Fatalf("%d bytes used in the pause", used)
		}
	}
	if used := b.decode(settings, data); used != len(data) {
		t.Errorf("%d bytes used after the pause, want %d", used, len(data))
	}
}
