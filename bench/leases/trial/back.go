package trial

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/leases/informers"
)

// perCycle is how long a cycle may take.
const perCycle = time.Minute

// back measures an informer whose type goes and comes back.
func (t *trial) back(ctx context.Context) error {
	c, err := t.newCycles(ctx)
	if err != nil {
		return err
	}
	for i := range t.job.Size.Cycles + 1 {
		cycle, err := c.run(ctx)
		if err != nil {
			return fmt.Errorf("cycle %d: %w", i, err)
		}
		if i > 0 {
			t.result.Back = append(t.result.Back, cycle)
		}
	}
	return c.end(ctx)
}

// cycles are those of one type, one after the other. Between them it is there, with all
// its objects.
type cycles struct {
	of       definition
	objects  int
	client   dynamic.Interface
	raw      rest.Interface
	evidence *evidence
	informer *informers.Informer
	ledger   *ledger
}

// newCycles creates the type, and the informer on it.
func (t *trial) newCycles(ctx context.Context) (*cycles, error) {
	c := &cycles{of: definition(0), objects: t.job.Size.Objects, ledger: newLedger(t.job.Size.Objects)}
	own := ownConfig(t.cfg)
	var err error
	if c.client, err = dynamic.NewForConfig(own); err != nil {
		return nil, err
	}
	if c.raw, err = rawClient(own); err != nil {
		return nil, err
	}
	if c.informer, err = t.set.Arm(ctx, c.of.gvr()); err != nil {
		return nil, err
	}
	if err := c.informer.Handle(c.ledger); err != nil {
		return nil, err
	}
	if err := t.install(ctx, c.client, []definition{c.of}); err != nil {
		return nil, err
	}
	if c.evidence, err = observe(ctx, c.client, c.of.name()); err != nil {
		return nil, err
	}
	_, err = c.ledger.await(ctx, c.objects)
	return c, err
}

// end leaves the server as it was.
func (c *cycles) end(ctx context.Context) error {
	if err := c.client.Resource(definitions).Delete(ctx, c.of.name(), metav1.DeleteOptions{}); err != nil {
		return err
	}
	_, err := c.evidence.await(ctx, sight.isDeletion)
	return err
}

// run lets the type go and come back.
func (c *cycles) run(ctx context.Context) (Cycle, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, perCycle, fmt.Errorf("given up after %v", perCycle))
	defer cancel()
	var cycle Cycle
	if err := c.goes(ctx, &cycle); err != nil {
		return cycle, fmt.Errorf("it goes: %w", err)
	}
	if err := c.comes(ctx, &cycle); err != nil {
		return cycle, fmt.Errorf("it comes: %w", err)
	}
	return cycle, nil
}

func (c *cycles) goes(ctx context.Context, cycle *Cycle) error {
	if err := c.client.Resource(definitions).Delete(ctx, c.of.name(), metav1.DeleteOptions{}); err != nil {
		return err
	}
	var gone time.Time
	var failed error
	var knowing sync.WaitGroup
	knowing.Go(func() {
		failed = c.informer.Gone(ctx)
		gone = time.Now()
	})
	deleted, err := c.evidence.await(ctx, sight.isDeletion)
	if err != nil {
		return err
	}
	empty, err := c.ledger.await(ctx, 0)
	if err != nil {
		return err
	}
	knowing.Wait()
	cycle.Deleted, cycle.Gone = empty.Sub(deleted), gone.Sub(deleted)
	return failed
}

func (c *cycles) comes(ctx context.Context, cycle *Cycle) error {
	if _, err := c.client.Resource(definitions).Create(ctx, c.of.crd(), metav1.CreateOptions{}); err != nil {
		return err
	}
	established, err := c.evidence.await(ctx, sight.isEstablished)
	if err != nil {
		return err
	}
	var synced, open time.Time
	var notSynced, notOpen error
	var awaiting sync.WaitGroup
	awaiting.Go(func() {
		notSynced = c.informer.Synced(ctx)
		synced = time.Now()
	})
	awaiting.Go(func() { open, notOpen = listable(ctx, c.raw, c.of.gvr()) })
	err = pause(ctx, time.Until(established.Add(grace)))
	if err == nil {
		err = c.of.create(ctx, c.client, 0, 1)
	}
	created := time.Now()
	var added time.Time
	if err == nil {
		added, err = c.ledger.await(ctx, 1)
	}
	awaiting.Wait()
	if err := errors.Join(err, notSynced, notOpen); err != nil {
		return err
	}
	if open.After(created) {
		created = open
	}
	cycle.Listable, cycle.Synced, cycle.Added = open.Sub(established), synced.Sub(established), added.Sub(created)
	if err := c.of.create(ctx, c.client, 1, c.objects); err != nil {
		return err
	}
	_, err = c.ledger.await(ctx, c.objects)
	return err
}
