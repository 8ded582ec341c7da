package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/discovery"
	"github.com/gvrkit/gvrkit/status"
)

// viewer prints blocks and their events, as text or as one JSON object per line. It is the
// informer's event handler, and safe for concurrent use.
type viewer struct {
	json bool

	mu     sync.Mutex
	out    io.Writer
	counts counts
	seen   chan struct{} // closed, and replaced, after each event
}

// counts has the numbers of events.
type counts struct {
	Added   int `json:"added"`
	Updated int `json:"updated"`
	Resyncs int `json:"resyncs"`
	Deleted int `json:"deleted"`
}

func (c counts) total() int { return c.Added + c.Updated + c.Resyncs + c.Deleted }

func newViewer(out io.Writer, asJSON bool) *viewer {
	return &viewer{json: asJSON, out: out, seen: make(chan struct{})}
}

var _ cache.ResourceEventHandler = (*viewer)(nil)

// OnAdd prints a block that was added.
func (v *viewer) OnAdd(obj any, _ bool) {
	if b, ok := asBlock(obj); ok {
		v.event("ADDED", b, "", func(c *counts) { c.Added++ })
	}
}

// OnUpdate prints a block that has changed, or that a resync delivers again.
func (v *viewer) OnUpdate(oldObj, newObj any) {
	before, ok := asBlock(oldObj)
	after, isBlock := asBlock(newObj)
	switch {
	case !ok || !isBlock:
	case before.ResourceVersion == after.ResourceVersion:
		v.event("UPDATED", after, "resync", func(c *counts) { c.Resyncs++ })
	default:
		v.event("UPDATED", after, fmt.Sprintf("%+d", after.Used-before.Used), func(c *counts) { c.Updated++ })
	}
}

// OnDelete prints a block that was deleted, in its last known state.
func (v *viewer) OnDelete(obj any) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	if b, ok := asBlock(obj); ok {
		v.event("DELETED", b, "", func(c *counts) { c.Deleted++ })
	}
}

func asBlock(obj any) (block, bool) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return block{}, false
	}
	return readBlock(u), true
}

// event prints one event and counts it.
func (v *viewer) event(kind string, b block, note string, count func(*counts)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.json {
		v.encode(struct {
			Event string `json:"event"`
			Note  string `json:"note,omitempty"`
			block
		}{kind, note, b})
	} else {
		fmt.Fprintln(v.out, strings.TrimRight(fmt.Sprintf("%-8s %s  %s", kind, row(b), note), " "))
	}
	count(&v.counts)
	close(v.seen)
	v.seen = make(chan struct{})
}

// state prints a state of the informer.
func (v *viewer) state(now status.Informer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.json {
		v.encode(struct {
			State    status.State           `json:"state"`
			Reason   status.Reason          `json:"reason,omitempty"`
			Evidence discovery.EvidenceKind `json:"evidence,omitempty"`
		}{now.State, now.Reason, now.Evidence.Kind})
		return
	}
	fmt.Fprintln(v.out, strings.TrimRight(fmt.Sprintf("STATE    %-20s %s %s", now.State, now.Reason, now.Evidence.Kind), " "))
}

// follow prints the states of the informer after its first list.
func (v *viewer) follow(states iter.Seq[status.Informer]) {
	last := status.StateSynced
	for now := range states {
		transient := now.State == status.StateStarting || now.State == status.StateStopped
		if now.Listed && !transient && now.State != last {
			last = now.State
			v.state(now)
		}
	}
}

// count returns the numbers of events so far.
func (v *viewer) count() counts {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.counts
}

// encode prints value as a line of JSON. The caller holds v.mu.
func (v *viewer) encode(value any) {
	_ = json.NewEncoder(v.out).Encode(value) // like fmt.Fprintln, it ignores errors of the output
}

// waitFor waits until enough returns true for the events so far, or ctx ends.
func (v *viewer) waitFor(ctx context.Context, enough func(counts) bool) error {
	for {
		v.mu.Lock()
		done, seen := enough(v.counts), v.seen
		v.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-seen:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// table prints the blocks of lister, sorted by CIDR.
func (v *viewer) table(lister cache.GenericLister) error {
	objs, err := lister.List(labels.Everything())
	if err != nil {
		return err
	}
	blocks := blocksOf(objs)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.json {
		v.encode(map[string][]block{"table": blocks})
		return nil
	}
	fmt.Fprintf(v.out, "\n%-20s %-14s %9s\n", "CIDR", "NODE", "USED/SIZE")
	for _, b := range blocks {
		fmt.Fprintln(v.out, row(b))
	}
	return nil
}

func blocksOf(objs []runtime.Object) []block {
	blocks := make([]block, 0, len(objs))
	for _, obj := range objs {
		if b, ok := asBlock(obj); ok {
			blocks = append(blocks, b)
		}
	}
	slices.SortFunc(blocks, func(a, b block) int { return strings.Compare(a.CIDR+a.Name, b.CIDR+b.Name) })
	return blocks
}

// summary prints the numbers of events.
func (v *viewer) summary() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.json {
		v.encode(map[string]counts{"summary": v.counts})
		return
	}
	c := v.counts
	fmt.Fprintf(v.out, "\n%d events: %d added, %d updated, %d by resync, %d deleted\n",
		c.total(), c.Added, c.Updated, c.Resyncs, c.Deleted)
}

// row returns the columns of the table for a block.
func row(b block) string {
	deleting := ""
	if b.Deleting {
		deleting = " deleting"
	}
	name := b.CIDR
	if name == "" {
		name = b.Name
	}
	if b.CIDR == "" && b.Size == 0 { // not a block
		return name + deleting
	}
	return fmt.Sprintf("%-20s %-14s %4d/%-4d [%s]%s", name, b.Node, b.Used, b.Size, bar(b.Used, b.Size), deleting)
}

// barWidth is the number of cells in a bar.
const barWidth = 10

// bar draws used of size. It has at least one cell if used is not zero, and all cells only if the
// block is full.
func bar(used, size int) string {
	cells := 0
	if size > 0 && used > 0 {
		cells = max(1, used*barWidth/size)
	}
	cells = min(cells, barWidth)
	return strings.Repeat("#", cells) + strings.Repeat("-", barWidth-cells)
}
