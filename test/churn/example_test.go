package churn_test //nolint:testableexamples // the example requires a server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/test/churn"
)

// mirror is a controller that copies the red objects of the type t1. It could create other objects on
// the server; here, it keeps the copies.
type mirror struct {
	env     churn.Environment
	factory *dynamicinformer.Factory
	copies  *churn.Recorder
}

// newMirror is a churn.NewSubject.
func newMirror(ctx context.Context, env churn.Environment) (churn.Subject, error) {
	client, err := dynamic.NewForConfigAndClient(env.Config, env.HTTP)
	if err != nil {
		return nil, err
	}
	m := &mirror{env: env, copies: &churn.Recorder{View: churn.View{Name: "mirror", Type: "t1", Color: "red"}}}
	if m.factory, err = dynamicinformer.New(client, dynamicinformer.WithLabelSelector(churn.ColorLabel+"=red")); err != nil {
		return nil, err
	}
	if _, err := m.factory.ForResource(env.World.Resource("t1", "v1")).Informer().AddEventHandler(cache.ResourceEventHandler(m.copies)); err != nil {
		return nil, err
	}
	m.factory.Start(context.WithoutCancel(ctx)) // until Stop
	return m, nil
}

// Do ignores operations on leases and handlers, which the controller does not have.
func (m *mirror) Do(context.Context, churn.Op) error { return nil }

// Settle does nothing: the informer tries again by itself.
func (m *mirror) Settle() {}

// AtRest compares the copies with the objects of the server.
func (m *mirror) AtRest(context.Context) []churn.Violation {
	if crd, number := m.env.World.Incarnation("t1"); number < 0 || !slices.Contains(crd.Served, "v1") {
		return nil
	}
	return churn.Compare("the mirror", m.env.World.Want(m.copies.View), m.copies.Has())
}

// Stop checks all events that the controller has got.
func (m *mirror) Stop(ctx context.Context) []churn.Violation {
	if err := m.factory.Shutdown(ctx); err != nil {
		return []churn.Violation{{Invariant: churn.Released, Text: err.Error()}}
	}
	return m.copies.Check(m.env.World)
}

// A controller under random operations and faults on the server of a test. The type of the script
// stays, and so do the permissions: the controller has no discovery and no status.
func Example() {
	ctx, server := context.Background(), &rest.Config{} // of the embedded server, for example
	profile := churn.Profile{Types: 1, Without: []string{churn.Undefine, churn.Redefine, churn.Serve, churn.Forbid}}
	cfg := churn.Config{Servers: []*rest.Config{server}, Subject: newMirror, Patience: 2 * time.Minute}
	for seed := range uint64(10) {
		result, err := churn.Run(ctx, cfg, churn.Generate(seed, profile))
		if err != nil {
			fmt.Println(err)
			return
		}
		if result.Failed() {
			shortest := churn.Shortest(ctx, cfg, result)
			fmt.Printf("seed %d:\n%v\n%v", seed, shortest, shortest.Script)
		}
	}
}
