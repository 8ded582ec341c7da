// Package sharding measures what a process costs that has a part of the objects of one type, and what it costs to
// change the part.
package sharding

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/informers"
	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/usage"
	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/sharding"
)

// Scenario returns the scenario.
func Scenario() harness.Scenario {
	return harness.Scenario{Name: "sharding", About: "members that share the objects of one type, and members that gain and lose a part", Cases: cases}
}

// The names of metrics.
const (
	number       = "objects"
	requests     = "requests"
	received     = "received"
	cpu          = "CPU"
	loaded       = "until loaded"
	retainedHeap = "retained heap"
	eventCPU     = "CPU per event"
	eventBytes   = "received per event"
)

func cases(quick bool) []harness.Case {
	l, rounds := load{kind: objects.All()[0], objects: 10_000, events: 2000}, 3
	if quick {
		l.objects, l.events, rounds = 1000, 500, 2
	}
	var all []harness.Case
	for _, selects := range []bool{true, false} {
		l.selects = selects
		all = append(all, l.members(rounds), l.moves(rounds))
	}
	return all
}

// load is a server with objects of one type, and the number of changes to them.
type load struct {
	kind            objects.Kind
	objects, events int
	selects         bool // the server has the feature ShardedListAndWatch
}

// newCase returns a case with the metrics of a member's first list, and more.
func (l load) newCase(name, title string, rounds int, contestants []harness.Contestant, more ...harness.Metric) harness.Case {
	suffix, feature := "-on", "selects"
	if !l.selects {
		suffix, feature = "-off", "sends all objects"
	}
	return harness.Case{
		Name: name + suffix, Title: fmt.Sprintf("%s, %d objects of kind %s; the server %s", title, l.objects, l.kind.Name, feature),
		Contestants: contestants, Rounds: rounds, Start: l.start,
		Metrics: append([]harness.Metric{
			{Name: number, Format: "%.0f"},
			{Name: requests, Format: "%.0f"},
			{Name: received, Format: "%.2f MB"},
			{Name: cpu, Format: "%.0f ms"},
			{Name: loaded, Format: "%.0f ms"},
		}, more...),
	}
}

// members returns the case of one member of several.
func (l load) members(rounds int) harness.Case {
	const theirs = "client-go"
	var all []harness.Contestant
	for _, count := range []int{1, 2, 4, 8} {
		all = append(all, harness.Contestant{
			Name: fmt.Sprintf("1 of %d", count), About: fmt.Sprintf("gvrkit's NewForConfig with WithShard: one of %d equal parts", count), Beside: theirs,
			Measure: harness.On(func(ctx context.Context, job harness.Job, server connection) (harness.Figures, error) {
				own, err := sharding.Static(job.Round%count, count)
				if err != nil {
					return nil, err
				}
				return l.member(ctx, server, own.View().Slots, sharded(own))
			}),
		})
	}
	all = append(all, harness.Contestant{
		Name: theirs, About: "client-go's dynamicinformer, which has all objects",
		Measure: harness.On(func(ctx context.Context, _ harness.Job, server connection) (harness.Figures, error) {
			return l.member(ctx, server, firstOf(1).View().Slots, informers.ClientGo)
		}),
	})
	return l.newCase("members", fmt.Sprintf("a member, %d events", l.events), rounds, all,
		harness.Metric{Name: retainedHeap, Format: "%.2f MB"}, harness.Metric{Name: eventCPU, Format: "%.0f µs"}, harness.Metric{Name: eventBytes, Format: "%.1f KB"})
}

// moves returns the case of a member whose part changes.
func (l load) moves(rounds int) harness.Case {
	const wholeList, halfList = "list of all", "list of half"
	half, all := firstOf(2).View().Slots, firstOf(1).View().Slots
	add := func(name, about, beside string, before, after sharding.Slots) harness.Contestant {
		return harness.Contestant{Name: name, About: about, Beside: beside, Measure: harness.On(
			func(ctx context.Context, _ harness.Job, server connection) (harness.Figures, error) {
				return l.move(ctx, server, before, after)
			},
		)}
	}
	return l.newCase("moves", "a member whose part changes", rounds, []harness.Contestant{
		add(wholeList, "a member that starts with all slots", "", sharding.Slots{}, all),
		add(halfList, "a member that starts with half of the slots", "", sharding.Slots{}, half),
		add("half to all", "a member with half of the slots gains the others: another one has left", halfList, half, all),
		add("all to half", "a member with all slots loses half of them: another one has joined", halfList, all, half),
	})
}

// firstOf returns the part of the first member of count.
func firstOf(count int) sharding.Shard {
	first, err := sharding.Static(0, count)
	if err != nil {
		panic("sharding: bug: " + err.Error())
	}
	return first
}

// sharded makes informers with a shard. They send no requests for discovery, like client-go's.
func sharded(shard sharding.Shard) informers.Open {
	return informers.GVRKit(dynamicinformer.WithDiscovery(nil), dynamicinformer.WithShard(shard))
}

// run is one job.
type run struct {
	load

	server  connection
	cfg     *rest.Config
	traffic *usage.Traffic
	events  *informers.Counter
	store   cache.Store
	figures harness.Figures
}

func (l load) newRun(server connection) *run {
	cfg := server.Config()
	return &run{load: l, server: server, cfg: cfg, traffic: usage.Count(cfg), events: informers.NewCounter(), figures: harness.Figures{}}
}

// member measures the start of a member with slots, and the events of changes.
func (l load) member(ctx context.Context, server connection, slots sharding.Slots, open informers.Open) (harness.Figures, error) {
	r := l.newRun(server)
	empty, _ := usage.LiveMemory()
	return r.figures, open.Use(ctx, r.cfg, func(ctx context.Context, set *informers.Set) error {
		if err := r.fill(ctx, set, slots); err != nil {
			return err
		}
		full, _ := usage.LiveMemory()
		r.figures[retainedHeap] = float64(full-empty) / 1e6
		changes, err := r.step(ctx, server.count(slots, l.events), func() error { return server.Changes.Change(ctx, l.events) })
		r.figures[eventCPU] = harness.Micros(changes.cpu, l.events)
		r.figures[eventBytes] = float64(changes.received) / 1e3 / float64(l.events)
		return err
	})
}

// move measures a member whose slots change from before to after; without slots before, its start.
func (l load) move(ctx context.Context, server connection, before, after sharding.Slots) (harness.Figures, error) {
	r, own := l.newRun(server), newPart(before)
	if before.Empty() {
		own = newPart(after)
	}
	return r.figures, sharded(own).Use(ctx, r.cfg, func(ctx context.Context, set *informers.Set) error {
		if before.Empty() {
			return r.fill(ctx, set, after)
		}
		if err := r.fill(ctx, set, before); err != nil {
			return err
		}
		moved := before.Minus(after).Union(after.Minus(before))
		changes, err := r.step(ctx, server.count(moved, l.objects), func() error { own.change(after); return nil })
		if err != nil {
			return err
		}
		return r.note(changes, server.count(after, l.objects))
	})
}

// fill starts an informer and waits until it and its handler have the objects in slots.
func (r *run) fill(ctx context.Context, set *informers.Set, slots sharding.Slots) error {
	objects := r.server.count(slots, r.objects)
	start, err := r.step(ctx, objects, func() error {
		informer, err := set.Add(ctx, r.kind.GVR)
		if err != nil {
			return err
		}
		if _, err := informer.AddEventHandler(r.events); err != nil {
			return err
		}
		r.store = informer.GetStore()
		set.Start()
		return set.Wait(ctx)
	})
	if err != nil {
		return err
	}
	return r.note(start, objects)
}

// cost is what a step takes.
type cost struct {
	cpu, loaded        time.Duration
	requests, received int
}

// step measures do, which makes the handler get n events, until nothing is sent and read.
func (r *run) step(ctx context.Context, n int, do func() error) (c cost, err error) {
	const idle = 300 * time.Millisecond
	before, begin, cpu := r.traffic.Counts(), time.Now(), usage.CPU()
	r.events.Expect(n)
	if err := do(); err != nil {
		return c, err
	}
	at := time.Now()
	if n > 0 {
		if at, err = r.events.Wait(ctx); err != nil {
			return c, err
		}
	}
	err = errors.Join(usage.Sleep(ctx, idle), r.traffic.WaitIdle(ctx, idle)) // a request may follow the last event
	after := r.traffic.Counts()
	return cost{usage.CPU() - cpu, at.Sub(begin), after.Objects - before.Objects, after.Received - before.Received}, err
}

// note records a cost. The member must have n objects then.
func (r *run) note(c cost, n int) error {
	r.figures[cpu], r.figures[loaded] = harness.Millis(c.cpu), harness.Millis(c.loaded)
	r.figures[requests], r.figures[received], r.figures[number] = float64(c.requests), float64(c.received)/1e6, float64(n)
	if got := len(r.store.ListKeys()); got != n {
		return fmt.Errorf("the member has %d objects, want %d", got, n)
	}
	return nil
}
