package trial

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

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
	f := newFleet(t.job.Size)
	if err := t.install(ctx, client, f.types); err != nil {
		return err
	}
	if err := pause(ctx, calm); err != nil {
		return err
	}
	empty := memory()
	if err := f.arm(ctx, t.set); err != nil {
		return err
	}
	if err := pause(ctx, calm); err != nil {
		return err
	}
	p := &Parked{Informers: len(f.types), Synced: memory().Since(empty)}
	if err := f.undefine(ctx, client); err != nil {
		return err
	}
	if err := pause(ctx, calm); err != nil {
		return err
	}
	p.Gone = memory().Since(empty)
	t.result.Parked = p
	return f.stillRuns()
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
