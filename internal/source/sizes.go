package source

import (
	"math"
	"sync"
	"unsafe"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/internal/objectsize"
)

const (
	// sampledEvery is how many objects there are for each sampled one. At least fewSampled objects of a list are sampled, and
	// at most manySampled. If the list is refused because of what its first page has shown, fewLimited of that page are.
	sampledEvery                        = 32
	fewSampled, fewLimited, manySampled = 4, 32, 256
	// A sample of changed objects ends earlier, since it keeps earlier states of them in memory.
	changesSampled = 64
	changesBytes   = 512 << 10
	// slotBytes is the size of an identity.
	slotBytes = int(unsafe.Sizeof(identity{}))
)

// sizes estimates the memory of the objects of a source. Each object is estimated when it is passed on, and some of them
// are visited as a whole, which shows how much of their memory is shared. Objects are measured before the reflector gets them. It is
// safe for concurrent use.
type sizes struct {
	mu      sync.Mutex // held while an object is visited
	listing bool       // the objects are those of a list
	every   int        // one of so many objects is sampled; zero: none has been measured
	passed  int        // the number of objects since the last begin
	sample  objectsize.Sample
	uids    map[types.UID]bool // the objects of sample
	result  objectsize.Result  // of the last whole sample
	partial objectsize.Result  // of the present one
}

// begin begins the measurement of a list of n objects; zero if their number is not known. At least few of them are sampled, if there are so many.
func (s *sizes) begin(n, few int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resetLocked()
	s.listing = true
	if n > 0 {
		s.every = max(1, n/max(n/sampledEvery, few), n/manySampled)
	}
}

// forget forgets what samples have shown: the objects have another form now.
func (s *sizes) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resetLocked()
	s.result = objectsize.Result{}
}

// end ends the sample.
func (s *sizes) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.endLocked()
}

func (s *sizes) endLocked() {
	if s.listing && s.sample.Len() > 0 || s.sample.Len() > s.result.Len() { // few objects say less about what all have in common
		s.result = s.sample.Result()
	}
	s.resetLocked()
}

func (s *sizes) resetLocked() {
	s.sample, s.uids, s.passed, s.every, s.listing = objectsize.Sample{}, nil, 0, sampledEvery, false
	s.partial = objectsize.Result{}
}

// of returns the estimated size of an object that has that UID.
func (s *sizes) of(object any, uid types.UID) uint32 {
	if wrapped, is := object.(*carrier); is {
		object = wrapped.content
	}
	estimated := estimate(object)
	if _, exact := object.(objectsize.Packed); !exact {
		s.visit(object, uid, int(estimated))
	}
	return estimated
}

// visit adds the object, which has that estimate, to the sample, if it is its turn.
func (s *sizes) visit(object any, uid types.UID, estimated int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.every == 0 {
		s.resetLocked()
	}
	if s.passed++; (s.passed-1)%s.every != 0 || s.uids[uid] {
		return
	}
	if s.uids == nil {
		s.uids = map[types.UID]bool{}
	}
	s.uids[uid] = true
	s.sample.Add(object, estimated)
	switch {
	case s.listing && s.sample.Len() >= manySampled:
		s.every = math.MaxInt
	case !s.listing && (s.sample.Len() >= changesSampled || s.sample.Estimated() > changesBytes):
		s.endLocked()
		return
	}
	s.partial = s.sample.Result()
}

// ratio returns the ratio of the memory of that many objects to the sum of their estimates.
func (s *sizes) ratio(objects int) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.result.Len() == 0 {
		return s.partial.Ratio(objects)
	}
	return s.result.Ratio(objects)
}

// total returns the memory of a cache with that many objects, whose estimates have that sum.
func (s *sizes) total(objects int, estimated int64) int64 {
	const most = 1 << 60
	return int64(min(max(float64(estimated)*s.ratio(objects), 0), most)) + objectsize.Maps(objects, slotBytes)
}

// commonBytes returns the memory of what packed objects have in common.
func (g *gate) commonBytes() int64 {
	if g.cfg.Packing == nil {
		return 0
	}
	return int64(g.cfg.Packing.Size())
}

// bytesLocked returns about the memory of the reflector's objects, without commonBytes. The caller holds the lock of k.
func (g *gate) bytesLocked(k *known) int64 {
	return g.sizes.total(k.objects.len(), k.objects.bytes)
}

// estimate returns the estimated size of an object, as far as it can be counted.
func estimate(object any) uint32 {
	if wrapped, is := object.(*carrier); is {
		object = wrapped.content
	}
	size := objectsize.Of(object)
	if size < 0 || int64(size) > math.MaxUint32 { // an object that contains itself
		return math.MaxUint32
	}
	return uint32(size)
}
