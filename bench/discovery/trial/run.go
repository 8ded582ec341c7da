package trial

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
	"github.com/gvrkit/gvrkit/bench/discovery/mappers"
)

// trial is one job being done.
type trial struct {
	job     Job
	system  mappers.System
	admin   cluster.Admin
	types   []served
	mapper  *mappers.Mapper
	figures Figures
}

// served is a type that the cluster serves, and what is asked for it: that is made
// beforehand, for it is not the system's to pay for.
type served struct {
	cluster.Type

	kind     schema.GroupKind
	versions []string
	resource schema.GroupVersionResource // of any version
	ref      string
}

func newServed(t cluster.Type) served {
	return served{
		Type: t, kind: t.GVK.GroupKind(), versions: []string{t.GVK.Version},
		resource: t.GVR.GroupResource().WithVersion(""), ref: t.Ref(),
	}
}

// Run does job in this process.
func Run(ctx context.Context, job Job) (Figures, error) {
	system, err := mappers.Named(job.System)
	if err != nil {
		return Figures{}, err
	}
	figures, err := measure(ctx, job, system)
	if err != nil {
		return Figures{}, fmt.Errorf("%s, %d CRDs: %w", job.System, job.CRDs, err)
	}
	return figures, nil
}

func measure(ctx context.Context, job Job, system mappers.System) (Figures, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	t := &trial{job: job, system: system, admin: cluster.Admin{Host: job.Host}}
	var running sync.WaitGroup
	err := t.all(ctx, func(run func(context.Context) error) {
		running.Go(func() {
			if err := run(ctx); err != nil {
				cancel(err)
			}
		})
	})
	if cause := context.Cause(ctx); err != nil && !errors.Is(err, cause) {
		err = errors.Join(err, cause) // nil, unless that is why
	}
	cancel(nil)
	running.Wait()
	return t.figures, err
}

// all does what the job asks for. Each part of it leaves the system at rest. beside runs
// something until the job is done.
func (t *trial) all(ctx context.Context, beside func(run func(context.Context) error)) error {
	types, err := cluster.BuiltIn()
	if err != nil {
		return err
	}
	for _, d := range cluster.Definitions(t.job.CRDs) {
		types = append(types, d.Types...)
	}
	for _, of := range types {
		t.types = append(t.types, newServed(of))
	}
	if err := t.start(ctx, beside); err != nil {
		return fmt.Errorf("start: %w", err)
	}
	if t.job.Brief || t.system.Brief {
		return nil
	}
	if err := t.allWarm(ctx); err != nil {
		return fmt.Errorf("warm: %w", err)
	}
	if err := t.allUnknown(ctx); err != nil {
		return fmt.Errorf("unknown: %w", err)
	}
	if err := t.arrivals(ctx); err != nil {
		return fmt.Errorf("a new type: %w", err)
	}
	return nil
}
