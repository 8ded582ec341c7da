package leases

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/gvrkit/gvrkit/bench/cluster"
	"github.com/gvrkit/gvrkit/bench/harness"
	"github.com/gvrkit/gvrkit/bench/stub"
	"github.com/gvrkit/gvrkit/bench/usage"
)

// cycle is a type that goes and comes back, with one informer on it.
type cycle struct {
	of       stub.Definition
	crd      *unstructured.Unstructured
	objects  int
	client   dynamic.Interface
	raw      rest.Interface
	informer *informer
	handler  *ledger
	seen     <-chan sight
	times    map[string][]float64 // in ms, by the names of metrics
}

// sight is one event of the benchmark's own watch of the CRD.
type sight struct {
	kind        watch.EventType
	established bool
	at          time.Time
}

func (s sight) deletion() bool { return s.kind == watch.Deleted }

func (s sight) establishment() bool { return s.kind != watch.Deleted && s.established }

// back measures an informer whose type goes and comes back. The benchmark's client has a
// connection of its own, so that it does not delay the system.
func (r *run) back(ctx context.Context) error {
	cfg := r.Server.Config()
	cfg.Dial = (&net.Dialer{}).DialContext
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return err
	}
	c := &cycle{of: stub.NewDefinition(0), objects: r.Objects, client: client, handler: newLedger(r.Objects), times: map[string][]float64{}}
	cfg.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	if c.raw, err = rest.UnversionedRESTClientFor(cfg); err != nil {
		return err
	}
	if c.informer, err = r.set.add(ctx, c.of.Types[0].GVR); err != nil {
		return err
	}
	if err := c.informer.handle(c.handler); err != nil {
		return err
	}
	if c.crd, err = c.of.CRD(300); err != nil {
		return err
	}
	if err := r.Server.InstallCRDs(ctx, c.crd); err != nil {
		return err
	}
	if err := c.create(ctx, 0, c.objects); err != nil {
		return err
	}
	if err := c.observe(ctx); err != nil {
		return err
	}
	if _, err := c.handler.await(ctx, c.objects); err != nil {
		return err
	}
	for i := range r.Cycles + 1 {
		if err := c.run(ctx); err != nil {
			return fmt.Errorf("cycle %d: %w", i, err)
		}
		if i == 0 {
			clear(c.times)
		}
	}
	for name, times := range c.times {
		r.figures[name], r.figures[name+worst] = harness.Median(times), slices.Max(times)
	}
	if err := c.delete(ctx); err != nil {
		return err
	}
	_, err = c.await(ctx, sight.deletion)
	return err
}

// observe watches the CRD until ctx ends.
func (c *cycle) observe(ctx context.Context) error {
	crds := c.client.Resource(stub.CRDs)
	opts := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", c.of.Name()).String()}
	list, err := crds.List(ctx, opts)
	if err != nil {
		return err
	}
	opts.ResourceVersion = list.GetResourceVersion()
	w, err := crds.Watch(ctx, opts)
	if err != nil {
		return err
	}
	seen := make(chan sight, 100)
	go func() {
		defer close(seen)
		defer w.Stop()
		for event := range w.ResultChan() {
			s := sight{kind: event.Type, at: time.Now()}
			if crd, ok := event.Object.(*unstructured.Unstructured); ok {
				s.established = established(crd)
			}
			select {
			case seen <- s:
			case <-ctx.Done():
				return
			}
		}
	}()
	c.seen = seen
	return nil
}

// await waits for the next event of a sort, and returns when it came.
func (c *cycle) await(ctx context.Context, of func(sight) bool) (time.Time, error) {
	for {
		select {
		case s, more := <-c.seen:
			switch {
			case !more:
				return time.Time{}, errors.New("the benchmark's own watch has ended")
			case of(s):
				return s.at, nil
			}
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}

func (c *cycle) add(name string, d time.Duration) {
	c.times[name] = append(c.times[name], harness.Millis(d))
}

// run lets the type go and come back.
func (c *cycle) run(ctx context.Context) error {
	const patience = time.Minute
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("given up after %v", patience))
	defer cancel()
	if err := c.goes(ctx); err != nil {
		return err
	}
	return c.comes(ctx)
}

// goes deletes the CRD.
func (c *cycle) goes(ctx context.Context) error {
	if err := c.delete(ctx); err != nil {
		return err
	}
	var gone time.Time
	var failed error
	var waiting sync.WaitGroup
	waiting.Go(func() {
		failed = c.informer.gone(ctx)
		gone = time.Now()
	})
	deleted, err := c.await(ctx, sight.deletion)
	var empty time.Time
	if err == nil {
		empty, err = c.handler.await(ctx, 0)
	}
	waiting.Wait()
	c.add(crdToDeleted, empty.Sub(deleted))
	c.add(crdToGone, gone.Sub(deleted))
	return errors.Join(err, failed)
}

// comes creates the CRD again, and its objects. Servers create the first one slowly.
func (c *cycle) comes(ctx context.Context) error {
	if _, err := c.client.Resource(stub.CRDs).Create(ctx, c.crd, metav1.CreateOptions{}); err != nil {
		return err
	}
	ready, err := c.await(ctx, sight.establishment)
	if err != nil {
		return err
	}
	var synced, listed time.Time
	var notSynced, notListed error
	var waiting sync.WaitGroup
	waiting.Go(func() {
		notSynced = c.informer.synced(ctx)
		synced = time.Now()
	})
	waiting.Go(func() { listed, notListed = listable(ctx, c.raw, c.of.Types[0]) })
	err = usage.Sleep(ctx, time.Until(ready.Add(cluster.Settle)))
	if err == nil {
		err = c.create(ctx, 0, 1)
	}
	created := time.Now()
	var added time.Time
	if err == nil {
		added, err = c.handler.await(ctx, 1)
	}
	waiting.Wait()
	if err := errors.Join(err, notSynced, notListed); err != nil {
		return err
	}
	if listed.After(created) {
		created = listed
	}
	c.add(readyToListable, listed.Sub(ready))
	c.add(readyToSynced, synced.Sub(ready))
	c.add(listableToSynced, synced.Sub(listed))
	c.add(createdToAdded, added.Sub(created))
	if err := c.create(ctx, 1, c.objects); err != nil {
		return err
	}
	_, err = c.handler.await(ctx, c.objects)
	return err
}

// listable waits until the server answers a list of a type, which it tries each 10 ms, without
// the retries of client-go. It returns when it did.
func listable(ctx context.Context, client rest.Interface, of stub.Type) (time.Time, error) {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := client.Get().AbsPath("/apis", of.GVR.Group, of.GVR.Version, of.GVR.Resource).MaxRetries(0).Do(ctx).Error()
		switch {
		case err == nil:
			return time.Now(), nil
		case !apierrors.IsNotFound(err) && !apierrors.IsTooManyRequests(err) && !apierrors.IsServiceUnavailable(err):
			return time.Time{}, fmt.Errorf("list: %w", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}

// create creates objects of the type, from number first on until there are n.
func (c *cycle) create(ctx context.Context, first, n int) error {
	of := c.of.Types[0]
	for i := first; i < n; i++ {
		obj := of.Object(i)
		if _, err := c.client.Resource(of.GVR).Namespace(obj.GetNamespace()).Create(ctx, obj, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create object %d: %w", i, err)
		}
	}
	return nil
}

// delete deletes the CRD.
func (c *cycle) delete(ctx context.Context) error {
	return c.client.Resource(stub.CRDs).Delete(ctx, c.of.Name(), metav1.DeleteOptions{})
}
