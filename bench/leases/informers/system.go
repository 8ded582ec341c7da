package informers

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// System is one way.
type System struct {
	Name string
	// About says what it is, in a few words.
	About string
	// Open makes what has informers on the server that cfg reaches. It runs until ctx
	// ends.
	Open func(ctx context.Context, cfg *rest.Config) (*Set, error)
}

// Set is a system at work.
type Set struct {
	// Arm makes an informer on a type, and starts it.
	Arm func(ctx context.Context, gvr schema.GroupVersionResource) (*Informer, error)
	// Stop ends all informers, once the context of Open has ended, and waits for them.
	Stop func(ctx context.Context) error
}

// Informer is one informer. What it does not have is nil.
type Informer struct {
	// Handle adds a handler.
	Handle func(handler cache.ResourceEventHandler) error
	// Synced waits until the type that is there has been listed.
	Synced func(ctx context.Context) error
	// Gone waits until the informer knows that its type is not there.
	Gone func(ctx context.Context) error
}

// The names of systems.
const (
	ClientGo = "client-go"
	ByHand   = "by hand"
	Alone    = "alone"
	GVRKit   = "gvrkit"
)

// All returns the systems that there are.
func All() []System {
	return []System{
		{Name: ClientGo, About: "dynamicinformer, ForResource and Start", Open: openClientGo},
		{Name: ByHand, About: "the same, stopped and started by an informer on CRDs", Open: openByHand},
		{Name: Alone, About: "client-go's informer on a watch that never ends: the least that one costs which waits", Open: openAlone},
		{Name: GVRKit, About: "dynamicinformer.NewForConfig, Acquire with AllowAbsent", Open: openGVRKit},
	}
}

// Named returns the system called name.
func Named(name string) (System, error) {
	var names []string
	for _, s := range All() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return System{}, fmt.Errorf("no system %q; there are %s", name, strings.Join(names, ", "))
}
