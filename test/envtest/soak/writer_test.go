package soak_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/gvrkit/gvrkit/test/envtest/fixture"
)

// target is a type of the soak, and its objects on the server. One goroutine at a time uses it.
type target struct {
	*ledger
	defined bool
	objects map[string]seen // by key
}

func newTarget(n int) *target {
	kind := fmt.Sprintf("Boat%d", n)
	return &target{objects: map[string]seen{}, ledger: &ledger{
		gvr:  schema.GroupVersionResource{Group: group, Version: "v1", Resource: strings.ToLower(kind) + "s"},
		kind: kind,
		calm: n%4 == 0,
	}}
}

// serverPatience is how long the server may take for a request, or for a CRD.
const serverPatience = 3 * time.Minute

// writer writes to the server, past the proxy.
type writer struct {
	client dynamic.Interface
	// install creates CRDs, and returns when their objects can be created.
	install func(ctx context.Context, crds ...*unstructured.Unstructured) error
	result  *result
}

// churn makes random changes of the targets until stop closes. Each of them belongs to one goroutine at a time.
func (w *writer) churn(ctx context.Context, stop <-chan struct{}, r *rand.Rand, targets chan *target) error {
	for !closed(stop) {
		t := <-targets
		err := w.visit(ctx, r, t)
		targets <- t
		if err != nil {
			return fmt.Errorf("the writer of %s: %w", t.gvr.Resource, err)
		}
		wait(stop, time.Duration(r.IntN(20))*time.Millisecond)
	}
	return nil
}

// visit makes a few changes of one target.
func (w *writer) visit(ctx context.Context, r *rand.Rand, t *target) error {
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	switch {
	case !t.defined:
		return w.define(ctx, t)
	case r.IntN(100) == 0:
		return w.undefine(ctx, t)
	}
	for range 1 + r.IntN(6) {
		namespace, name := pick(r, "a", "b", "c"), pick(r, "x", "y", "z")
		s, exists := t.objects[namespace+"/"+name]
		var err error
		switch roll := r.IntN(10); {
		case !exists:
			err = w.create(ctx, t, namespace, name)
		case roll < 7:
			err = w.update(ctx, t, namespace, name, s)
		default:
			if err = w.delete(ctx, t, namespace, name, s); err == nil && roll == 9 {
				err = w.create(ctx, t, namespace, name)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// define creates the CRDs of targets.
func (w *writer) define(ctx context.Context, targets ...*target) error {
	var crds []*unstructured.Unstructured
	for _, t := range targets {
		t.ledger.defined()
		t.defined = true
		w.result.definitions.Add(1)
		w.result.note(t.gvr.Resource, "create the CRD")
		crds = append(crds, fixture.NewCRD(t.gvr.Group, t.kind, "v1"))
	}
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	return w.install(ctx, crds...)
}

func (w *writer) create(ctx context.Context, t *target, namespace, name string) error {
	number := t.created()
	return w.write(ctx, t, namespace, number, 1, func(client dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		return client.Create(ctx, t.newBoat(namespace, name, number, 1), metav1.CreateOptions{})
	})
}

func (w *writer) update(ctx context.Context, t *target, namespace, name string, s seen) error {
	revision := t.updated(s.number)
	return w.write(ctx, t, namespace, s.number, revision, func(client dynamic.ResourceInterface) (*unstructured.Unstructured, error) {
		obj := t.newBoat(namespace, name, s.number, revision)
		obj.SetResourceVersion(fmt.Sprint(s.version))
		return client.Update(ctx, obj, metav1.UpdateOptions{})
	})
}

func (w *writer) write(ctx context.Context, t *target, namespace string, number, revision int, do func(dynamic.ResourceInterface) (*unstructured.Unstructured, error)) error {
	w.result.writes.Add(1)
	return fixture.RetryUntilServed(ctx, func() error {
		got, err := do(w.client.Resource(t.gvr).Namespace(namespace))
		if err != nil {
			return err
		}
		s := observe(got, got)
		t.objects[s.key] = s
		w.result.note(t.gvr.Resource, "wrote %v", s)
		if s.problem != "" || s.number != number || s.revision != revision {
			return fmt.Errorf("the server has %v %s after the write of object %d, revision %d", s, s.problem, number, revision)
		}
		return nil
	})
}

func (w *writer) delete(ctx context.Context, t *target, namespace, name string, s seen) error {
	w.result.writes.Add(1)
	t.deleted(s.number)
	delete(t.objects, s.key)
	w.result.note(t.gvr.Resource, "delete %v", s)
	return w.client.Resource(t.gvr).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{})
}

// undefine deletes the CRD, and waits until it is gone.
func (w *writer) undefine(ctx context.Context, t *target) error {
	if !t.defined {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	for _, s := range t.objects {
		t.deleted(s.number)
	}
	clear(t.objects)
	t.defined = false
	w.result.note(t.gvr.Resource, "delete the CRD")
	return fixture.Undefine(ctx, w.client, t.gvr.GroupResource().String())
}

// reset deletes all types, and forgets them.
func (w *writer) reset(ctx context.Context, targets []*target) error {
	next, errs := make(chan *target, len(targets)), make(chan error, len(targets))
	for _, t := range targets {
		next <- t
	}
	close(next)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for t := range next {
				errs <- w.undefine(ctx, t)
				t.forget()
			}
		})
	}
	all.Wait()
	close(errs)
	w.result.forget()
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// list returns what the server has of a target.
func (w *writer) list(ctx context.Context, t *target) (map[string]seen, error) {
	has := map[string]seen{}
	if !t.defined {
		return has, nil
	}
	list, err := w.client.Resource(t.gvr).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		s := observe(&list.Items[i], &list.Items[i])
		has[s.key] = s
	}
	return has, nil
}

func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// wait waits for d, or until stop closes.
func wait(stop <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stop:
	}
}
