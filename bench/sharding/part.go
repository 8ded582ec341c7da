package sharding

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/gvrkit/gvrkit/sharding"
)

// part is a shard that the benchmark changes. There are no other members, so it waits for no followers.
type part struct {
	sharding.Shard // one that does not change: no slots come back
	// mu guards the fields below.
	mu      sync.Mutex
	view    sharding.View
	changed chan struct{} // closes when view changes
}

func newPart(slots sharding.Slots) *part {
	return &part{Shard: firstOf(1), view: sharding.View{Generation: 1, Slots: slots}, changed: make(chan struct{})}
}

// change sets the slots.
func (p *part) change(slots sharding.Slots) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.view = sharding.View{Generation: p.view.Generation + 1, Slots: slots}
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *part) View() sharding.View {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.view
}

func (p *part) Changed() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changed
}

func (p *part) Owns(uid types.UID) bool { return p.View().Slots.Has(sharding.SlotOf(uid)) }
func (p *part) Selector() string        { return p.View().Slots.Selector() }
