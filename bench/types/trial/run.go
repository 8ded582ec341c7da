package trial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
	"github.com/gvrkit/gvrkit/bench/usage"
)

// Run does job in this process.
func Run(ctx context.Context, job Job) (f Figures, err error) {
	all := All()
	at := slices.IndexFunc(all, func(s System) bool { return s.Name == job.System })
	if at < 0 {
		return f, fmt.Errorf("no system %q", job.System)
	}
	var types []schema.GroupVersionResource
	for _, d := range cluster.Definitions(job.Types) {
		types = append(types, d.Types[0].GVR)
	}
	cfg, counted := job.Server.Config(), &traffic{}
	cfg.Wrap(counted.wrap)
	ctx, end := context.WithCancel(ctx)
	defer end()

	began, err := usage.CPU()
	if err != nil {
		return f, err
	}
	begin := time.Now()
	s, err := all[at].start(ctx, cfg, types)
	if err != nil {
		return f, err
	}
	defer func() {
		end()
		err = errors.Join(err, s.stop(context.WithoutCancel(ctx)))
	}()
	synced := s.whenSynced(ctx)
	if err := s.wait(ctx); err != nil {
		return f, err
	}
	f.Returned = time.Since(begin)
	cpu, err := usage.CPU()
	if err != nil {
		return f, err
	}
	f.ReturnedCPU = cpu - began
	f.Synced = (<-synced).Sub(begin)
	if err := counted.rest(ctx, job.Rest); err != nil {
		return f, fmt.Errorf("it is not at rest: %w", err)
	}
	if cpu, err = usage.CPU(); err != nil {
		return f, err
	}
	f.RestCPU = cpu - began
	counted.into(&f)
	return f, s.complete(types, job.Objects)
}

// whenSynced returns a channel that gets the time at which the last informer had synced, or
// ctx has ended.
func (s *started) whenSynced(ctx context.Context) <-chan time.Time {
	at := make(chan time.Time, 1)
	go func() {
		for _, informer := range s.informers {
			select {
			case <-informer.HasSyncedChecker().Done():
			case <-ctx.Done():
			}
		}
		at <- time.Now()
	}()
	return at
}

// complete returns an error if an informer does not have n objects.
func (s *started) complete(types []schema.GroupVersionResource, n int) error {
	for i, informer := range s.informers {
		if got := len(informer.GetStore().ListKeys()); got != n {
			return fmt.Errorf("%v has %d objects, of %d", types[i], got, n)
		}
	}
	return nil
}
