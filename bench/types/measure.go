package types

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/informers"
	"github.com/gvrkit/gvrkit/bench/usage"
)

// system is an implementation of informers, on a server of a given size.
type system struct {
	cluster.Size

	idle time.Duration // without requests and reads, until the system is at rest
	open informers.Open
}

func (s system) measure(ctx context.Context, job harness.Job, server cluster.Connection) (figures harness.Figures, err error) {
	types := cluster.Definitions(s.CRDs)
	if job.Part == partOf(1) {
		types = types[:1]
	}
	cfg := server.Config()
	traffic := usage.Count(cfg)
	begin, cpu := time.Now(), usage.CPU()
	figures = harness.Figures{}
	return figures, s.open.Use(ctx, cfg, func(ctx context.Context, set *informers.Set) (err error) {
		all := make([]cache.SharedIndexInformer, len(types))
		for i, d := range types {
			if all[i], err = set.Add(ctx, d.Types[0].GVR); err != nil {
				return err
			}
		}
		set.Start()
		last := whenSynced(ctx, all)
		if err := set.Wait(ctx); err != nil {
			return err
		}
		figures[returned], figures[returnedCPU] = harness.Millis(time.Since(begin)), harness.Millis(usage.CPU()-cpu)
		figures[synced] = harness.Millis((<-last).Sub(begin))
		if err := traffic.WaitIdle(ctx, s.idle); err != nil {
			return fmt.Errorf("wait until at rest: %w", err)
		}
		figures[restCPU] = harness.Millis(usage.CPU() - cpu)
		counts := traffic.Counts()
		figures[documents], figures[definitions], figures[lists] = float64(counts.Documents), float64(counts.Definitions), float64(counts.Objects)
		figures[beforeList], figures[bytesRead] = float64(counts.First), float64(counts.Bytes)/1e3
		for i, informer := range all {
			if got := len(informer.GetStore().ListKeys()); got != s.Objects {
				return fmt.Errorf("%s has %d objects, want %d", types[i].Name(), got, s.Objects)
			}
		}
		return nil
	})
}

// whenSynced returns a channel that gets the time when the last informer has synced or ctx has
// ended.
func whenSynced(ctx context.Context, all []cache.SharedIndexInformer) <-chan time.Time {
	at := make(chan time.Time, 1)
	go func() {
		for _, informer := range all {
			select {
			case <-informer.HasSyncedChecker().Done():
			case <-ctx.Done():
			}
		}
		at <- time.Now()
	}()
	return at
}
