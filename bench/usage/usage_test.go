package usage_test

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/gvrkit/gvrkit/bench/usage"
)

func TestLiveMemory_IsTheReachableMemory(t *testing.T) {
	const size = 16 << 20
	empty, _ := usage.LiveMemory()
	kept := make([]byte, size)
	full, _ := usage.LiveMemory()
	runtime.KeepAlive(kept)
	if grown := full - empty; grown < size-size/64 || grown > size+size/4 { // other memory may have been freed
		t.Errorf("grown by %d bytes, want %d", grown, size)
	}
	if left, _ := usage.LiveMemory(); left-empty > size/4 {
		t.Errorf("%d bytes are left", left-empty)
	}
}

func TestPeakRSS_DoesNotDecrease(t *testing.T) {
	before, err := usage.PeakRSS()
	if err != nil || before < 1<<20 {
		t.Fatalf("%d, %v", before, err)
	}
	kept := make([]byte, before) // increases the peak
	for i := range kept {
		kept[i] = 1
	}
	runtime.KeepAlive(kept)
	full, err := usage.PeakRSS()
	if err != nil {
		t.Fatal(err)
	}
	debug.FreeOSMemory()
	after, err := usage.PeakRSS()
	if about := before / 16; err != nil || full < before+about || after < full-about { // the kernel's counters are not exact
		t.Errorf("%d, then %d, then %d: %v", before, full, after, err)
	}
}

func TestCPU_GrowsWithWork(t *testing.T) {
	before := usage.CPU()
	collection := usage.Collection()
	if after := usage.CPU(); after <= before || collection < 0 || after-before < collection {
		t.Errorf("%v, then %v; a collection took %v", before, after, collection)
	}
}
