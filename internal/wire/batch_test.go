package wire

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"
)

// What is decoded behind an unusual event is thrown away. That must stay rare, or a
// stream of such events would cost a multiple of what it costs client-go.
func TestBatch_UnusualEventsCostLittleMoreThanWithClientGo(t *testing.T) {
	odd := strings.Replace(plainEvent, `"metadata"`, `"spec":[{"a":{"b":["`+strings.Repeat("x", 400)+`"]}}],"metadata"`, 1)
	odd = odd[:len(odd)-1] + `,"more":1}` + "\n"
	stream := strings.Repeat(odd, 2000)
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

// After an event that is not plain there is a pause, and then there are batches again.
func TestBatch_PausesAndGoesOn(t *testing.T) {
	if runtime.GOMAXPROCS(0) == 1 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	line := strings.Replace(plainEvent, `"metadata"`, `"spec":"`+strings.Repeat("x", 400)+`","metadata"`, 1) + "\n"
	data := bytes.Repeat([]byte(line), maxBatch)
	settings := &Settings{Tables: NewTables(Own)}
	b := &batch{}
	odd := append([]byte(line+"{}\n"), data...)
	if used := b.decode(settings, odd); used != len(line) {
		t.Errorf("%d bytes used, want those of the one plain event, %d", used, len(line))
	}
	for range pauseAfter {
		if used := b.decode(settings, data); used != 0 {
			t.Fatalf("%d bytes used in the pause", used)
		}
	}
	if used := b.decode(settings, data); used != len(data) {
		t.Errorf("%d bytes used after it, want %d", used, len(data))
	}
}
