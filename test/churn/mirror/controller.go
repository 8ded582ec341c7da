// Package mirror is a small controller under the churn model: an example of a [churn.Subject]. It copies the red objects of
// a type.
package mirror

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"

	"github.com/gvrkit/gvrkit/dynamicinformer"
	"github.com/gvrkit/gvrkit/test/churn"
)

// Controller handles the events of the objects, and has the copies.
type Controller interface {
	cache.ResourceEventHandler
	// Copies returns the copies by the keys of the objects.
	Copies() map[string]churn.Observation
}

// Mirror is the controller. It could create objects on a server; here, it keeps in memory what it would create. Its zero value
// has no copies.
type Mirror struct {
	mu     sync.Mutex
	copies map[string]churn.Observation
}

// OnAdd implements [cache.ResourceEventHandler].
func (m *Mirror) OnAdd(obj any, _ bool) { m.copy(obj) }

// OnUpdate implements [cache.ResourceEventHandler].
func (m *Mirror) OnUpdate(_, obj any) { m.copy(obj) }

// OnDelete implements [cache.ResourceEventHandler].
func (m *Mirror) OnDelete(obj any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.copies, churn.Observe(obj, churn.Whole).Key())
}

func (m *Mirror) copy(obj any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.copies == nil {
		m.copies = map[string]churn.Observation{}
	}
	seen := churn.Observe(obj, churn.Whole)
	m.copies[seen.Key()] = seen
}

// Copies implements [Controller].
func (m *Mirror) Copies() map[string]churn.Observation {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.copies)
}

// New starts a [Mirror] as a subject. It is a [churn.NewSubject].
func New(ctx context.Context, env churn.Environment) (churn.Subject, error) {
	return With(func() Controller { return &Mirror{} })(ctx, env)
}

// With is New for another controller, of which each run has its own. Its informer is one of this module, with a selector for red objects: the
// runs show bugs of the controller. For those that another informer shows, such as updates to an object with another
// UID, a program implements [churn.Subject] itself.
func With(controller func() Controller) churn.NewSubject {
	return func(ctx context.Context, env churn.Environment) (churn.Subject, error) {
		client, err := dynamic.NewForConfigAndClient(env.Config, env.HTTP)
		if err != nil {
			return nil, err
		}
		s := &subject{env: env, controller: controller(), events: &churn.Recorder{View: churn.View{Name: "mirror", Type: "t1", Color: "red"}}}
		if s.factory, err = dynamicinformer.New(client, dynamicinformer.WithLabelSelector(churn.ColorLabel+"=red")); err != nil {
			return nil, err
		}
		informer := s.factory.ForResource(env.World.Resource("t1", "v1")).Informer()
		for _, handler := range []cache.ResourceEventHandler{s.controller, s.events} {
			if _, err := informer.AddEventHandler(handler); err != nil {
				return nil, err
			}
		}
		s.factory.Start(context.WithoutCancel(ctx)) // until Stop
		return s, nil
	}
}

// Profile returns what scripts may use. The controller has no discovery, no status and no leases: scripts do not delete the type or
// create it again, they do not change its versions, revoke no permission, and have no operations of the subject.
func Profile() churn.Profile {
	without := []string{churn.Undefine, churn.Terminate, churn.Redefine, churn.Serve, churn.Forbid, churn.Allow}
	for verb, usage := range churn.Verbs {
		if usage.Subject {
			without = append(without, verb)
		}
	}
	return churn.Profile{Types: 1, Without: without}
}

// subject is a controller with its informer.
type subject struct {
	env        churn.Environment
	factory    *dynamicinformer.Factory
	controller Controller
	events     *churn.Recorder
}

// Do ignores operations on leases and handlers, which the controller does not have.
func (s *subject) Do(context.Context, churn.Op) error { return nil }

// Settle does nothing: the informer tries again by itself.
func (s *subject) Settle() {}

// AtRest compares the copies with the objects of the server.
func (s *subject) AtRest(context.Context) []churn.Violation {
	if crd, number := s.env.World.Incarnation("t1"); number < 0 || !slices.Contains(crd.Served, "v1") {
		return nil
	}
	return churn.Compare("the mirror", s.env.World.Want(s.events.View), s.controller.Copies())
}

// Stop checks all events that the controller has got.
func (s *subject) Stop(ctx context.Context) []churn.Violation {
	if err := s.factory.Shutdown(ctx); err != nil {
		return []churn.Violation{{Invariant: churn.Released, Text: err.Error()}}
	}
	s.events.Removed(0) // Shutdown has waited for all calls
	return s.events.Check(s.env.World)
}
