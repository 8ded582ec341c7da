package source

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/gvrkit/gvrkit/internal/objectsize"
)

const (
	// measuredOfPage is the number of objects of a page whose size in the cache is measured.
	measuredOfPage = 32
	// refusedAgain is the mean time until a list that did not fit is tried again, if no memory is released before.
	refusedAgain = 5 * time.Minute
)

// MemoryBudget limits the memory of the caches of all sources that share it. A first list that does not fit is refused.
// A cache that grows later is not. It is safe for concurrent use, and no method blocks.
type MemoryBudget struct {
	bytes int64

	mu      sync.Mutex // held during calls of gate.bytes
	sources map[*gate]*share
}

// share is the part of a budget of one source, beside the memory of its cache.
type share struct {
	reserved int64 // for the list in progress
	refused  int64 // what the last list wanted, if it was refused
	released bool  // memory was released after that, so that it fits
}

// NewMemoryBudget returns a budget of bytes. Zero or less means no limit: the result is nil, which refuses nothing.
func NewMemoryBudget(bytes int64) *MemoryBudget {
	if bytes <= 0 {
		return nil
	}
	return &MemoryBudget{bytes: bytes, sources: map[*gate]*share{}}
}

// OverBudgetError is the error of a list whose objects don't fit.
type OverBudgetError struct {
	// Needs is the estimated memory of the cache, and Left the part of Budget that no other cache has.
	Needs, Left, Budget int64
}

// Error implements error.
func (e *OverBudgetError) Error() string {
	return fmt.Sprintf("the cache would take about %s, and %s of the memory budget of %s are left", sizeText(e.Needs), sizeText(max(0, e.Left)), sizeText(e.Budget))
}

func sizeText(bytes int64) string {
	const unit = 1 << 20
	if bytes < unit {
		return fmt.Sprintf("%.1f KiB", float64(bytes)/1024)
	}
	return fmt.Sprintf("%.1f MiB", float64(bytes)/unit)
}

// leftLocked returns the part of the budget that no other source than g has. The caller holds mu.
func (b *MemoryBudget) leftLocked(g *gate) int64 {
	left := b.bytes
	for other, s := range b.sources {
		if other != g {
			left -= max(s.reserved, other.bytes())
		}
	}
	return left
}

// reserve reserves wants bytes for a list of g, instead of what it has reserved before.
func (b *MemoryBudget) reserve(g *gate, wants int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.sources[g]
	if s == nil {
		s = &share{}
		b.sources[g] = s
	}
	if left := b.leftLocked(g); wants > left {
		s.reserved, s.refused, s.released = 0, wants, false
		return &OverBudgetError{Needs: wants, Left: left, Budget: b.bytes}
	}
	s.reserved, s.refused, s.released = wants, 0, false
	return nil
}

// settle ends the reservation of g: the memory of its cache counts.
func (b *MemoryBudget) settle(g *gate) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s := b.sources[g]; s != nil {
		s.reserved = 0
	}
	b.wakeLocked()
}

// leave removes g, which has ended.
func (b *MemoryBudget) leave(g *gate) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.sources, g)
	b.wakeLocked()
}

// wakeLocked lets the lists that were refused and fit now try again. The caller holds mu.
func (b *MemoryBudget) wakeLocked() {
	for g, s := range b.sources {
		if s.refused > 0 && s.refused <= b.leftLocked(g) {
			s.refused, s.released = 0, true
			g.retries.Broadcast()
		}
	}
}

// hasReleased reports, once, whether a list of g was refused, and fits after the release of memory.
func (b *MemoryBudget) hasReleased(g *gate) bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.sources[g]
	if s == nil || !s.released {
		return false
	}
	s.released = false
	return true
}

// room is the part of the budget for one list, which may have several namespaces.
type room struct {
	gate *gate

	mu    sync.Mutex
	wants int64
}

// room returns the room of the next list of t; nil if it is not limited.
func (g *gate) room(t Type) *room {
	if g.cfg.Budget == nil || g.known.filledWith(t) {
		return nil
	}
	return &room{gate: g}
}

// listRoom is the room for the pages of one list.
type listRoom struct {
	*room
	arrived, wants int64
}

// page reserves the memory of the pages that have arrived, and of the remaining objects if the server reports their number.
func (r *listRoom) page(page runtime.Object) error {
	if r.room == nil {
		return nil
	}
	each := r.gate.bytesPerObject(page)
	var rest float64
	if content, err := meta.ListAccessor(page); err == nil && content.GetContinue() != "" {
		if remaining := content.GetRemainingItemCount(); remaining != nil {
			rest = float64(max(0, *remaining)) * each
		}
	}
	r.arrived += int64(each * float64(meta.LenList(page)))
	wants := max(r.wants, r.arrived+int64(min(rest, 1<<60)))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.room.wants += wants - r.wants
	r.wants = wants
	return r.gate.cfg.Budget.reserve(r.gate, r.room.wants)
}

// bytesPerObject returns the mean memory that an object of page will take in the cache.
func (g *gate) bytesPerObject(page runtime.Object) float64 {
	objects, n := meta.LenList(page), 0
	var sample objectsize.Sample
	bytes, measured, every := 0, 0, max(1, objects/measuredOfPage)
	_ = meta.EachListItem(page, func(item runtime.Object) error {
		if n++; (n-1)%every != 0 {
			return nil
		}
		if g.transform.isSet() {
			copied, _, err := g.transform.apply(item.DeepCopyObject())
			if err != nil {
				return nil //nolint:nilerr // it will be left out
			}
			item = copied
		}
		sample.Add(item)
		bytes += int(estimate(item))
		measured++
		return nil
	})
	if measured == 0 {
		return 0
	}
	return float64(bytes)*sample.Result().Ratio(objects)/float64(measured) + float64(objectsize.Maps(objects, slotBytes))/float64(objects)
}

// refusedUntil returns the end of the pause after a list that did not fit.
func refusedUntil() time.Time { return time.Now().Add(wait.Jitter(refusedAgain-refusedAgain/10, 0.2)) }
