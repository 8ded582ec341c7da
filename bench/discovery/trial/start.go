package trial

import (
	"context"
	"runtime"
	"time"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
	"github.com/gvrkit/gvrkit/bench/usage"
)

// start opens the mapper and asks for everything.
func (t *trial) start(ctx context.Context, beside func(run func(context.Context) error)) error {
	before, err := t.admin.Counts(ctx)
	if err != nil {
		return err
	}
	empty := usage.LiveHeap()
	cpu, err := usage.CPU()
	if err != nil {
		return err
	}
	if err := t.answers(ctx, beside, before); err != nil {
		return err
	}
	after, err := t.rest(ctx)
	if err != nil {
		return err
	}
	s := &t.figures.Start
	s.Requests, s.Bytes = after.Since(before).Requests, after.Since(before).Bytes
	used, err := usage.CPU()
	if err != nil {
		return err
	}
	s.CPU = used - cpu
	if _, s.PeakRSS, err = usage.RSS(); err != nil {
		return err
	}
	if t.system.Brief {
		return nil
	}
	if err := t.inOwnWay(ctx); err != nil {
		return err
	}
	s.Heap = usage.LiveHeap() - empty
	if err := t.inEveryWay(); err != nil {
		return err
	}
	s.FullHeap = usage.LiveHeap() - empty
	runtime.KeepAlive(t.mapper)
	return nil
}

// answers measures how long it takes and what is asked until there is a first answer,
// and one for each type.
func (t *trial) answers(ctx context.Context, beside func(run func(context.Context) error), before cluster.Counts) error {
	var err error
	s := &t.figures.Start
	begin := time.Now()
	if t.mapper, err = t.system.Open(t.job.config()); err != nil {
		return err
	}
	if t.mapper.Run != nil {
		beside(t.mapper.Run)
	}
	if err := t.ask(&t.types[len(t.types)/2]); err != nil {
		return err
	}
	s.First = time.Since(begin)
	now, err := t.admin.Counts(ctx)
	if err != nil || t.system.Brief {
		s.FirstRequests = now.Since(before).Requests
		return err
	}
	s.FirstRequests = now.Since(before).Requests
	again := time.Now()
	for i := range t.types {
		if err := t.ask(&t.types[i]); err != nil {
			return err
		}
	}
	s.All = s.First + time.Since(again)
	now, err = t.admin.Counts(ctx)
	s.AllRequests = now.Since(before).Requests
	return err
}

// inOwnWay asks for each type in the ways that the system is made for, so that what it
// keeps for the next time is there.
func (t *trial) inOwnWay(ctx context.Context) error {
	for i := range t.types {
		of := &t.types[i]
		if err := t.ask(of); err != nil {
			return err
		}
		if err := t.askKind(ctx, of); err != nil {
			return err
		}
		if !of.hasName() {
			continue
		}
		if err := t.askName(ctx, of); err != nil {
			return err
		}
	}
	return nil
}

// inEveryWay asks for types by ResourceFor, too, and for one that is not there.
func (t *trial) inEveryWay() error {
	for i := range t.types {
		if of := &t.types[i]; of.hasName() {
			if err := t.askResource(of); err != nil {
				return err
			}
		}
	}
	nothing := newServed(cluster.Newcomer(9).Types[0])
	return t.askNothing(&nothing)
}
