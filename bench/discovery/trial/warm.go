package trial

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

const (
	minBatches = 5
	maxBatches = 100
	// warmTime is about how long warm resolves of one sort are measured.
	warmTime = 300 * time.Millisecond
)

// allWarm measures the ways of asking for what is known.
func (t *trial) allWarm(ctx context.Context) error {
	var named []*served
	for i := range t.types {
		if t.types[i].hasName() {
			named = append(named, &t.types[i])
		}
	}
	for _, way := range []struct {
		into **Warm
		ask  func(i int) error
	}{
		{&t.figures.Mapping, func(i int) error { return t.ask(&t.types[i%len(t.types)]) }},
		{&t.figures.Kind, func(i int) error { return t.askKind(ctx, &t.types[i%len(t.types)]) }},
		{&t.figures.Name, func(i int) error { return t.askName(ctx, named[i%len(named)]) }},
	} {
		warm, err := t.warm(ctx, way.ask)
		if err != nil {
			return err
		}
		*way.into = &warm
	}
	return nil
}

// warm measures ask, in batches of as many as the job says: their median. Each of them
// asks for all types in turn.
func (t *trial) warm(ctx context.Context, ask func(i int) error) (Warm, error) {
	before, err := t.admin.Counts(ctx)
	if err != nil {
		return Warm{}, err
	}
	var nanos, allocs []float64
	for begin := time.Now(); len(nanos) < minBatches || len(nanos) < maxBatches && time.Since(begin) < warmTime; {
		n, a, err := batch(t.job.Asks, ask)
		if err != nil {
			return Warm{}, err
		}
		nanos, allocs = append(nanos, n), append(allocs, a)
	}
	after, err := t.admin.Counts(ctx)
	if err != nil {
		return Warm{}, err
	}
	return Warm{
		Requests: float64(after.Since(before).Requests) / float64(len(nanos)),
		Nanos:    median(nanos), Allocs: median(allocs),
	}, nil
}

// batch returns the time and the allocations of one of n asks.
func batch(n int, ask func(i int) error) (nanos, allocs float64, err error) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	for i := range n {
		if err := ask(i); err != nil {
			return 0, 0, fmt.Errorf("ask %d: %w", i, err)
		}
	}
	took := time.Since(begin)
	runtime.ReadMemStats(&after)
	return float64(took) / float64(n), float64(after.Mallocs-before.Mallocs) / float64(n), nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
