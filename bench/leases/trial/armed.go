package trial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/discovery/cluster"
	"github.com/gvrkit/gvrkit/bench/leases/informers"
)

// calm is how long what runs beside informers gets until it rests.
const calm = 3 * time.Second

// armed measures informers on types that are not there. One that is there before makes
// what they share: that is not theirs.
func (t *trial) armed(ctx context.Context) error {
	size, admin := t.job.Size, cluster.Admin{Host: t.job.Server.Host}
	first, err := t.arm(ctx, 0, 1)
	if err != nil {
		return err
	}
	if err := first[0].Handle(cache.ResourceEventHandlerFuncs{}); err != nil {
		return err
	}
	if err := pause(ctx, min(calm, size.Settle)); err != nil {
		return err
	}
	before, err := admin.Counts(ctx)
	if err != nil {
		return err
	}
	empty := memory()
	all, err := t.arm(ctx, 1, size.Armed)
	if err != nil {
		return err
	}
	if err := pause(ctx, size.Settle); err != nil {
		return err
	}
	a := &Armed{Informers: size.Armed}
	t.result.Armed = a
	settled, err := admin.Counts(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := pause(ctx, size.Count); err != nil {
		return err
	}
	after, err := admin.Counts(ctx)
	if err != nil {
		return err
	}
	a.Time, a.Starting, a.Requests = time.Since(begin), settled.Since(before).Requests, after.Since(settled).Requests
	bare := memory()
	for _, informer := range all {
		if err := informer.Handle(cache.ResourceEventHandlerFuncs{}); err != nil {
			return err
		}
	}
	if err := pause(ctx, min(calm, size.Settle)); err != nil {
		return err
	}
	a.Bare, a.Handlers = bare.Since(empty), memory().Since(bare)
	return t.absent(ctx, all)
}

// arm makes n informers on types that no cluster has, from the i-th on.
func (t *trial) arm(ctx context.Context, i, n int) ([]*informers.Informer, error) {
	all := make([]*informers.Informer, n)
	for k := range all {
		var err error
		if all[k], err = t.set.Arm(ctx, cluster.Newcomer(i + k).Types[0].GVR); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// absent checks that no informer takes its type for one that is there. It keeps them all
// until then.
func (t *trial) absent(ctx context.Context, all []*informers.Informer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	cancel(errAbsent)
	for i, informer := range all {
		if err := informer.Synced(ctx); err == nil {
			return fmt.Errorf("informer %d has synced on a type that is not there", i)
		}
	}
	return nil
}

var errAbsent = errors.New("it is not there")
