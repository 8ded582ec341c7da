package measure

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/gvrkit/gvrkit/bench/objects"
	"github.com/gvrkit/gvrkit/bench/systems"
	"github.com/gvrkit/gvrkit/bench/usage"
)

// stopTimeout is how long a system may take to end.
const stopTimeout = 15 * time.Second

// run is one job being done.
type run struct {
	job     Job
	kind    objects.Kind
	system  systems.System
	events  counter
	cache   systems.Cache
	figures Figures
}

// Run does job in this process. It calls change when the system is ready for the
// server's changes. An error is about the job as a whole: it has no figures then.
func Run(ctx context.Context, job Job, change func() error) (Figures, error) {
	r := &run{job: job, figures: Figures{Objects: job.Objects, Events: job.Events}}
	var err error
	if r.kind, err = objects.Named(job.Kind); err != nil {
		return Figures{}, err
	}
	if r.system, err = systems.Named(job.System); err != nil {
		return Figures{}, err
	}
	if err := r.measure(ctx, change); err != nil {
		return Figures{}, fmt.Errorf("%s, %d objects of %s: %w", job.System, job.Objects, job.Kind, err)
	}
	return r.figures, nil
}

func (r *run) measure(ctx context.Context, change func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := r.sync(ctx); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	if err := memProfile(r.job.MemProfile, "sync"); err != nil {
		return err
	}
	if err := r.check(ctx); err != nil {
		return fmt.Errorf("after the sync: %w", err)
	}
	runtime.GC()
	if err := r.follow(ctx, change); err != nil {
		return fmt.Errorf("events: %w", err)
	}
	if err := memProfile(r.job.MemProfile, "events"); err != nil {
		return err
	}
	if err := r.check(ctx); err != nil {
		return fmt.Errorf("after the events: %w", err)
	}
	ctx, stop := context.WithTimeout(ctx, stopTimeout)
	defer stop()
	return r.cache.Stop(ctx)
}

// sync measures how the cache is filled, and what it is then.
func (r *run) sync(ctx context.Context) error {
	var err error
	if r.figures.BaselineRSS, _, err = usage.RSS(); err != nil {
		return err
	}
	empty := usage.LiveHeap()
	stopProfile, err := cpuProfile(r.job.CPUProfile, "sync")
	if err != nil {
		return err
	}
	if err := r.fill(ctx); err != nil {
		return err
	}
	if _, r.figures.PeakRSS, err = usage.RSS(); err != nil {
		return err
	}
	if err := stopProfile(); err != nil {
		return err
	}
	r.figures.RetainedHeap = usage.LiveHeap() - empty
	r.figures.GCCPU, err = usage.Collection()
	return err
}

// fill opens the cache and waits until it has all objects and the handler too.
func (r *run) fill(ctx context.Context) error {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	cpuBefore, err := usage.CPU()
	if err != nil {
		return err
	}
	all := r.events.expect(r.job.Objects)
	r.cache, err = r.system.Open(ctx, systems.Target{
		Config: r.job.Server.Config(), GVR: r.kind.GVR, GVK: r.kind.GVK, Namespaced: r.kind.Namespaced,
		Discovery: r.job.Server.Discovery, Handler: &r.events,
	})
	if err != nil {
		return err
	}
	if err := r.cache.WaitForSync(ctx); err != nil {
		return err
	}
	end, err := r.events.wait(ctx, all)
	if err != nil {
		return err
	}
	cpuAfter, err := usage.CPU()
	if err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	r.figures.SyncCPU, r.figures.SyncWall = cpuAfter-cpuBefore, end.Sub(start)
	r.figures.SyncAllocs, r.figures.SyncBytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	return nil
}

// follow measures how changes are followed.
func (r *run) follow(ctx context.Context, change func() error) error {
	stopProfile, err := cpuProfile(r.job.CPUProfile, "events")
	if err != nil {
		return err
	}
	start := time.Now()
	before, err := usage.CPU()
	if err != nil {
		return err
	}
	all := r.events.expect(r.job.Events)
	if err := change(); err != nil {
		return err
	}
	end, err := r.events.wait(ctx, all)
	if err != nil {
		return err
	}
	after, err := usage.CPU()
	if err != nil {
		return err
	}
	r.figures.EventCPU, r.figures.EventWall = after-before, end.Sub(start)
	return stopProfile()
}
