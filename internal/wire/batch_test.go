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

// After a pause there are batches again.
func TestBatch_GoesOnAfterAPause(t *testing.T) {
	line := strings.Replace(plainEvent, `"metadata"`, `"spec":"`+strings.Repeat("x", 400)+`","metadata"`, 1) + "\n"
	data := bytes.Repeat([]byte(line), maxBatch)
	settings := &Settings{Tables: NewTables(Own)}
	b := &batch{pause: 2}
	if runtime.GOMAXPROCS(0) == 1 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	}
	for i, want := range []int{0, 0, len(data)} {
		if used := b.decode(settings, data); used != want {
			t.Errorf("call %d: %d bytes used, want %d", i, used, want)
		}
	}
}
