package trial

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/bench/leases/informers"
)

// fleet is several types with as many objects each, and an informer with a handler on each.
type fleet struct {
	objects   int
	types     []definition
	ledgers   []*ledger
	informers []*informers.Informer
}

// newFleet returns one whose informers are to be armed. What is the benchmark's own is
// made now.
func newFleet(size Size) *fleet {
	n := size.Parked
	f := &fleet{objects: size.Objects, types: make([]definition, n), ledgers: make([]*ledger, n), informers: make([]*informers.Informer, n)}
	for i := range n {
		f.types[i], f.ledgers[i] = definition(i+1), newLedger(size.Objects)
	}
	return f
}

// arm makes the informers, on types that are there, and waits until they have synced and
// their handlers know all objects.
func (f *fleet) arm(ctx context.Context, set *informers.Set) (err error) {
	for i, of := range f.types {
		if f.informers[i], err = set.Arm(ctx, of.gvr()); err != nil {
			return err
		}
		if err := f.informers[i].Handle(f.ledgers[i]); err != nil {
			return err
		}
	}
	for i, informer := range f.informers {
		if err := informer.Synced(ctx); err != nil {
			return err
		}
		if _, err := f.ledgers[i].await(ctx, f.objects); err != nil {
			return err
		}
	}
	return nil
}

// undefine deletes the CRDs, and waits until all informers and handlers know.
func (f *fleet) undefine(ctx context.Context, client dynamic.Interface) error {
	for _, of := range f.types {
		if err := client.Resource(definitions).Delete(ctx, of.name(), metav1.DeleteOptions{}); err != nil {
			return fmt.Errorf("delete %s: %w", of.name(), err)
		}
	}
	for i, informer := range f.informers {
		if _, err := f.ledgers[i].await(ctx, 0); err != nil {
			return err
		}
		if err := informer.Gone(ctx); err != nil {
			return err
		}
	}
	return nil
}

// stillRuns checks that informers take handlers, as those that run do. It keeps them all
// until then.
func (f *fleet) stillRuns() error {
	for _, informer := range f.informers {
		if err := informer.Handle(cache.ResourceEventHandlerFuncs{}); err != nil {
			return err
		}
	}
	return nil
}
