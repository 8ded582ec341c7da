package usage_test

import (
	"runtime"
	"testing"

	"github.com/gvrkit/gvrkit/bench/usage"
)

func TestLiveHeap_IsWhatIsReachable(t *testing.T) {
	const size = 16 << 20
	empty := usage.LiveHeap()
	kept := make([]byte, size)
	full := usage.LiveHeap()
	runtime.KeepAlive(kept)
	if grown := full - empty; grown < size-size/64 || grown > size+size/4 { // a few bytes of others may have gone
		t.Errorf("it has grown by %d bytes, want %d", grown, size)
	}
	if left := usage.LiveHeap() - empty; left > size/4 {
		t.Errorf("%d bytes are left", left)
	}
}

func TestRSS_PeakIsNoLessThanNow(t *testing.T) {
	current, peak, err := usage.RSS()
	if err != nil || peak < current || peak < 1<<20 {
		t.Errorf("%d, %d, %v", current, peak, err)
	}
}

func TestCPU_GrowsWithWork(t *testing.T) {
	before := usage.CPU()
	collection := usage.Collection()
	if after := usage.CPU(); after <= before || collection < 0 || after-before < collection {
		t.Errorf("%v, then %v; a collection took %v", before, after, collection)
	}
}
