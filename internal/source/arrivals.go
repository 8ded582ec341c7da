package source

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/gvrkit/gvrkit/internal/budget"
)

// This file has what a gate does with its part of a memory budget: it limits first lists. The pages of such a list are converted as they
// arrive, so that the memory of their objects in the cache is known.

// arrivals are the pages of one list that have arrived, with its part of the budget. Nil arrivals have no limit.
type arrivals struct {
	*gate
	namespace string // of a set; empty: there is no set
	room      *budget.Reservation
	of        *arriving
	run       func(ctx context.Context, do func() error) error // runs do in the goroutine that calls the transform

	// The fields below belong to that goroutine.
	joined bool
	kept   []*converted
	read   int   // the number of objects, also of those that are left out
	rest   int64 // the number of objects that the server reports to remain
	bytes  int64 // the sum of the estimates of kept
}

// arriving are the lists that fill a cache together: that of a source or, of a set, those of the namespaces. The goroutine that calls the
// transform has it.
type arriving struct {
	whole bool // they replace the cache
	lists []*arrivals
}

// arriving returns lists for t that begin.
func (g *gate) arriving(t Type) *arriving { return &arriving{whole: !g.known.filledWith(t)} }

const (
	mostObjects = 1 << 30 // a server may report any number
	mostBytes   = 1 << 50 // the sum of many does not overflow
)

// room returns the arrivals of the next list for t in namespace, which is empty unless there is a set of namespaces. Only the first list of
// a generation is limited, and that of a namespace. It returns an error if the list was refused before and there is still no room.
func (g *gate) room(t Type, namespace string, of *arriving, run func(ctx context.Context, do func() error) error) (*arrivals, error) {
	if g.account == nil || g.known.filledWith(t) && (namespace == "" || g.known.lists([]string{namespace})) {
		return nil, nil
	}
	room, err := g.account.Begin(namespace, of.whole)
	if err != nil {
		return nil, err
	}
	return &arrivals{gate: g, namespace: namespace, room: room, of: of, run: run}, nil
}

// end ends the list's part of the budget. Complete says that the reflector has the objects.
func (a *arrivals) end(complete bool) {
	if a != nil {
		a.room.End(complete)
	}
}

// settle gives the list's part of the budget to r, its response. If r has no list, because the list has failed, or the tweak or the client has
// panicked, settle ends the part.
func (a *arrivals) settle(r *response) {
	switch {
	case a == nil:
	case r.list == nil:
		a.end(false)
		a.sizes.end()
	default:
		r.arrivals = map[string]*arrivals{a.namespace: a}
	}
}

// take converts a page, and returns the list of the converted objects. First says that it is the first page. If the estimate of the list does
// not fit, the error is a [*budget.OverError].
func (a *arrivals) take(ctx context.Context, page runtime.Object, first bool) (runtime.Object, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var list runtime.Object
	err := a.run(ctx, func() (err error) {
		list, err = a.add(page, first)
		return err
	})
	if err != nil {
		return nil, err // the function may still run
	}
	return list, nil
}

func (a *arrivals) add(page runtime.Object, first bool) (runtime.Object, error) {
	content, err := meta.ListAccessor(page)
	if err != nil {
		return nil, err
	}
	list := &internalversion.List{ListMeta: metav1.ListMeta{
		ResourceVersion: content.GetResourceVersion(), Continue: content.GetContinue(), RemainingItemCount: content.GetRemainingItemCount(),
	}}
	a.rest = 0
	if remaining := list.RemainingItemCount; remaining != nil && list.Continue != "" {
		a.rest = min(max(0, *remaining), mostObjects)
	}
	if first { // also if the pager begins again
		a.kept, a.read, a.bytes = nil, 0, 0
	}
	if !a.joined {
		if len(a.of.lists) == 0 {
			a.sizes.begin(meta.LenList(page), fewLimited) // the sample must say enough after this page
		}
		a.joined, a.of.lists = true, append(a.of.lists, a)
	}
	list.Items = make([]runtime.Object, 0, meta.LenList(page))
	err = meta.EachListItemWithAlloc(page, func(item runtime.Object) error {
		list.Items = append(list.Items, a.convert(item))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, a.reserve()
}

// convert returns the converted item. An object without a key stays as it is: the whole list has a number for it.
func (a *arrivals) convert(item runtime.Object) runtime.Object {
	a.read++
	obj, err := meta.Accessor(item)
	if err != nil || isNameless(obj) {
		return item
	}
	c := a.transform.listed(item, a.identityIn(obj), keyOf(obj), &a.sizes)
	if c.err == nil {
		a.bytes += int64(c.bytes)
		a.kept = append(a.kept, &c)
	}
	return &c
}

// estimate returns the memory of the list's objects in the cache, if the remaining ones are as those that have arrived.
func (a *arrivals) estimate() int64 {
	if len(a.kept) == 0 {
		return 0
	}
	times := 1 + float64(a.rest)/float64(a.read)
	objects := min(times*float64(len(a.kept)), mostObjects)
	return min(a.sizes.total(int(objects), int64(min(times*float64(a.bytes), mostBytes))), mostBytes)
}

// reserve reserves the memory of the list. If it does not fit, and its objects may be packed, they are.
func (a *arrivals) reserve() error {
	err := a.room.Resize(a.estimate())
	if isOver(err) && a.of.whole && a.cfg.Packing != nil && a.cfg.Packing.Begin() {
		a.of.pack()
		err = a.room.Resize(a.estimate())
	}
	if isOver(err) {
		a.room.Refuse(a.estimate())
		a.kept, a.bytes = nil, 0
	}
	return err
}

// drop drops the objects of a list that has failed.
func (a *arrivals) drop(ctx context.Context) {
	if a == nil {
		return
	}
	_ = a.run(ctx, func() error {
		a.kept, a.bytes = nil, 0
		return nil
	})
}

func isOver(err error) bool {
	_, is := errors.AsType[*budget.OverError](err)
	return is
}

// pack packs the objects that have arrived.
func (of *arriving) pack() {
	for _, a := range of.lists {
		a.sizes.forget()
		a.bytes = 0
		for _, c := range a.kept {
			c.object = a.transform.packed(c.object)
			c.bytes = estimate(c.object)
			a.bytes += int64(c.bytes)
		}
	}
	for _, a := range of.lists { // those that have ended have no room
		_ = a.room.Resize(a.estimate())
	}
}

// awaitRoom waits until there is room for one of the lists of names that were refused, or retry closes, which [Source.Retry] does. Whole is
// that of [arriving]. It reports false if there is news before, or if ctx ends. If replaced closes, there are other names, and the wait is
// over.
func (g *gate) awaitRoom(ctx context.Context, whole bool, names []string, replaced <-chan struct{}, n news, retry <-chan struct{}) bool {
	if g.account == nil {
		return true
	}
	if isClosed(retry) {
		g.account.Retry(names...)
		return true
	}
	wait := g.account.Await(whole, names...)
	defer wait.Leave()
	select {
	case <-wait.Over():
		return true
	case <-replaced:
		return true
	case <-retry:
		g.account.Retry(names...)
		return true
	case <-n.changed:
	case <-n.reviewed:
	case <-n.listed:
	case <-ctx.Done():
	}
	wait.Leave()
	g.account.Abandon(names...) // there may be room since a moment ago
	return false
}

// pause waits as awaitNames, pace.await and awaitRoom do, before a list of t.
func (g *gate) pause(ctx context.Context, pace *pace, t Type, n news) bool {
	if !g.awaitNames(ctx, t, n) {
		return false
	}
	ready := pace.await(ctx, n, g) && g.awaitLists(ctx, t, n, pace.asked)
	if ready {
		pace.begins(g)
	}
	return ready
}

// awaitLists is awaitRoom for the lists of t that fill the cache.
func (g *gate) awaitLists(ctx context.Context, t Type, n news, retry <-chan struct{}) bool {
	if g.known.filledWith(t) {
		g.retryRefused(t, retry)
		return true
	}
	g.account.Begins(t.Generation)
	set := g.set(t)
	if set == nil {
		return g.awaitRoom(ctx, true, []string{""}, nil, n, retry)
	}
	names, replaced := set.Current()
	return g.awaitRoom(ctx, true, names, replaced, n, retry)
}

// retryRefused lets the lists of single namespaces begin again that were refused, if retry is closed. They are part of a list of all namespaces
// that does not wait for room.
func (g *gate) retryRefused(t Type, retry <-chan struct{}) {
	if set := g.set(t); set != nil && isClosed(retry) {
		names, _ := set.Current()
		g.account.Retry(names...)
	}
}

// dropCommon drops what objects of a list have in common that has failed.
func (g *gate) dropCommon() {
	if g.account != nil && g.cfg.Packing != nil && g.known.isEmpty() {
		g.cfg.Packing.Forget()
		g.account.Update()
	}
}

// cacheBytes returns the memory of the reflector's objects, and of what they have in common. It is the size function of the account.
func (g *gate) cacheBytes() (objects, common int64) {
	g.known.mu.Lock()
	objects = g.bytesLocked(&g.known)
	g.known.mu.Unlock()
	return objects, g.commonBytes()
}

// Leave ends the source's part of the memory budget, because its cache is not used any more. It may be called again.
func (s *Source) Leave() { s.gate.account.Close() }
