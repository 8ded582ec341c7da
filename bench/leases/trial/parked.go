package trial

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/leases/informers"
	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

// grace is how long after a CRD is established a server creates its objects slowly.
const grace = 2100 * time.Millisecond

// parked measures informers whose types go. One on a type that is not there makes what
// they share.
func (t *trial) parked(ctx context.Context) error {
	client, err := dynamic.NewForConfig(t.cfg)
	if err != nil {
		return err
	}
	if _, err := t.set.Arm(ctx, definition(0).gvr()); err != nil {
		return err
	}
	types, ledgers := make([]definition, t.job.Size.Parked), make([]*ledger, t.job.Size.Parked)
	for i := range types {
		types[i], ledgers[i] = definition(i+1), newLedger(t.job.Size.Objects)
	}
	if err := t.install(ctx, client, types); err != nil {
		return err
	}
	if err := pause(ctx, calm); err != nil {
		return err
	}
	empty := memory()
	all := make([]*informers.Informer, len(types))
	for i, of := range types {
		if all[i], err = t.set.Arm(ctx, of.gvr()); err != nil {
			return err
		}
		if err := all[i].Handle(ledgers[i]); err != nil {
			return err
		}
	}
	for i, informer := range all {
		if err := informer.Synced(ctx); err != nil {
			return err
		}
		if _, err := ledgers[i].await(ctx, t.job.Size.Objects); err != nil {
			return err
		}
	}
	if err := pause(ctx, calm); err != nil {
		return err
	}
	p := &Parked{Informers: len(types), Synced: memory().Since(empty)}
	for i, of := range types {
		if err := client.Resource(definitions).Delete(ctx, of.name(), metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete CRD %d: %w", i, err)
		}
	}
	for i, informer := range all {
		if _, err := ledgers[i].await(ctx, 0); err != nil {
			return err
		}
		if err := informer.Gone(ctx); err != nil {
			return err
		}
	}
	if err := pause(ctx, calm); err != nil {
		return err
	}
	p.Gone = memory().Since(empty)
	t.result.Parked = p
	return t.stillThere(all)
}

// stillThere checks that informers take handlers, as those that run do. It keeps them all
// until then.
func (t *trial) stillThere(all []*informers.Informer) error {
	for _, informer := range all {
		if err := informer.Handle(cache.ResourceEventHandlerFuncs{}); err != nil {
			return err
		}
	}
	return nil
}

// install creates types with their objects.
func (t *trial) install(ctx context.Context, client dynamic.Interface, types []definition) error {
	crds := make([]*unstructured.Unstructured, len(types))
	for i, of := range types {
		crds[i] = of.crd()
	}
	if err := embedded.InstallCRDs(ctx, t.cfg, crds...); err != nil {
		return err
	}
	if err := pause(ctx, grace); err != nil {
		return err
	}
	for _, of := range types {
		if err := of.create(ctx, client, 0, t.job.Size.Objects); err != nil {
			return err
		}
	}
	return nil
}
