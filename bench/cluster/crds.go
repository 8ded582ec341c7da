package cluster

import (
	"context"
	"errors"
	"net"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/gvrkit/gvrkit/bench/usage"
	"github.com/gvrkit/gvrkit/test/envtest/embedded"
)

// Size is the number of CRDs on a server, the size of each schema, and the number of objects of
// each CRD.
type Size struct{ CRDs, SchemaBytes, Objects int }

// Fill installs CRDs and creates their objects.
func (c Connection) Fill(ctx context.Context, s Size) error {
	const batches, settle = 16, 5 * time.Second // until discovery documents have all CRDs
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		return err
	}
	all := make([]*unstructured.Unstructured, s.CRDs)
	for i, d := range Definitions(s.CRDs) {
		all[i] = d.CRD(s.SchemaBytes)
	}
	installs, installing := errgroup.WithContext(ctx)
	for i := range batches { // an API server takes about a second for each call
		installs.Go(func() error {
			return embedded.InstallCRDs(installing, c.Config(), all[i*len(all)/batches:(i+1)*len(all)/batches]...)
		})
	}
	if err := installs.Wait(); err != nil {
		return err
	}
	if err := usage.Sleep(ctx, settle); err != nil {
		return err
	}
	writes, writing := errgroup.WithContext(ctx)
	writes.SetLimit(batches)
	for i := range s.CRDs * s.Objects {
		writes.Go(func() error {
			of := NewDefinition(i / s.Objects).Types[0]
			obj := of.Object(i % s.Objects)
			_, err := client.Resource(of.GVR).Namespace(obj.GetNamespace()).Create(writing, obj, metav1.CreateOptions{})
			return err
		})
	}
	return writes.Wait()
}

// TemporaryCRD is a CRD that is created and deleted during a measurement. It is not safe for
// concurrent use.
type TemporaryCRD struct {
	Definition
	watch.Interface // of the CRD; Stop ends it

	crds     dynamic.ResourceInterface // with its own connection, which does not delay the measured client
	manifest *unstructured.Unstructured
}

// TemporaryCRD returns a CRD that is not yet on the server. The caller must call Stop.
func (c Connection) TemporaryCRD(ctx context.Context, d Definition, schemaBytes int) (*TemporaryCRD, error) {
	cfg := c.Config()
	cfg.Dial = (&net.Dialer{}).DialContext
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, err
	}
	opts := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", d.Name()).String()}
	crds := client.Resource(CRDs)
	list, err := crds.List(ctx, opts)
	if err != nil {
		return nil, err
	}
	opts.ResourceVersion = list.GetResourceVersion()
	seen, err := crds.Watch(ctx, opts)
	return &TemporaryCRD{d, seen, crds, d.CRD(schemaBytes)}, err
}

// Create creates the CRD. It returns the time of the watch event in which it is Established.
func (c *TemporaryCRD) Create(ctx context.Context) (time.Time, error) {
	if _, err := c.crds.Create(ctx, c.manifest, metav1.CreateOptions{}); err != nil {
		return time.Time{}, err
	}
	return c.await(ctx, func(event watch.EventType, crd *unstructured.Unstructured) bool {
		return event != watch.Deleted && Established(crd)
	})
}

// Delete deletes the CRD. It returns the time of the watch event for its deletion.
func (c *TemporaryCRD) Delete(ctx context.Context) (time.Time, error) {
	if err := c.crds.Delete(ctx, c.Name(), metav1.DeleteOptions{}); err != nil {
		return time.Time{}, err
	}
	return c.await(ctx, func(event watch.EventType, _ *unstructured.Unstructured) bool { return event == watch.Deleted })
}

func (c *TemporaryCRD) await(ctx context.Context, of func(watch.EventType, *unstructured.Unstructured) bool) (time.Time, error) {
	for {
		select {
		case event, more := <-c.ResultChan():
			now := time.Now()
			if !more {
				return now, errors.New("the benchmark's own watch has ended")
			}
			if crd, ok := event.Object.(*unstructured.Unstructured); ok && of(event.Type, crd) {
				return now, nil
			}
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}

// Established reports whether the condition Established of a CRD is true.
func Established(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, condition := range conditions {
		if c, ok := condition.(map[string]any); ok && c["type"] == "Established" && c["status"] == "True" {
			return true
		}
	}
	return false
}
