package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/leases/informers"
)

// trial is one job being done.
type trial struct {
	job    Job
	cfg    *rest.Config
	set    *informers.Set
	result Figures
}

// Run does job in this process.
func Run(ctx context.Context, job Job) (Figures, error) {
	t := &trial{job: job, cfg: job.Server.Config()}
	measure, known := map[Part]func(context.Context) error{
		PartCost: t.cost, PartArmed: t.open(t.armed), PartParked: t.open(t.parked), PartBack: t.open(t.back),
	}[job.Part]
	if !known {
		return Figures{}, fmt.Errorf("no part %q", job.Part)
	}
	if err := measure(ctx); err != nil {
		return Figures{}, fmt.Errorf("%s, %s: %w", job.Part, job.System, err)
	}
	return t.result, nil
}

// open returns what opens the system for measure, and stops it afterwards.
func (t *trial) open(measure func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		system, err := informers.Named(t.job.System)
		if err != nil {
			return err
		}
		life, end := context.WithCancel(ctx)
		defer end()
		if t.set, err = system.Open(life, t.cfg); err != nil {
			return err
		}
		defer func() {
			end()
			err = errors.Join(err, t.set.Stop(ctx))
		}()
		return measure(life)
	}
}

// pause waits for d.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
